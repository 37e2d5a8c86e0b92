"""`trader kernels`: four commands, their words, their JSON and their exit codes."""

from __future__ import annotations

import json
import sys

import pytest

from strategies.kernels import cpu
from strategies.kernels.cuda.device import cuda_report
from trader.app import kernel_work
from trader.cli import kernels as front_words
from trader.cli import main as front

COMPILES = cuda_report().compiles


@pytest.fixture
def trader(monkeypatch, capsys, tmp_path):
    """Run `trader kernels …`; exit code, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        options = ["--state-dir", str(tmp_path / "state")]
        monkeypatch.setattr(sys, "argv", ["trader", "kernels", *words, *options])
        with pytest.raises(SystemExit) as ended:
            front.main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


@pytest.fixture
def quick(monkeypatch):
    """Short timings: what is tested is not how long they take."""
    monkeypatch.setattr(kernel_work, "BENCH_BARS", 1_000)
    monkeypatch.setattr(kernel_work, "BENCH_REFERENCE_BARS", 100)
    monkeypatch.setattr(kernel_work, "BENCH_SECONDS", 0.0)


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("verify", "obv"),
        ("bench", "obv"),
        pytest.param(
            ("compile", "true_range_bars"),
            marks=pytest.mark.skipif(not COMPILES, reason="the extra cuda is not installed"),
        ),
    ],
)
def test_every_command_prints_words_or_one_json_object(trader, quick, words):
    code, said, _ = trader(*words)
    assert code == 0
    assert {"list": "rsi", "verify": "every result equal"}.get(words[0], words[-1]) in said
    code, said, _ = trader(*words, "--json")
    assert code == 0
    assert said.count("\n") == 1
    assert json.loads(said)["schema_version"] == 1


def test_the_list_names_inputs_parameters_warm_up_and_backends(trader):
    _, said, _ = trader("list")
    row = next(line for line in said.splitlines() if line.strip().startswith("adx"))
    for word in ("high, low, close", "window=14", "NaN before bar 27", "reference, cpu, cuda"):
        assert word in row


def test_a_difference_is_exit_one_with_its_kernel_and_case(trader, monkeypatch):
    right = cpu.obv
    monkeypatch.setattr(cpu, "obv", lambda close, volume: right(close, volume) + 1.0)
    code, said, _ = trader("verify", "obv", "true_range")
    assert code == 1
    assert "obv: random walk 0: obv[0] is" in said
    assert "DIFFERENT: 2 kernels on cpu" in said
    assert "true_range:" not in said
    code, said, _ = trader("verify", "obv", "--json")
    assert code == 1
    assert json.loads(said)["differences"][0]["kernel"] == "obv"


def test_many_differences_are_counted_not_shown(trader, monkeypatch):
    monkeypatch.setattr(cpu, "obv", lambda close, volume: close - 1.0)
    monkeypatch.setattr(front_words, "SHOWN", 2)
    _, said, _ = trader("verify", "obv")
    assert sum(line.startswith("obv:") for line in said.splitlines()) == 2
    assert "and " in said
    assert " more" in said


def test_an_unknown_kernel_is_exit_two_with_a_guess(trader):
    code, said, complaint = trader("verify", "maccd")
    assert (code, said) == (2, "")
    assert "did you mean macd" in complaint


def test_an_unknown_backend_is_exit_two(trader):
    code, _, complaint = trader("verify", "obv", "--backend", "tpu")
    assert code == 2
    assert "choose one of cpu, cuda" in complaint


@pytest.mark.skipif(cuda_report().ready, reason="there is a device")
def test_cuda_without_a_device_is_exit_four_and_says_what_is_missing(trader):
    code, _, complaint = trader("verify", "obv", "--backend", "cuda")
    assert code == 4
    assert "driver" in complaint


@pytest.mark.skipif(COMPILES, reason="the extra cuda is installed")
def test_compiling_without_the_extra_is_exit_four_with_the_remedy(trader):
    code, _, complaint = trader("compile")
    assert code == 4
    assert "pip install -e '.[cuda]'" in complaint


@pytest.mark.skipif(not COMPILES, reason="the extra cuda is not installed")
def test_a_kernel_over_its_budget_is_exit_one_and_named(trader, monkeypatch):
    from strategies.kernels.cuda import launch as cuda_launch
    from strategies.kernels.cuda.compile_only import registry

    kernel = registry()["true_range_bars"]
    monkeypatch.setitem(cuda_launch.KERNELS, kernel.name, type(kernel)(**tight(kernel)))
    code, said, _ = trader("compile", kernel.name, "-q")
    assert code == 1
    assert "its budget is 1" in said
    assert "6 compiled, 6 over budget" in said


def tight(kernel) -> dict[str, object]:
    """The fields of a kernel that may use one register."""
    fields = {name: getattr(kernel, name) for name in kernel.__slots__}
    return fields | {"registers": (1, 1)}
