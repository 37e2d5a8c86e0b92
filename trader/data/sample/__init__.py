"""Bundled real bars, so that everything runs without key and network (provenance: README.md)."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from trader.core.market import BarSeries, Timeframe
from trader.data.csv_file import read_bars
from trader.data.lookup import complete_bars, known_symbol

if TYPE_CHECKING:
    from datetime import datetime

    from trader.core.clock import SessionCalendar

SYMBOLS = {Timeframe.DAY: ("AAPL", "AMZN", "MSFT", "NVDA"), Timeframe.HOUR: ("AAPL",)}


class SampleData:
    """The bundled bars; each series says what its prices are adjusted for."""

    name = "sample"

    def __init__(self, calendar: SessionCalendar) -> None:
        self._calendar = calendar
        self._loaded: dict[tuple[str, Timeframe], BarSeries] = {}

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:
        """Every symbol with bars of this timeframe, sorted."""
        return SYMBOLS[timeframe]

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        """Sound bars of `symbol` that were complete at `until` (all bars when None).

        Raises DataIntegrityError for an unknown symbol, and when no bar was complete
        at `until`. A file is read once.
        """
        key = known_symbol(symbol, timeframe, self), timeframe
        if key not in self._loaded:
            file = f"{key[0]}_{timeframe}.csv.gz"
            self._loaded[key] = read_bars(
                files(__name__).joinpath(file).read_bytes(),
                where=f"sample {file}",
                symbol=key[0],
                source=self.name,
                calendar=self._calendar,
            )
        return complete_bars(self._loaded[key], until)
