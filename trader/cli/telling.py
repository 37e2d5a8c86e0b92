"""Results in words and tables for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from trader.cli.daemon import tell_daemon
from trader.cli.output import lines, printable, table, usd
from trader.core.decision import debater_words

if TYPE_CHECKING:
    from trader.app.checking import Check
    from trader.app.debating import DebateResult
    from trader.app.jobs import DaemonResult
    from trader.app.journaling import JournalView
    from trader.app.paper import RunResult
    from trader.app.replaying import ReplayResult
    from trader.app.running import AnswerRecorded
    from trader.app.viewing import OrdersView, PositionsView, StatusView
    from trader.core.config import Setting
    from trader.core.decision import (
        Argument,
        Candidate,
        ChatCall,
        Claim,
        Debate,
        Rebuttal,
        Weighing,
    )
    from trader.core.ports import Spend
    from trader.core.trading import OrderIntent

LONGEST = 2_000  # characters of one text; a reply may hold no more
APPROVALS = {
    "approved": "a person approved it",
    "rejected": "a person rejected it",
    "expired": "nobody answered the request for approval in time",
}
MARKS = {"verified": "✓", "contradicted": "✗", "unverifiable": "?", "unchecked": " "}


def tell_debates(result: DebateResult, *, turns: bool = True) -> None:
    """Every debate in full. turns: False where the same terminal has just shown what was said."""
    lines(
        f"{result.symbol} as of {result.as_of:%Y-%m-%d %H:%M} UTC, "
        f"{result.source} ({result.adjustment})"
    )
    for held in result.debates:
        values = {fact.evidence_id: f"{fact.name} {_value(fact.value)}" for fact in held.evidence}
        tell_debate(held.candidate, held.debate, values, turns=turns)
    if result.spend.calls:
        lines("")
        tell_spend(result.spend)


def said(words: str, longest: int = LONGEST) -> str:
    """Someone's words on one line, without characters that would steer a terminal."""
    flat = " ".join(words.split())
    return printable(flat if len(flat) <= longest else f"{flat[: longest - 1]}…")


def _left_at(intent: OrderIntent, debate: Debate) -> str:
    """Where an entry is left, USD; coins and parts of a share carry no legs."""
    if intent.stop_loss_price is None:
        return f"its stop near {usd(debate.verdict.stop_price)} is placed once it is bought"
    target = intent.take_profit_price
    return f"stop {intent.stop_loss_price}, " + (
        "no target" if target is None else f"target {target}"
    )


def levels(entry: float | None, stop: float | None, target: float | None) -> str:
    """Prices of a trade, USD per share."""
    aim = "no target" if target is None else f"target {target:,.2f}"
    return f"entry {usd(entry)}, stop {usd(stop)}, {aim}"


def tell_spend(spend: Spend) -> None:
    """What model calls used; nothing where no model was asked."""
    if spend.calls:
        calls = f"{spend.calls} call{'s' * (spend.calls > 1)}"
        counted = f" ({spend.estimated} of them estimated)" if spend.estimated else ""
        lines(
            f"models {calls}{counted}, {spend.input_tokens:,} tokens in, "
            f"{spend.output_tokens:,} out, "
            + (f"{spend.cost:.4f} USD" if spend.cost else "no price set")
        )


def tell_debate(
    candidate: Candidate, debate: Debate, values: Mapping[str, str], *, turns: bool = True
) -> None:
    """One debate: both sides in turn, the rule table, the verdict; of a failed one what was said.

    values  evidence id -> name and value
    """
    signal, verdict = candidate.signal, debate.verdict
    lines("", f"── {signal.symbol} {signal.strategy}: {signal.reason}")
    lines(f"   debated by {debater_words(debate.debater)}{_calls(debate.calls)}")
    if debate.fallback:
        lines(f"   rules debated in place of the model: {said(debate.fallback)}")
    if turns:
        _turns(debate.arguments, debate.rebuttals, values)
        lines("")
        _weighing(debate.weighing)
    if any(side.weight < 1.0 for side in debate.sides):
        weights = "; ".join(
            f"{side.role} {side.weight:.2f} ({side.verified} true, {side.contradicted} false, "
            f"{side.unverifiable} unverifiable)"
            for side in debate.sides
        )
        lines(f"weights of the sides: {weights}")
    table(
        "ARBITRATOR",
        ("rule", "value", "limit", ""),
        [
            (said(rule.rule), said(rule.value), said(rule.limit), "pass" if rule.passed else "FAIL")
            for rule in verdict.rules
        ],
        left=range(4),
    )
    lines(f"{said(verdict.rationale)}")
    if verdict.flags:
        lines(f"flags: {', '.join(str(flag.code) for flag in verdict.flags)}")
    explained = {rule.code for rule in verdict.rules if not rule.passed}
    for flag in verdict.flags:
        if flag.code not in explained:
            lines(f"       {flag.code}: {said(flag.detail)}")
    if debate.approval is not None:
        lines(APPROVALS[debate.approval])
    _hearing(debate, values)


def _calls(calls: Sequence[ChatCall]) -> str:
    """How many calls to which models, where models were asked."""
    if not calls:
        return ""
    models = dict.fromkeys(f"{call.role} {call.model}" for call in calls)
    return f"; {len(calls)} model call{'s' * (len(calls) > 1)}: {', '.join(models)}"


def _turns(
    arguments: Sequence[Argument], rebuttals: Sequence[Rebuttal], values: Mapping[str, str]
) -> None:
    for turn, argument in enumerate(arguments):
        lines("", f"BULL  {said(argument.thesis)}")
        _claims(argument.claims, values)
        if turn < len(rebuttals):
            rebuttal = rebuttals[turn]
            lines(
                f"BEAR  attacks “{said(rebuttal.weakest_claim)}”",
                f"      {said(rebuttal.counter)}",
            )
            _claims(rebuttal.claims, values)


def _weighing(weighing: Weighing | None) -> None:
    if weighing is not None:
        on = ", ".join(weighing.decisive) or "nothing"
        lines(
            f"ARBITRATOR weighs: {weighing.decision} at {weighing.confidence:.2f}, rests on {on}",
            f"      {said(weighing.rationale)}",
            "",
        )


def _hearing(debate: Debate, values: Mapping[str, str]) -> None:
    """The debate held again with foreign texts in it, where there was one."""
    heard = debate.hearing
    if heard is None:
        return
    lines("", f"HEARING of the foreign texts{_calls(heard.calls)}")
    _turns(heard.arguments, heard.rebuttals, values)
    lines("")
    _weighing(heard.weighing)
    lines(f"HEARING ends in {said(heard.verdict.rationale)}")


def _claims(claims: Iterable[Claim], values: Mapping[str, str]) -> None:
    for claim in claims:
        quoted = "; ".join(f"{key} {values.get(key, 'unknown')}" for key in claim.evidence_ids)
        lines(f"    {MARKS[claim.status]} {said(claim.text)}  [{said(quoted)}]")
        if claim.status in ("contradicted", "unverifiable"):
            lines(f"      {claim.status}: {said(claim.detail)}")


def _value(value: float | None) -> str:
    return "missing" if value is None else f"{value:,.4g}" if abs(value) < 1 else f"{value:,.2f}"


def tell_replay(result: ReplayResult) -> None:
    """Part by part, whether the decision came out the same."""
    record = result.record
    lines(
        f"{result.cycle_id}: {record.debate.verdict.decision}, recorded in {result.ledger}",
        said(record.debate.verdict.rationale),
        "",
    )
    for part in result.comparisons:
        mark = {True: "✓", False: "✗", None: "–"}[part.equal]
        lines(f"{mark} {part.part}: {part.detail}")
    differs = any(part.equal is False for part in result.comparisons)
    outcome = "NOT reproduced" if differs else "reproduced as far as it could be taken again"
    lines("reproduced" if result.reproduced else outcome)


def tell_answer(answer: AnswerRecorded) -> None:
    """An answer that a running daemon goes on with."""
    lines(f"{answer.answer}: {answer.cycle_id}; the daemon goes on with it at once")


def tell_run(result: RunResult, again: str = "") -> None:
    """The slot: market time, what happened, every debate, what waits for approval, the account.

    again  options with which the next command finds the same account
    """
    lines(
        f"PAPER  market time {result.market_time:%Y-%m-%d %H:%M} UTC"
        f"{', simulated' if result.simulated else ''} ({result.source})",
    )
    _happened(result)
    refusals = result.slot.refusals if result.slot else {}
    for cycle in result.cycles:
        values = {fact.evidence_id: f"{fact.name} {_value(fact.value)}" for fact in cycle.evidence}
        tell_debate(cycle.candidate, cycle.debate, values)
        refusal = refusals.get(cycle.cycle_id, "")
        if refusal:
            lines(f"order  refused by the broker: {refusal}")
        elif cycle.intent is not None:
            lines(
                f"order  buy {cycle.intent.quantity} {cycle.symbol} at the next open, "
                f"{_left_at(cycle.intent, cycle.debate)}; {cycle.risk.weight_after:.1%} of equity"
            )
        for flag in cycle.risk.reasons:
            lines(f"gate   {flag.code}: {flag.detail}")
        lines(f"cycle  {cycle.cycle_id}")
    for waiting in result.awaiting:
        words = levels(waiting.entry_price, waiting.stop_price, waiting.target_price)
        ratio = waiting.reward_risk_ratio
        offers = "" if ratio is None else f", offers {ratio:.2f} for each 1 at risk"
        lines(
            "",
            f"WAITS for your approval: buy {waiting.symbol} ({waiting.strategy}), {words}{offers}",
            f"      {said(waiting.rationale)}",
            f"      trader approve {waiting.cycle_id}{again}",
            f"      trader reject {waiting.cycle_id}{again}",
        )
    if result.slot is not None and not result.cycles and not result.awaiting:
        lines("no signal fired in this slot")
    held = ", ".join(f"{p.quantity} {p.symbol} at {p.current_price}" for p in result.positions)
    lines(
        "",
        f"holds  {held or 'nothing'}",
        f"equity {result.equity:,.2f} USD, cash {result.cash:,.2f} USD",
    )
    tell_spend(result.spend)
    lines(f"ledger head {result.ledger_head[:16]}")


def _happened(result: RunResult) -> None:
    """What happened besides debates; only the fills while the slot waits for a person."""
    slot = result.slot
    for symbol, reason in slot.refused.items() if slot else ():
        lines(f"no decision about {symbol}: {reason}")
    for booked in result.fills:
        fill = booked.fill
        lines(f"filled {fill.side} {fill.quantity} {fill.symbol} at {fill.price} ({booked.reason})")
    for leave in slot.exits if slot else ():
        lines(f"leaving {leave.symbol} ({leave.strategy}): {leave.reason} {leave.problem}".rstrip())
    for trade_id, why in slot.emergencies.items() if slot else ():
        lines(f"sold at market, no stop could stand: {trade_id}: {why}")
    for trade_id, why in slot.naked.items() if slot else ():
        lines(f"WITHOUT A STOP, tried again in the next look: {trade_id}: {why}")
    if slot and slot.problem:
        lines(f"nothing could be bought: {slot.problem}")
    for skipped in slot.skipped if slot else ():
        lines(f"not debated: {skipped.symbol} {skipped.strategy}, {skipped.reason}")


def tell_schedule(result: DaemonResult) -> None:
    """What the schedule did until it ended."""
    why = "the bars of its market are over" if result.ended == "market" else "it was told to stop"
    held = ", ".join(f"{p.quantity} {p.symbol} at {p.current_price}" for p in result.positions)
    lines(
        *(f"note: {notice}" for notice in result.notices),
        f"ended  {why}; market time {result.market_time:%Y-%m-%d %H:%M} UTC ({result.source})",
        f"slots  {result.slots}, decisions {result.cycles}, fills {result.fills}, "
        f"failures {result.failures}",
        f"holds  {held or 'nothing'}",
        f"equity {result.equity:,.2f} USD, cash {result.cash:,.2f} USD",
        f"ledger head {result.ledger_head[:16]}",
    )


def tell_status(view: StatusView) -> None:
    """The account in short."""
    lines(*view.notices)
    if view.market_time is None:
        return
    lines(
        f"PAPER account in {view.state_dir}",
        f"market time    {view.market_time:%Y-%m-%d %H:%M} UTC"
        + (" (simulated)" if view.simulated else ""),
        f"equity         {view.equity:,.2f} USD",
        f"cash           {view.cash:,.2f} USD",
        f"positions      {view.positions}",
        f"open orders    {view.open_orders} (legs included)",
        f"slots          {view.slots}",
        f"decisions      {view.decisions}",
        f"closed trades  {view.closed_trades}, profit {view.realised_profit:+,.2f} USD",
        *(f"forbidden      {control.words}" for control in view.controls),
        *(f"wished for     {wish.words}" for wish in view.wishes),
        f"ledger         {view.records} records, chain verified, "
        f"head {(view.ledger_head or '')[:16]}",
    )
    if view.daemon.heartbeat is not None:
        tell_daemon(view.daemon)


def tell_orders(view: OrdersView) -> None:
    """Every order and its legs."""
    lines(*view.notices)
    rows = []
    for line in view.orders:
        for number, order in enumerate(line.order.with_legs()):
            price = order.limit_price or order.stop_price
            rows.append(
                (
                    f"{order.submitted_at:%Y-%m-%d %H:%M}",
                    order.symbol,
                    line.purpose if number == 0 else "  leg",
                    f"{order.side} {order.order_type}",
                    str(order.status),
                    str(order.quantity),
                    "" if price is None else f"{price}",
                    "" if order.filled_average_price is None else f"{order.filled_average_price}",
                    order.client_order_id,
                )
            )
    if rows:
        headers = (
            "submitted UTC",
            "symbol",
            "purpose",
            "order",
            "status",
            "shares",
            "price",
            "filled at",
            "client order id",
        )
        table("", headers, rows, left=(0, 1, 2, 3, 4, 8))
    elif not view.notices:
        lines("no orders yet")


def tell_positions(view: PositionsView) -> None:
    """Every position with its stop and target."""
    lines(*view.notices)
    if view.market_time is None:
        return
    if not view.positions:
        lines("no positions")
        return
    table(
        f"market time {view.market_time:%Y-%m-%d %H:%M} UTC",
        (
            "symbol",
            "strategy",
            "shares",
            "paid",
            "now",
            "profit USD",
            "stop",
            "target",
            "of equity",
        ),
        [
            (
                line.symbol,
                line.strategy,
                str(line.quantity),
                f"{line.entry_price:,.2f}",
                f"{line.current_price:,.2f}",
                f"{line.profit:+,.2f}",
                "NONE" if line.stop_price is None else f"{line.stop_price:,.2f}",
                "" if line.target_price is None else f"{line.target_price:,.2f}",
                f"{line.weight:.1%}",
            )
            for line in view.positions
        ],
        left=(0, 1),
    )


def tell_journal(view: JournalView) -> None:
    """Records, oldest first."""
    lines(*view.notices)
    for line in view.lines:
        lines(f"{line.seq:>5}  {line.kind:<6}  {line.record_id}", f"       {line.text}")
    if view.ledger_head is not None:
        lines(f"{view.verified} records, chain verified, head {view.ledger_head[:16]}")


def tell_checks(found: Iterable[Check]) -> None:
    """Every check, with what to do where it failed."""
    for check in found:
        lines(f"{check.status:<8} {check.name}: {check.found}")
        if check.remedy:
            lines(f"         → {check.remedy}")


def tell_settings(found: Iterable[Setting]) -> None:
    """Every setting with its origin."""
    table(
        "",
        ("setting", "value", "from", "meaning"),
        [(item.name, str(item.value), item.origin, item.description) for item in found],
        left=range(4),
    )
