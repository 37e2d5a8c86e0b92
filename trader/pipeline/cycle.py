"""The one cycle of every mode: match, book, protect, exit, decide, submit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal

from strategies.kernels.dispatch import KernelSet
from trader.core.canonical import from_primitive
from trader.core.clock import SessionCalendar
from trader.core.decision import AwaitedApproval, CycleRecord, Debate, Decision, RiskInputs
from trader.core.errors import (
    ApprovalPendingError,
    DataIntegrityError,
    EndpointError,
    OrderRefusedError,
)
from trader.core.market import BarSeries, from_ns
from trader.core.ports import Broker, Crossings, Deliberation, MarketData, SimulatedMarket, Strategy
from trader.core.trading import Order, Portfolio, money
from trader.ledger.book import BookedFill
from trader.ledger.store import Ledger
from trader.orders.manager import OrderManager
from trader.orders.protection import Protected
from trader.orders.reconciliation import Comparison
from trader.pipeline.candidates import (
    Candidates,
    CycleSettings,
    Prepared,
    fired_bar,
    still_holds,
    strategy_of,
)
from trader.pipeline.circumstances import AccountWatch, Glance
from trader.pipeline.evidence import AccountView
from trader.pipeline.exits import Exits
from trader.pipeline.freshness import newest_expected, unfit
from trader.pipeline.intents import exit_levels, order_intent, reserved_by_symbol
from trader.pipeline.records import Skipped, SlotRecord
from trader.pipeline.slots import Slot
from trader.risk.gate import CASH_COLLAR, review

Fired = dict[tuple[str, str], Crossings]  # symbol and strategy -> where its rules fire


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotResult:
    """What a slot did: its record and the decisions taken in it."""

    slot: SlotRecord
    fills: tuple[BookedFill, ...]
    cycles: tuple[CycleRecord, ...]


class Cycle:
    """Runs slot after slot against one account.

    Deterministic: the same bars, settings and replies leave the same records. A slot that was cut
    short may be run again: what it has decided stands, what it has sent is not sent twice.
    """

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
        watch: AccountWatch,
    ) -> None:
        self._settings, self._data, self._calendar = settings, data, calendar
        self._deliberation, self._broker, self._market = deliberation, broker, market
        self._orders, self._ledger, self._watch = orders, ledger, watch
        self.candidates = Candidates(
            settings=settings,
            calendar=calendar,
            strategies=strategies,
            enabled=settings.strategies,
            kernels=kernels,
        )
        self._exits = Exits(orders, self.candidates)

    @property
    def run_id(self) -> str:
        """Id of the run that the records belong to."""
        return self._settings.run_id

    def run(self, slot: Slot) -> SlotResult:
        """One slot, in the order that never changes: what happened, then exits, then entries.

        Raises ApprovalPendingError when a GO waits for a person; exits are done then, entries and
        the slot's record are left to the run that finishes it.
        """
        if self._market is not None:
            self._market.advance(slot.as_of)
        try:
            compared, expired, protected = self._look_after(slot)
        except EndpointError:  # nothing new then, but what is to be left is left
            self.leave_unseen(slot)
            raise
        portfolio, live, looked_after = compared.portfolio, compared.live, [protected]
        bars, closes, refused = self._bars(slot)
        exits = self._exits.leave(slot, bars, live)
        if any(leave.problem for leave in exits):  # its legs are canceled and its sale is not there
            compared = replace(compared, live=self._orders.open_orders())
            looked_after.append(self._orders.protect(compared, slot.as_of))
        fired = {
            (symbol, name): strategy.crossings(bars[symbol])
            for symbol in self._settings.symbols
            if symbol in bars
            for name, strategy in self.candidates.strategies.items()
        }
        waiting = reserved_by_symbol(live, closes, self._orders.journal.unresolved())
        prepared, skipped, decided = self._candidates(
            slot, bars, fired, portfolio=portfolio, live=live, waiting=waiting
        )
        cycles = self._enter(prepared, compared, waiting)
        fills = self._fills()
        taken = (*decided, *(cycle.cycle_id for cycle in cycles))
        record = SlotRecord(
            session=slot.session,
            as_of=slot.as_of,
            cash=portfolio.cash,
            equity=portfolio.equity,
            positions={held.symbol: held.quantity for held in portfolio.positions},
            closes=_closes(bars),
            hashes={symbol: series.sha256 for symbol, series in bars.items()},
            fills=tuple(booked.fill.execution_id for booked in fills),
            exits=exits,
            refused=refused,
            resolved=compared.resolved,
            protected=tuple(key for done in looked_after for key in done.placed),
            naked={key: why for done in looked_after for key, why in done.naked.items()},
            emergencies={
                key: why for done in looked_after for key, why in done.emergencies.items()
            },
            problem=compared.problem,
            expired=expired,
            skipped=skipped,
            cycles=taken,
            refusals=self._refusals(taken),
        )
        self._ledger.append("slot", f"{self.run_id}-{slot.as_of:%Y%m%dT%H%M}", record)
        return SlotResult(slot=record, fills=fills, cycles=cycles)

    def _look_after(self, slot: Slot) -> tuple[Comparison, tuple[str, ...], Protected]:
        """Compare, halt, cancel old entries, protect; the orders then open, what was canceled."""
        compared = self._orders.reconcile(slot.as_of)
        halt = self._watch.look(compared.portfolio, slot.as_of)
        self._watch.remember(compared.portfolio, slot.session)
        expired = self._orders.expire_entries(slot.as_of, compared.live)
        if halt is not None or expired:
            compared = replace(compared, live=self._orders.open_orders())
        protected = self._orders.protect(compared, slot.as_of)
        if protected.changed:
            compared = replace(compared, live=self._orders.open_orders())
        return compared, expired, protected

    def leave_unseen(self, slot: Slot) -> None:
        """The exits of a slot alone, for when the broker cannot tell how the account stands."""
        self._exits.leave_unseen(slot, self._bars(slot)[0])

    def _fills(self) -> tuple[BookedFill, ...]:
        """Everything booked since the last finished slot, by whichever run."""
        last = self._ledger.last("slot")
        return tuple(
            from_primitive(BookedFill, record.body)
            for record in self._ledger.since(last.seq if last else 0, "fill")
        )

    def _refusals(self, taken: Sequence[str]) -> dict[str, str]:
        outcomes = {key: self._orders.journal.outcome_of_entry(key) for key in taken}
        return {key: found.refusal for key, found in outcomes.items() if found and found.refusal}

    def _bars(self, slot: Slot) -> tuple[dict[str, BarSeries], dict[str, float], dict[str, str]]:
        """Bars fit for a decision, the last close known of every symbol, and the refused symbols.

        Symbols of open trades are looked at although they may not be traded any more.
        """
        held = (trade.symbol for trade in self._orders.journal.book.open_trades())
        waiting = self._orders.journal.symbols_waiting()
        found, closes, refused = {}, {}, {}
        for symbol in dict.fromkeys((*self._settings.symbols, *held, *waiting)):
            try:
                series = self._data.bars(symbol, self._settings.timeframe, slot.as_of)
            except DataIntegrityError as exc:
                refused[symbol] = str(exc)
                continue
            closes[symbol] = float(series.close[-1])
            problem = unfit(series, self._calendar, slot)
            if problem:
                refused[symbol] = problem
            else:
                found[symbol] = series
        return found, closes, refused

    def _candidates(
        self,
        slot: Slot,
        bars: dict[str, BarSeries],
        fired: Fired,
        *,
        portfolio: Portfolio,
        live: Sequence[Order],
        waiting: dict[str, Decimal],
    ) -> tuple[list[Prepared], tuple[Skipped, ...], tuple[str, ...]]:
        """Candidates to debate, signals not debated, and ids decided earlier in this slot."""
        prepared: list[Prepared] = []
        skipped: list[Skipped] = []
        decided: list[str] = []
        for (symbol, name), crossed in fired.items():
            series = bars[symbol]
            index = fired_bar(crossed.entry, series, slot)
            if index is None:
                continue
            identity = self.candidates.identity(symbol, name, series, index)
            if self._ledger.record("cycle", identity) is not None:
                decided.append(identity)
                continue
            strategy = self.candidates.strategies[name]
            reason = ""
            if self._holds(symbol, name, live):
                reason = "already held or ordered"
            elif not still_holds(strategy, crossed, series, index):
                reason = "taken back since its bar"
            if reason:
                skipped.append(Skipped(symbol=symbol, strategy=name, reason=reason))
                continue
            account = AccountView(
                portfolio=portfolio, open_buy_value_symbol=waiting.get(symbol, Decimal(0))
            )
            ready = self.candidates.prepare(
                slot,
                series,
                self.candidates.strategies[name],
                crossed,
                index=index,
                account=account,
            )
            if ready is None:
                reason = "no ATR yet, or no room for a stop"
                skipped.append(Skipped(symbol=symbol, strategy=name, reason=reason))
            else:
                prepared.append(ready)
        return prepared, tuple(skipped), tuple(decided)

    def _holds(self, symbol: str, strategy: str, live: Sequence[Order]) -> bool:
        """Whether this strategy already has shares, or a buy on its way, in this symbol."""
        return any(
            strategy_of(trade_id) == strategy
            for trade_id in self._orders.holds_or_buys(symbol, live)
        )

    def _enter(
        self,
        prepared: Sequence[Prepared],
        compared: Comparison,
        waiting: dict[str, Decimal],
    ) -> tuple[CycleRecord, ...]:
        """Debate every candidate, then spend the cash on the best first.

        waiting  USD that open buys may still cost, by symbol
        """
        held = self._debate(prepared)
        held.sort(key=lambda pair: _rank(*pair))
        waiting = dict(waiting)
        symbols = {item.bars.symbol for item, _ in held}
        glances = {symbol: self._watch.glance(symbol) for symbol in sorted(symbols)}
        # Every decision of the slot and its intents are known together or not at all: a run that
        # dies here is repeated from the same account, and one that dies later only has to send.
        with self._ledger.transaction():
            records = tuple(
                self._decide(item, debate, compared, waiting, glances[item.bars.symbol])
                for item, debate in held
            )
        for record in records:
            if record.intent is not None:
                # a refusal is in the journal now; an unknown outcome is settled by `resolve`
                with suppress(OrderRefusedError, EndpointError):
                    self._orders.send(record.intent)
        return records

    def _debate(self, prepared: Sequence[Prepared]) -> list[tuple[Prepared, Debate]]:
        """Debate every candidate; ApprovalPendingError when any of them waits for a person.

        All are debated before that is told: a person is asked once for the whole slot.
        """
        held: list[tuple[Prepared, Debate]] = []
        awaited: list[AwaitedApproval] = []
        for item in prepared:
            try:
                debate = self._deliberation.deliberate(
                    item.candidate, item.evidence, item.cycle_id, item.history
                )
                held.append((item, debate))
            except ApprovalPendingError as exc:
                awaited.extend(exc.requests)
        if awaited:
            raise ApprovalPendingError(*awaited)
        return held

    def _decide(
        self,
        item: Prepared,
        debate: Debate,
        compared: Comparison,
        waiting: dict[str, Decimal],
        glance: Glance,
    ) -> CycleRecord:
        """Gate and record. waiting: USD of open buys by symbol; grows with each buy."""
        settings, series, symbol = self._settings, item.bars, item.bars.symbol
        as_of = item.candidate.signal.as_of
        inputs = RiskInputs(
            symbol=symbol,
            as_of=as_of,
            bar_at=from_ns(series.timestamp[-1]),
            expected_bar_at=newest_expected(self._calendar, settings.timeframe, as_of),
            close=float(series.close[-1]),
            atr=item.atr,
            atr_multiple=settings.atr_multiple,
            portfolio=compared.portfolio,
            open_buy_value=sum(waiting.values(), Decimal(0)),
            open_buy_value_symbol=waiting.get(symbol, Decimal(0)),
            targets=tuple(
                fact.value
                for fact in item.evidence
                if fact.name.startswith("target_") and fact.value is not None
            ),
            circumstances=self._watch.of(
                symbol,
                at=as_of,
                portfolio=compared.portfolio,
                buying=waiting,
                live=compared.live,
                problem=compared.problem,
                glance=glance,
            ),
        )
        risk = review(
            debate.verdict,
            inputs,
            limits=settings.limits,
            costs=settings.costs,
            target_required=settings.debated,
        )
        intent = order_intent(item.candidate, debate, risk) if risk.approved else None
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
        )
        self._ledger.append("cycle", item.cycle_id, record)
        if intent is not None:
            stop, target = exit_levels(symbol, debate.verdict)
            self._orders.write(
                intent,
                trade_id=item.cycle_id,
                purpose="entry",
                as_of=as_of,
                stop_price=stop,
                target_price=target,
            )
            cost = intent.quantity * money(item.candidate.entry_price) * CASH_COLLAR
            waiting[symbol] = waiting.get(symbol, Decimal(0)) + cost
        return record


def _rank(item: Prepared, debate: Debate) -> tuple[bool, float, str, str]:
    """GO first, then the better expected value; symbol and strategy settle ties."""
    verdict, signal = debate.verdict, item.candidate.signal
    value = verdict.expected_value_r if verdict.expected_value_r is not None else 0.0
    return (verdict.decision is Decision.NO_GO, -value, signal.symbol, signal.strategy)


def _closes(bars: dict[str, BarSeries]) -> dict[str, float]:
    return {symbol: float(series.close[-1]) for symbol, series in bars.items()}
