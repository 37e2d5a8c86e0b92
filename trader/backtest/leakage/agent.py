"""What is audited: an agent, bars in and verdict out, and the decisions of its walk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from strategies.kernels.dispatch import KernelSet
from trader.backtest.replay import Replay
from trader.core.clock import SessionCalendar
from trader.core.decision import Candidate, CycleRecord, Debate, Evidence
from trader.core.market import BarSeries, Timeframe
from trader.core.ports import Deliberation, History, MarketData
from trader.pipeline.candidates import Candidates, Prepared, fired_bar
from trader.pipeline.evidence import AccountView
from trader.pipeline.freshness import unfit
from trader.pipeline.history import BarHistory
from trader.pipeline.slots import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """Everything between the bars of one market and a verdict."""

    data: MarketData
    timeframe: Timeframe
    calendar: SessionCalendar
    candidates: Candidates
    kernels: KernelSet
    deliberation: Deliberation

    def bars(self, symbol: str, slot: Slot) -> BarSeries:
        """What is known of `symbol` at a slot; DataIntegrityError where nothing is."""
        return self.data.bars(symbol, self.timeframe, slot.as_of)

    def fired(self, symbol: str, slot: Slot) -> frozenset[str]:
        """Names of the enabled strategies whose rule crossed at a slot; none on unfit bars."""
        series = self.bars(symbol, slot)
        if unfit(series, self.calendar, slot):
            return frozenset()
        return frozenset(
            name
            for name, strategy in self.candidates.strategies.items()
            if fired_bar(strategy.crossings(series).entry, series, slot) is not None
        )

    def prepare(
        self, slot: Slot, series: BarSeries, strategy: str, account: AccountView
    ) -> Prepared | None:
        """The candidate of one strategy on these bars, with its evidence, as the cycle makes it.

        It says `fired` only where the rule crossed at this slot; None without an ATR.
        """
        rule = self.candidates.known[strategy]
        crossed = rule.crossings(series)
        index = fired_bar(crossed.entry, series, slot)
        return self.candidates.prepare(
            slot,
            series,
            rule,
            crossed,
            index=len(series) - 1 if index is None else index,
            account=account,
            fired=index is not None,
        )


AgentOver = Callable[[MarketData], Agent]
Walk = Callable[[str, MarketData, Sequence[Slot], Deliberation], Replay]  # its name first


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A decision of the walk that is audited, with the slot in which it was taken."""

    record: CycleRecord
    slot: Slot

    @property
    def account(self) -> AccountView:
        """The account as the decision saw it."""
        return AccountView(
            portfolio=self.record.risk_inputs.portfolio,
            open_buy_value_symbol=self.record.open_buy_value_seen,
        )


Tell = Callable[[str, int, int, Slot], None]


@dataclass(kw_only=True)
class Audit:
    """One walk, and what it takes to decide again.

    agent_over  the agent over a market; it may hold on to that market, never to another
    walk        the whole cycle over a market, from the first slot on, with this deliberation
    run         the walk under audit, over all `slots` of `data`
    taken       decisions of it that are taken again
    tell        told after each of them: test, number, of how many, slot
    """

    agent_over: AgentOver
    walk: Walk
    data: MarketData
    symbols: tuple[str, ...]
    slots: Sequence[Slot]
    run: Replay
    taken: Sequence[Taken]
    tell: Tell | None = None
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        self.agent = self.agent_over(self.data)

    def history(self, taken: Taken) -> History:
        """The past of a decision, made anew."""
        record = taken.record
        series = self.agent.bars(record.symbol, taken.slot)
        again = self.agent.prepare(taken.slot, series, record.strategy, taken.account)
        return BarHistory(series, self.agent.kernels) if again is None else again.history

    def told(self, name: str, number: int, of: int, slot: Slot) -> None:
        """Pass on how far a test has come."""
        if self.tell is not None:
            self.tell(name, number, of, slot)


class Remembered:
    """A `Deliberation` that repeats what was said in a walk, and asks only about what is new.

    case    goes behind the cycle id of what is asked: a debate held twice has two names
    cycles  what was decided; none: everything is asked
    """

    def __init__(self, other: Deliberation, case: str, cycles: Sequence[CycleRecord] = ()) -> None:
        self._other, self._case = other, case
        self._held = {cycle.cycle_id: cycle for cycle in cycles}
        self.debater = other.debater

    def deliberate(
        self, candidate: Candidate, evidence: Sequence[Evidence], cycle_id: str, history: History
    ) -> Debate:
        """The debate about the very same case, else a new one."""
        known = self._held.get(cycle_id)
        if known is not None and (known.candidate, known.evidence) == (candidate, tuple(evidence)):
            return known.debate
        return self._other.deliberate(candidate, evidence, f"{cycle_id}~{self._case}", history)
