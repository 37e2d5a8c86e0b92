"""Buy and hold: all cash into the symbols at the first open, the least a strategy must beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import numpy as np

from trader.core.costs import Costs
from trader.core.market import BarSeries, from_ns, to_ns
from trader.core.trading import Fill, Side, money
from trader.ledger.book import Book, BookedFill
from trader.risk.sizing import affordable_shares, lot_of


def buy_and_hold(
    series: Mapping[str, BarSeries],
    *,
    cash: Decimal,
    costs: Costs,
    start: datetime,
    times: Sequence[datetime],
) -> tuple[Book, tuple[float, ...]]:
    """Split the cash evenly over symbols and buy each at the open of its first bar from `start` on.

    series  bars by symbol; a symbol without a bar from `start` on leaves its share as cash
    start   UTC, opening time of the first bar that may be traded
    times   moments at which the account is valued, at the newest close known
    returns the book and the equity [len(times)] in USD

    Whole shares (coins in parts), sized from the price really paid with costs; what is left over
    stays cash. Fully invested, so the 15 % cap of the gate does not hold here: this is a yardstick,
    not a trade.
    """
    book = Book(cash=cash)
    firsts = {symbol: _first_from(bars, start) for symbol, bars in series.items()}
    tradable = {symbol: index for symbol, index in firsts.items() if index is not None}
    share = cash / len(series) if series else cash
    for symbol, index in tradable.items():
        bars = series[symbol]
        market = money(float(bars.open[index]))
        price = costs.slipped(market, Side.BUY)
        lot = lot_of(symbol, fractional=False)
        quantity = affordable_shares(budget=share, price=price, costs=costs, lot=lot)
        if not quantity:
            continue
        fill = Fill(
            execution_id=f"hold-{symbol}",
            order_id=f"hold-{symbol}",
            client_order_id=f"hold-{symbol}",
            symbol=symbol,
            side=Side.BUY,
            quantity=quantity,
            price=price,
            fee=costs.fee(quantity * price),
            filled_at=from_ns(bars.timestamp[index]),
        )
        slippage = (price - market) * quantity
        book.apply(BookedFill(fill=fill, trade_id=symbol, reason="entry", slippage=slippage))
    return book, tuple(_equity_at(book, series, moment, cash) for moment in times)


def _first_from(bars: BarSeries, start: datetime) -> int | None:
    index = int(np.searchsorted(bars.timestamp, to_ns(start)))
    return index if index < len(bars) else None


def _equity_at(
    book: Book, series: Mapping[str, BarSeries], moment: datetime, cash: Decimal
) -> float:
    """Equity at a moment: only what had been bought by then is worth its price."""
    worth = cash
    for symbol, trade in book.trades.items():
        if trade.entered_at <= moment:
            close = money(float(series[symbol].until(moment).close[-1]))
            worth += trade.open_quantity * close - trade.entry_value - trade.fees
    return float(worth)
