"""Pure accounting: cash, positions and trades from fills, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from trader.core.errors import StateError
from trader.core.trading import Fill, Portfolio, Side

ExitReason = Literal["stop", "target", "signal", "protection", "other"]
FillReason = Literal["entry", "stop", "target", "signal", "protection", "other"]
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedFill:
    """A fill with the trade it belongs to.

    slippage  USD that the fill price lost against the market
    """

    fill: Fill
    trade_id: str  # cycle id of the entry
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
    """Cash, shares and trades of an account; `apply` is its only way to change."""

    cash: Decimal
    quantities: dict[str, Decimal] = field(default_factory=dict)
    trades: dict[str, Trade] = field(default_factory=dict)
    fees: Decimal = Decimal(0)
    slippage: Decimal = Decimal(0)

    def apply(self, booked: BookedFill) -> Trade:
        """Book one fill; the trade it belongs to.

        Raises StateError for a sale of shares that the trade does not hold: the records contradict
        each other.
        """
        fill = booked.fill
        value = fill.quantity * fill.price
        if fill.side is Side.BUY:
            trade = self.trades.setdefault(
                booked.trade_id,
                Trade(trade_id=booked.trade_id, symbol=fill.symbol, entered_at=fill.filled_at),
            )
            trade.entry_quantity += fill.quantity
            trade.entry_value += value
            self.cash -= value + fill.fee
            self._add(fill.symbol, fill.quantity)
        else:
            found = self.trades.get(booked.trade_id)
            if found is None or found.open_quantity < fill.quantity:
                raise StateError(
                    f"fill {fill.execution_id} sells {fill.quantity} {fill.symbol} "
                    f"that trade {booked.trade_id} does not hold"
                )
            trade = found
            trade.exit_quantity += fill.quantity
            trade.exit_value += value
            trade.exited_at = fill.filled_at
            trade.exit_reason = booked.reason if booked.reason != "entry" else "other"
            self.cash += value - fill.fee
            self._add(fill.symbol, -fill.quantity)
        trade.fees += fill.fee
        self.fees += fill.fee
        self.slippage += booked.slippage
        return trade

    def _add(self, symbol: str, quantity: Decimal) -> None:
        held = self.quantities.get(symbol, Decimal(0)) + quantity
        if held:
            self.quantities[symbol] = held
        else:
            self.quantities.pop(symbol, None)

    def open_trades(self, symbol: str | None = None) -> tuple[Trade, ...]:
        """Trades that still hold shares, oldest first."""
        return tuple(
            trade
            for trade in self.trades.values()
            if trade.is_open and symbol in (None, trade.symbol)
        )

    def equity(self, prices: Mapping[str, Decimal]) -> Decimal:
        """Cash and shares at the given prices, USD."""
        return self.cash + sum(
            (quantity * prices[symbol] for symbol, quantity in self.quantities.items()), Decimal(0)
        )

    def require_agreement(self, portfolio: Portfolio) -> None:
        """Raise StateError unless the broker's cash and shares equal the book's, to the cent."""
        theirs = {held.symbol: held.quantity for held in portfolio.positions if held.quantity}
        if theirs != self.quantities:
            raise StateError(
                f"the broker holds {_shown(theirs)}, the ledger {_shown(self.quantities)}"
            )
        if abs(portfolio.cash - self.cash) >= CENT:
            raise StateError(
                f"the broker has {portfolio.cash:.4f} USD of cash, the ledger {self.cash:.4f}"
            )


def _shown(quantities: Mapping[str, Decimal]) -> str:
    return (
        ", ".join(f"{quantity:f} {symbol}" for symbol, quantity in sorted(quantities.items()))
        or "nothing"
    )
