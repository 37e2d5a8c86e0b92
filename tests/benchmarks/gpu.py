"""Checks and times of the CUDA kernels where there is a GPU: `python -m tests.benchmarks.gpu`.

At most five minutes. Writes one JSON under tests/benchmarks/results, named by date and device;
exits 1 where something does not hold, and 4, writing nothing, where there is no CUDA device.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from strategies.kernels.cuda.device import PACKAGES, CudaReport, require_device
from trader.core.errors import EndpointError

SCHEMA_VERSION = 1
RESULTS = Path(__file__).parent / "results"
MOST_SECONDS = 285.0
TOOL_SECONDS = 45.0
OUR_PACKAGES = ("debate-trader", "numpy", "numba", "llvmlite", "cuda-core", "cuda-toolkit")
FOUND = 9  # exit status of a sanitizer that found something
WATCHED = ("inst_issued", "warps_active")
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
SMALL = "tests.benchmarks.gpu_small"  # few launches of every kernel, for tools that slow them down


def main(arguments: list[str] | None = None) -> int:
    """Everything in its order; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gpu", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the JSON")
    folder = parser.parse_args(arguments).results
    began = time.monotonic()
    try:
        report = require_device()
        if report.simulated:
            raise EndpointError("no CUDA device: numba only simulates one here")
    except EndpointError as exc:
        _tell(str(exc))
        return 4

    def left() -> float:
        return MOST_SECONDS - (time.monotonic() - began)

    body = {"schema_version": SCHEMA_VERSION, "at": _now(), "machine": machine(report)}
    body |= measured(report, left)
    body["seconds"] = time.monotonic() - began
    path = folder / f"gpu-{_now()[:10]}-{_slug(report.devices[0].name)}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    _tell(f"written: {path}")
    return 0 if body["holds"] else 1


def measured(report: CudaReport, left: Any) -> dict[str, Any]:
    """Builds, checks, times and tools; every later part gives way when time is short."""
    from tests.benchmarks import gpu_checks, gpu_times

    device = report.devices[0]
    _tell("building every kernel")
    built = build(device.compute_capability)
    _tell("checking against the CPU")
    checks = gpu_checks.everything()
    _tell("the scan of a long series")
    scan = gpu_times.scan()
    times = []
    for timing in gpu_times.sweeps(device, left):
        times.append(timing)
        _tell(f"sweep {json.dumps({key: timing[key] for key in ('dtype', 'symbols', 'sets')})}")
    tools = {name: sanitized(name, left) for name in SANITIZERS} | {"ncu": profiled(left)}
    run = [timing for timing in times if "skipped" not in timing]
    return {
        "built": built,
        "checks": checks,
        "scan": scan,
        "sweeps": times,
        "tools": tools,
        "clocks": _asked("nvidia-smi", "--query-gpu=clocks.sm,clocks.max.sm", "--format=csv"),
        "holds": bool(
            checks["holds"]
            and scan["still_right"]
            and all(timing["possible"] and timing["still_right"] for timing in run)
            and not any(tool["status"] == "found something" for tool in tools.values())
        ),
    }


def machine(report: CudaReport) -> dict[str, Any]:
    """Versions, device and driver: a figure means nothing without them."""
    versions: dict[str, str | None] = {}
    for name in (*OUR_PACKAGES, *PACKAGES):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "devices": [asdict(device) for device in report.devices],
        "driver": report.driver,
        "driver_supports": report.supports,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": versions,
        "nvidia_smi": _asked("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv"),
    }


def build(capability: tuple[int, int]) -> dict[str, Any]:
    """Every kernel in both precisions for this device: registers, spills, seconds."""
    from strategies.kernels.cuda.compile_only import compile_all

    began, found = time.monotonic(), {}
    for made in compile_all(capabilities=(capability,)):
        found[f"{made.name} {made.dtype}"] = {
            "registers": made.registers,
            "spill_bytes": made.spill_bytes,
            "shared_bytes": made.shared_bytes,
            "occupancy": made.occupancy.fraction,
            "faults": list(made.faults),
        }
    return {"seconds": time.monotonic() - began, "kernels": found}


def sanitized(name: str, left: Any) -> dict[str, str]:
    """What one of compute-sanitizer's tools says of a few launches of every kernel."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return {"status": "not available", "said": "compute-sanitizer is not installed"}
    command = [tool, "--tool", name, "--error-exitcode", str(FOUND), sys.executable, "-m", SMALL]
    return _ran(command, left, clean=("ERROR SUMMARY: 0 errors", "0 hazards"))


def profiled(left: Any) -> dict[str, str]:
    """Issue slots of the sweep by Nsight Compute, where it may look."""
    tool = shutil.which("ncu")
    if tool is None:
        return {"status": "not available", "said": "ncu is not installed"}
    metrics = ",".join(f"sm__{name}.avg.pct_of_peak_sustained_active" for name in WATCHED)
    command = [tool, "--metrics", metrics, "-k", "regex:walk_lanes", sys.executable, "-m", SMALL]
    return _ran(command, left, clean=("inst_issued",))


def _ran(command: list[str], left: Any, *, clean: tuple[str, ...]) -> dict[str, str]:
    seconds = min(TOOL_SECONDS, left())
    if seconds < 5.0:
        return {"status": "skipped", "said": "time is up"}
    try:
        done = subprocess.run(
            command,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"status": "not available", "said": f"not done after {seconds:.0f} s"}
    said = (done.stdout + done.stderr)[-2_000:]
    if done.returncode == 0 and any(words in said for words in clean):
        return {"status": "clean", "said": said}
    if done.returncode == FOUND:
        return {"status": "found something", "said": said}
    return {"status": "not available", "said": said}


def _asked(*command: str) -> str | None:
    """What a program prints; None where there is none or it fails."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    raise SystemExit(main())
