"""Names a person may get wrong, and periods a source has no bars for."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe, from_ns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trader.core.ports import MarketData


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`"; did you mean X?"` when something known looks like `word`, else nothing."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def known_symbol(symbol: str, timeframe: Timeframe, source: MarketData) -> str:
    """`symbol` as `source` spells it: upper case, without spaces around it.

    Raises DataIntegrityError naming the symbol and those that exist.
    """
    wanted = symbol.strip().upper()
    known = source.symbols(timeframe)
    if wanted in known:
        return wanted
    listed = ", ".join(known) or "none"
    raise DataIntegrityError(
        f"{source.name} has no {timeframe} bars of {symbol!r}, "
        f"only of: {listed}{did_you_mean(wanted, known)}"
    )


def complete_bars(series: BarSeries, until: datetime | None) -> BarSeries:
    """The bars of `series` that were complete at `until`, all of them when None.

    Raises DataIntegrityError when there is not one.
    """
    part = series if until is None else series.until(until)
    if not len(part):
        began = from_ns(series.available_at[0])
        raise DataIntegrityError(
            f"{series.symbol} has no {series.timeframe} bars that were complete at {until}; "
            f"the first was complete at {began:%Y-%m-%d %H:%M} UTC"
        )
    return part
