"""Read views of the paper account; they change nothing and need no lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trader.app.assembly import costs_of, embedded_broker, embedded_exchange
from trader.app.context import Context
from trader.app.fitting import first_slot, usable_at, waiting
from trader.app.folder import EXCHANGE, LEDGER
from trader.app.heartbeat import DaemonStatus, holder, status_of
from trader.core.canonical import Primitive, to_object
from trader.core.errors import ConfigError, EndpointError, StateError, TraderError
from trader.core.ports import Broker
from trader.core.trading import Order, OrderType, Portfolio, Position
from trader.ledger.controls import Control, Controls
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.pipeline.candidates import strategy_of

SCHEMA_VERSION = 1
CUT_SHORT = "a slot was cut short: `trader run --paper --once` finishes it, then look again"
NO_ACCOUNT = "there is no paper account here yet: `trader run --paper --once` begins one"


class View:
    """What a command that only looks prints."""

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView(View):
    """What `trader status` prints; None where there is no account yet."""

    schema_version: int
    state_dir: str
    notices: tuple[str, ...]
    market_time: datetime | None
    simulated: bool
    cash: Decimal | None
    equity: Decimal | None
    positions: int
    open_orders: int
    slots: int
    decisions: int
    closed_trades: int
    realised_profit: Decimal | None  # of the closed trades, USD after costs
    controls: tuple[Control, ...]  # what forbids entries now
    wishes: tuple[Control, ...]  # what a person wants done and nobody has done yet
    daemon: DaemonStatus
    records: int
    ledger_head: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    """One order with what it is for."""

    order: Order
    trade_id: str
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdersView(View):
    """What `trader orders` prints."""

    schema_version: int
    notices: tuple[str, ...]
    orders: tuple[OrderLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLine:
    """One open trade with its protection; prices USD per share."""

    trade_id: str
    symbol: str
    strategy: str
    quantity: Decimal
    entry_price: Decimal
    current_price: Decimal
    profit: Decimal  # USD, before the costs of leaving
    stop_price: Decimal | None
    target_price: Decimal | None
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionsView(View):
    """What `trader positions` prints."""

    schema_version: int
    notices: tuple[str, ...]
    market_time: datetime | None
    positions: tuple[PositionLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An account as its files show it. notices: what a person should know before believing it."""

    ledger: Ledger
    journal: OrderJournal
    portfolio: Portfolio
    orders: tuple[Order, ...]
    simulated: bool
    notices: tuple[str, ...]


def look_at(app: Context, *, open_only: bool = True) -> Seen | None:
    """The account at the broker that it trades with, whatever the configuration names now."""
    known = _known(app)
    if known is None:
        return None
    own, ledger, journal, cash = known
    simulated = own.config.broker.name == "embedded"
    with _opened(own, simulated=simulated, cash=cash) as broker:
        portfolio = broker.portfolio()
        orders = broker.orders(open_only=open_only)
    at_work = holder(app.state_dir) is not None  # it goes on by itself with what is open
    usable = usable_at(own, None if simulated else portfolio.as_of)
    notices = [
        f"a GO waits for you: `trader approve {cycle_id}` or `trader reject {cycle_id}`"
        + ("" if at_work else "; the next run lets it expire")
        for cycle_id in waiting(ledger, usable)
    ]
    last = ledger.last("slot")
    if (
        simulated
        and not notices
        and not at_work
        and last
        and portfolio.as_of != datetime.fromisoformat(last.body["as_of"])
    ):
        notices.append(CUT_SHORT)
    return Seen(
        ledger=ledger,
        journal=journal,
        portfolio=portfolio,
        orders=orders,
        simulated=simulated,
        notices=tuple(notices),
    )


def _known(app: Context) -> tuple[Context, Ledger, OrderJournal, Decimal] | None:
    """Where the account trades, its ledger, journal and first cash; None before it began."""
    path = app.state_dir / LEDGER
    if not path.exists():
        return None
    ledger = Ledger(path, read_only=True)
    first, newest = next(ledger.records("run"), None), ledger.last("run")
    if first is None or newest is None:
        ledger.close()
        return None
    own = app.over(first.body["settings"]).trading_at(newest.body)
    cash = Decimal(first.body["cash"])
    return own, ledger, OrderJournal(ledger, cash=cash, costs=costs_of(own.config)), cash


def _remembered(app: Context, problem: TraderError) -> Seen | None:
    """The account as its last slot left it, for when the broker cannot be asked."""
    known = _known(app)
    if known is None:
        return None
    _, ledger, journal, _ = known
    last = ledger.last("slot")
    if last is None:
        raise problem
    slot, closes = last.body, last.body["closes"]
    held = tuple(
        Position(
            symbol=symbol,
            quantity=Decimal(quantity),
            average_entry_price=Decimal(0),
            current_price=Decimal(str(closes.get(symbol, 0))),
        )
        for symbol, quantity in slot["positions"].items()
    )
    return Seen(
        ledger=ledger,
        journal=journal,
        portfolio=Portfolio(
            cash=Decimal(str(slot["cash"])),
            equity=Decimal(str(slot["equity"])),
            positions=held,
            as_of=datetime.fromisoformat(slot["as_of"]),
        ),
        orders=(),
        simulated=False,
        notices=(f"the broker cannot be asked, this is what the last slot saw: {problem}",),
    )


@contextmanager
def _opened(own: Context, *, simulated: bool, cash: Decimal) -> Iterator[Broker]:
    if not simulated:
        from trader.app.venue import alpaca_broker

        yield alpaca_broker(own)
        return
    database = own.state_dir / EXCHANGE
    if not database.exists():
        raise StateError(f"{database} is missing, though the ledger knows this account")
    exchange = embedded_exchange(
        own.config,
        data=own.data,
        calendar=own.calendar,
        start=first_slot(own).since,
        cash=cash,
        database=database,
    )
    try:
        yield embedded_broker(exchange)
    finally:
        exchange.close()


def status(app: Context) -> StatusView:
    """The account in short, after walking its whole hash chain.

    While the broker cannot be asked: as the last slot left it, and a notice says so.
    """
    try:
        seen = look_at(app)
    except (EndpointError, ConfigError) as exc:
        seen = _remembered(app, exc)
    if seen is None:
        return StatusView(
            schema_version=SCHEMA_VERSION,
            state_dir=str(app.state_dir),
            notices=(NO_ACCOUNT,),
            market_time=None,
            simulated=True,
            cash=None,
            equity=None,
            positions=0,
            open_orders=0,
            slots=0,
            decisions=0,
            closed_trades=0,
            realised_profit=None,
            controls=(),
            wishes=(),
            daemon=status_of(app.state_dir),
            records=0,
            ledger_head=None,
        )
    records = seen.ledger.verify()
    closed = [trade for trade in seen.journal.book.trades.values() if not trade.is_open]
    controls = Controls(seen.ledger)
    return StatusView(
        schema_version=SCHEMA_VERSION,
        state_dir=str(app.state_dir),
        notices=seen.notices,
        market_time=seen.portfolio.as_of,
        simulated=seen.simulated,
        cash=seen.portfolio.cash,
        equity=seen.portfolio.equity,
        positions=len(seen.portfolio.positions),
        open_orders=sum(
            not leg.status.is_final for order in seen.orders for leg in order.with_legs()
        ),
        slots=sum(1 for _ in seen.ledger.records("slot")),
        decisions=sum(1 for _ in seen.ledger.records("cycle")),
        closed_trades=len(closed),
        realised_profit=sum((trade.profit for trade in closed), Decimal(0)),
        controls=controls.in_force(seen.portfolio.as_of),
        wishes=controls.wishes(),
        daemon=status_of(app.state_dir),
        records=records,
        ledger_head=seen.ledger.head,
    )


def orders(app: Context) -> OrdersView:
    """Every order with its legs, oldest first, and the decision it belongs to."""
    seen = look_at(app, open_only=False)
    if seen is None:
        return OrdersView(schema_version=SCHEMA_VERSION, notices=(NO_ACCOUNT,), orders=())
    lines = []
    for order in seen.orders:
        journaled = seen.journal.intents.get(order.client_order_id)
        lines.append(
            OrderLine(
                order=order,
                trade_id=journaled.trade_id if journaled else "",
                purpose=journaled.purpose if journaled else "by hand",
            )
        )
    return OrdersView(schema_version=SCHEMA_VERSION, notices=seen.notices, orders=tuple(lines))


def positions(app: Context) -> PositionsView:
    """Every open trade with the stop and the target that wait for it."""
    seen = look_at(app)
    if seen is None:
        return PositionsView(
            schema_version=SCHEMA_VERSION, notices=(NO_ACCOUNT,), market_time=None, positions=()
        )
    live = {order.order_id: order for parent in seen.orders for order in parent.with_legs()}
    prices = {held.symbol: held.current_price for held in seen.portfolio.positions}
    lines = []
    for trade in seen.journal.book.open_trades():
        waiting = [live[key] for key in seen.journal.order_ids(trade.trade_id) if key in live]
        stop = next((o.stop_price for o in waiting if o.stop_price is not None), None)
        target = next((o.limit_price for o in waiting if o.order_type is OrderType.LIMIT), None)
        entries = seen.journal.of_trade(trade.trade_id, "entry")
        if target is None and entries:  # it cannot wait at the broker: a close has to reach it
            target = entries[0].target_price
        price = prices.get(trade.symbol)
        if price is None:
            continue  # sold in a slot that was cut short; the notice says how to go on
        lines.append(
            PositionLine(
                trade_id=trade.trade_id,
                symbol=trade.symbol,
                strategy="not ours" if trade.is_imported else strategy_of(trade.trade_id),
                quantity=trade.open_quantity,
                entry_price=trade.entry_price,
                current_price=price,
                profit=(price - trade.entry_price) * trade.open_quantity,
                stop_price=stop,
                target_price=target,
                weight=float(trade.open_quantity * price / seen.portfolio.equity),
            )
        )
    return PositionsView(
        schema_version=SCHEMA_VERSION,
        notices=seen.notices,
        market_time=seen.portfolio.as_of,
        positions=tuple(lines),
    )
