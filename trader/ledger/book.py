"""Pure accounting: cash, shares and trades, from fills and from what else moves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from trader.core.errors import StateError
from trader.core.trading import Activity, ActivityKind, Fill, Portfolio, Side

ExitReason = Literal["stop", "target", "signal", "protection", "other"]
FillReason = Literal["entry", "stop", "target", "signal", "protection", "other"]
CENT = Decimal("0.01")
SHARE_STEP = Decimal("1e-9")  # nothing smaller is held
CASH = "cash"  # no symbol is written in small letters
IMPORTED = "import-"  # trades of shares that came without an order of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedFill:
    """A fill with the trade it belongs to.

    slippage  USD that the fill price lost against the market
    """

    fill: Fill
    trade_id: str  # cycle id of the entry; `import-…` for shares that came otherwise
    reason: FillReason
    slippage: Decimal


@dataclass(slots=True, kw_only=True)
class Trade:
    """One entry and what became of it; money in USD."""

    trade_id: str
    symbol: str
    entered_at: datetime
    entry_quantity: Decimal = Decimal(0)
    entry_value: Decimal = Decimal(0)
    exit_quantity: Decimal = Decimal(0)
    exit_value: Decimal = Decimal(0)
    fees: Decimal = Decimal(0)
    exited_at: datetime | None = None
    exit_reason: ExitReason | None = None

    @property
    def open_quantity(self) -> Decimal:
        """Shares still held."""
        return self.entry_quantity - self.exit_quantity

    @property
    def is_open(self) -> bool:
        """Whether shares are still held."""
        return self.open_quantity > 0

    @property
    def is_imported(self) -> bool:
        """Whether its shares came without an order of ours."""
        return self.trade_id.startswith(IMPORTED)

    @property
    def entry_price(self) -> Decimal:
        """Average price paid per share, fees left out."""
        return self.entry_value / self.entry_quantity

    @property
    def exit_price(self) -> Decimal | None:
        """Average price received per share, fees left out; None before the first exit."""
        return self.exit_value / self.exit_quantity if self.exit_quantity else None

    @property
    def profit(self) -> Decimal:
        """Profit of a closed trade after fees, USD."""
        return self.exit_value - self.entry_value - self.fees


@dataclass(slots=True, kw_only=True)
class Book:
    """Cash, shares and trades of an account; every change comes from a record of the ledger.

    transfers    USD paid in less USD paid out: no profit of trading
    income       USD of dividends less fees that belong to no fill
    corrections  USD that adjustments to the broker's cash added and no shares were traded for
    """

    cash: Decimal
    quantities: dict[str, Decimal] = field(default_factory=dict)
    trades: dict[str, Trade] = field(default_factory=dict)
    fees: Decimal = Decimal(0)
    slippage: Decimal = Decimal(0)
    transfers: Decimal = Decimal(0)
    income: Decimal = Decimal(0)
    corrections: Decimal = Decimal(0)
    _open: dict[str, Trade] = field(default_factory=dict)  # trades that hold shares, oldest first

    def apply(self, booked: BookedFill) -> Trade:
        """Book one fill; the trade it belongs to.

        Raises StateError for a sale of shares that the trade does not hold: the records contradict
        each other.
        """
        fill = booked.fill
        value = fill.quantity * fill.price
        if fill.side is Side.BUY:
            trade = self._enter(booked.trade_id, fill.symbol, fill.quantity, value, fill.filled_at)
            self.cash -= value + fill.fee
        else:
            found = self.trades.get(booked.trade_id)
            if found is None or found.open_quantity < fill.quantity:
                raise StateError(
                    f"fill {fill.execution_id} sells {fill.quantity} {fill.symbol} "
                    f"that trade {booked.trade_id} does not hold"
                )
            trade = found
            reason = booked.reason if booked.reason != "entry" else "other"
            self._leave(trade, fill.quantity, value, fill.filled_at, reason)
            self.cash += value - fill.fee
        trade.fees += fill.fee
        self.fees += fill.fee
        self.slippage += booked.slippage
        return trade

    def correct(self, trade_id: str, side: Side, *, value: Decimal, fee: Decimal) -> None:
        """Add what the true fills of an order were worth more than the estimate, USD."""
        trade = self.trades[trade_id]
        if side is Side.BUY:
            trade.entry_value += value
            self.cash -= value + fee
        else:
            trade.exit_value += value
            self.cash += value - fee
        trade.fees += fee
        self.fees += fee

    def apply_activity(self, activity: Activity) -> None:
        """Book cash or shares that came or went without a fill.

        A split changes the shares of every trade in proportion, exits made before included, so
        that prices per share stay comparable. Money paid in or out is no profit. Shares that the
        book does not have cannot be split or taken: the comparison with the broker will tell.
        """
        self.cash += activity.amount
        if activity.kind is ActivityKind.TRANSFER:
            self.transfers += activity.amount
        else:
            self.income += activity.amount
        symbol, quantity = activity.symbol, activity.quantity
        if symbol is None or not quantity:
            return
        held = self.quantities.get(symbol, Decimal(0))
        if activity.kind is ActivityKind.SPLIT:
            if held > 0 and held + quantity > 0:
                self._split(symbol, held, quantity)
        elif quantity > 0:
            trade_id = f"{IMPORTED}{activity.activity_id}"
            self.bring(trade_id, symbol, quantity, Decimal(0), activity.at)
        elif held + quantity >= 0:
            self.take(symbol, -quantity, activity.at)

    def bring(
        self, trade_id: str, symbol: str, quantity: Decimal, price: Decimal, at: datetime
    ) -> None:
        """Add shares that no cash was paid for here. price: USD per share they are entered at."""
        self._enter(trade_id, symbol, quantity, quantity * price, at)

    def take(self, symbol: str, quantity: Decimal, at: datetime) -> None:
        """Remove shares that went without a sale, from imports first, at the price they came at.

        StateError when fewer are held.
        """
        for trade, part in self.sellers(symbol, quantity):
            self._leave(trade, part, part * trade.entry_price, at, "other")

    def adjust(
        self, trade_id: str, symbol: str, quantity: Decimal, price: Decimal, at: datetime
    ) -> None:
        """Make the shares of a symbol the broker's. quantity: to add, negative: to take away.

        price  USD per share of those added. What is taken beyond the shares held leaves a short.
        """
        if quantity > 0:
            self.bring(trade_id, symbol, quantity, price, at)
            return
        held = sum((trade.open_quantity for trade in self.open_trades(symbol)), Decimal(0))
        self.take(symbol, min(held, -quantity), at)
        self._add(symbol, quantity + min(held, -quantity))

    def sellers(
        self, symbol: str, quantity: Decimal, first: str = ""
    ) -> Iterator[tuple[Trade, Decimal]]:
        """Trades whose shares make up a sale of `quantity`, each with its part.

        The trade `first` comes first, then imports, then the oldest. StateError when together they
        hold fewer.
        """
        order = sorted(
            self.open_trades(symbol),
            key=lambda trade: (trade.trade_id != first, not trade.is_imported),
        )
        if sum((trade.open_quantity for trade in order), Decimal(0)) < quantity:
            raise StateError(f"{quantity:f} {symbol} are to go, the ledger holds fewer")
        for trade in order:
            if not quantity:
                return
            part = min(quantity, trade.open_quantity)
            quantity -= part
            yield trade, part

    def _enter(
        self, trade_id: str, symbol: str, quantity: Decimal, value: Decimal, at: datetime
    ) -> Trade:
        trade = self.trades.setdefault(
            trade_id, Trade(trade_id=trade_id, symbol=symbol, entered_at=at)
        )
        trade.entry_quantity += quantity
        trade.entry_value += value
        short = max(-self.quantities.get(symbol, Decimal(0)), Decimal(0))
        if covered := min(short, quantity):  # shares that are owed already are none to be sold
            trade.exit_quantity += covered
            trade.exit_value += value * covered / quantity
            trade.exited_at, trade.exit_reason = at, "other"
        if trade.is_open:
            self._open[trade_id] = trade
        self._add(symbol, quantity)
        return trade

    def _leave(
        self, trade: Trade, quantity: Decimal, value: Decimal, at: datetime, reason: ExitReason
    ) -> None:
        trade.exit_quantity += quantity
        trade.exit_value += value
        trade.exited_at = at
        trade.exit_reason = reason
        if not trade.is_open:
            self._open.pop(trade.trade_id, None)
        self._add(trade.symbol, -quantity)

    def _split(self, symbol: str, before: Decimal, added: Decimal) -> None:
        left = before + added
        trades = self.open_trades(symbol)
        for trade in trades:
            held = (trade.open_quantity * (before + added) / before).quantize(SHARE_STEP)
            held = left if trade is trades[-1] else held
            sold = (trade.exit_quantity * (before + added) / before).quantize(SHARE_STEP)
            trade.entry_quantity, trade.exit_quantity = held + sold, sold
            left -= held
        self._add(symbol, added)

    def _add(self, symbol: str, quantity: Decimal) -> None:
        held = self.quantities.get(symbol, Decimal(0)) + quantity
        if held:
            self.quantities[symbol] = held
        else:
            self.quantities.pop(symbol, None)

    def open_trades(self, symbol: str | None = None) -> tuple[Trade, ...]:
        """Trades that still hold shares, oldest first."""
        return tuple(trade for trade in self._open.values() if symbol in (None, trade.symbol))

    def equity(self, prices: Mapping[str, Decimal]) -> Decimal:
        """Cash and shares at the given prices, USD."""
        return self.cash + sum(
            (quantity * prices[symbol] for symbol, quantity in self.quantities.items()), Decimal(0)
        )

    def differences(
        self, portfolio: Portfolio, *, tolerance: Decimal = CENT
    ) -> dict[str, tuple[Decimal, Decimal]]:
        """Where broker and book disagree: symbol, or "cash" -> (the broker's number, the book's).

        tolerance  USD of cash from which on it is a disagreement
        """
        theirs = {held.symbol: held.quantity for held in portfolio.positions if held.quantity}
        found = {}
        if theirs != self.quantities:
            for symbol in sorted(theirs.keys() | self.quantities.keys()):
                pair = theirs.get(symbol, Decimal(0)), self.quantities.get(symbol, Decimal(0))
                if pair[0] != pair[1]:
                    found[symbol] = pair
        if abs(portfolio.cash - self.cash) >= tolerance:
            found[CASH] = portfolio.cash, self.cash
        return found

    def require_agreement(self, portfolio: Portfolio) -> None:
        """Raise StateError unless the broker's cash and shares equal the book's, to the cent."""
        found = self.differences(portfolio)
        if found:
            raise StateError(disagreement(found))


def disagreement(differences: Mapping[str, tuple[Decimal, Decimal]]) -> str:
    """Where broker and ledger disagree, in one line for a person."""
    words = [
        f"the broker has {theirs:.4f} USD of cash, the ledger {ours:.4f}"
        if what == CASH
        else f"the broker holds {theirs:f} {what}, the ledger {ours:f}"
        for what, (theirs, ours) in differences.items()
    ]
    return "; ".join(words)
