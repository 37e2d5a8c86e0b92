"""The GPU script refuses a machine without a device, and all its parts run on the simulator."""

from __future__ import annotations

import subprocess

import pytest

from strategies.kernels.cuda.device import cuda_report
from tests.benchmarks import gpu
from tests.strategies.kernels.processes import told_by

WITHOUT = not cuda_report().devices


@pytest.mark.skipif(not WITHOUT, reason="there is a CUDA device")
def test_without_a_device_it_exits_4_says_so_and_writes_nothing(tmp_path, capsys):
    assert gpu.main(["--results", str(tmp_path / "results")]) == 4
    assert capsys.readouterr().err.startswith("no CUDA device: ")
    assert not (tmp_path / "results").exists()


def test_every_check_and_every_timing_runs_on_the_simulator():
    told = told_by("tests.benchmarks.simulated_gpu", simulator=True)
    assert told["sweep"]["holds"]
    assert told["sweep"]["bitwise"]
    assert told["sweep"]["trades"] > 100
    assert all(scan["holds"] for scan in told["scans"].values())
    assert [(time["dtype"], time["symbols"]) for time in told["times"]] == [
        ("float32", 2),
        ("float64", 2),
    ]
    for time in told["times"]:
        assert time["still_right"]
        assert time["possible"]
        assert time["set_bars_per_second"] == 2 * 20 * 40 * 1_000.0
    assert {time["skipped"] for time in told["late"]} == {"time"}
    assert told["scan"]["still_right"]
    assert told["ceiling"] == pytest.approx(132 * 4 * 32 * 1.98e9)


def test_a_tool_that_is_not_there_or_fails_is_not_available(monkeypatch):
    monkeypatch.setattr(gpu.shutil, "which", lambda name: None)
    assert gpu.sanitized("memcheck", lambda: 99.0)["status"] == "not available"
    assert gpu.profiled(lambda: 99.0)["status"] == "not available"
    monkeypatch.setattr(gpu.shutil, "which", lambda name: f"/usr/bin/{name}")
    said = {"code": 0, "words": "ERROR SUMMARY: 0 errors"}

    def ran(command, **options):
        return subprocess.CompletedProcess(command, said["code"], said["words"], "")

    monkeypatch.setattr(gpu.subprocess, "run", ran)
    assert gpu.sanitized("memcheck", lambda: 99.0)["status"] == "clean"
    assert gpu.sanitized("memcheck", lambda: 1.0)["status"] == "skipped"
    said.update(code=gpu.FOUND, words="ERROR SUMMARY: 3 errors")
    assert gpu.sanitized("memcheck", lambda: 99.0)["status"] == "found something"
    said.update(code=0, words="LibraryNotLoaded")
    assert gpu.profiled(lambda: 99.0)["status"] == "not available"
