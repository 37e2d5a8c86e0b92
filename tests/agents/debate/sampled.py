"""Real decisions of the bundled sample, and debates of full length over them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache

import numpy as np

from agents.chat.rules_chat import RulesChat
from agents.debate.claims.checker import check_claims
from agents.debate.prompting import write_prompt
from agents.debate.schemas import parse_argument, parse_rebuttal
from agents.debate.state import DebateContext
from strategies.kernels.dispatch import kernels
from strategies.registry import STRATEGIES, make_strategy
from trader.app import open_app
from trader.app.assembly import costs_of, limits_of
from trader.core.decision import Argument, EvidenceIndex, Rebuttal, Role
from trader.core.market import Timeframe, from_ns, session_of
from trader.core.ports import ChatRequest, Prompt
from trader.core.trading import Portfolio
from trader.pipeline.candidates import Candidates, CycleSettings, Prepared
from trader.pipeline.evidence import AccountView
from trader.pipeline.slots import slots_between

SYMBOLS = ("AAPL", "AMZN", "MSFT", "NVDA")


@cache
def decisions() -> tuple[Prepared, ...]:
    """The last firing of every strategy on every symbol of the sample: twelve decisions."""
    return tuple(_decisions())


def _decisions() -> Iterator[Prepared]:
    app = open_app(overrides=("kernels.backend=reference",), environ={})
    config, compute = app.config, kernels("reference")
    strategies = [
        make_strategy(name, dict(getattr(config.strategies.parameters, name)), compute)
        for name in STRATEGIES
    ]
    enabled = config.strategies.enabled
    candidates = Candidates(
        settings=CycleSettings(
            run_id="sampled",
            timeframe=Timeframe.DAY,
            symbols=SYMBOLS,
            strategies=tuple(enabled),
            atr_window=config.risk.atr_window,
            atr_multiple=config.risk.atr_multiple,
            costs=costs_of(config),
            limits=limits_of(config),
            indicators=(),
            debated=True,
        ),
        calendar=app.calendar,
        strategies=strategies,
        enabled=enabled,
        kernels=compute,
    )
    cash = Decimal(100_000)
    for symbol in SYMBOLS:
        whole = app.data.bars(symbol, Timeframe.DAY)
        for strategy in candidates.strategies.values():
            fired = int(np.flatnonzero(strategy.crossings(whole).entry)[-1])
            day = session_of(from_ns(whole.timestamp[fired]))
            slot = slots_between(app.calendar, Timeframe.DAY, day, day)[-1]
            series = whole.until(slot.as_of)
            portfolio = Portfolio(cash=cash, equity=cash, positions=(), as_of=slot.as_of)
            ready = candidates.prepare(
                slot,
                series,
                strategy,
                strategy.crossings(series),
                index=len(series) - 1,
                account=AccountView(portfolio=portfolio, open_buy_value_symbol=Decimal(0)),
            )
            assert ready is not None
            yield ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One call: what was asked and the reply as text."""

    role: Role
    prompt: Prompt
    reply: str


def context_of(prepared: Prepared) -> DebateContext:
    """What a debate about this decision knows."""
    return DebateContext(
        cycle_id=prepared.cycle_id,
        candidate=prepared.candidate,
        evidence=EvidenceIndex(prepared.evidence),
        history=prepared.history,
    )


def debated(prepared: Prepared) -> tuple[Turn, ...]:
    """Two openings, one rebuttal each and the arbitrator, with replies as long as models write."""
    context = context_of(prepared)
    turns: list[Turn] = []
    arguments: list[Argument] = []
    rebuttals: list[Rebuttal] = []

    def ask(role: Role, turn: int) -> str:
        prompt = write_prompt(role, turn, context, arguments, rebuttals)
        reply = (
            _ARBITRATOR
            if role == "arbitrator"
            else _reply(context, role, turn, arguments, rebuttals)
        )
        turns.append(Turn(role=role, prompt=prompt, reply=reply))
        return reply

    for turn in (0, 1):
        argument = parse_argument(ask("bull", turn), turn)
        claims = check_claims(argument.claims, context.evidence, context.history)
        arguments.append(replace(argument, claims=claims))
        rebuttal = parse_rebuttal(ask("bear", turn), turn, arguments)
        claims = check_claims(rebuttal.claims, context.evidence, context.history)
        rebuttals.append(replace(rebuttal, claims=claims))
    ask("arbitrator", 2)
    return tuple(turns)


_THESIS = (
    "The entry signal comes with the longer averages behind it, and the reward to the target is "
    "several times what is put at risk between entry and stop. The signal's own past pays for the "
    "losers it brings, so the trade is worth taking at these levels."
)
_COUNTER = (
    "The claim describes what has already happened and says little about whether the target is "
    "reached before the stop. The base rate of this signal is low, and the facts below show what "
    "stands in the way of it."
)
_ARBITRATOR = json.dumps(
    {
        "rationale": "The bull's verified claims show a trend with the averages in order and a "
        "reward several times the risk; its past results are positive. The bear's verified claims "
        "about the low base rate and the nearest high weigh against it, but the expected value "
        "stays above zero after costs.",
        "decisive": ["B1", "B2", "B3", "R1", "R3"],
        "decision": "GO",
        "confidence": 0.62,
    },
    indent=2,
)


def _reply(
    context: DebateContext,
    role: Role,
    turn: int,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
) -> str:
    """The true claims of the rules, every key of the schema, sentences of a model's length."""
    asked = ChatRequest(
        role=role,
        round=turn,
        candidate=context.candidate,
        evidence=context.evidence,
        arguments=arguments,
        rebuttals=rebuttals,
        prompt=lambda: write_prompt(role, turn, context, arguments, rebuttals),
        subject=context.cycle_id,
    )
    fields = json.loads(RulesChat().complete(asked).text)
    fields["thesis" if role == "bull" else "counter"] = _THESIS if role == "bull" else _COUNTER
    fields["claims"] = [claim | {"upper_value": None, "when": None} for claim in fields["claims"]]
    if role == "bear":
        before = sum(len(argument.claims) for argument in arguments[:-1])
        texts = [claim.text for claim in arguments[-1].claims]
        fields["weakest_claim"] = f"B{before + texts.index(fields['weakest_claim']) + 1}"
    return json.dumps(fields)
