"""Few launches of every CUDA kernel, for tools that slow each of them down a hundredfold."""

from __future__ import annotations

from tests.benchmarks import gpu_checks

if __name__ == "__main__":
    gpu_checks.indicators()
    gpu_checks.crossings()
    gpu_checks.scans((66, 2_500))
    gpu_checks.sweep(256, 300, 8)
