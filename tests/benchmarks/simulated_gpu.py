"""Run on the CUDA simulator by test_gpu: the GPU script's checks and timing, tiny, as JSON.

Its times mean nothing; that every line of it runs does.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

from strategies.kernels import reference
from strategies.kernels.cuda.device import Device
from strategies.kernels.engines import walk_reference
from tests.benchmarks import gpu_checks, gpu_times

DEVICE = Device(
    name="simulated",
    compute_capability=(9, 0),
    memory_bytes=1,
    multiprocessors=132,
    clock_khz=1_980_000,
)


class Event:
    """An event of a device that has no clock."""

    def __init__(self, timing: bool) -> None:
        """Nothing yet."""

    def record(self) -> None:
        """Nothing is measured."""


def main() -> None:
    """Print what the checks and the timing say."""
    gpu_times.REPEATS, gpu_times.BARS, gpu_times.RULES = 2, 60, 4
    gpu_times.SIZES, gpu_times.SCANNED = ((2, 20),), 100
    # the CPU's own engines do not compile beside the simulator
    gpu_checks.walk, gpu_times.cpu = walk_reference, reference
    gpu_times.cuda.event = Event
    gpu_times.cuda.event_elapsed_time = lambda begin, end: 1.0
    occupancy = SimpleNamespace(fraction=0.5)
    gpu_times.compile_kernel = lambda *names: SimpleNamespace(
        loop_instructions=200, registers=60, occupancy=occupancy
    )
    found = {
        "sweep": gpu_checks.sweep(64, 100, 8),
        "scans": gpu_checks.scans((66,)),
        "times": list(gpu_times.sweeps(DEVICE, lambda: 100.0)),
        "late": list(gpu_times.sweeps(DEVICE, lambda: 1.0)),
        "scan": gpu_times.scan(),
        "ceiling": gpu_times.issue_ceiling(DEVICE),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
