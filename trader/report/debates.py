"""One debate as a block that opens: why it was held, what was said, decided and done."""

from __future__ import annotations

from trader.core.decision import CycleRecord, Decision, debater_words
from trader.report.facts import DebateView, between, evidence_section
from trader.report.markup import Html, anchor, join, tag
from trader.report.rounds import calls_section, hearing_section, rounds_section
from trader.report.ruling import gate_section, order_section, verdict_section
from trader.report.wording import absent, coloured, measured, minute, number, plain, price, stamp


def debate_block(view: DebateView) -> Html:
    """The whole debate as a <details> element whose id is the cycle id."""
    cycle = view.cycle
    go = cycle.debate.verdict.decision is Decision.GO
    facts = view.facts()
    return tag(
        "details",
        _summary(view, go=go),
        tag(
            "div",
            _signal(view),
            rounds_section(view, facts),
            verdict_section(view, facts),
            hearing_section(view, cycle.debate.hearing, facts),
            tag("div", gate_section(view, facts), order_section(view), class_="pair"),
            evidence_section(view),
            calls_section(cycle.debate),
            _provenance(cycle),
            class_="body",
        ),
        id=anchor(cycle.cycle_id),
        class_=f"debate {'go' if go else 'no-go'}{' has-time' if view.with_time else ''}",
    )


def _summary(view: DebateView, *, go: bool) -> Html:
    cycle, verdict = view.cycle, view.cycle.debate.verdict
    ratio = verdict.reward_risk_ratio
    return tag(
        "summary",
        tag("span", verdict.decision.value, class_="verdict"),
        tag("span", stamp(cycle.as_of, with_time=view.with_time), class_="when"),
        tag("b", cycle.symbol),
        tag(
            "span",
            plain(cycle.strategy),
            tag("small", " rules in place of the model") if cycle.debate.fallback else "",
            class_="strategy",
        ),
        tag(
            "span",
            "reward:risk ",
            tag("b", absent("no target") if ratio is None else number(ratio)),
            class_="measure",
        ),
        tag("span", "confidence ", tag("b", number(verdict.confidence)), class_="measure"),
        tag("span", _outcome(view, go=go), class_="outcome"),
        tag("span", verdict.rationale, class_="why"),
    )


def _outcome(view: DebateView, *, go: bool) -> Html:
    cycle, trade = view.cycle, view.trade
    if not go:
        return Html("no order")
    if not cycle.risk.approved:
        return Html("refused by the risk gate")
    if view.refusal:
        return Html("refused by the broker")
    if trade is None:
        return Html("ordered" if cycle.intent else "no order")
    result = join(("open, " if trade.is_open else "", number(trade.profit, signed=True), " USD"))
    return coloured(result, trade.profit)


def _signal(view: DebateView) -> Html:
    signal, verdict = view.cycle.candidate.signal, view.cycle.debate.verdict
    fired = "" if view.cycle.candidate.fired else "No signal fired; a person asked for this debate."
    features = " · ".join(
        f"{plain(name)} {measured(value, '').strip()}" for name, value in signal.features.items()
    )
    return tag(
        "section",
        tag("h3", "Signal"),
        tag("p", tag("b", signal.reason), ". " if signal.reason else "", fired),
        tag(
            "p",
            f"{plain(signal.style)} entry of {signal.symbol}, bar of {minute(signal.bar_at)} UTC, "
            f"strength {number(signal.strength, signed=True)}"
            + (f" · {features}" if features else ""),
            class_="fine",
        ),
        _ladder(verdict.stop_price, verdict.entry_price, verdict.target_price),
    )


def _ladder(stop: float | None, entry: float | None, target: float | None) -> Html:
    """Stop, entry and target to scale: red is what may be lost, green what may be won."""
    if stop is None or entry is None:
        return Html("")
    risk, reward = entry - stop, (target - entry) if target is not None else 0.0
    words = [("stop", stop), ("entry", entry)] + ([("target", target)] if target else [])
    scale: str = Html("")
    if risk > 0.0 and reward > 0.0:
        scale = tag(
            "div",
            tag("span", class_="risk", style=f"flex-grow:{risk:.4f}"),
            tag("span", class_="reward", style=f"flex-grow:{reward:.4f}"),
            class_="ladder",
            aria_hidden="true",
        )
    named = [join((f"{name} ", tag("b", price(level)))) for name, level in words]
    distances = f"risk {price(risk)} a share" + (
        f", reward {price(reward)} before costs" if target is not None else ", no target"
    )
    return join((scale, tag("p", join(between(named, " · ")), f" · {distances}", class_="fine")))


def _provenance(cycle: CycleRecord) -> Html:
    hashes = " · ".join(f"{symbol} {hash_[:12]}" for symbol, hash_ in cycle.data_hashes.items())
    return tag(
        "p",
        f"Cycle {cycle.cycle_id} · verdict {cycle.debate.verdict.verdict_id} · "
        f"debated by {debater_words(cycle.debate.debater)} · bars from {cycle.source}"
        + (f", SHA-256 {hashes}" if hashes else ""),
        class_="fine provenance",
    )
