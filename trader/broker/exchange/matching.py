"""The rules of fills: which open orders trade on a bar, in what order and at what price.

What happens at the open is known, so it comes first. The order of events inside a bar is unknown,
so the reading that is worse for the trader is taken:

1. exits pending at the open           open, slippage against the trader
2. stops and targets gapped over       open; with slippage for a stop, without for a target
3. entries pending at the open         open; with slippage for a market order, without for a limit
4. buy stops gapped over               open, slippage against the trader
5. legs of entries 3 and 4 gapped over open, as 2: an entry below its own stop leaves at once
6. entries inside the bar              buy stop at its level with slippage, buy limit at its limit
7. protective stops, entry bar too     stop level with slippage
8. targets                             limit price

After an entry at a limit inside the bar, the high may lie before the entry: its target counts on
that bar only when the close has reached it. Inside one step orders trade in the order they came in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from trader.broker.exchange.account import Account
from trader.broker.exchange.prices import PricedBar
from trader.broker.exchange.records import Ticket
from trader.core.costs import Costs
from trader.core.trading import OrderType, Side, fill_price

Pricing = Callable[[Ticket, PricedBar, Costs], Decimal | None]


def match(account: Account, bars: Mapping[str, PricedBar], costs: Costs) -> None:
    """Trade the open orders on the bars of one moment, by symbol; orders newer than a bar wait."""
    for pricing in AT_OPEN:
        for ticket, bar in _eligible(account, bars):
            price = pricing(ticket, bar, costs)
            if price is not None:
                account.fill(ticket, price, costs, bar.opened_ns)
    dipped: set[str] = set()
    for pricing in INSIDE:
        for ticket, bar in _eligible(account, bars):
            seen = replace(bar, high=bar.close) if ticket.family_id in dipped else bar
            price = pricing(ticket, seen, costs)
            if price is None:
                continue
            account.fill(ticket, price, costs, bar.known_ns)
            if ticket.side is Side.BUY and ticket.order_type is OrderType.LIMIT:
                dipped.add(ticket.family_id)
    for bar in bars.values():
        account.show_as_new(bar.symbol, bar.opened_ns)


def _eligible(
    account: Account, bars: Mapping[str, PricedBar]
) -> Iterator[tuple[Ticket, PricedBar]]:
    """Live orders with a bar that opened no earlier than they came in, the oldest first."""
    for ticket in account.open_tickets():
        bar = bars.get(ticket.symbol)
        if bar is None or not ticket.live or ticket.submitted_ns > bar.opened_ns:
            continue
        if account.tickets[ticket.order_id] is ticket:  # not filled or canceled meanwhile
            yield ticket, bar


def pending_exit(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A market sell trades at the open."""
    if ticket.side is Side.SELL and ticket.order_type is OrderType.MARKET:
        return costs.slipped(bar.open, Side.SELL)
    return None


def gapped_exit(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A stop or target that the open has already passed trades at the open."""
    if ticket.side is not Side.SELL:
        return None
    if ticket.stop_price is not None and bar.open <= ticket.stop_price:
        return costs.slipped(bar.open, Side.SELL)
    if ticket.limit_price is not None and bar.open >= ticket.limit_price:
        return fill_price(bar.open)
    return None


def pending_entry(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A market buy trades at the open, and a limit buy whose limit the open does not exceed."""
    if ticket.side is not Side.BUY:
        return None
    if ticket.order_type is OrderType.MARKET:
        return costs.slipped(bar.open, Side.BUY)
    if ticket.limit_price is not None and bar.open <= ticket.limit_price:
        return fill_price(bar.open)
    return None


def gapped_entry_stop(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A buy stop that the open has already passed trades at the open, the worse price."""
    if ticket.side is Side.BUY and ticket.stop_price is not None and bar.open >= ticket.stop_price:
        return costs.slipped(bar.open, Side.BUY)
    return None


def entry_inside(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A buy stop trades at its level, a buy limit at its limit, when the bar reaches it."""
    if ticket.side is not Side.BUY:
        return None
    if ticket.stop_price is not None and bar.high >= ticket.stop_price:
        return costs.slipped(ticket.stop_price, Side.BUY)
    if ticket.limit_price is not None and bar.low <= ticket.limit_price:
        return ticket.limit_price
    return None


def protective_stop(ticket: Ticket, bar: PricedBar, costs: Costs) -> Decimal | None:
    """A sell stop trades at its level when the bar reaches it."""
    if ticket.side is Side.SELL and ticket.stop_price is not None and bar.low <= ticket.stop_price:
        return costs.slipped(ticket.stop_price, Side.SELL)
    return None


def target(ticket: Ticket, bar: PricedBar, _: Costs) -> Decimal | None:
    """A sell limit trades at its limit when the bar reaches it."""
    if (
        ticket.side is Side.SELL
        and ticket.limit_price is not None
        and bar.high >= ticket.limit_price
    ):
        return ticket.limit_price
    return None


AT_OPEN: tuple[Pricing, ...] = (
    pending_exit,
    gapped_exit,
    pending_entry,
    gapped_entry_stop,
    gapped_exit,
)
INSIDE: tuple[Pricing, ...] = (entry_inside, protective_stop, target)
