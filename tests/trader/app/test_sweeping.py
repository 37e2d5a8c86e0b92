"""The sweep as a person gets it: honest figures, one JSON, a page, a file that can be used."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from strategies.kernels.engines.lanes import METRICS, Outcomes
from strategies.sweep.engine import Sweep
from strategies.sweep.grid import parse_grid
from tests.trader.app.conftest import opened
from trader.app import sweeping
from trader.app.sweep_accounts import hold_accounts, open_accounts
from trader.app.sweep_files import CsvStream, parameter_file, require_room, write_parameters
from trader.app.sweep_plan import SweepRequest, plan
from trader.core.clock import new_york
from trader.core.config import load_config
from trader.core.errors import (
    DataIntegrityError,
    OrderRefusedError,
    StateError,
    UsageError,
)
from trader.core.metrics import max_drawdown, sharpe
from trader.report.sweep_page import write_sweep_page

FIRST = date(2024, 1, 2)
GRID = "fast=4:10:2,slow=8:24:4"  # 20 sets, of which fast=8,slow=8 and fast=10,slow=8 do not fit


def asked(grid: str = GRID, **given) -> SweepRequest:
    return SweepRequest(**{"strategy": "sma_cross", "start": FIRST, "grid": grid, **given})


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """One sweep of AAPL for all tests that only look at it."""
    app = opened(tmp_path_factory.mktemp("state"))
    folder = tmp_path_factory.mktemp("csv")
    told: list[tuple[str, int, int]] = []
    result = app.sweep(
        asked(csv=folder / "sets.csv", top=5),
        progress=lambda name, done, of: told.append((name, done, of)),
    )
    return app, result, told


def rows_of(path) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(path).read_text().splitlines()))


def test_sets_are_counted_and_those_that_do_not_fit_are_skipped(swept):
    _, result, _ = swept
    assert (result.sets, result.run, result.skipped) == (20, 18, 2)
    assert result.partial is False
    assert result.engine
    assert result.backend
    assert result.reason


def test_the_top_is_that_of_every_set_in_the_csv(swept):
    _, result, _ = swept
    rows = rows_of(result.csv)
    assert len(rows) == 20
    ran = [row for row in rows if row["trades"]]
    assert len(ran) == 18
    best = sorted(ran, key=lambda row: -float(row["sharpe"]))[:5]
    assert [(float(row["fast"]), float(row["slow"])) for row in best] == [
        (row.parameters["fast"], row.parameters["slow"]) for row in result.top
    ]
    for row, shown in zip(best, result.top, strict=True):
        for name in ("final_equity", "sharpe", "max_drawdown", "exposure"):
            assert float(row[name]) == getattr(shown.figures, name)
        assert int(row["trades"]) == shown.figures.trades
    skipped = [row for row in rows if not row["trades"]]
    assert all(float(row["fast"]) >= float(row["slow"]) for row in skipped)
    assert all(row["final_equity"] == row["sharpe"] == "" for row in skipped)


def test_buy_and_hold_is_the_stock_itself(swept):
    app, result, _ = swept
    planned = plan(app, asked())
    bars, first = planned.coverage.series["AAPL"], planned.first["AAPL"]
    fill = bars.open[first + 1] * 1.0005
    assert result.buy_and_hold.final_equity == pytest.approx(100_000 * bars.close[-1] / fill)
    equity = np.concatenate(([100_000.0], 100_000 * bars.close[first + 1 :] / fill))
    assert result.buy_and_hold.sharpe == pytest.approx(sharpe(equity, 100_000.0, 252.0))
    assert result.buy_and_hold.max_drawdown == pytest.approx(max_drawdown(equity, 100_000.0))
    assert (result.buy_and_hold.trades, result.buy_and_hold.open_trades) == (0, 1)


def test_the_configured_numbers_are_a_set_like_any_other(swept):
    app, result, _ = swept
    alone = app.sweep(asked("fast=20,slow=50"), progress=None)
    assert alone.top[0].figures == result.defaults
    assert alone.luck.sentence.startswith("the one set ")


def test_neighbours_are_sets_of_the_grid(swept):
    _, result, _ = swept
    rows = {(float(row["fast"]), float(row["slow"])): row["sharpe"] for row in rows_of(result.csv)}
    best = result.top[0].parameters
    for near in result.neighbours:
        assert near.values[2] == best[near.name]
        for value, score in zip(near.values, near.scores, strict=True):
            if value is not None:
                where = {**best, near.name: value}
                written = rows[where["fast"], where["slow"]]
                assert score == (float(written) if written else None)


def test_luck_is_told_in_full(swept):
    _, result, _ = swept
    luck = result.luck
    assert luck.better is (not luck.against)
    assert luck.trials == 18
    assert luck.cross_validated == 18
    assert luck.splits == 12_870
    assert len(luck.folds) == 4
    for fold in luck.folds:
        assert fold.train_last < fold.test_first <= fold.test_last
        assert fold.train_first == FIRST
    assert luck.folds[-1].test_last == result.last_session
    assert 0.0 <= luck.deflated_sharpe <= 1.0
    assert 0.0 <= luck.overfitting_probability <= 1.0
    assert luck.sentence.startswith("the best of 18 sets ")


def test_the_json_is_one_object_without_gaps(swept):
    _, result, _ = swept
    body = result.as_json()
    assert {
        "schema_version",
        "source",
        "grid",
        "sets",
        "skipped",
        "engine",
        "backend",
        "reason",
        "partial",
        "top",
        "luck",
        "report",
        "buy_and_hold",
        "defaults",
    } <= set(body)
    assert body["schema_version"] == 1
    assert body["source"]["sha256"] == result.source.sha256
    assert body["top"][0]["rank"] == 1
    assert body["top"][0]["sharpe"] == result.top[0].figures.sharpe
    assert set(body["top"][0]["parameters"]) == {"fast", "slow"}
    json.dumps(body, allow_nan=False)


def test_the_same_sweep_again_differs_in_nothing_but_its_times(swept):
    app, result, _ = swept
    page = Path(result.report).read_bytes()
    again = app.sweep(asked(csv=Path(result.csv), top=5), progress=None)
    first, second = result.as_json(), again.as_json()
    assert {**first, "timing": None} == {**second, "timing": None}
    assert Path(again.report).read_bytes() == page


def test_progress_counts_sets_and_then_the_tests(swept):
    _, _, told = swept
    assert told[:2] == [("sets", 0, 20), ("sets", 20, 20)]
    assert {name for name, _, _ in told} == {"sets", "walk-forward", "cross-validation"}
    assert all(0 <= done <= of for _, done, of in told)


def test_the_page_shows_what_the_result_says(swept):
    _, result, _ = swept
    page = Path(result.report).read_text()
    assert result.run_id in page
    assert result.luck.sentence[1:] in page
    assert result.source.sha256 in page


def test_blocks_change_nothing(swept, tmp_path, monkeypatch):
    _, result, _ = swept
    monkeypatch.setattr("strategies.sweep.accounts.BLOCK", 7)
    app = opened(tmp_path)
    again = app.sweep(asked(top=5, csv=tmp_path / "sets.csv"), progress=None)
    assert again.top == result.top
    assert again.luck == result.luck
    assert Path(again.csv).read_text() == Path(result.csv).read_text()


def test_an_interruption_keeps_what_was_done_and_says_partial(tmp_path, monkeypatch):
    monkeypatch.setattr("strategies.sweep.accounts.BLOCK", 7)
    app = opened(tmp_path)

    def interrupt(name, done, of):
        assert name == "sets"
        if done == 14:
            raise KeyboardInterrupt

    result = app.sweep(asked(csv=tmp_path / "sets.csv"), progress=interrupt)
    assert result.partial is True
    assert result.run + result.skipped == 14
    assert result.luck is None
    assert result.run_id.endswith("-partial")
    assert any("interrupted after 14 of 20 sets" in notice for notice in result.notices)
    assert "interrupted" in Path(result.report).read_text()
    assert not (tmp_path / "sets.csv").exists()
    assert result.csv == str(tmp_path / "sets.csv.partial")
    assert len(rows_of(result.csv)) == 14
    assert result.top


def test_an_interruption_while_the_last_sets_are_written_leaves_the_csv_partial(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("strategies.sweep.accounts.BLOCK", 15)
    add = CsvStream.add

    def interrupt(stream, start, outcomes):
        if start:
            raise KeyboardInterrupt
        add(stream, start, outcomes)

    monkeypatch.setattr(CsvStream, "add", interrupt)
    result = opened(tmp_path).sweep(asked(csv=tmp_path / "sets.csv"), progress=None)
    assert result.partial is True
    assert result.csv == str(tmp_path / "sets.csv.partial")
    assert not (tmp_path / "sets.csv").exists()
    assert len(rows_of(result.csv)) == 15


def test_an_interruption_of_the_report_still_writes_what_is_known(tmp_path, monkeypatch):
    write, calls = write_sweep_page, []

    def interrupt(contents):
        calls.append(contents)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return write(contents)

    monkeypatch.setattr("trader.app.sweeping.write_sweep_page", interrupt)
    result = opened(tmp_path).sweep(asked(), progress=None)
    assert result.partial is True
    assert Path(result.report).exists()
    assert result.luck is not None


def test_an_interruption_of_the_tests_keeps_every_set(tmp_path):
    app = opened(tmp_path)

    def interrupt(name, done, of):
        if name == "walk-forward" and done:
            raise KeyboardInterrupt

    result = app.sweep(asked(csv=tmp_path / "sets.csv", apply_rank=1), progress=interrupt)
    assert result.partial is True
    assert result.luck is None
    assert result.run == 18
    assert len(rows_of(tmp_path / "sets.csv")) == 20
    assert "interrupted" in result.applied.refused


def test_an_interruption_before_the_first_block_leaves_nothing(tmp_path, monkeypatch):
    app = opened(tmp_path)

    def refuse(results, start, found):
        raise KeyboardInterrupt

    monkeypatch.setattr("strategies.sweep.results.Results.add", refuse)
    with pytest.raises(KeyboardInterrupt):
        app.sweep(asked(), progress=None)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"grid": "fats=5:50"}, UsageError, "did you mean fast"),
        ({"grid": "slow=200:20"}, UsageError, "the low end is above the high"),
        ({"grid": "fast=0:5"}, UsageError, "fast=0: a window is 1 bar or longer"),
        ({"grid": "stop_window=0:5"}, UsageError, "a window is 1 bar or longer"),
        ({"grid": "stop_atr=-1:2"}, UsageError, "stop_atr=-1: it begins at 0"),
        ({"grid": "max_bars=-5:5"}, UsageError, "max_bars=-5: it begins at 0"),
        (
            {"grid": "slow=20:5000"},
            UsageError,
            "a window of 5,000 bars is longer than the 2,914 bars of AAPL",
        ),
        ({"grid": "fast=30:40,slow=5:20"}, UsageError, "fast 30 must be below slow 5"),
        ({"top": 0}, UsageError, "--top 0"),
        ({"rank_by": "shrape"}, UsageError, "did you mean sharpe"),
        ({"engine": "mask"}, UsageError, "did you mean masks"),
        ({"backend": "cdua"}, UsageError, "did you mean cuda"),
        ({"strategy": "sma_cros"}, UsageError, "did you mean sma_cross"),
        ({"apply_rank": 0}, UsageError, "--apply 0"),
        ({"apply_rank": 11}, UsageError, "--apply 11"),
        ({"to_file": Path("x.yaml")}, UsageError, "--apply RANK"),
        ({"csv": Path("/no/where/x.csv")}, UsageError, "there is no folder /no/where"),
        ({"csv": Path("/dev/null")}, UsageError, "--csv /dev/null: is not a file"),
        ({"csv": Path("/tmp") / ("x" * 300)}, UsageError, "File name too long"),
        (
            {"apply_rank": 1, "to_file": Path("/dev/null")},
            UsageError,
            "--to-file /dev/null: is not a file",
        ),
        (
            {"apply_rank": 1, "to_file": Path("x.new"), "csv": Path("./x.new")},
            UsageError,
            "--csv and --to-file both name x.new",
        ),
        ({"start": date(2027, 1, 4)}, DataIntegrityError, "no bars"),
        ({"start": FIRST, "end": date(2023, 1, 3)}, UsageError, "is before --from"),
        ({"start": date(2026, 8, 5)}, DataIntegrityError, "AAPL has 1 bars"),
    ],
)
def test_each_mistake_is_named_with_its_remedy(app, given, error, words):
    with pytest.raises(error) as caught:
        app.sweep(asked(**given), progress=None)
    assert words in str(caught.value)


def test_bars_that_must_not_be_traded_on_are_refused(tmp_path):
    bars = tmp_path / "BAD.csv"
    lines = ["date,open,high,low,close,volume", "2024-01-02,10,11,9,10,100"]
    lines += ["2024-01-03,10,11,9,nan,100", "2024-01-04,10,11,9,10,100"]
    bars.write_text("\n".join(lines) + "\n")
    app = opened(tmp_path / "state", f"data.source=csv:{bars}")
    with pytest.raises(DataIntegrityError, match="BAD"):
        app.sweep(asked("fast=1:2,slow=3"), progress=None)


def test_a_csv_that_does_not_fit_the_disk_is_refused_before_the_start(app, tmp_path):
    path = tmp_path / "sets.csv"
    with pytest.raises(StateError) as caught:
        app.sweep(asked("stop_atr=0:99:0.0001,trail_atr=0:99:0.0001", csv=path), progress=None)
    assert "980,101,980,001 sets take up to" in str(caught.value)
    assert "are free" in str(caught.value)
    assert list(tmp_path.glob("sets*")) == []


def test_a_disk_that_fills_up_is_named_when_the_file_is_closed(tmp_path):
    stream = CsvStream(tmp_path / "sets.csv", parse_grid(GRID, {"fast": 20, "slow": 50}))
    stream.partial = Path("/dev/full")  # takes what is written and fails when it is flushed
    with pytest.raises(StateError, match="cannot be written: No space left"), stream:
        pass
    with pytest.raises(StateError, match="cannot be written: No space left"), stream:
        stream.finish()


def test_the_room_for_a_csv_is_never_underestimated(swept, monkeypatch):
    _, result, _ = swept
    path = Path(result.csv)
    full = shutil.disk_usage(path.parent)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.raises(StateError) as caught:
        require_room(path, parse_grid(GRID, {"fast": 20, "slow": 50}))
    needed = int(str(caught.value).split("up to ")[1].split(" ")[0].replace(",", ""))
    assert path.stat().st_size <= needed < 4 * path.stat().st_size


# --apply


def test_what_luck_gives_is_not_applied(app, tmp_path):
    path = tmp_path / "mine.yaml"
    result = app.sweep(asked(apply_rank=1, to_file=path), progress=None)
    assert not result.luck.better
    assert result.applied.path is None
    assert result.applied.refused == f"--apply 1 is refused: {result.luck.sentence}"
    assert not path.exists()
    assert list(Path(result.report).parent.glob("*.yaml")) == []


def a_market_with_an_edge(folder: Path) -> Path:
    """A price that swings by weeks around a level: every fall is followed by a rise."""
    rng = np.random.default_rng(3)
    days = [f"{day}" for day in new_york().between(date(2021, 7, 1), date(2025, 12, 31))]
    wave = np.sin(2.0 * np.pi * np.arange(len(days)) / 40.0)
    close = 100.0 * np.exp(0.15 * wave + np.cumsum(rng.normal(0.0, 0.002, len(days))))
    lines = ["# adjustment: splits and dividends", "date,open,high,low,close,volume"]
    for day, before, now in zip(days, np.concatenate(([close[0]], close[:-1])), close, strict=True):
        high, low = max(before, now) * 1.002, min(before, now) * 0.998
        lines.append(f"{day},{before:.4f},{high:.4f},{low:.4f},{now:.4f},1000000")
    path = folder / "EDGE.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_planted_edge_is_applied_and_the_file_is_a_configuration(tmp_path):
    source = f"data.source=csv:{a_market_with_an_edge(tmp_path)}"
    app = opened(tmp_path / "state", source, "risk.atr_multiple=5")
    path = tmp_path / "mine.yaml"
    result = app.sweep(
        SweepRequest(
            strategy="sma_cross",
            start=date(2021, 10, 1),
            grid="fast=2:6:2,slow=9:54:9",
            apply_rank=2,
            to_file=path,
            command="trader sweep --grid x\n# injected: 1",
        ),
        progress=None,
    )
    assert result.luck.better, result.luck.sentence
    assert result.applied.path == str(path)
    assert result.applied.refused is None
    text = path.read_text()
    chosen = result.top[1].parameters
    config = load_config(path, profile=None, overrides=(), environ={}).config
    assert config.strategies.enabled == ("sma_cross",)
    assert config.strategies.parameters.sma_cross.fast == chosen["fast"]
    assert config.strategies.parameters.sma_cross.slow == chosen["slow"]
    assert (config.risk.atr_multiple, config.risk.atr_window) == (5.0, 14)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert len(comments) == 6
    for words in (
        "rank 2 of",
        "luck: rank 2 of 18 sets is better than luck (",
        result.source.sha256,
        f"{result.first_session} to {result.last_session}",
        "command: trader sweep --grid x # injected: 1",
    ):
        assert words in text
    with pytest.raises(UsageError, match="exists already"):
        app.sweep(asked(apply_rank=1, to_file=path), progress=None)


def test_a_rank_that_is_no_better_than_luck_is_not_applied_beside_a_best_that_is(tmp_path):
    source = f"data.source=csv:{a_market_with_an_edge(tmp_path)}"
    app = opened(tmp_path / "state", source, "risk.atr_multiple=5")
    request = SweepRequest(
        strategy="sma_cross",
        start=date(2021, 10, 1),
        grid="fast=2:20:2,slow=9:54:9",
        top=60,
        apply_rank=1,
    )
    best = app.sweep(request, progress=None)
    assert best.luck.better
    assert best.applied.path
    worst = len(best.top)
    assert best.top[-1].figures.final_equity < 100_000.0
    result = app.sweep(replace(request, apply_rank=worst), progress=None)
    assert result.luck == best.luck
    assert result.applied.path is None
    assert result.applied.refused.startswith(
        f"--apply {worst} is refused: rank {worst} of {result.run} sets is what luck alone"
    )


NUMBERS = {
    "fast": 5.0,
    "slow": 26.0,
    "stop_atr": 2.5,
    "stop_window": 14,
    "target_atr": 0.0,
    "trail_atr": 0.0,
    "max_bars": 0,
}


@pytest.mark.parametrize(
    ("name", "value"), [("target_atr", 3.0), ("trail_atr", 1.5), ("max_bars", 10), ("stop_atr", 0)]
)
def test_numbers_without_a_setting_are_refused_with_the_reason(name, value):
    with pytest.raises(OrderRefusedError, match=f"{name} {value:g}"):
        parameter_file("sma_cross", {**NUMBERS, name: value}, ())


def test_numbers_that_the_configuration_forbids_leave_no_file(tmp_path):
    path = tmp_path / "x.yaml"
    text = parameter_file("sma_cross", {**NUMBERS, "slow": 2_001.0}, ("a comment",))
    with pytest.raises(OrderRefusedError, match="slow"):
        write_parameters(path, text)
    assert list(tmp_path.iterdir()) == []


# several symbols


def test_several_symbols_are_ranked_by_their_mean(tmp_path):
    period = {"start": date(2019, 1, 2), "end": date(2019, 12, 31)}
    symbols = ("AAPL", "MSFT")
    each = {}
    for symbol in symbols:
        app = opened(tmp_path / symbol, f"symbols=[{symbol}]")
        path = tmp_path / f"{symbol}.csv"
        app.sweep(asked(**period, csv=path), progress=None)
        each[symbol] = rows_of(path)
    both = opened(tmp_path / "both", "symbols=[AAPL,MSFT]")
    result = both.sweep(asked(**period, csv=tmp_path / "both.csv", top=20), progress=None)
    for place, row in enumerate(rows_of(tmp_path / "both.csv")):
        parts = [each[symbol][place] for symbol in symbols]
        if not row["trades"]:
            assert not any(part["trades"] for part in parts)
            continue
        for name in ("sharpe", "final_equity", "max_drawdown"):
            mean = sum(float(part[name] or 0.0) for part in parts) / 2
            assert float(row[name]) == pytest.approx(mean)
        assert int(row["trades"]) == sum(int(part["trades"]) for part in parts)
    scores = [row.figures.sharpe for row in result.top]
    assert scores == sorted(scores, reverse=True)
    assert result.luck.trials == 2 * 18
    turned = opened(tmp_path / "turned", "symbols=[MSFT,AAPL]")
    again = turned.sweep(asked(**period, top=20), progress=None)
    assert [row.parameters for row in again.top] == [row.parameters for row in result.top]
    for one, other in zip(again.top, result.top, strict=True):
        assert one.figures.sharpe == pytest.approx(other.figures.sharpe)


def test_shared_cash_is_one_account_for_all_symbols(tmp_path):
    period = {"start": date(2019, 1, 2), "end": date(2019, 12, 31), "grid": "fast=4:6,slow=20"}
    app = opened(tmp_path, "symbols=[AAPL,MSFT]")
    result = app.sweep(asked(**period, shared_cash=True), progress=None)
    assert result.engine == "bars"
    assert "shared cash" in result.reason
    assert result.luck.trials == 3
    planned = plan(app, asked(**period))
    worth = 0.0
    for symbol, bars in planned.coverage.series.items():
        at = planned.first[symbol] + 1
        worth += 50_000 / (bars.open[at] * 1.0005) * bars.close[-1]
    assert result.buy_and_hold.final_equity == pytest.approx(worth)
    assert result.buy_and_hold.open_trades == 2
    turned = opened(tmp_path / "turned", "symbols=[MSFT,AAPL]")
    assert turned.sweep(asked(**period, shared_cash=True), progress=None).top == result.top
    with pytest.raises(UsageError, match="cannot share cash"):
        app.sweep(asked(**period, shared_cash=True, engine="masks"), progress=None)


def test_whole_shares_and_costs_reach_the_account(tmp_path):
    grid = "fast=4,slow=20"
    free = opened(tmp_path / "free", "costs.slippage_bps=0").sweep(asked(grid), progress=None)
    dear = opened(tmp_path / "dear", "costs.fee_bps=20", "costs.commission_per_order=3").sweep(
        asked(grid), progress=None
    )
    whole = opened(tmp_path / "whole").sweep(asked(grid, whole_shares=True), progress=None)
    found = [one.top[0].figures for one in (free, dear, whole)]
    assert found[0].final_equity > found[1].final_equity
    assert found[2].final_equity == round(found[2].final_equity, 4)
    assert whole.whole_shares
    assert len({one.run_id for one in (free, dear, whole)}) == 3


def test_an_engine_that_was_named_works_the_grid_and_not_what_it_is_held_against(app):
    """Buy and hold is one set: no engine that asks for many may stand in its way."""
    result = app.sweep(asked(engine="bars"), progress=None)
    assert (result.engine, result.reason) == ("bars", "asked for by name")
    planned = replace(plan(app, asked(engine="masks")), backend="auto")
    held = hold_accounts(planned)
    assert (held.engine, held.backend) == ("bars", "reference")
    assert held.accounts[0].sweep.run(0, 1).open_trades.tolist() == [1]
    with pytest.raises(UsageError, match="--engine masks cannot work this sweep"):
        app.sweep(asked(engine="masks"), progress=None)  # the fixture asks for the reference


class RanksInFloat32(Sweep):
    """A sweep as a device would work it: its first pass is exact to float32 only."""

    def run(self, start, stop):
        exact = self.confirm(np.arange(start, stop))
        assert stop - start == len(self), "few sets are asked for exactly"
        coarse = {name: np.asarray(getattr(exact, name), np.float32) for name in METRICS}
        return Outcomes(
            **{name: row.astype(getattr(exact, name).dtype) for name, row in coarse.items()}
        )


def test_what_a_device_ranked_is_shown_and_judged_as_counted_exactly(tmp_path, monkeypatch):
    request = asked(top=5, engine="bars", backend="reference")
    exact = opened(tmp_path / "exact").sweep(request, progress=None)

    def on_a_device(*arguments):
        found = open_accounts(*arguments)
        if len(found.accounts[0].sweep) == 1:
            return found  # a yardstick
        accounts = [
            replace(
                one,
                sweep=RanksInFloat32(
                    **{part.name: getattr(one.sweep, part.name) for part in fields(one.sweep)}
                ),
            )
            for one in found.accounts
        ]
        return replace(found, accounts=accounts, backend="cuda")

    monkeypatch.setattr(sweeping, "open_accounts", on_a_device)
    found = opened(tmp_path / "device").sweep(request, progress=None)
    assert found.backend == "cuda"
    assert found.top == exact.top
    assert found.neighbours == exact.neighbours
