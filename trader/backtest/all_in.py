"""All in: one strategy alone with all the cash and its stop, filled by the exchange's own rules.

A yardstick like buy & hold and not a trade: it knows no cap, no gate, no protections and no kill
switch, and nothing that trades can ask for it. A lane of a sweep can be held against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from strategies.kernels.dispatch import KernelSet
from trader.backtest.evaluation import trade_row
from trader.backtest.replay import SLOTS_PER_COMMIT, Progress, Replay
from trader.core.canonical import sha256_of
from trader.core.clock import SessionCalendar
from trader.core.costs import Costs
from trader.core.errors import OrderRefusedError
from trader.core.market import BarSeries, from_ns, to_ns
from trader.core.ports import Broker, Crossings, SimulatedMarket, Strategy
from trader.core.trading import OrderClass, OrderIntent, OrderType, Side, TimeInForce, money
from trader.ledger.book import Trade
from trader.orders.entries import JournaledIntent, Purpose
from trader.orders.journal import OrderJournal
from trader.pipeline.candidates import bar_of, cycle_id, fired_bar, still_holds
from trader.pipeline.freshness import unfit
from trader.pipeline.levels import entry_levels
from trader.pipeline.records import Exit, Skipped, SlotRecord
from trader.pipeline.slots import Slot
from trader.report.contents import Funnel, TradeRow
from trader.risk.sizing import affordable_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What every entry of a walk has in common: costs, and the ATR that places the stop."""

    costs: Costs
    atr_window: int
    atr_multiple: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AllIn:
    """What a walk left behind. funnel: nothing was debated, so signals become orders."""

    replay: Replay
    funnel: Funnel
    trades: tuple[TradeRow, ...]


def market_cash(cash: Decimal) -> Decimal:
    """USD that the account at the market needs for a walk that begins with `cash`.

    A buy keeps back 4 % more than the last close, and the next open may lie far below that close;
    an account that spends everything could not give it. The book counts `cash` alone, and every
    order is sized by the book.
    """
    return cash * 1_000_000


def all_in(
    strategy: Strategy,
    series: Mapping[str, BarSeries],
    slots: Sequence[Slot],
    *,
    run_id: str,
    market: SimulatedMarket,
    broker: Broker,
    journal: OrderJournal,
    calendar: SessionCalendar,
    kernels: KernelSet,
    rules: Rules,
    progress: Progress | None = None,
) -> AllIn:
    """Walk the slots with one strategy that puts all free cash in and leaves by signal or stop.

    series   bars by symbol over the whole period and before; those of `market`, showing no splits.
             Decisions see what was known at their slot; sizes, alone, see the next open
    market   at the moment before the first slot, its account with `market_cash` of the cash
    broker   the account in that market
    journal  empty, of the cash to begin with; intents, fills and slots go into its ledger
    raises   StateError when account and book do not agree at the end

    An entry is decided at a close and bought at the next open: whole shares, as many as the cash
    pays for at the price that will really be paid, with costs. Its stop, a leg of the order, is the
    one that a candidate of the pipeline gets. Several symbols share the cash: what is free at an
    open, after the exits of that open, is split evenly over the symbols that are flat there.
    """
    cash = journal.book.cash
    walk = _Walk(
        strategy=strategy,
        series=series,
        run_id=run_id,
        broker=broker,
        journal=journal,
        calendar=calendar,
        kernels=kernels,
        rules=rules,
    )
    records: list[SlotRecord] = []
    for number, slot in enumerate(slots, start=1):
        market.advance(slot.as_of)
        record = walk.run(slot, last=number == len(slots))
        journal.ledger.append("slot", f"{run_id}-{slot.as_of:%Y%m%dT%H%M}", record)
        records.append(record)
        if number % SLOTS_PER_COMMIT == 0:
            journal.ledger.commit()
        if progress is not None:
            progress(number, len(slots), record)
    journal.ledger.commit()
    there = broker.portfolio()
    lent = market_cash(cash) - cash
    journal.book.require_agreement(replace(there, cash=there.cash - lent))
    return AllIn(
        replay=Replay(slots=tuple(records), cycles=(), book=journal.book),
        funnel=_funnel(records, walk.reasons),
        trades=walk.trade_rows(records),
    )


class _Walk:
    """The account between two slots."""

    def __init__(
        self,
        *,
        strategy: Strategy,
        series: Mapping[str, BarSeries],
        run_id: str,
        broker: Broker,
        journal: OrderJournal,
        calendar: SessionCalendar,
        kernels: KernelSet,
        rules: Rules,
    ) -> None:
        self._strategy, self._series, self._run_id = strategy, series, run_id
        self._broker, self._journal, self._calendar = broker, journal, calendar
        self._kernels, self._rules = kernels, rules
        self._buying: set[str] = set()  # symbols whose entry waits for its open
        self._leaving: set[str] = set()  # trades whose sale was sent
        self.reasons: dict[str, str] = {}  # trade -> why it was entered, of every entry sent

    def run(self, slot: Slot, *, last: bool) -> SlotRecord:
        """What happened, then exits, then entries; at the last slot nothing is sent any more."""
        fills = self._fills()
        bars, closes, refused = self._bars(slot)
        fired = {symbol: self._strategy.crossings(known) for symbol, known in bars.items()}
        exits = () if last else self._leave(slot, bars, fired)
        skipped, refusals = self._enter(slot, bars, fired, last=last)
        book = self._journal.book
        return SlotRecord(
            session=slot.session,
            as_of=slot.as_of,
            cash=book.cash,
            equity=book.equity({symbol: money(close) for symbol, close in closes.items()}),
            positions=dict(book.quantities),
            closes=closes,
            hashes={symbol: known.sha256 for symbol, known in bars.items()},
            fills=fills,
            exits=exits,
            refused=refused,
            resolved=(),
            protected=(),
            naked={},
            expired=(),
            skipped=skipped,
            cycles=(),
            refusals=refusals,
        )

    def trade_rows(self, records: Sequence[SlotRecord]) -> tuple[TradeRow, ...]:
        """Every trade, oldest first, with why it was entered and why it was left."""
        left = {leave.trade_id: leave.reason for slot in records for leave in slot.exits}
        return tuple(
            trade_row(
                trade,
                stop=self._journal.levels(trade.trade_id)[0],
                why_entered=self.reasons[trade.trade_id],
                why_left=left.get(trade.trade_id, ""),
                close=money(records[-1].closes[trade.symbol]),
            )
            for trade in self._journal.book.trades.values()
        )

    def _fills(self) -> tuple[str, ...]:
        """Book what the bars since the slot before have filled; the execution ids."""
        if not (self._buying or self._journal.book.quantities):
            return ()
        new = self._broker.fills(self._journal.last_execution_id)
        booked = [one for fill in new for one in self._journal.write_fill(fill)]
        self._buying -= {one.fill.symbol for one in booked if one.reason == "entry"}
        return tuple(one.fill.execution_id for one in booked)

    def _bars(self, slot: Slot) -> tuple[dict[str, BarSeries], dict[str, float], dict[str, str]]:
        """Bars fit for a decision, the last close known of each symbol, and the refused symbols."""
        found, closes, refused = {}, {}, {}
        for symbol, series in self._series.items():
            known = series.until(slot.as_of)
            if len(known):
                closes[symbol] = float(known.close[-1])
            problem = unfit(known, self._calendar, slot)
            if problem:
                refused[symbol] = problem
            else:
                found[symbol] = known
        return found, closes, refused

    def _leave(
        self, slot: Slot, bars: Mapping[str, BarSeries], fired: Mapping[str, Crossings]
    ) -> tuple[Exit, ...]:
        """Take the stop of every trade whose strategy left away and sell at the next open."""
        exits = []
        for trade in self._journal.book.open_trades():
            known = bars.get(trade.symbol)
            if known is None:  # a sale that was sent is done before its symbol is fit again
                continue
            since = int(known.timestamp.searchsorted(to_ns(bar_of(trade.trade_id)), side="right"))
            wanted = np.flatnonzero(fired[trade.symbol].exit[since:])
            if not wanted.size:
                continue
            (entry,) = self._journal.of_trade(trade.trade_id, "entry")
            stop = self._journal.outcomes[entry.intent.client_order_id].stop_loss_id
            assert stop is not None  # an entry is sent with its stop
            self._broker.cancel(stop)
            sale = OrderIntent(
                client_order_id=_order_id(trade.trade_id, slot, "x"),
                symbol=trade.symbol,
                side=Side.SELL,
                quantity=trade.open_quantity,
                order_type=OrderType.MARKET,
                time_in_force=TimeInForce.GTC,  # it waits for an open, whenever that comes
            )
            self._send(sale, trade.trade_id, "exit", slot)
            self._leaving.add(trade.trade_id)
            exits.append(
                Exit(
                    trade_id=trade.trade_id,
                    symbol=trade.symbol,
                    strategy=self._strategy.name,
                    reason=self._strategy.reason(known, since + int(wanted[-1])),
                    client_order_id=sale.client_order_id,
                )
            )
        return tuple(exits)

    def _enter(
        self,
        slot: Slot,
        bars: Mapping[str, BarSeries],
        fired: Mapping[str, Crossings],
        *,
        last: bool,
    ) -> tuple[tuple[Skipped, ...], dict[str, str]]:
        """Buy what fired; signals that bought nothing, and orders that the market refused."""
        skipped, refusals = [], {}
        opens = {} if last else self._next_opens(slot)
        budget = self._budget(opens)
        for symbol, known in bars.items():
            index = fired_bar(fired[symbol].entry, known, slot)
            if index is None:
                continue
            bar_at = from_ns(known.timestamp[index])
            trade_id = cycle_id(self._run_id, bar_at, symbol, self._strategy.name)
            wish = self._wish(known, fired[symbol], index, opens.get(symbol), budget)
            if isinstance(wish, str):
                skipped.append(Skipped(symbol=symbol, strategy=self._strategy.name, reason=wish))
                continue
            quantity, stop = wish
            entry = OrderIntent(
                client_order_id=_order_id(trade_id, slot, "e"),
                symbol=symbol,
                side=Side.BUY,
                quantity=quantity,
                order_type=OrderType.MARKET,
                order_class=OrderClass.OTO,
                time_in_force=TimeInForce.GTC,  # the stop inherits it
                stop_loss_price=stop,
            )
            try:
                self._send(entry, trade_id, "entry", slot)
            except OrderRefusedError as exc:
                refusals[trade_id] = str(exc)
                continue
            self._buying.add(symbol)
            self.reasons[trade_id] = self._strategy.reason(known, index)
        return tuple(skipped), refusals

    def _wish(
        self,
        known: BarSeries,
        crossed: Crossings,
        index: int,
        opening: float | None,
        budget: Decimal,
    ) -> tuple[Decimal, Decimal] | str:
        """Shares to buy at the next open and their stop, or why nothing is bought."""
        rules, symbol = self._rules, known.symbol
        if symbol in self._buying or self._journal.book.open_trades(symbol):
            return "already held or ordered"
        newest = index == len(known) - 1  # then nothing can have taken it back since
        if not newest and not still_holds(self._strategy, crossed, known, index):
            return "taken back since its bar"
        atr = self._kernels.atr(known.high, known.low, known.close, rules.atr_window)
        close = float(known.close[-1])
        levels = entry_levels(close, float(atr[-1]), rules.atr_multiple, rules.costs)
        if levels is None:
            return "no ATR yet, or no room for a stop"
        if opening is None:
            return "no open followed"
        quantity = _most_shares(budget, rules.costs.slipped(opening, Side.BUY), rules.costs)
        return (quantity, money(levels.stop)) if quantity else "the cash pays for no share"

    def _next_opens(self, slot: Slot) -> dict[str, float]:
        """USD per share at the next open there is, of the symbols that open then."""
        found: dict[str, tuple[int, float]] = {}
        for symbol, series in self._series.items():
            index = int(series.timestamp.searchsorted(to_ns(slot.as_of)))
            if index < len(series):
                found[symbol] = int(series.timestamp[index]), float(series.open[index])
        first = min((opened for opened, _ in found.values()), default=0)
        return {symbol: price for symbol, (opened, price) in found.items() if opened == first}

    def _budget(self, opens: Mapping[str, float]) -> Decimal:
        """USD for each symbol that is flat at the next open, of what is free after its exits."""
        costs, book = self._rules.costs, self._journal.book
        free, flat = book.cash, set(self._series)
        for trade in book.open_trades():
            opening = opens.get(trade.symbol)
            if opening is not None and self._leaves_at(trade, opening):
                worth = trade.open_quantity * costs.slipped(opening, Side.SELL)
                free += worth - costs.fee(worth)
            else:
                flat.discard(trade.symbol)
        return free / len(flat) if flat else Decimal(0)

    def _leaves_at(self, trade: Trade, opening: float) -> bool:
        """Whether a trade is sold at an open: its sale waits, or the open has passed its stop."""
        stop, _ = self._journal.levels(trade.trade_id)
        return trade.trade_id in self._leaving or (stop is not None and money(opening) <= stop)

    def _send(self, intent: OrderIntent, trade_id: str, purpose: Purpose, slot: Slot) -> None:
        """Write an order down and send it; OrderRefusedError, which is written down too."""
        self._journal.write_intent(
            JournaledIntent(
                intent=intent,
                trade_id=trade_id,
                purpose=purpose,
                as_of=slot.as_of,
                stop_price=intent.stop_loss_price,
            )
        )
        try:
            order = self._broker.submit(intent)
        except OrderRefusedError as exc:
            self._journal.write_refusal(intent.client_order_id, str(exc))
            raise
        self._journal.write_order(order)


def _most_shares(budget: Decimal, price: Decimal, costs: Costs) -> Decimal:
    """Whole shares that `budget` USD pays for at `price` USD with their fee.

    A fee that is rounded down to the cent may leave the price of one more.
    """
    shares = affordable_shares(budget=budget, price=price, costs=costs)
    while (shares + 1) * price + costs.fee((shares + 1) * price) <= budget:
        shares += 1
    return shares


def _order_id(trade_id: str, slot: Slot, purpose: str) -> str:
    return f"all-in-{slot.as_of:%Y%m%d}-{sha256_of([trade_id, slot.as_of])[:16]}-{purpose}"


def _funnel(slots: Sequence[SlotRecord], entered: Mapping[str, str]) -> Funnel:
    """Bars to fills without debate and gate between. entered: by trade, of every entry sent."""
    skipped = Counter(item.reason for slot in slots for item in slot.skipped)
    refused = sum(len(slot.refusals) for slot in slots)
    return Funnel(
        bars=sum(len(slot.closes) for slot in slots),
        signals=len(entered) + refused + sum(skipped.values()),
        skipped=dict(sorted(skipped.items())),
        debates=0,
        go=0,
        no_go=0,
        vetoes={},
        gate_refusals={},
        broker_refusals=refused,
        orders=len(entered) + sum(len(slot.exits) for slot in slots),
        fills=sum(len(slot.fills) for slot in slots),
        nearest_miss="",
    )
