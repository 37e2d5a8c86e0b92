"""Laws that hold after any sequence of orders, right or wrong, and advances."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.broker.floor import CALENDAR, SESSIONS, Floor, Ohlc
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.exchange.records import Event
from trader.broker.exchange.replaying import replayed
from trader.core.costs import Costs
from trader.core.market import to_ns
from trader.core.trading import Order, OrderStatus, TimeInForce

SYMBOLS = ("AAPL", "MSFT")
BARS = 9


@dataclass(frozen=True)
class Post:
    """An order at levels given in percent of 100."""

    symbol: str
    side: str
    kind: str
    form: str
    life: str
    quantity: int
    level: int
    below: int
    above: int
    part: str  # of a share, beside the quantity


@dataclass(frozen=True)
class Cancel:
    place: int


@dataclass(frozen=True)
class Replace:
    place: int
    level: int
    quantity: int | None


@dataclass(frozen=True)
class Halt:
    on: bool


@dataclass(frozen=True)
class Close:
    symbol: str


@dataclass(frozen=True)
class Advance:
    sessions: int


@st.composite
def bars(draw) -> list[Ohlc]:
    """Jumpy bars between 70 and 140, on whole dollars so that levels are often hit exactly."""
    rows = []
    for _ in range(BARS):
        opened, closed, up, down = (
            draw(st.integers(low, high)) for low, high in ((80, 125), (80, 125), (0, 12), (0, 12))
        )
        rows.append(
            (
                float(opened),
                float(max(opened, closed) + up),
                float(min(opened, closed) - down),
                float(closed),
            )
        )
    return rows


ACTIONS = st.one_of(
    st.builds(
        Post,
        symbol=st.sampled_from(SYMBOLS),
        side=st.sampled_from(("buy", "buy", "sell")),
        kind=st.sampled_from(("market", "limit", "stop", "stop_limit", "trailing_stop")),
        form=st.sampled_from(("simple", "simple", "bracket", "oto", "oco")),
        life=st.sampled_from(("day", "gtc", "day", "gtc", "opg", "cls", "ioc", "fok")),
        quantity=st.integers(-1, 60),
        level=st.integers(85, 120),
        below=st.integers(1, 15),
        above=st.integers(1, 15),
        part=st.sampled_from(("", "", "", ".5", ".123456789")),
    ),
    st.builds(Advance, st.integers(1, 3)),
    st.builds(Cancel, st.integers(0, 5)),
    st.builds(Replace, st.integers(0, 5), st.integers(80, 120), st.none() | st.integers(1, 60)),
    st.builds(Halt, st.booleans()),
    st.builds(Close, st.sampled_from(SYMBOLS)),
)
COSTS = st.builds(
    Costs,
    slippage_bps=st.sampled_from((0.0, 5.0, 100.0)),
    fee_bps=st.sampled_from((0.0, 10.0)),
    commission_per_order=st.sampled_from((0.0, 1.0)),
)
LIQUIDITY = st.builds(
    Liquidity,
    seed=st.integers(0, 9),
    partial_fills=st.sampled_from((0.0, 0.5, 1.0)),
    volume_share=st.sampled_from((None, 0.00002, 0.00001)),  # of a million shares: 20, 10
)
STORIES = st.lists(ACTIONS, max_size=14)


def act(market: Floor, action: object, at: int, *, in_many_steps: bool) -> int:
    """Do it; the session the market stands at afterwards."""
    match action:
        case Advance(sessions=count):
            for session in range(at + 1, min(at + count, BARS + 1) + 1):
                if in_many_steps:
                    market.exchange.advance(CALENDAR.open(SESSIONS[session]))
                    market.to_close(session)
                at = session
            market.to_close(at)
        case Cancel(place=place):
            waiting = [one for order in market.broker.orders() for one in order.with_legs()]
            if place < len(waiting):
                market.send("DELETE", f"/v2/orders/{waiting[place].order_id}")
        case Replace(place=place, level=level, quantity=quantity):
            waiting = [one for order in market.broker.orders() for one in order.with_legs()]
            if place < len(waiting):
                old = waiting[place]
                name = "limit_price" if old.limit_price is not None else "stop_price"
                market.replace(old.order_id, qty=quantity, **{name: level})
        case Halt(on=on):
            market.exchange.halt("AAPL", on=on)
        case Close(symbol=symbol):
            market.send("DELETE", f"/v2/positions/{symbol}")
        case Post():
            market.post(**order_body(action))
    return at


def order_body(post: Post) -> dict[str, object]:
    body: dict[str, object] = {
        "symbol": post.symbol,
        "side": post.side,
        "type": post.kind,
        "order_class": post.form,
        "time_in_force": post.life,
        "qty": f"{post.quantity}{post.part}",
    }
    if post.form == "oco":
        body["type"] = "limit"
    elif post.kind == "trailing_stop":
        body["trail_price"] = post.below
    else:
        if post.kind.startswith("stop"):
            body["stop_price"] = post.level
        if post.kind.endswith("limit"):
            body["limit_price"] = post.level + post.above - 7
    if post.form != "simple":
        body["stop_loss"] = {"stop_price": post.level - post.below}
    if post.form in ("bracket", "oco"):
        body["take_profit"] = {"limit_price": post.level + post.above}
    return body


def check_laws(market: Floor) -> None:
    fills, portfolio = market.broker.fills(), market.broker.portfolio()
    cash = Decimal(10_000)
    held = dict.fromkeys(SYMBOLS, Decimal(0))
    for fill in fills:
        sign = 1 if fill.side == "buy" else -1
        cash -= sign * fill.quantity * fill.price + fill.fee
        held[fill.symbol] += sign * fill.quantity
        assert cash >= 0
        assert held[fill.symbol] >= 0
    assert portfolio.cash == cash
    shown = {position.symbol: position.quantity for position in portfolio.positions}
    assert shown == {symbol: count for symbol, count in held.items() if count}
    worth = sum((count * last_close(market, symbol) for symbol, count in held.items()), Decimal(0))
    assert portfolio.equity == cash + worth
    orders = {one.order_id: one for order in market.all_orders() for one in order.with_legs()}
    check_orders(market, orders)
    for fill in fills:
        order = orders[fill.order_id]
        assert fill.filled_at >= order.submitted_at
        if order.time_in_force is not TimeInForce.CLS:
            assert opening_of(fill.filled_at) >= order.submitted_at
        if order.limit_price is not None:
            better = order.limit_price - fill.price
            assert better >= 0 if fill.side == "buy" else better <= 0


def check_orders(market: Floor, orders: dict[str, Order]) -> None:
    """Quantities, free shares and money of the orders themselves."""
    for order in orders.values():
        parts = [one for one in market.broker.fills() if one.order_id == order.order_id]
        traded = sum((one.quantity for one in parts), Decimal(0))
        assert traded == order.filled_quantity <= order.quantity
        assert (order.status is OrderStatus.FILLED) == (traded == order.quantity > 0)
        if order.status is OrderStatus.PARTIALLY_FILLED:
            assert traded
        if traded:
            paid = sum((one.quantity * one.price for one in parts), Decimal(0))
            assert order.filled_average_price == round(paid / traded, 9)
    for position in market.send("GET", "/v2/positions")[1]:
        assert 0 <= Decimal(position["qty_available"]) <= Decimal(position["qty"])
    account = market.send("GET", "/v2/account")[1]
    assert 0 <= Decimal(account["buying_power"]) <= Decimal(account["cash"])


def check_events(market: Floor) -> None:
    """Events end each order once, in a final state, and replay to the orders as they are."""
    told: dict[str, list[Event]] = {}
    for event in market.exchange.events(0):
        told.setdefault(event.ticket.order_id, []).append(event)
    orders = {one.order_id: one for order in market.all_orders() for one in order.with_legs()}
    for order in orders.values():
        events = told.pop(order.order_id, [])
        if not events:
            assert order.status is OrderStatus.HELD
            continue
        finals = [event for event in events if event.ticket.status.is_final]
        assert len(finals) == order.status.is_final
        assert finals in ([], events[-1:])
        last = events[-1].ticket
        assert (last.status, last.quantity) == (order.status, order.quantity)
        assert last.filled_quantity == order.filled_quantity
        assert last.limit_price == order.limit_price
        filled = sum((one.quantity for one in events if one.quantity), Decimal(0))
        assert filled == order.filled_quantity
        moments = [event.at_ns for event in events]
        assert moments == sorted(moments)
    assert told == {}


def last_close(market: Floor, symbol: str) -> Decimal:
    series = market.data.bars(symbol, market.data._timeframe, market.exchange.now())
    return Decimal(str(series.close[-1]))


def opening_of(moment):
    """When the daily bar opened that was under way at `moment`."""
    return max(CALENDAR.open(day) for day in SESSIONS if CALENDAR.open(day) <= moment)


@settings(deadline=None, max_examples=60)
@given(aapl=bars(), msft=bars(), costs=COSTS, liquidity=LIQUIDITY, story=STORIES)
def test_money_shares_and_orders_always_balance(aapl, msft, costs, liquidity, story):
    market = Floor(rows={"AAPL": aapl, "MSFT": msft}, costs=costs, liquidity=liquidity)
    at = 0
    for action in story:
        at = act(market, action, at, in_many_steps=False)
        check_laws(market)
    check_events(market)


@settings(deadline=None, max_examples=20)
@given(aapl=bars(), msft=bars(), costs=COSTS, liquidity=LIQUIDITY, story=STORIES)
def test_a_market_done_again_from_its_log_is_the_same_to_the_bit(
    tmp_path_factory, aapl, msft, costs, liquidity, story
):
    database = tmp_path_factory.mktemp("market") / "exchange.db"
    market = Floor(
        rows={"AAPL": aapl, "MSFT": msft}, costs=costs, liquidity=liquidity, database=database
    )
    at = 0
    for action in story:
        at = act(market, action, at, in_many_steps=False)
    again = replayed(database, data=market.data, calendar=CALENDAR)
    assert again.sha256() == market.exchange.sha256()
    market.exchange.close()


@settings(deadline=None, max_examples=40)
@given(aapl=bars(), msft=bars(), costs=COSTS, liquidity=LIQUIDITY, story=STORIES)
def test_one_step_and_many_steps_end_in_the_same_state(aapl, msft, costs, liquidity, story):
    seen = []
    for in_many_steps in (False, True):
        market = Floor(rows={"AAPL": aapl, "MSFT": msft}, costs=costs, liquidity=liquidity)
        at = 0
        for action in [*story, Advance(BARS)]:
            at = act(market, action, at, in_many_steps=in_many_steps)
        orders = market.send("GET", "/v2/orders?status=all&limit=500")
        told = market.exchange.events(0)
        seen.append((orders, market.send("GET", "/v2/account"), market.broker.fills(), told))
    assert seen[0] == seen[1]


@settings(deadline=None, max_examples=40)
@given(aapl=bars(), story=STORIES, cut=st.integers(1, BARS - 1))
def test_later_bars_change_nothing_earlier(aapl, story, cut):
    """Cutting the future off: the same story up to `cut` ends the same with and without it."""
    seen = []
    for rows in (aapl, aapl[: cut + 1]):
        market = Floor(rows={"AAPL": rows, "MSFT": rows})
        at = 0
        for action in story:
            if isinstance(action, Advance) and at + action.sessions > cut:
                break
            at = act(market, action, at, in_many_steps=False)
        seen.append((market.send("GET", "/v2/orders?status=all&limit=500"), market.cash()))
    assert seen[0] == seen[1]


def test_the_sessions_of_the_floor_hold_a_half_day():
    lengths = {to_ns(CALENDAR.close(day)) - to_ns(CALENDAR.open(day)) for day in SESSIONS[:BARS]}
    assert len(lengths) == 2
