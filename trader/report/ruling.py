"""What was decided and done: the arbitrator's rules, the risk gate, the order and its result."""

from __future__ import annotations

from collections.abc import Sequence

from trader.core.decision import Decision, Evidence, RiskFlag, RuleCheck
from trader.report.contents import TradeRow
from trader.report.facts import DebateView, references
from trader.report.markup import Html, join, pairs, table, tag
from trader.report.rounds import weighing_section
from trader.report.wording import (
    MISSING,
    absent,
    coloured,
    counted,
    number,
    percent,
    plain,
    price,
    shares,
)

APPROVALS = {
    "approved": "A person approved it.",
    "rejected": "A person rejected it.",
    "expired": "Nobody answered in time, which is a no.",
}


def verdict_section(view: DebateView, facts: dict[str, Evidence]) -> Html:
    """The verdict in words, the table of rules behind it, and its flags."""
    verdict, approval = view.cycle.debate.verdict, view.cycle.debate.approval
    measures = [f"confidence {number(verdict.confidence)}"]
    if verdict.reward_risk_ratio is not None:
        measures.append(f"reward:risk {number(verdict.reward_risk_ratio)}")
    if verdict.expected_value_r is not None:
        measures.append(f"expected value {number(verdict.expected_value_r, signed=True)} R")
    rules: str = tag("p", "No rule was asked.", class_="fine")
    if verdict.rules:
        failed = sum(not rule.passed for rule in verdict.rules)
        rules = table(
            f"The arbitrator's rules: {len(verdict.rules) - failed} pass, {failed} fail",
            ("Rule", "Value", "Limit", "Result"),
            (_rule(view, rule, facts) for rule in verdict.rules),
            class_="rules",
        )
    flags = tag("p", f"{counted(len(verdict.flags), 'flag')} against the trade:", class_="fine")
    return tag(
        "section",
        tag("h3", "Verdict"),
        tag("p", verdict.rationale),
        tag(
            "p",
            tag("span", verdict.decision.value, class_="verdict"),
            " · " + " · ".join(measures),
            class_="fine",
        ),
        tag("p", APPROVALS[approval]) if approval is not None else "",
        weighing_section(view.cycle.debate.weighing),
        rules,
        flags if verdict.flags else "",
        _flags(view, verdict.flags, facts),
    )


def _rule(view: DebateView, rule: RuleCheck, facts: dict[str, Evidence]) -> Html:
    seen = references(view, rule.evidence_ids, facts)
    return tag(
        "tr",
        tag(
            "th",
            rule.rule,
            tag("small", tag("code", rule.code.value), " " if seen else "", seen),
            scope="row",
        ),
        tag("td", rule.value),
        tag("td", rule.limit),
        tag("td", "pass" if rule.passed else "fail", class_="pass" if rule.passed else "fail"),
        class_=None if rule.passed else "failed",
    )


def _flags(view: DebateView, flags: Sequence[RiskFlag], facts: dict[str, Evidence]) -> Html:
    """Flag codes with their details and the facts behind them; nothing when there is none."""
    if not flags:
        return Html("")
    return tag(
        "ul",
        join(
            tag(
                "li",
                tag("code", flag.code.value),
                " ",
                flag.detail,
                " ",
                references(view, flag.evidence_ids, facts),
            )
            for flag in flags
        ),
        class_="flags",
    )


def gate_section(view: DebateView, facts: dict[str, Evidence]) -> Html:
    """Approved with a size, or refused with the reasons, and what the gate looked at."""
    cycle = view.cycle
    risk, inputs = cycle.risk, cycle.risk_inputs
    account = inputs.portfolio
    if risk.approved:
        answer: str = tag(
            "p",
            tag("b", "Approved", class_="pass"),
            f": {shares(risk.quantity)} share{'' if risk.quantity == 1 else 's'}, "
            f"{percent(risk.weight_after, 1)} of equity in {cycle.symbol} afterwards.",
        )
    else:
        answer = tag("p", tag("b", "Refused", class_="fail"), ", no share may be bought.")
    limits = " · ".join(f"{plain(name)} {value:g}" for name, value in sorted(risk.limits.items()))
    seen = (
        f"Looked at: equity {number(float(account.equity))} USD, "
        f"cash {number(float(account.cash))} USD, close {price(inputs.close)}, "
        f"ATR {price(inputs.atr)} × {inputs.atr_multiple:g}."
    )
    return tag(
        "section",
        tag("h3", "Risk gate"),
        answer,
        _flags(view, risk.reasons, facts),
        tag("p", seen, f" Limits: {limits}." if limits else "", class_="fine"),
    )


def order_section(view: DebateView) -> Html:
    """The order that was sent with its stop and target, or why there is none."""
    cycle, intent = view.cycle, view.cycle.intent
    if intent is None:
        go = cycle.debate.verdict.decision is Decision.GO
        why = "the risk gate refused" if go else "the verdict is NO_GO"
        body: str = tag("p", tag("b", "No order"), f": {why}.")
    else:
        kind = f"{intent.side.value} {intent.order_type.value}, {intent.time_in_force.value}"
        levels = (("Stop", intent.stop_loss_price), ("Target", intent.take_profit_price))
        body = pairs(
            [
                ("Client order id", tag("code", intent.client_order_id)),
                ("Order", f"{kind}, {shares(intent.quantity)} {intent.symbol}"),
                *(
                    (name, f"{price(float(level))} USD" if level is not None else absent("not set"))
                    for name, level in levels
                ),
            ],
            class_="facts",
        )
    refused = tag("p", tag("b", "The broker refused", class_="fail"), f": {view.refusal}")
    return tag(
        "section",
        tag("h3", "Order"),
        body,
        refused if view.refusal else "",
        _result(view.trade),
    )


def _result(trade: TradeRow | None) -> Html:
    if trade is None:
        return Html("")
    left = "still open" if trade.is_open else trade.why_left
    multiple = MISSING if trade.r_multiple is None else f"{number(trade.r_multiple, signed=True)} R"
    profit = coloured(f"{number(trade.profit, signed=True)} USD", trade.profit)
    return tag("p", "What became of it: ", profit, f", {multiple}; {left}.")
