"""The same episodes through alpaca-py and the embedded exchange, with its own faults around it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from json import dumps, loads
from random import Random
from types import SimpleNamespace
from urllib.parse import urlsplit

from tests.simulation.line import Fate
from tests.simulation.oracle import Key, Truth, shares_of
from tests.simulation.world import BY_HAND, CASH, SYMBOLS
from tests.trader.broker.floor import CALENDAR, FREE, SESSIONS, HandBars, Ohlc
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.faults import Answer, Fault, Faults, Switch
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.session import embedded_client
from trader.core.errors import OrderRefusedError
from trader.core.market import Timeframe, from_ns
from trader.core.ports import Broker, TradingHalt
from trader.core.trading import Fill, Order, OrderIntent, Side

MOVING, FLAT = 28, 60  # hourly bars with prices that move, and after them
BEFORE = 7  # bars of the session before the first step
NEW_ORDER, LOOKUP, BY_ID = "POST /v2/orders", "GET /v2/orders:*", "GET /v2/orders/*"
WEATHER: tuple[tuple[Fault, str, float], ...] = (
    (Fault.LOST_REQUEST, NEW_ORDER, 0.08),
    (Fault.LOST_ANSWER, NEW_ORDER, 0.04),
    (Fault.SILENCE, NEW_ORDER, 0.04),
    (Fault.RATE_LIMITED, NEW_ORDER, 0.04),
    (Fault.GATEWAY_TIMEOUT, NEW_ORDER, 0.03),
    (Fault.BAD_GATEWAY, NEW_ORDER, 0.02),
    (Fault.HIDDEN_ORDER, NEW_ORDER, 0.1),
    (Fault.FILL_BEFORE_ANSWER, NEW_ORDER, 0.05),
    (Fault.LOST_ANSWER, LOOKUP, 0.08),
    (Fault.LOST_ANSWER, BY_ID, 0.04),
    (Fault.LOST_REQUEST, "DELETE *", 0.04),
    (Fault.LOST_ANSWER, "DELETE *", 0.04),
    (Fault.RATE_LIMITED, "GET *", 0.005),
    (Fault.BAD_GATEWAY, "GET *", 0.005),
)


class MarkedBroker(AlpacaBroker):
    """The adapter; what it says no to is noted for the oracle."""

    refused: set[Key]

    def submit(self, intent: OrderIntent) -> Order:
        """As the adapter does."""
        try:
            return super().submit(intent)
        except OrderRefusedError:
            if intent.side is Side.BUY:
                self.refused.add((intent.symbol, intent.quantity))
            raise


class ExchangeWorld:
    """Implements World over an exchange whose clock is moved bar by bar."""

    def __init__(self, rng: Random, fate: Fate) -> None:
        self.rng, self._fate = rng, fate
        self._bars = HandBars(
            {symbol: _prices(rng) for symbol in SYMBOLS}, timeframe=Timeframe.HOUR
        )
        self._closes = {symbol: self._bars.bars(symbol, Timeframe.HOUR).close for symbol in SYMBOLS}
        self._ends = self._bars.bars(SYMBOLS[0], Timeframe.HOUR).available_at
        self._bar = BEFORE - 1  # the newest that is complete
        self.exchange = Exchange(
            data=self._bars,
            timeframe=Timeframe.HOUR,
            calendar=CALENDAR,
            costs=FREE,
            cash=CASH,
            start=CALENDAR.open(SESSIONS[1]),
            database=None,
            liquidity=Liquidity(seed=rng.getrandbits(32), partial_fills=0.4),
        )
        self._faults = Faults(
            [
                Switch(fault=fault, where=where, probability=chance, times=None)
                for fault, where, chance in WEATHER
            ],
            seed=rng.getrandbits(32),
            meanwhile=self._advance,
        )
        self._handle = self._faults.around(self.exchange.handle)
        self._plain = AlpacaBroker(embedded_client(self.exchange))
        self.trades: list[Fill] = []
        self.refused: set[Key] = set()
        self.hid_foreign = False

    @property
    def now(self) -> datetime:
        return self.exchange.now()

    @property
    def price(self) -> Mapping[str, Decimal]:
        return {symbol: Decimal(str(closes[self._bar])) for symbol, closes in self._closes.items()}

    def broker_of(self, halt: TradingHalt | None) -> Broker:
        """A new process: the unmodified client, whose requests pass faults and crash points."""
        client = embedded_client(SimpleNamespace(handle=self._request))  # type: ignore[arg-type]
        broker = MarkedBroker(client, halt=halt)
        broker.refused = self.refused
        return broker

    def _request(self, method: str, path_url: str, body: bytes | None) -> Answer:
        fate, faults = self._fate, self._faults
        where = f"{method} {urlsplit(path_url).path}"
        if method != "GET":
            fate.tell(f"  {where} {'' if body is None else _told(body)}")
        fate.point(f"before {where}")
        struck, hidden = faults.struck.total(), sum(faults._hidden.values())
        sends = where == NEW_ORDER
        fate.counts["submits"] += sends
        try:
            answer = self._handle(method, path_url, body)
        finally:
            if faults.struck.total() != struck:
                fate.strike("fault", where)
                fate.counts["ambiguous"] += sends
            elif sum(faults._hidden.values()) < hidden:
                fate.strike("not visible", where)
        if sends and answer[0] == 403 and self._stands_in_the_way(answer[1]):
            fate.strike("a person's order in the way", where)
        fate.point(f"after {where}")
        return answer

    def _stands_in_the_way(self, said: object) -> bool:
        """Whether an order is refused because of a person's, which is not ours to cancel."""
        other = said.get("existing_order_id") if isinstance(said, dict) else None
        found = None if other is None else self._plain.order_by_id(str(other))
        return found is not None and found.client_order_id.startswith(BY_HAND)

    def wait(self, seconds: float) -> None:
        """The exchange's time does not pass by itself."""

    def step(self, *, surprises: bool) -> None:
        """The next bar; with surprises a person may trade, cancel or pay in."""
        self._advance()
        chance = self.rng.random()
        if surprises and chance < 0.05:
            self.exchange.deposit(Decimal(self.rng.randint(1, 99)))
        elif surprises and chance < 0.15:
            self._act_by_hand()
        self._read_trades()

    def settle(self) -> None:
        """The next bar."""
        self._advance()
        self._read_trades()

    def calm(self) -> None:
        """No faults any more, and prices that stand still."""
        self._faults.set([])
        self._bar = max(self._bar, BEFORE + MOVING - 1)
        self.exchange.advance(from_ns(int(self._ends[self._bar])))
        self._read_trades()

    def _advance(self) -> None:
        self._bar += 1
        self.exchange.advance(from_ns(int(self._ends[self._bar])))

    def _read_trades(self) -> None:
        """Trades since the last look, as a plain line tells them."""
        last = self.trades[-1].execution_id if self.trades else None
        for fill in self._plain.fills(after=last):
            self.trades.append(fill)
            self._fate.tell(
                f"    market: {fill.side} {fill.quantity} {fill.symbol}, {fill.client_order_id}"
            )

    def _act_by_hand(self) -> None:
        symbol = self.rng.choice(SYMBOLS)
        working = [
            one
            for tree in self._plain.orders()
            for one in tree.with_legs()
            if one.symbol == symbol and one.side is Side.SELL and not one.status.is_final
        ]
        if working and self.rng.random() < 0.5:
            order = self.rng.choice(working)
            self._fate.tell(f"    by hand: cancel {order.client_order_id}")
            self._plain.cancel(order.order_id)
            return
        number = 1000 + self._bar
        self._fate.tell(f"    by hand: buy {number} {symbol}")
        body = {
            "client_order_id": f"{BY_HAND} {number}",
            "symbol": symbol,
            "qty": str(number),
            "side": "buy",
            "type": "market",
            "time_in_force": "gtc" if "/" in symbol else "day",
        }
        self.exchange.handle("POST", "/v2/orders", dumps(body).encode())

    def truth(self) -> Truth:
        """The account as a plain line shows it."""
        self._read_trades()
        portfolio = self._plain.portfolio()
        return Truth(
            trees=self._plain.orders(open_only=False),
            held={position.symbol: position.quantity for position in portfolio.positions},
            ours=shares_of(self.trades, is_ours=_is_ours),
            cash=portfolio.cash,
        )


def _prices(rng: Random) -> list[Ohlc]:
    """Bars around 100 USD: quiet ones, then some that jump, then quiet ones again."""
    bars: list[Ohlc] = [(100.0, 100.0, 100.0, 100.0)] * BEFORE
    for _ in range(MOVING):
        first, last = (float(rng.choice((93, 96, 98, 99, 100, 101, 102, 105, 108))) for _ in "ab")
        bars.append((first, max(first, last) + 1, min(first, last) - 1, last))
    close = bars[-1][3]
    return bars + [(close, close, close, close)] * FLAT


def _is_ours(fill: Fill) -> bool:
    return not fill.client_order_id.startswith(BY_HAND)


def _told(body: bytes) -> str:
    """What a reader of the trace wants to know of a request."""
    order = loads(body)
    return " ".join(str(order.get(name, "")) for name in ("client_order_id", "side", "qty", "type"))
