"""What may be done to the market and its account beside Alpaca's REST; each is logged by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from trader.broker.exchange.postings import Happening, Kind
from trader.broker.exchange.prices import LARGEST_RATE
from trader.core.instruments import is_crypto
from trader.core.market import from_ns, to_ns
from trader.core.trading import money

if TYPE_CHECKING:
    from trader.broker.exchange.desk import Desk

CENT = Decimal("0.01")


def announce_split(desk: Desk, *, symbol: str, ratio: str, session: str) -> None:
    """A split of the shares, in the bars from its session on."""
    exact = Fraction(money(ratio)).limit_denominator(LARGEST_RATE)
    if exact <= 0 or exact == 1 or exact.numerator > LARGEST_RATE:
        raise ValueError(f"{ratio} new shares for an old one are no split")
    _announce(desk, symbol, session, ratio=exact)


def announce_dividend(desk: Desk, *, symbol: str, per_share: str, session: str) -> None:
    """Cash for each share held at the close before the session."""
    amount = money(per_share)
    last = desk.prices.last_close(symbol, desk.account.clock_ns) if _known(desk, symbol) else None
    if last is None or not 0 < amount < last:
        raise ValueError(f"{per_share} USD per share of {symbol} are no dividend")
    _announce(desk, symbol, session, per_share=amount)


def pay_in(desk: Desk, *, amount: str, kind: str = "") -> None:
    """Money from outside, or back there."""
    exact = _cents(amount)
    word: Kind = "JNLC" if kind == "JNLC" else "CSD" if exact > 0 else "CSW"
    if not exact:
        raise ValueError("nothing is paid in")
    _pay(desk, word, exact, "cash paid in" if exact > 0 else "cash paid out")


def charge(desk: Desk, *, amount: str, description: str) -> None:
    """A fee that belongs to no order."""
    exact = _cents(amount)
    if exact <= 0:
        raise ValueError(f"{amount} USD are no fee")
    _pay(desk, "FEE", -exact, description)


def halt(desk: Desk, *, symbol: str, on: str) -> None:
    """A symbol that does not trade, or does again."""
    if not _known(desk, symbol):
        raise ValueError(f"{symbol} is not traded here")
    if on == "True":
        desk.account.halted.add(symbol)
    else:
        desk.account.halted.discard(symbol)


def block(desk: Desk, *, reason: str) -> None:
    """An account that may not order."""
    desk.account.blocked = reason


def reset(desk: Desk, *, cash: str) -> None:
    """Another account."""
    exact = _cents(cash)
    if exact < 0:
        raise ValueError(f"an account cannot begin with {cash} USD")
    clock_ns = desk.account.clock_ns
    desk.store.reset(exact, clock_ns)
    del desk.account  # the next look loads the new one


DEEDS: dict[str, Callable[..., None]] = {
    "split": announce_split,
    "dividend": announce_dividend,
    "deposit": pay_in,
    "charge": charge,
    "halt": halt,
    "block": block,
    "reset": reset,
}


def _known(desk: Desk, symbol: str) -> bool:
    return symbol in desk.prices.symbols


def _cents(amount: str) -> Decimal:
    exact = money(amount)
    if exact != exact.quantize(CENT):
        raise ValueError(f"{amount} USD are not whole cents")
    return exact


def _pay(desk: Desk, kind: Kind, amount: Decimal, description: str) -> None:
    account = desk.account
    if -amount > account.buying_power():
        raise ValueError(f"{-amount} USD are not free; {account.buying_power()} are")
    account.cash += amount
    desk.store.postings.book(
        kind,
        at_ns=account.clock_ns,
        after_trade=account.trade_count,
        amount=amount,
        description=description,
    )


def _announce(
    desk: Desk,
    symbol: str,
    session: str,
    *,
    ratio: Fraction = Fraction(1),
    per_share: Decimal = Decimal(0),
) -> None:
    if not _known(desk, symbol) or is_crypto(symbol):
        raise ValueError(f"{symbol} is no share that is traded here")
    day = date.fromisoformat(session)
    at_ns = to_ns(desk.calendar.open(day))
    if at_ns <= desk.account.clock_ns:
        raise ValueError(f"{day} has opened; it is {from_ns(desk.account.clock_ns)}")
    known = desk.prices.happenings(symbol)
    if any(one.session == day and (one.ratio == 1) == (ratio == 1) for one in known):
        raise ValueError(f"{symbol} has that on {day} already")
    desk.store.postings.announce(
        Happening(symbol=symbol, session=day, at_ns=at_ns, ratio=ratio, per_share=per_share)
    )
