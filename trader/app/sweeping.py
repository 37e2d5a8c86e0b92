"""The sweep: every set of a grid of numbers, the best of them, and how much of that is luck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from strategies.kernels.dispatch import kernels
from strategies.kernels.engines.lanes import METRICS, Ints, Outcomes
from strategies.kernels.runs import Array
from strategies.registry import default_parameters, make_strategy
from strategies.sweep.accounts import blocks_of, moments_of, pooled
from strategies.sweep.engine import Sweep
from strategies.sweep.luck import Findings, Inquiry, Luck, Tell, look_at, look_into
from strategies.sweep.results import Ranked, Results, over_symbols, steps_around
from trader.app.assembly import code_sha256, program_version
from trader.app.context import Context
from trader.app.folder import make_folder
from trader.app.sweep_accounts import (
    Opened,
    hold_accounts,
    open_accounts,
    open_one,
    trade_rows,
)
from trader.app.sweep_files import CsvStream, apply, require_room, write_report
from trader.app.sweep_plan import Plan, SweepRequest, plan
from trader.app.sweep_result import SCHEMA_VERSION, SweepResult, Timing
from trader.app.sweep_views import curve_column, figures_of, heat_of, luck_figures
from trader.core.canonical import sha256_of
from trader.core.clock import monotonic_seconds
from trader.core.errors import ConfigError, UsageError
from trader.core.market import from_ns
from trader.core.metrics import sharpe
from trader.report.sweep_contents import Axis, Neighbours, SetFigures, SetRow, SweepContents
from trader.report.sweep_page import write_sweep_page

__all__ = ["SweepResult", "sweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A sweep that has run, and what it is held against.

    held     buying and holding the same symbols
    at       [U] moments of the equity points, ns
    hold     [U] equity of `held`, all accounts together
    inquiry  what `luck` answers
    luck     None where that is not known
    partial  whether it was interrupted
    """

    planned: Plan
    opened: Opened
    results: Results
    held: Opened
    at: Ints
    hold: Array
    inquiry: Inquiry
    luck: Luck | None
    partial: bool

    @property
    def cash(self) -> float:
        """USD of all accounts at the start."""
        return sum(one.cash for one in self.opened.accounts)


def sweep(app: Context, request: SweepRequest, progress: Tell | None) -> SweepResult:
    """Run every set of the grid, look into the luck of the best, write the report.

    progress  what is worked on, sets done, sets in all; after each block

    An interruption (Ctrl-C) after the first block ends the sweep with what is known by then.
    Raises UsageError for what was asked wrongly and where no set of the grid fits together,
    DataIntegrityError for the bars, EndpointError for a device that is not there and StateError
    where a file has no room.
    """
    planned = plan(app, request)
    if request.csv is not None:
        require_room(request.csv, planned.grid)
    tell = progress or _silent
    opened = open_accounts(planned, planned.grid, request.strategy, planned.fixed)
    results = Results(planned.grid, rank_by=request.rank_by, top=request.top)
    began = monotonic_seconds()
    partial = _stream(planned, opened, results, tell)
    seconds = monotonic_seconds() - began
    if not results.valid:
        if partial:
            raise KeyboardInterrupt
        raise UsageError(_why_none(planned))
    if opened.backend == "cuda":  # float32 ranks; what is shown and judged is exact
        results.confirm(_runs(opened, [one.number for one in results.best()]))
    done = _look(planned, opened, results, tell, partial=partial)
    timing = Timing(
        seconds=seconds,
        sets_per_second=results.seen / max(seconds, 1e-9),
        set_bars_per_second=results.seen * planned.bars / max(seconds, 1e-9),
    )
    try:
        return _written(app, done, timing)
    except KeyboardInterrupt:
        if done.partial:  # a second one: the person does not want to wait
            raise
        return _written(app, replace(done, partial=True), timing)


def _written(app: Context, done: Swept, timing: Timing) -> SweepResult:
    """The result with its report and the file of --apply."""
    result, request = _result(app, done), done.planned.request
    folder = make_folder((request.out or app.state_dir / "reports") / result.run_id)
    report = write_report(folder / "report.html", write_sweep_page(_contents(done, result)))
    return replace(
        result,
        report=str(report),
        applied=apply(done.planned, result, folder, _wanted(done)),
        timing=timing,
    )


def _wanted(done: Swept) -> Findings | None:
    """What speaks for and against the rank of --apply; None where nobody knows."""
    rank, ranked = done.planned.request.apply_rank, done.results.best()
    if rank is None or rank > len(ranked) or done.luck is None:
        return None
    return look_at(done.inquiry, done.luck, ranked[rank - 1])


def _silent(_name: str, _done: int, _of: int) -> None:
    """Nobody wants to know."""


def _stream(planned: Plan, opened: Opened, results: Results, tell: Tell) -> bool:
    """Run the grid block by block; True where it was interrupted."""
    sets, interrupted = len(planned.grid), False
    with ExitStack() as stack:
        path = planned.request.csv
        csv = None if path is None else stack.enter_context(CsvStream(path, planned.grid))
        try:
            tell("sets", 0, sets)
            for start, stop in blocks_of(sets):
                found = [one.sweep.run(start, stop) for one in opened.accounts]
                merged = results.add(start, found)
                if csv is not None:
                    csv.add(start, merged)
                tell("sets", stop, sets)
        except KeyboardInterrupt:
            interrupted = True
        if csv is not None and csv.sets == sets:
            csv.finish()
    return interrupted


def _look(planned: Plan, opened: Opened, results: Results, tell: Tell, *, partial: bool) -> Swept:
    """Hold the sweep against buy and hold, and look into the luck of its best set."""
    held = hold_accounts(planned)
    at = moments_of(opened.accounts)
    hold = pooled(held.accounts, np.array([0]), at)[0]
    cash = sum(one.cash for one in held.accounts)
    periods = planned.terms.periods_per_year
    inquiry = Inquiry(
        accounts=opened.accounts,
        results=results,
        periods_per_year=periods,
        market=sharpe(hold, cash, periods) or 0.0,
        look_back=planned.look_back,
    )
    luck = None
    if not partial:
        try:
            luck = look_into(inquiry, tell)
        except KeyboardInterrupt:
            partial = True
    return Swept(
        planned=planned,
        opened=opened,
        results=results,
        held=held,
        at=at,
        hold=hold,
        inquiry=inquiry,
        luck=luck,
        partial=partial,
    )


def _why_none(planned: Plan) -> str:
    """Why no set of the grid could run, by the example of its first one."""
    numbers, strategy = planned.grid.numbers(0), planned.request.strategy
    known = default_parameters(strategy)
    own = {name: value for name, value in {**planned.fixed, **numbers}.items() if name in known}
    try:
        make_strategy(strategy, own, kernels("reference"))
        what = "none of them can run"
    except ConfigError as exc:
        what = str(exc)
    written = ", ".join(f"{name}={value:g}" for name, value in numbers.items())
    return f"--grid: not one of {len(planned.grid):,} sets fits together, e.g. {written}: {what}"


def _result(app: Context, done: Swept) -> SweepResult:
    """The result but for its files and times."""
    planned, results, opened = done.planned, done.results, done.opened
    request, coverage, grid = planned.request, planned.coverage, planned.grid
    ranked = results.best()
    notices = coverage.notices + app.data_notices
    if done.partial:
        notices += (f"interrupted after {results.seen:,} of {len(grid):,} sets",)
    return SweepResult(
        schema_version=SCHEMA_VERSION,
        run_id=_run_id(done),
        source=coverage.source,
        first_session=coverage.first,
        last_session=coverage.last,
        bars=planned.bars,
        strategy=request.strategy,
        grid=request.grid,
        axes=tuple(
            Axis(name=name, low=float(axis[0]), high=float(axis[-1]), values=int(axis.size))
            for name, axis in zip(grid.names, grid.values, strict=True)
        ),
        fixed=planned.fixed,
        rank_by=request.rank_by,
        shared_cash=request.shared_cash,
        whole_shares=request.whole_shares,
        sets=len(grid),
        run=results.valid,
        skipped=results.skipped,
        engine=opened.engine,
        backend=opened.backend,
        reason=opened.reason,
        partial=done.partial,
        top=tuple(
            SetRow(
                rank=one.rank,
                number=one.number,
                parameters=grid.numbers(one.number),
                figures=figures_of(one.outcome),
            )
            for one in ranked
        ),
        defaults=_of_defaults(planned),
        buy_and_hold=_single(done.held),
        neighbours=_neighbours(opened, results, ranked[0]),
        luck=None
        if done.luck is None
        else luck_figures(
            done.luck,
            grid,
            trials=results.trials,
            periods_per_year=planned.terms.periods_per_year,
        ),
        applied=None,
        csv=_csv(done),
        report="",
        notices=notices,
        timing=Timing(seconds=0.0, sets_per_second=0.0, set_bars_per_second=0.0),
    )


def _run_id(done: Swept) -> str:
    """Id derived from all that the figures depend on; that of an interrupted sweep says so."""
    planned = done.planned
    bars = (planned.coverage.source.sha256, planned.coverage.first, planned.coverage.last)
    digest = sha256_of([planned.identity(), *bars, program_version(), code_sha256()])
    return f"sw-{digest[:10]}" + ("-partial" if done.partial else "")


def _csv(done: Swept) -> str | None:
    """The CSV file as it lies now."""
    path, grid = done.planned.request.csv, done.planned.grid
    if path is None:
        return None
    partial = CsvStream(path, grid).partial
    return str(partial if partial.exists() else path)


def _contents(done: Swept, result: SweepResult) -> SweepContents:
    """The page of the result."""
    best = result.top[0]
    curve = pooled(done.opened.accounts, np.array([best.number]), done.at)[0]
    return SweepContents(
        run_id=result.run_id,
        version=program_version(),
        source=result.source,
        strategy=result.strategy,
        period=f"{result.first_session} to {result.last_session}, {result.bars:,} bars",
        settings=_settings(done.planned),
        notices=result.notices,
        axes=result.axes,
        rank_by=result.rank_by,
        accounts=len(done.opened.accounts),
        sets=result.sets,
        run=result.run,
        skipped=result.skipped,
        partial=result.partial,
        engine=f"{result.engine} on {result.backend}: {result.reason}",
        top=result.top,
        defaults=result.defaults,
        buy_and_hold=result.buy_and_hold,
        luck=result.luck,
        neighbours=result.neighbours,
        heat=heat_of(done.results, best.number),
        times=tuple(from_ns(moment) for moment in done.at),
        curves=(
            curve_column("best", "best set", curve, best.figures, cash=done.cash),
            curve_column("hold", "buy & hold", done.hold, result.buy_and_hold, cash=done.cash),
        ),
        trades=trade_rows(done.opened, result.strategy, best.number),
    )


def _single(opened: Opened) -> SetFigures:
    """Figures of the one set of a grid with one."""
    return figures_of(_row(over_symbols([one.sweep.run(0, 1) for one in opened.accounts]), 0))


def _runs(opened: Opened, numbers: Sequence[int]) -> list[Outcomes]:
    """What becomes of a few sets on every account, in float64 whoever ranked them."""
    if opened.backend == "cuda":
        asked = np.array(numbers, dtype=np.int64)
        return [one.sweep.confirm(asked) for one in opened.accounts if isinstance(one.sweep, Sweep)]
    (number,) = numbers
    return [one.sweep.run(number, number + 1) for one in opened.accounts]


def _row(outcomes: Outcomes, place: int) -> dict[str, float]:
    return {name: float(getattr(outcomes, name)[place]) for name in METRICS}


def _of_defaults(planned: Plan) -> SetFigures | None:
    """Figures of the configured numbers; None where these do not fit together."""
    found = _single(open_one(planned, planned.request.strategy, planned.defaults))
    return None if found.trades < 0 else found


def _neighbours(opened: Opened, results: Results, best: Ranked) -> tuple[Neighbours, ...]:
    """How the sets one and two steps away on each axis do by the measure that ranks."""
    grid, found = results.grid, []
    for axis, numbers in steps_around(grid, best.number).items():
        scores: list[float | None] = []
        for number in numbers:
            if number is None:
                scores.append(None)
                continue
            score = _row(over_symbols(_runs(opened, [number])), 0)[results.rank_by]
            scores.append(score if math.isfinite(score) else None)
        values = tuple(None if n is None else grid.numbers(n)[axis] for n in numbers)
        found.append(Neighbours(name=axis, values=values, scores=tuple(scores)))
    return tuple(found)


def _settings(planned: Plan) -> dict[str, str]:
    terms, asked = planned.terms, planned.request
    return {
        "grid": asked.grid,
        **{name: f"{value:g}" for name, value in planned.fixed.items()},
        "ranked by": asked.rank_by.replace("_", " "),
        "cash": f"{terms.cash:,.0f} USD " + ("shared" if asked.shared_cash else "a symbol"),
        "slippage": f"{terms.slippage * 10_000:g} bps",
        "fee": f"{terms.fee_rate * 10_000:g} bps",
        "commission": f"{terms.commission_per_order:g} USD an order",
        "shares": "whole" if terms.whole_shares else "any part",
    }
