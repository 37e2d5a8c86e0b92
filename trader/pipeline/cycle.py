"""The one cycle of every mode: match, book, protect, exit, decide, submit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from strategies.kernels.dispatch import KernelSet
from trader.core.canonical import sha256_of
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.decision import (
    Candidate,
    CycleRecord,
    Debate,
    Decision,
    Evidence,
    RiskDecision,
    RiskInputs,
    Signal,
)
from trader.core.errors import DataIntegrityError, EndpointError, OrderRefusedError
from trader.core.market import BarSeries, Timeframe, from_ns, to_ns
from trader.core.ports import Broker, Crossings, Deliberation, MarketData, SimulatedMarket, Strategy
from trader.core.trading import (
    Order,
    OrderClass,
    OrderIntent,
    OrderType,
    Portfolio,
    Side,
    TimeInForce,
    money,
    tick_down,
)
from trader.ledger.book import BookedFill
from trader.ledger.store import Ledger
from trader.orders.manager import OrderManager
from trader.orders.protection import exit_waits, unprotected
from trader.pipeline.evidence import AccountView, gather
from trader.pipeline.freshness import bars_behind, newest_expected, unfit
from trader.pipeline.levels import Levels, entry_levels, track_record
from trader.pipeline.records import Exit, Skipped, SlotRecord
from trader.pipeline.slots import PERIODS_PER_YEAR, Slot
from trader.risk.gate import CASH_COLLAR, RiskLimits, review


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSettings:
    """What every decision of a run has in common."""

    run_id: str
    timeframe: Timeframe
    symbols: tuple[str, ...]
    atr_window: int
    atr_multiple: float
    costs: Costs
    limits: RiskLimits
    debated: bool  # False only for the baseline without debate


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotResult:
    """What a slot did: its record and the decisions taken in it."""

    slot: SlotRecord
    fills: tuple[BookedFill, ...]
    cycles: tuple[CycleRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A candidate with everything the debate and the gate will read."""

    cycle_id: str
    candidate: Candidate
    evidence: tuple[Evidence, ...]
    account: AccountView
    bars: BarSeries
    atr: float


class Cycle:
    """Runs slot after slot against one account. Deterministic: same bars, settings and replies, same records."""

    def __init__(
        self,
        *,
        settings: CycleSettings,
        data: MarketData,
        calendar: SessionCalendar,
        strategies: Sequence[Strategy],
        deliberation: Deliberation,
        broker: Broker,
        market: SimulatedMarket | None,
        orders: OrderManager,
        ledger: Ledger,
        kernels: KernelSet,
    ) -> None:
        self._settings, self._data, self._calendar = settings, data, calendar
        self._strategies = {strategy.name: strategy for strategy in strategies}
        self._deliberation, self._broker, self._market = deliberation, broker, market
        self._orders, self._ledger, self._kernels = orders, ledger, kernels

    @property
    def run_id(self) -> str:
        """Id of the run that the records belong to."""
        return self._settings.run_id

    def run(self, slot: Slot) -> SlotResult:
        """One slot, in the order that never changes: what happened, then exits, then entries."""
        if self._market is not None:
            self._market.advance(slot.as_of)
        resolved = self._orders.resolve()
        fills = self._orders.collect_fills()
        portfolio = self._broker.portfolio()
        self._orders.journal.book.require_agreement(portfolio)
        live = _flat(self._broker.orders())
        protected = tuple(
            trade.trade_id
            for trade, stop in unprotected(self._orders.journal, live)
            if self._orders.protect(trade, stop)
        )
        bars, refused = self._bars(slot)
        crossings = {
            (symbol, name): strategy.crossings(series)
            for symbol, series in bars.items()
            for name, strategy in self._strategies.items()
        }
        if protected:
            live = _flat(self._broker.orders())
        exits = self._exits(slot, bars, crossings, live)
        prepared, skipped = self._candidates(slot, bars, crossings, portfolio, live)
        cycles = self._enter(prepared, portfolio, live)
        record = SlotRecord(
            session=slot.session,
            as_of=slot.as_of,
            cash=portfolio.cash,
            equity=portfolio.equity,
            positions={held.symbol: held.quantity for held in portfolio.positions},
            closes={symbol: float(series.close[-1]) for symbol, series in bars.items()},
            fills=tuple(booked.fill.execution_id for booked in fills),
            exits=exits,
            refused=refused,
            resolved=resolved,
            protected=protected,
            skipped=skipped,
            cycles=tuple(cycle.cycle_id for cycle in cycles),
        )
        self._ledger.append("slot", f"{self._settings.run_id}-{slot.as_of:%Y%m%dT%H%M}", record)
        return SlotResult(slot=record, fills=fills, cycles=cycles)

    def _bars(self, slot: Slot) -> tuple[dict[str, BarSeries], dict[str, str]]:
        """Bars known now, and the symbols whose bars are not fit for a decision."""
        found, refused = {}, {}
        for symbol in self._settings.symbols:
            try:
                series = self._data.bars(symbol, self._settings.timeframe, slot.as_of)
            except DataIntegrityError as exc:
                refused[symbol] = str(exc)
                continue
            problem = unfit(series, self._calendar, slot)
            if problem:
                refused[symbol] = problem
            else:
                found[symbol] = series
        return found, refused

    def _exits(
        self,
        slot: Slot,
        bars: dict[str, BarSeries],
        crossings: dict[tuple[str, str], Crossings],
        live: tuple[Order, ...],
    ) -> tuple[Exit, ...]:
        """Sell at the next open whatever a strategy wants to leave; nothing here asks the debate or the gate."""
        journal = self._orders.journal
        exits = []
        for trade in journal.book.open_trades():
            name = strategy_of(trade.trade_id)
            series, crossed = bars.get(trade.symbol), crossings.get((trade.symbol, name))
            if series is None or crossed is None or exit_waits(journal, trade, live):
                continue
            index = _fired(crossed.exit, series, slot)
            if index is None:
                continue
            try:
                order = self._orders.leave(trade, live)
                sent, problem = order.client_order_id, ""
            except (OrderRefusedError, EndpointError) as exc:
                sent, problem = "", str(exc)
            exits.append(
                Exit(
                    trade_id=trade.trade_id,
                    symbol=trade.symbol,
                    strategy=name,
                    reason=self._strategies[name].reason(series, index),
                    client_order_id=sent,
                    problem=problem,
                )
            )
        return tuple(exits)

    def _candidates(
        self,
        slot: Slot,
        bars: dict[str, BarSeries],
        crossings: dict[tuple[str, str], Crossings],
        portfolio: Portfolio,
        live: tuple[Order, ...],
    ) -> tuple[list[Prepared], tuple[Skipped, ...]]:
        prepared: list[Prepared] = []
        skipped: list[Skipped] = []
        for symbol, series in bars.items():
            for name, strategy in self._strategies.items():
                index = _fired(crossings[symbol, name].entry, series, slot)
                if index is None:
                    continue
                if self._holds(symbol, name, live):
                    skipped.append(
                        Skipped(symbol=symbol, strategy=name, reason="already held or ordered")
                    )
                    continue
                account = AccountView(
                    portfolio=portfolio, open_buy_value_symbol=_open_buys(live, series)
                )
                ready = self.prepare(
                    slot, series, strategy, crossings[symbol, name], index, account
                )
                if ready is None:
                    skipped.append(
                        Skipped(
                            symbol=symbol, strategy=name, reason="not enough history for an ATR"
                        )
                    )
                else:
                    prepared.append(ready)
        return prepared, tuple(skipped)

    def _holds(self, symbol: str, strategy: str, live: tuple[Order, ...]) -> bool:
        """Whether this strategy already has shares, or a buy on its way, in this symbol."""
        journal = self._orders.journal
        if any(
            strategy_of(trade.trade_id) == strategy for trade in journal.book.open_trades(symbol)
        ):
            return True
        waiting = {order.client_order_id for order in live if order.side is Side.BUY}
        return any(
            item.intent.client_order_id in waiting
            and item.intent.symbol == symbol
            and strategy_of(item.trade_id) == strategy
            for item in journal.intents.values()
        )

    def prepare(
        self,
        slot: Slot,
        series: BarSeries,
        strategy: Strategy,
        crossed: Crossings,
        index: int,
        account: AccountView,
        *,
        fired: bool = True,
    ) -> Prepared | None:
        """Levels, evidence and candidate of one signal; None without an ATR.

        series  bars known at the slot; index: the one that crossed
        fired   False for a debate that a person asked for although no signal fired
        """
        settings = self._settings
        atr = self._kernels.atr(series.high, series.low, series.close, settings.atr_window)
        newest = float(atr[-1])
        levels = entry_levels(
            float(series.close[-1]), newest, settings.atr_multiple, settings.costs
        )
        if levels is None:
            return None
        signal = self._signal(slot, series, strategy, index, fired=fired)
        evidence = gather(
            series,
            signal=signal,
            strategy=strategy,
            levels=levels,
            atr=atr,
            record=track_record(
                series,
                crossed,
                atr,
                atr_multiple=settings.atr_multiple,
                costs=settings.costs,
                kernels=self._kernels,
            ),
            account=account,
            bars_behind=bars_behind(series, self._calendar, slot),
            costs=settings.costs,
            kernels=self._kernels,
            periods_per_year=PERIODS_PER_YEAR[settings.timeframe],
        )
        return Prepared(
            cycle_id=cycle_id(settings.run_id, signal),
            candidate=_candidate(signal, levels, fired=fired),
            evidence=evidence,
            account=account,
            bars=series,
            atr=newest,
        )

    def prepare_all(self, slot: Slot, series: BarSeries, account: AccountView) -> list[Prepared]:
        """Every strategy's candidate on these bars; `fired` is False where its rule did not cross."""
        found = []
        for strategy in self._strategies.values():
            crossed = strategy.crossings(series)
            index = _fired(crossed.entry, series, slot)
            ready = self.prepare(
                slot,
                series,
                strategy,
                crossed,
                len(series) - 1 if index is None else index,
                account,
                fired=index is not None,
            )
            if ready is not None:
                found.append(ready)
        return found

    def _signal(
        self, slot: Slot, series: BarSeries, strategy: Strategy, index: int, *, fired: bool
    ) -> Signal:
        bar_at = from_ns(series.timestamp[index])
        identity = [self._settings.run_id, strategy.name, series.symbol, bar_at]
        return Signal(
            signal_id=f"S-{sha256_of(identity)[:16]}",
            strategy=strategy.name,
            style=strategy.style,
            symbol=series.symbol,
            side="buy",
            strength=1.0 if fired else 0.0,
            bar_at=bar_at,
            as_of=slot.as_of,
            features=dict(strategy.features(series, index)),
            reason=strategy.reason(series, index),
        )

    def _enter(
        self, prepared: list[Prepared], portfolio: Portfolio, live: tuple[Order, ...]
    ) -> tuple[CycleRecord, ...]:
        """Debate every candidate, then spend the cash on the best first."""
        held = [
            (item, self._deliberation.deliberate(item.candidate, item.evidence, item.cycle_id))
            for item in prepared
        ]
        held.sort(key=lambda pair: _rank(*pair))
        waiting = {
            symbol: sum(
                (
                    _reserved(order, self._closes(prepared))
                    for order in live
                    if order.symbol == symbol
                ),
                Decimal(0),
            )
            for symbol in {order.symbol for order in live if order.side is Side.BUY}
        }
        return tuple(self._decide(item, debate, portfolio, waiting) for item, debate in held)

    def _closes(self, prepared: list[Prepared]) -> dict[str, float]:
        return {item.bars.symbol: float(item.bars.close[-1]) for item in prepared}

    def _decide(
        self, item: Prepared, debate: Debate, portfolio: Portfolio, waiting: dict[str, Decimal]
    ) -> CycleRecord:
        """Gate, journal, submit, record. `waiting`: USD of open buys by symbol, grown by what is bought here."""
        settings, series = self._settings, item.bars
        symbol, as_of = series.symbol, item.candidate.signal.as_of
        inputs = RiskInputs(
            symbol=symbol,
            as_of=as_of,
            bar_at=from_ns(series.timestamp[-1]),
            expected_bar_at=newest_expected(self._calendar, settings.timeframe, as_of),
            close=float(series.close[-1]),
            atr=item.atr,
            atr_multiple=settings.atr_multiple,
            portfolio=portfolio,
            open_buy_value=sum(waiting.values(), Decimal(0)),
            open_buy_value_symbol=waiting.get(symbol, Decimal(0)),
        )
        risk = review(
            debate.verdict,
            inputs,
            limits=settings.limits,
            costs=settings.costs,
            target_required=settings.debated,
        )
        intent = order_intent(item.candidate, debate, risk) if risk.approved else None
        refusal = ""
        if intent is not None:
            try:
                self._orders.submit(intent, trade_id=item.cycle_id, purpose="entry")
                reserved = intent.quantity * money(item.candidate.entry_price) * CASH_COLLAR
                waiting[symbol] = waiting.get(symbol, Decimal(0)) + reserved
            except (OrderRefusedError, EndpointError) as exc:
                refusal = str(exc)
        record = CycleRecord(
            cycle_id=item.cycle_id,
            as_of=as_of,
            symbol=symbol,
            strategy=item.candidate.signal.strategy,
            source=series.source,
            data_hashes={symbol: series.sha256},
            candidate=item.candidate,
            open_buy_value_seen=item.account.open_buy_value_symbol,
            evidence=item.evidence,
            debate=debate,
            risk_inputs=inputs,
            risk=risk,
            intent=intent,
            refusal=refusal,
        )
        self._ledger.append("cycle", item.cycle_id, record)
        return record


def cycle_id(run_id: str, signal: Signal) -> str:
    """Id of the decision on one signal: run, signal bar, symbol, strategy; so there is at most one."""
    return f"{run_id}-{signal.bar_at:%Y%m%dT%H%M}-{signal.symbol}-{signal.strategy}"


def strategy_of(trade_id: str) -> str:
    """The strategy at the end of a cycle id."""
    return trade_id.rsplit("-", 1)[-1]


def order_intent(candidate: Candidate, debate: Debate, risk: RiskDecision) -> OrderIntent:
    """The order that an approved verdict becomes: a market buy with its stop, and its target if it has one.

    The client order id is derived from the verdict: the same decision can never become two orders.
    """
    verdict, signal = debate.verdict, candidate.signal
    if verdict.stop_price is None:
        raise ValueError(f"verdict {verdict.verdict_id} has no stop; nothing is bought without one")
    target = verdict.target_price
    digest = sha256_of([verdict.verdict_id, signal.signal_id])[:10]
    return OrderIntent(
        client_order_id=f"tr-{signal.as_of:%Y%m%d}-{signal.symbol}-{digest}-e",
        symbol=signal.symbol,
        side=Side.BUY,
        quantity=Decimal(risk.quantity),
        order_type=OrderType.MARKET,
        order_class=OrderClass.BRACKET if target is not None else OrderClass.OTO,
        time_in_force=TimeInForce.GTC,  # the legs inherit it; a DAY stop would end at the close
        take_profit_price=tick_down(target) if target is not None else None,
        stop_loss_price=tick_down(verdict.stop_price),
    )


def _candidate(signal: Signal, levels: Levels, *, fired: bool) -> Candidate:
    return Candidate(signal=signal, entry_price=levels.entry, stop_price=levels.stop, fired=fired)


def _fired(mask: NDArray[np.bool_], series: BarSeries, slot: Slot) -> int | None:
    """Index of the newest True among the bars that became known since the slot before, or None."""
    first = int(series.available_at.searchsorted(to_ns(slot.since), side="right"))
    fired = np.flatnonzero(mask[first:])
    return first + int(fired[-1]) if fired.size else None


def _rank(item: Prepared, debate: Debate) -> tuple[bool, float, str, str]:
    """GO before NO_GO, then the better expected value, then symbol and strategy so that ties are settled."""
    verdict, signal = debate.verdict, item.candidate.signal
    value = verdict.expected_value_r if verdict.expected_value_r is not None else 0.0
    return (verdict.decision is Decision.NO_GO, -value, signal.symbol, signal.strategy)


def _open_buys(live: tuple[Order, ...], series: BarSeries) -> Decimal:
    price = {series.symbol: float(series.close[-1])}
    return sum(
        (_reserved(order, price) for order in live if order.symbol == series.symbol), Decimal(0)
    )


def _reserved(order: Order, closes: dict[str, float]) -> Decimal:
    """USD that an open buy may still cost, at its limit or a collar above the close."""
    if order.side is not Side.BUY:
        return Decimal(0)
    close = closes.get(order.symbol)
    price = order.limit_price or (money(close) * CASH_COLLAR if close is not None else Decimal(0))
    return order.open_quantity * price


def _flat(orders: tuple[Order, ...]) -> tuple[Order, ...]:
    return tuple(order for parent in orders for order in parent.with_legs())
