"""Agents to audit: an honest one over a hand-written market, and the parts of dishonest ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from strategies.kernels.dispatch import kernels
from tests.trader.pipeline.accounts import slots_of
from tests.trader.pipeline.bars import HandData, daily, wave
from trader.app.assembly import Account, open_account
from trader.app.debaters import Debaters
from trader.backtest.leakage.agent import Agent, Audit, Taken
from trader.backtest.replay import Replay, replay
from trader.core.clock import new_york
from trader.core.config import Config
from trader.core.decision import (
    Candidate,
    ChatCall,
    Debate,
    Decision,
    Evidence,
    FlagCode,
    RiskFlag,
)
from trader.core.market import BarSeries, Timeframe
from trader.core.ports import Crossings, Deliberation, History, MarketData, Strategy
from trader.ledger.store import Ledger
from trader.pipeline.slots import Slot

NAMES = ("atr_trend", "rsi_reversion", "macd_momentum")
KERNELS = kernels("reference")
CONFIG = Config.model_validate({"strategies": {"enabled": list(NAMES)}})
BARS = daily(wave(330, swing=14.0, period=46, drift=0.06))
SLOTS = slots_of(BARS, 210)

MakeStrategy = Callable[[Strategy], Strategy]
MakeDeliberation = Callable[[MarketData], Deliberation]


RULES = Debaters(CONFIG).deliberation("rules")


def honest(_: MarketData) -> Deliberation:
    """The debate of rules."""
    return RULES


def audit_of(
    *,
    deliberation: MakeDeliberation = honest,
    strategy: MakeStrategy | None = None,
    bars: BarSeries = BARS,
    slots: Sequence[Slot] = SLOTS,
    sample: int = 6,
) -> Audit:
    """A walk of an agent and what it takes to audit it.

    strategy  an honest strategy -> what stands in its place
    """

    def account(data: MarketData, decides: Deliberation) -> Account:
        found = open_account(
            CONFIG,
            run_id="test",
            symbols=(bars.symbol,),
            data=data,
            calendar=new_york(),
            ledger=Ledger(None, durable=False),
            kernels=KERNELS,
            start=slots[0].since,
            cash=Decimal(100_000),
            deliberation=decides,
        )
        for name in NAMES if strategy is not None else ():
            candidates = found.cycle.candidates
            candidates.known[name] = strategy(candidates.known[name])
            candidates.strategies[name] = candidates.known[name]
        return found

    data = HandData(bars)
    candidates = account(data, honest(data)).cycle.candidates

    def agent_over(market: MarketData) -> Agent:
        return Agent(
            data=market,
            timeframe=Timeframe.DAY,
            calendar=new_york(),
            candidates=candidates,
            kernels=KERNELS,
            deliberation=deliberation(market),
        )

    def walk(_: str, data: MarketData, over: Sequence[Slot], decides: Deliberation) -> Replay:
        found = account(data, decides)
        return replay(found.cycle, over, book=found.journal.book, ledger=found.ledger)

    run = walk("walk", data, slots, agent_over(data).deliberation)
    where = {slot.as_of: slot for slot in slots}
    return Audit(
        agent_over=agent_over,
        walk=walk,
        data=data,
        symbols=(bars.symbol,),
        slots=slots,
        run=run,
        taken=[Taken(record=record, slot=where[record.as_of]) for record in run.cycles[:sample]],
    )


class Saying:
    """A `Deliberation` that says GO when `yes` does, for whatever reason.

    call  a model's call that its debates carry
    """

    debater = "someone"

    def __init__(
        self,
        yes: Callable[[Candidate, Sequence[Evidence]], bool],
        *,
        call: ChatCall | None = None,
        flag: FlagCode = FlagCode.LOW_CONFIDENCE,
    ) -> None:
        self._yes, self._call, self._flag = yes, call, flag
        self._without = Debaters(CONFIG).deliberation("nobody")
        self.asked: list[str] = []

    def deliberate(
        self, candidate: Candidate, evidence: Sequence[Evidence], cycle_id: str, history: History
    ) -> Debate:
        self.asked.append(cycle_id)
        debate = self._without.deliberate(candidate, evidence, cycle_id, history)
        go = self._yes(candidate, evidence)
        flags = () if go else (RiskFlag(code=self._flag, detail="no"),)
        return replace(
            debate,
            debater=self.debater,
            verdict=replace(
                debate.verdict, decision=Decision.GO if go else Decision.NO_GO, flags=flags
            ),
            calls=() if self._call is None else (self._call,),
        )


class Cheating:
    """A `Strategy` that is an honest one but for what is replaced."""

    def __init__(
        self,
        other: Strategy,
        *,
        entry: Callable[[BarSeries, Crossings], Crossings] | None = None,
        feature: Callable[[BarSeries, int], float] | None = None,
    ) -> None:
        self._other, self._entry, self._feature = other, entry, feature
        self.name, self.style, self.parameters = other.name, other.style, other.parameters
        self.entry_rule = other.entry_rule

    def crossings(self, bars: BarSeries) -> Crossings:
        found = self._other.crossings(bars)
        return found if self._entry is None else self._entry(bars, found)

    def features(self, bars: BarSeries, index: int) -> dict[str, float]:
        seen = dict(self._other.features(bars, index))
        if self._feature is not None:
            seen["rule_of_thumb"] = self._feature(bars, index)
        return seen

    def reason(self, bars: BarSeries, index: int) -> str:
        return self._other.reason(bars, index)
