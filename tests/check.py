"""Everything a developer needs to know before a commit: `python -m tests.check`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("trader", "agents", "strategies", "tests")
STEPS: tuple[tuple[str, ...], ...] = (
    ("ruff", "format", "--check", *PACKAGES),
    ("ruff", "check", *PACKAGES),
    ("mypy",),
    ("importlinter", "lint"),
    ("pytest", "-n", "2"),
)


def main(arguments: list[str]) -> int:
    """Run every step from the repository's root; the exit status of the first that fails.

    arguments  handed on to pytest
    """
    for step in STEPS:
        command = [sys.executable, "-m", *step]
        if step[0] == "importlinter":
            command = [
                sys.executable,
                "-c",
                "from importlinter.cli import lint_imports_command as c; c()",
            ]
        if step[0] == "pytest":
            command += arguments
        print(f"── {' '.join(step)}", flush=True)  # noqa: T201
        status = subprocess.run(command, cwd=ROOT, check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
