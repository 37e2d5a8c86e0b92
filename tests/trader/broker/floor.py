"""A small trading floor: hand-written bars on real sessions, the exchange and its clients."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np

from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.session import embedded_client
from trader.core.clock import new_york
from trader.core.costs import Costs
from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe
from trader.core.trading import Fill, Order

CALENDAR = new_york()
SESSIONS = CALENDAR.between(date(2025, 6, 27), date(2025, 9, 30))  # July 3 is a half day
FREE = Costs(slippage_bps=0.0)
FLAT = (100, 100, 100, 100)
Ohlc = tuple[float, float, float, float]


class HandBars:
    """MarketData of bars written by hand, one per session (or per hour) from the first on."""

    def __init__(
        self,
        rows: dict[str, list[Ohlc]],
        *,
        timeframe: Timeframe = Timeframe.DAY,
        name: str = "hand",
        missing: dict[str, set[int]] | None = None,
        volume: float | list[float] = 1e6,
    ) -> None:
        self._timeframe = timeframe
        self._name = name
        self._series = {
            symbol: _series(
                symbol, bars, timeframe, name, (missing or {}).get(symbol, set()), volume
            )
            for symbol, bars in rows.items()
        }

    @property
    def name(self) -> str:
        return self._name

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:
        return tuple(sorted(self._series))

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        if symbol not in self._series:
            raise DataIntegrityError(f"no bars of {symbol}")
        series = self._series[symbol]
        return series if until is None else series.until(until)


def _series(
    symbol: str,
    bars: list[Ohlc],
    timeframe: Timeframe,
    name: str,
    missing: set[int],
    volume: float | list[float],
) -> BarSeries:
    opens, closes = CALENDAR.opens_ns(SESSIONS), CALENDAR.closes_ns(SESSIONS)
    if timeframe is Timeframe.HOUR:
        hour = 3_600 * 10**9
        pairs = [
            (start, min(start + hour, close))
            for opened, close in zip(opens.tolist(), closes.tolist(), strict=True)
            for start in range(opened, close, hour)
        ]
        opens, closes = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    kept = [index for index in range(len(bars)) if index not in missing]
    prices = np.array(bars, dtype=np.float64).reshape(-1, 4)[kept]
    return BarSeries(
        symbol=symbol,
        timeframe=timeframe,
        timestamp=opens[kept],
        available_at=closes[kept],
        open=prices[:, 0],
        high=prices[:, 1],
        low=prices[:, 2],
        close=prices[:, 3],
        volume=np.broadcast_to(np.asarray(volume, dtype=np.float64), len(bars))[kept],
        source=name,
        adjustment="none",
    )


class Floor:
    """The exchange after the close of the first session, with its client and its broker."""

    def __init__(
        self,
        *aapl: Ohlc,
        rows: dict[str, list[Ohlc]] | None = None,
        costs: Costs = FREE,
        cash: int | str = 10_000,
        database: Path | None = None,
        start: datetime | None = None,
        data: HandBars | None = None,
        timeframe: Timeframe = Timeframe.DAY,
        liquidity: Liquidity | None = None,
    ) -> None:
        self.data = data or HandBars(rows or {"AAPL": list(aapl)}, timeframe=timeframe)
        self.exchange = Exchange(
            data=self.data,
            timeframe=timeframe,
            calendar=CALENDAR,
            costs=costs,
            cash=Decimal(cash),
            start=start or CALENDAR.close(SESSIONS[0]),
            database=database,
            liquidity=liquidity,
        )
        self.client = embedded_client(self.exchange)
        self.broker = AlpacaBroker(self.client)
        self.number = 0

    def to_close(self, session: int) -> None:
        """Advance to the close of session number `session`."""
        self.exchange.advance(CALENDAR.close(SESSIONS[session]))

    def post(self, **body: object) -> tuple[int, dict]:
        """POST /v2/orders as it stands; AAPL, 10 shares, market, day unless said."""
        self.number += 1
        usual = {
            "symbol": "AAPL",
            "qty": "10",
            "side": "buy",
            "type": "market",
            "time_in_force": "day",
            "client_order_id": f"c{self.number}",
        }
        return self.send("POST", "/v2/orders", usual | body)

    def buy(self, **body: object) -> str:
        """Post a buy that must be taken; returns its id."""
        status, answer = self.post(**body)
        assert status == 200, answer
        return answer["id"]

    def bracket(self, stop: object, target: object, **body: object) -> str:
        """Post a good-till-canceled bracket that must be taken."""
        legs = {"stop_loss": {"stop_price": stop}, "take_profit": {"limit_price": target}}
        return self.buy(**({"order_class": "bracket", "time_in_force": "gtc"} | legs | body))

    def sell(self, **body: object) -> str:
        """Post a sell that must be taken."""
        return self.buy(**({"side": "sell"} | body))

    def send(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        raw = None if body is None else json.dumps(body).encode()
        return self.exchange.handle(method, path, raw)

    def order(self, order_id: str) -> Order:
        found = {one.order_id: one for order in self.all_orders() for one in order.with_legs()}
        return found[order_id]

    def all_orders(self) -> tuple[Order, ...]:
        return self.broker.orders(open_only=False)

    def fills(self) -> list[tuple[str, Decimal]]:
        """(side, price) of every fill, in order."""
        return [(fill.side.value, fill.price) for fill in self.broker.fills()]

    def events(self) -> list[str]:
        """Every trade update so far, as "name client_order_id"."""
        return [f"{one.name} {one.ticket.client_order_id}" for one in self.exchange.events(0)]

    def raw(self, order_id: str) -> dict:
        """An order as its JSON."""
        return self.send("GET", f"/v2/orders/{order_id}?nested=true")[1]

    def replace(self, order_id: str, **changes: object) -> tuple[int, dict]:
        """PATCH /v2/orders/{id}."""
        return self.send("PATCH", f"/v2/orders/{order_id}", changes)

    def last_fill(self) -> Fill:
        return self.broker.fills()[-1]

    def cash(self) -> Decimal:
        return self.broker.portfolio().cash


def opening(session: int) -> datetime:
    return CALENDAR.open(SESSIONS[session])


def closing(session: int) -> datetime:
    return CALENDAR.close(SESSIONS[session])


def minutes_before_close(session: int, minutes: int) -> datetime:
    return closing(session) - timedelta(minutes=minutes)
