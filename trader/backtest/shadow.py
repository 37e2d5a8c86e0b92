"""The shadow ledger: what would have become of every trade that was debated, refused ones too.

It reads the bars after each decision on purpose. It is computed when the walk is over, and nothing
that decides ever sees it: this is evaluation, never evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from trader.core.costs import Costs
from trader.core.decision import CycleRecord, Decision
from trader.core.market import BarSeries, from_ns, to_ns
from trader.core.ports import Strategy
from trader.core.trading import Side, fill_price, money, tick_down
from trader.pipeline.records import SlotRecord
from trader.report.contents import Refusals, RefusalSum, ShadowTrade
from trader.risk.gate import RiskLimits, review


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """The sale that ends a trade. index: its bar."""

    index: int
    price: Decimal
    at_ns: int
    left_by: str


class ShadowLedger:
    """Follows decisions through the bars that came after them, by the rules of the exchange.

    Entry by a market order at the next open; the candidate's stop from that bar on; the verdict's
    target where it has one; the strategy's own exit at the open after the slot that saw it. When a
    bar reaches both stop and target the stop came first. A trade is followed alone: its cash and
    its place below the cap are those of the moment of the decision.

    bars        by symbol, over the whole walk and before
    strategies  by name
    slots       the records of the walk, oldest first; what lies behind the last one is not known
    """

    def __init__(
        self,
        *,
        bars: Mapping[str, BarSeries],
        strategies: Mapping[str, Strategy],
        slots: Sequence[SlotRecord],
        costs: Costs,
        limits: RiskLimits,
    ) -> None:
        end = slots[-1].as_of
        self._bars = {symbol: series.until(end) for symbol, series in bars.items()}
        self._strategies, self._costs, self._limits = strategies, costs, limits
        self._slots_ns = np.array([to_ns(slot.as_of) for slot in slots], dtype=np.int64)
        self._fit_ns = {
            symbol: np.array(
                [to_ns(slot.as_of) for slot in slots if symbol in slot.hashes], dtype=np.int64
            )
            for symbol in bars
        }
        self._exits: dict[tuple[str, str], NDArray[np.int64]] = {}

    def follow(self, cycles: Sequence[CycleRecord]) -> tuple[ShadowTrade, ...]:
        """The trade of every decision that could have been entered, oldest first."""
        held_until: dict[tuple[str, str], datetime] = {}  # refused ones only: a real one blocks
        found = []
        for cycle in cycles:
            key = (cycle.symbol, cycle.strategy)
            until = held_until.get(key)
            trade = self._follow(cycle, repeats=until is not None and cycle.as_of < until)
            if trade is None:
                continue
            found.append(trade)
            if trade.decision is Decision.NO_GO and not trade.repeats:
                held_until[key] = trade.exited_at or from_ns(self._slots_ns[-1] + 1_000)
        return tuple(found)

    def _follow(self, cycle: CycleRecord, *, repeats: bool) -> ShadowTrade | None:
        bars, verdict, candidate = self._bars[cycle.symbol], cycle.debate.verdict, cycle.candidate
        entry = self._entry(bars, to_ns(cycle.as_of))
        if entry is None:
            return None
        paid = self._costs.slipped(float(bars.open[entry]), Side.BUY)
        stop, target = money(candidate.stop_price), verdict.target_price
        if target is not None and target <= candidate.entry_price:
            target = None
        aim = None if target is None else tick_down(target)
        end = self._end(bars, entry, self._leave(cycle, bars, entry), stop=stop, target=aim)
        quantity = self._quantity(cycle)
        got = money(float(bars.close[-1])) if end is None else end.price
        profit = self._profit(quantity, paid, got, closed=end is not None)
        share = self._profit(Decimal(1), paid, got, closed=end is not None, commission=False)
        risk = paid - stop
        per_r = profit / (risk * quantity) if quantity and risk > 0 else share / (risk or 1)
        return ShadowTrade(
            cycle_id=cycle.cycle_id,
            as_of=cycle.as_of,
            symbol=cycle.symbol,
            strategy=cycle.strategy,
            decision=verdict.decision,
            confidence=verdict.confidence,
            flags=tuple(str(flag.code) for flag in verdict.flags),
            quantity=float(quantity),
            entered_at=from_ns(bars.timestamp[entry]),
            entry_price=float(paid),
            stop_price=float(stop),
            target_price=None if aim is None else float(aim),
            exited_at=None if end is None else from_ns(end.at_ns),
            exit_price=float(got),
            left_by="" if end is None else end.left_by,
            profit=float(profit),
            profit_per_share=float(share),
            r_multiple=float(per_r) if risk > 0 else None,
            is_open=end is None,
            repeats=repeats,
        )

    def _entry(self, bars: BarSeries, decided_ns: int) -> int | None:
        """The bar of the entry: the next one, if it was complete by the next slot."""
        index = int(bars.timestamp.searchsorted(decided_ns))
        slot = int(self._slots_ns.searchsorted(decided_ns, side="right"))
        if index == len(bars) or slot == self._slots_ns.size:
            return None
        return index if bars.available_at[index] <= self._slots_ns[slot] else None

    def _leave(self, cycle: CycleRecord, bars: BarSeries, entry: int) -> int | None:
        """The bar at whose open the strategy's own exit trades; None while it wants to stay."""
        key = (cycle.symbol, cycle.strategy)
        if key not in self._exits:
            exits = self._strategies[cycle.strategy].crossings(bars).exit
            self._exits[key] = np.flatnonzero(exits).astype(np.int64)
        signal = int(bars.timestamp.searchsorted(to_ns(cycle.candidate.signal.bar_at)))
        later = self._exits[key][self._exits[key] > signal]
        if not later.size:
            return None
        seen = max(bars.available_at[later[0]], bars.available_at[entry])
        fit = self._fit_ns[cycle.symbol]
        slot = int(fit.searchsorted(seen))
        if slot == fit.size:
            return None
        index = int(bars.timestamp.searchsorted(fit[slot]))
        return index if index < len(bars) else None

    def _end(
        self,
        bars: BarSeries,
        entry: int,
        leave: int | None,
        *,
        stop: Decimal,
        target: Decimal | None,
    ) -> _End | None:
        """How the trade ends; a sale pending at an open comes before stop and target of its bar."""
        last = len(bars) if leave is None else leave
        touched = bars.low[entry:last] <= float(stop)
        if target is not None:
            touched |= bars.high[entry:last] >= float(target)
        first = np.flatnonzero(touched)
        if first.size:
            return self._guarded(bars, entry + int(first[0]), stop, target)
        if leave is None:
            return None
        price = self._costs.slipped(float(bars.open[leave]), Side.SELL)
        return _End(index=leave, price=price, at_ns=int(bars.timestamp[leave]), left_by="signal")

    def _guarded(self, bars: BarSeries, index: int, stop: Decimal, target: Decimal | None) -> _End:
        """The sale on a bar that reaches the stop or the target: at the open where it gapped."""
        opened, low = money(float(bars.open[index])), money(float(bars.low[index]))
        gapped = opened <= stop or (target is not None and opened >= target)
        stopped = opened <= stop if gapped else low <= stop
        if stopped:
            price = self._costs.slipped(opened if gapped else stop, Side.SELL)
        else:
            price = fill_price(opened) if gapped or target is None else target
        return _End(
            index=index,
            price=price,
            at_ns=int(bars.timestamp[index] if gapped else bars.available_at[index]),
            left_by="stop" if stopped else "target",
        )

    def _profit(
        self,
        quantity: Decimal,
        paid: Decimal,
        got: Decimal,
        *,
        closed: bool,
        commission: bool = True,
    ) -> Decimal:
        """USD after costs; of one share its part of a commission is not known and left out."""
        if not quantity:
            return Decimal(0)
        traded = quantity * paid + (quantity * got if closed else 0)
        if not commission:
            return quantity * (got - paid) - traded * money(self._costs.fee_rate)
        fees = self._costs.fee(quantity * paid)
        if closed:
            fees += self._costs.fee(quantity * got)
        return quantity * (got - paid) - fees

    def _quantity(self, cycle: CycleRecord) -> Decimal:
        """Shares that the gate gave, or would have given to a GO with the candidate's stop."""
        if cycle.risk.approved:
            return cycle.risk.quantity
        verdict = replace(
            cycle.debate.verdict,
            decision=Decision.GO,
            entry_price=cycle.candidate.entry_price,
            stop_price=cycle.candidate.stop_price,
            target_price=None,
        )
        return review(
            verdict,
            cycle.risk_inputs,
            limits=self._limits,
            costs=self._costs,
            target_required=False,
        ).quantity


def refusals_of(cycles: Sequence[CycleRecord], followed: Sequence[ShadowTrade]) -> Refusals:
    """What the refused trades would have made, in sum and by each flag that spoke against them."""
    no_go = sum(cycle.debate.verdict.decision is Decision.NO_GO for cycle in cycles)
    refused = tuple(trade for trade in followed if trade.decision is Decision.NO_GO)
    counted = [trade for trade in refused if not trade.repeats]
    flags = dict.fromkeys(flag for trade in counted for flag in trade.flags)
    sums = {flag: _sum([trade for trade in counted if flag in trade.flags]) for flag in flags}
    return Refusals(
        no_go=no_go,
        never_entered=no_go - len(refused),
        repeats=len(refused) - len(counted),
        still_open=sum(trade.is_open for trade in counted),
        total=_sum(counted),
        by_flag=dict(sorted(sums.items(), key=lambda pair: (-pair[1].trades, pair[0]))),
        trades=refused,
    )


def _sum(trades: Sequence[ShadowTrade]) -> RefusalSum:
    return RefusalSum(
        trades=len(trades),
        won=sum(trade.profit_per_share > 0.0 for trade in trades),
        r=sum(trade.r_multiple or 0.0 for trade in trades),
        profit=sum(trade.profit for trade in trades),
    )
