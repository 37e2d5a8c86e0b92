"""A module run in a Python of its own, and what it printed: numba reads its settings at import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]


def told_by(*arguments: str, simulator: bool) -> Any:
    """The JSON that `python -m arguments...` prints."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1" if simulator else "0"}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout)
