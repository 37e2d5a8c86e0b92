"""The judge: what became of every decision, told from the broker's orders and trades alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trader.core.trading import Fill, Order, OrderStatus, OrderType, Side

STOPS = (OrderType.STOP, OrderType.STOP_LIMIT)
NOTHING = Decimal(0)

Key = tuple[str, Decimal]  # symbol and quantity of an order that buys: which decision it is of


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """An account at one moment, from the broker's side.

    trees  every order there ever was, its legs nested
    held   shares of each symbol
    ours   those of them that decisions bought and nobody has sold
    cash   USD
    """

    trees: Sequence[Order]
    held: Mapping[str, Decimal]
    ours: Mapping[str, Decimal]
    cash: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that must never be. kind: lost, doubled, unprotected, oversold, mismatch, …"""

    kind: str
    what: str


def shares_of(fills: Iterable[Fill], *, is_ours: Callable[[Fill], bool]) -> dict[str, Decimal]:
    """Shares of each symbol that decisions bought and nobody has sold since.

    A sale by a person takes a person's shares first, one of ours takes ours.
    """
    ours: dict[str, Decimal] = {}
    foreign: dict[str, Decimal] = {}
    for fill in fills:
        first, second = (ours, foreign) if is_ours(fill) else (foreign, ours)
        symbol, shares = fill.symbol, fill.quantity
        if fill.side is Side.BUY:
            first[symbol] = first.get(symbol, NOTHING) + shares
            continue
        part = min(shares, first.get(symbol, NOTHING))
        first[symbol] = first.get(symbol, NOTHING) - part
        second[symbol] = second.get(symbol, NOTHING) - (shares - part)
    return ours


def covered(truth: Truth, symbol: str) -> Decimal:
    """Shares that live stops and market sales would sell; a leg counts once its entry is filled."""
    return sum((one.open_quantity for one, _ in _sales(truth, symbol) if _guards(one)), NOTHING)


def for_sale(truth: Truth, symbol: str) -> Decimal:
    """Shares that open sell orders could sell together; of a group only one can."""
    groups: dict[str, Decimal] = {}
    for one, group in _sales(truth, symbol):
        groups[group] = max(groups.get(group, NOTHING), one.open_quantity)
    return sum(groups.values(), NOTHING)


def _guards(order: Order) -> bool:
    return order.order_type is OrderType.MARKET or order.order_type in STOPS


def _sales(truth: Truth, symbol: str) -> Iterable[tuple[Order, str]]:
    """Live sell orders that can trade, each with its group."""
    for tree in truth.trees:
        if tree.symbol != symbol:
            continue
        if tree.side is Side.SELL and not tree.status.is_final:
            yield tree, tree.order_id
        if tree.side is Side.SELL or tree.status is OrderStatus.FILLED:
            for leg in tree.legs:
                if not leg.status.is_final:
                    yield leg, tree.order_id


def exposed(truth: Truth, bought: Mapping[str, Decimal]) -> list[Failure]:
    """Shares of ours that nothing protects, and orders that could sell more than is held.

    bought  shares of each symbol that were bought while the desk was acting: the one step in which
            shares may be without a stop
    """
    found = []
    for symbol, ours in truth.ours.items():
        naked = ours - bought.get(symbol, NOTHING) - covered(truth, symbol)
        if naked > 0:
            found.append(Failure(kind="unprotected", what=f"{naked} of {ours} {symbol}"))
    for symbol in truth.held:
        held = truth.held[symbol]
        waiting = for_sale(truth, symbol)
        if waiting > max(held, NOTHING):
            found.append(Failure(kind="oversold", what=f"{waiting} of {held} {symbol} for sale"))
        if held < 0:
            found.append(Failure(kind="oversold", what=f"{held} {symbol} are held"))
    return found


def settled(truth: Truth, due: Mapping[Key, str], excused: Iterable[Key]) -> list[Failure]:
    """Decisions without an order, and those with more than one or with too many shares.

    due      symbol and quantity of each decision that was taken -> its name; no two are the same
    excused  those that need not have an order: refused by the broker, or never sent for a reason
    """
    orders: dict[Key, list[Order]] = {key: [] for key in due}
    for tree in truth.trees:
        key = tree.symbol, tree.quantity
        if tree.side is Side.BUY and key in orders:
            orders[key].append(tree)
    forgiven, found = set(excused), []
    for key, own in orders.items():
        if not own and key not in forgiven:
            found.append(Failure(kind="lost", what=f"{due[key]}: {key[1]} {key[0]}"))
        took = [one for one in own if one.status is not OrderStatus.REJECTED]
        if len(took) > 1 or sum((one.filled_quantity for one in took), NOTHING) > key[1]:
            found.append(Failure(kind="doubled", what=f"{due[key]}: {len(took)} orders"))
    return found


def stale(truth: Truth, until: Mapping[Key, datetime]) -> list[Failure]:
    """Orders of decisions that were sent when their slot had ended. until: end of each slot."""
    return [
        Failure(kind="stale", what=f"{tree.quantity} {tree.symbol} at {tree.submitted_at}")
        for tree in truth.trees
        for end in [until.get((tree.symbol, tree.quantity))]
        if tree.side is Side.BUY and end is not None and tree.submitted_at >= end
    ]
