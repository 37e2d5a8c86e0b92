"""The benchmarks: `python -m tests.benchmarks` the kernels, `… program` the program itself.

The kernels do the same work as other libraries (extra `bench`), in one process: results are
compared first, then times. A library that is missing is skipped, never passed. Exit 1 where results
disagree or an "at least" is missed on a machine at rest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.rows import Row, table

SCHEMA_VERSION = 1
BUSY = 0.5  # load a core before the start, from which on times are not to be trusted
SECTIONS = ("sweeps", "walks", "indicators", "accuracy", "start")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, print the table, and write it as JSON where asked."""
    asked = _parser().parse_args(arguments)
    if asked.what == "program":
        from tests.benchmarks import run

        run.main()
        return 0
    body, rows = measure(tuple(asked.only or SECTIONS), tell=_tell)
    print(report(body, rows))  # noqa: T201
    if asked.json is not None:
        asked.json.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    return verdict(rows, busy=body["busy"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("kernels", "program"), default="kernels")
    parser.add_argument(
        "--only", action="append", choices=SECTIONS, help="one part of the table; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    return parser


def measure(
    sections: Sequence[str], *, tell: Callable[[str], None] = lambda _: None
) -> tuple[dict[str, Any], list[Row]]:
    """Everything that was measured as one JSON object, and the rows of the table."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    tell("ceilings of this machine")
    from tests.benchmarks import ceilings

    roofs = ceilings.measure()
    rows: list[Row] = []
    for section in sections:
        tell(section)
        rows += _section(section, roofs, tell)
    body = {
        "schema_version": SCHEMA_VERSION,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "processor": _processor(),
            "cores": cores,
            "python": platform.python_version(),
            "packages": _packages(),
        },
        "load_before": load,
        "busy": load > BUSY * cores,
        "ceilings": asdict(roofs),
        "rows": [row.as_json() for row in rows],
    }
    return body, rows


def _section(section: str, roofs: Any, tell: Callable[[str], None]) -> list[Row]:
    from tests.benchmarks import accuracy, indicators, starts, sweeps, walks

    if section == "sweeps":
        return sweeps.rows(sweeps.Scale(), roofs, tell)
    if section == "walks":
        return walks.rows(sweeps.Scale())
    if section == "indicators":
        return indicators.rows()
    if section == "accuracy":
        return accuracy.rows()
    return [starts.row()]


def report(body: dict[str, Any], rows: Sequence[Row]) -> str:
    """The table with the machine and its ceilings above it."""
    machine, roofs = body["machine"], body["ceilings"]
    reads = ", ".join(f"{level} {rate:.0f}" for level, rate in roofs["read_gb_s"].items())
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    busy = " — BUSY: times of this run are not to be trusted" if body["busy"] else ""
    return "\n".join(
        (
            f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}; "
            f"load before {body['load_before']:.2f}{busy}",
            packages,
            f"one core reads {reads} GB/s and does {roofs['fma_gflop_s']:.0f} GFLOP/s of FMA",
            "",
            table(rows),
        )
    )


def verdict(rows: Sequence[Row], *, busy: bool) -> int:
    """Exit code: 1 where results disagree, or an "at least" is missed though nothing else runs."""
    if any(row.status in {"disagrees", "failed"} for row in rows):
        return 1
    missed = any(row.verdict(row.at_least) == "missed" for row in rows)
    return int(missed and not busy)


def _packages() -> dict[str, str]:
    from tests.benchmarks.peers import installed

    names = ("numpy", "numba", "vectorbt", "raptorbt", "TA-Lib", "ta")
    return {name: installed(name) or "missing" for name in names}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _tell(what: str) -> None:
    print(f"… {what}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
