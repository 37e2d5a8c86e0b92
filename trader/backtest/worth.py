"""Does the debate earn its cost: intervals, refusals followed, calibration, spend, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

import numpy as np

from trader.backtest.bootstrap import intervals
from trader.backtest.calibration import calibrate
from trader.backtest.shadow import refusals_of
from trader.core.decision import CycleRecord, Decision
from trader.core.flags import FlagCode
from trader.core.market import session_of
from trader.core.ports import Spend
from trader.report.contents import (
    Calibration,
    Column,
    Interval,
    Intervals,
    Knowledge,
    Refusals,
    ShadowTrade,
    Spread,
    TradeRow,
    Worth,
)

AGAINST = ("without_debate", "arbitrator_alone", "rules_debate")  # what a debate must beat
COLLAPSE_FROM = 10  # debates; fewer may all end alike by chance
FEW_VERDICTS = 50  # below this a Brier score says little
FAILURES = frozenset(  # flags of a debate that broke off: its NO_GO was not argued
    {
        FlagCode.INVALID_REPLY,
        FlagCode.OTHER_ISSUER,
        FlagCode.ENDPOINT_FAILURE,
        FlagCode.TIMED_OUT,
        FlagCode.REFUSED_REPLY,
        FlagCode.TRUNCATED_REPLY,
        FlagCode.BUDGET_EXHAUSTED,
        FlagCode.NOT_CONVERGED,
    }
)


def worth_of(
    columns: Sequence[Column],
    *,
    cycles: Sequence[CycleRecord],
    trades: Sequence[TradeRow],
    followed: Sequence[ShadowTrade],
    spend: Spend,
    modelled: bool,
    cutoff: date | None,
    periods_per_year: float,
) -> Worth:
    """Everything that says whether the debate earned its cost.

    columns   that were run; "debate" among them unless the debate was off
    cycles    decisions of the debate; none when it was off
    followed  their shadow trades
    modelled  whether language models debate
    cutoff    last day that the models may have read about
    """
    ran = {column.key for column in columns}
    debated = "debate" in ran
    found = intervals(
        {column.key: np.array(column.equity) for column in columns},
        initial=columns[0].performance.initial_equity,
        periods_per_year=periods_per_year,
        against={key: "debate" for key in AGAINST if debated and key in ran},
    )
    refusals = refusals_of(cycles, followed) if debated else None
    calibration = _calibration(cycles, trades, followed) if debated else None
    knowledge = _knowledge(cycles, trades, cutoff) if debated and modelled else None
    go = sum(cycle.debate.verdict.decision is Decision.GO for cycle in cycles)
    share = go / len(cycles) if debated and cycles else None
    argued = sum(was_argued(cycle) for cycle in cycles)
    collapsed = share is not None and argued >= COLLAPSE_FROM and go in (0, argued)
    answers = _against(found, {column.key: column.label for column in columns})
    if debated:
        answers["spend"] = _spent(spend, len(cycles), modelled=modelled)
    stood_in = sum(bool(cycle.debate.fallback) for cycle in cycles)
    if stood_in:
        answers["fallback"] = f"rules debated {stood_in} of {len(cycles)} in place of the model"
    if refusals is not None:
        answers["refusals"] = _refused(refusals)
    if calibration is not None:
        answers["confidence"] = _calibrated(calibration)
    if share is not None:
        answers["verdicts"] = _verdicts(go, argued, len(cycles), collapsed=collapsed)
    if knowledge is not None:
        answers["knowledge"] = _known(knowledge)
    return Worth(
        intervals=found,
        refusals=refusals,
        calibration=calibration,
        go_share=share,
        collapsed=collapsed,
        spend=spend,
        knowledge=knowledge,
        answers=answers,
    )


def was_argued(cycle: CycleRecord) -> bool:
    """Whether the debate was held to its end, so that its verdict says something about the trade.

    One that an endpoint, a reply or the budget broke off refuses whatever is debated.
    """
    return not any(flag.code in FAILURES for flag in cycle.debate.verdict.flags)


def _calibration(
    cycles: Sequence[CycleRecord], trades: Sequence[TradeRow], followed: Sequence[ShadowTrade]
) -> Calibration:
    """Confidence against the real trade where there was one, else against its shadow.

    A debate that broke off leaves no opinion that could be judged.
    """
    won = {trade.cycle_id: trade.profit_per_share > 0.0 for trade in followed if not trade.is_open}
    for row in trades:
        if row.is_open or row.profit is None:
            won.pop(row.trade_id, None)
        else:
            won[row.trade_id] = row.profit > 0.0
    pairs = [
        (cycle.debate.verdict.confidence, won[cycle.cycle_id])
        for cycle in cycles
        if cycle.cycle_id in won and was_argued(cycle)
    ]
    return calibrate(pairs, left_out=len(cycles) - len(pairs))


def known_before(cycle: CycleRecord, cutoff: date | None) -> bool:
    """Whether a model may have read about the day of this decision; unknown is not safe."""
    return cutoff is None or session_of(cycle.as_of) <= cutoff


def _knowledge(
    cycles: Sequence[CycleRecord], trades: Sequence[TradeRow], cutoff: date | None
) -> Knowledge:
    """A trade belongs to the day on which it was decided."""
    before = {cycle.cycle_id for cycle in cycles if known_before(cycle, cutoff)}
    early = [trade for trade in trades if trade.trade_id in before]
    return Knowledge(
        cutoff=cutoff,
        decisions=len(cycles),
        decisions_before=len(before),
        trades=len(trades),
        trades_before=len(early),
        profit=sum(trade.profit or 0.0 for trade in trades),
        profit_before=sum(trade.profit or 0.0 for trade in early),
    )


def _against(found: Intervals, labels: Mapping[str, str]) -> dict[str, str]:
    """One sentence for each thing that the debate is compared with."""
    return {f"against {labels[key]}": _told(spread) for key, spread in found.differences.items()}


def _told(spread: Spread) -> str:
    annual, ratio = spread.annual_return, spread.sharpe
    known = [found for found in (annual, ratio) if found is not None]
    if not known:
        return "too few periods to tell"
    if all(found.estimate == found.low == found.high == 0.0 for found in known):
        return "the same in every period"
    measures = (
        _difference("points a year", annual, 100.0),
        _difference("Sharpe", ratio, 1.0),
    )
    return f"{'; '.join(filter(None, measures))}: {_conclusion(known)}"


def _difference(name: str, found: Interval | None, scale: float) -> str:
    if found is None:
        return ""
    estimate, low, high = (scale * value for value in (found.estimate, found.low, found.high))
    return f"{estimate:+.2f} {name} (90 % interval {low:+.2f} to {high:+.2f})"


def _conclusion(known: Sequence[Interval]) -> str:
    """What a person may conclude; nothing unless zero lies outside every interval."""
    holding = sum(found.holds_zero for found in known)
    if holding:
        held = "the interval holds" if len(known) == 1 else "one interval holds"
        held = "both intervals hold" if holding > 1 else held
        return f"{held} zero, this sample cannot tell"
    signs = {found.low > 0.0 for found in known}
    if len(signs) > 1:
        return "one measure gained and the other lost"
    return "the debate did better" if signs.pop() else "the debate did worse"


def _spent(spend: Spend, decisions: int, *, modelled: bool) -> str:
    if not modelled:
        return "no model was asked; rules cost nothing"
    if not spend.calls:
        return "no model was called"
    tokens = f"{spend.input_tokens:,} tokens in, {spend.output_tokens:,} out"
    each = ""
    if decisions:
        each = (
            f"; a decision took {spend.calls / decisions:.1f} calls, "
            f"{spend.input_tokens / decisions:,.0f} tokens in, "
            f"{spend.output_tokens / decisions:,.0f} out, {_paid(spend.cost / decisions)}"
        )
    counted = f", the tokens of {spend.estimated:,} counted by us" if spend.estimated else ""
    return f"{spend.calls:,} calls{counted}, {tokens}, {_paid(spend.cost)}{each}"


def _paid(amount: Decimal) -> str:
    """Cents, and finer below one dollar: a call costs little."""
    if not amount:
        return "no price set"
    return f"{amount:,.2f} USD" if amount >= 1 else f"{amount:.4f} USD"


def _refused(found: Refusals) -> str:
    if not found.total.trades:
        return "no refused trade could be followed" if found.no_go else "nothing was refused"
    total = found.total
    what = ""
    if total.r * total.profit > 0.0:
        what = f", which the refusals {'cost' if total.r > 0.0 else 'saved'}"
    rest = [
        f"{count} {words}"
        for count, words in (
            (found.still_open, "still open, at the last close"),
            (found.repeats, "left out, held already"),
            (found.never_entered, "never entered"),
        )
        if count
    ]
    more = f" ({', '.join(rest)})" if rest else ""
    told = (
        f"{total.trades} of {found.no_go} NO_GO followed to their end{more}: {total.won} would "
        f"have won; together {total.r:+.2f} R, {total.profit:+,.2f} USD at the gate's sizes{what}"
    )
    failed = [
        trade
        for trade in found.trades
        if not trade.repeats and FAILURES.intersection(map(FlagCode, trade.flags))
    ]
    if not failed:
        return told
    return (
        f"{told}; {len(failed)} of them because the debate failed, not because it argued: "
        f"{sum(trade.r_multiple or 0.0 for trade in failed):+.2f} R, "
        f"{sum(trade.profit for trade in failed):+,.2f} USD"
    )


def _calibrated(found: Calibration) -> str:
    if found.brier is None or found.base_brier is None:
        return "no trade has ended, so no confidence can be judged"
    few = f"; {found.verdicts} are too few to judge it by" if found.verdicts < FEW_VERDICTS else ""
    better = "better" if found.brier < found.base_brier else "no better"
    return (
        f"Brier score {found.brier:.3f} over {found.verdicts} verdicts whose trade ended, "
        f"{better} than always saying the share that won, {found.won} of {found.verdicts} "
        f"({found.base_brier:.3f}){few}"
    )


def _verdicts(go: int, argued: int, debates: int, *, collapsed: bool) -> str:
    told = f"{go} of {debates} GO ({go / debates:.0%})"
    if argued < debates:
        told += f", {debates - argued} NO_GO because the debate failed"
    return f"{told}; {collapse_words(go, argued)}" if collapsed else told


def collapse_words(go: int, argued: int) -> str:
    """The warning about a debate that always ends alike; argued: debates held to their end."""
    always = Decision.GO if go else Decision.NO_GO
    return (
        f"all {argued} debates ended in {always}: a debate that always says the same adds nothing"
    )


def _known(found: Knowledge) -> str:
    if found.cutoff is None:
        return (
            "the model's knowledge cutoff is not known (models.knowledge_cutoff), so no decision "
            "is safe: it may have read about every one of these days"
        )
    return (
        f"up to {found.cutoff} the model may have read about the days it decides on: "
        f"{found.decisions_before} of {found.decisions} decisions, {found.trades_before} of "
        f"{found.trades} trades, {found.profit_before:+,.2f} of {found.profit:+,.2f} USD"
    )
