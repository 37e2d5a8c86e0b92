"""Which market data a word on the command line or in config.yaml means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trader.core.errors import UsageError
from trader.data.csv_data import CsvData
from trader.data.lookup import did_you_mean
from trader.data.sample import SampleData
from trader.data.synthetic import SyntheticData

if TYPE_CHECKING:
    from collections.abc import Callable

    from trader.core.clock import SessionCalendar
    from trader.core.ports import MarketData


def open_data(
    spec: str,
    calendar: SessionCalendar,
    *,
    seed: int,
    alpaca: Callable[[], MarketData] | None = None,
) -> MarketData:
    """The source `spec` names: `sample`, `synthetic` (made from `seed`), `alpaca` or `csv:PATH`.

    alpaca  opens Alpaca's market data; None where there is none
    Raises UsageError for any other word and for a path without bars.
    """
    if spec == "sample":
        return SampleData(calendar)
    if spec == "synthetic":
        return SyntheticData(calendar, seed=seed)
    if spec == "alpaca" and alpaca is not None:
        return alpaca()
    if spec.startswith("csv:") and spec != "csv:":
        try:
            path = Path(spec.removeprefix("csv:")).expanduser()
        except RuntimeError as exc:
            raise UsageError(f"{spec[:80]}: {exc}") from exc
        return CsvData(path, calendar)
    raise UsageError(
        f"there is no market data {spec!r}; use sample, synthetic, alpaca or csv:PATH"
        + did_you_mean(spec.lower(), ("sample", "synthetic", "alpaca", "csv:PATH"))
    )
