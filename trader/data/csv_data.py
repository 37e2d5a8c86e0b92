"""A person's own bars: one CSV file or a folder of them (the format: `trader.data.csv_file`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from trader.core.errors import DataIntegrityError, UsageError
from trader.core.market import BarSeries, Timeframe
from trader.data.csv_file import read_bars, read_header
from trader.data.lookup import complete_bars, known_symbol

if TYPE_CHECKING:
    from datetime import datetime

    from trader.core.clock import SessionCalendar

FILE_NAME = re.compile(
    r"(?P<symbol>[A-Za-z][A-Za-z0-9.\-]{0,9}?)(_(?P<timeframe>1Day|1Hour))?\.csv(\.gz)?"
)
NAMING = "name files SYMBOL.csv, or SYMBOL_1Hour.csv for hourly bars beside daily ones"


class CsvData:
    """Bars from `path`: SYMBOL.csv, SYMBOL.csv.gz, or a folder of such files.

    A file's time column says whether its bars are daily or hourly; `_1Day` or `_1Hour` behind the
    symbol tells two files of one symbol apart and must agree with it. Symbols are upper case,
    however the file is spelled. Raises UsageError when there is nothing to read at `path`, and
    DataIntegrityError for a header that cannot be read.
    """

    def __init__(self, path: Path, calendar: SessionCalendar) -> None:
        self._calendar = calendar
        self._files: dict[tuple[str, Timeframe], Path] = {}
        self._loaded: dict[tuple[str, Timeframe], BarSeries] = {}
        self._name = f"csv:{path.name}"
        for file in _files(path):
            key = _contents(file)
            if key in self._files:
                raise UsageError(
                    f"{file.name} and {self._files[key].name} both hold {key[1]} bars of "
                    f"{key[0]}; keep one"
                )
            self._files[key] = file

    @property
    def name(self) -> str:
        """`csv:` and the last part of the path; folders above it are nobody's business."""
        return self._name

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:
        """Every symbol with a file of this timeframe, sorted."""
        return tuple(sorted(symbol for symbol, length in self._files if length is timeframe))

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        """Sound bars of `symbol` that were complete at `until` (all bars when None).

        Raises DataIntegrityError for an unknown symbol, and for bars that must not be
        traded on, and when none was complete at `until`. A file is read once.
        """
        key = known_symbol(symbol, timeframe, self), timeframe
        if key not in self._loaded:
            file = self._files[key]
            self._loaded[key] = read_bars(
                _content(file),
                where=file.name,
                symbol=key[0],
                source=f"csv:{file.name}",
                calendar=self._calendar,
            )
        return complete_bars(self._loaded[key], until)


def _files(path: Path) -> list[Path]:
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise UsageError(f"{str(path)[:80]} is no path ({error.strerror})") from error
    if is_file:
        return [path]
    if not is_folder:
        raise UsageError(f"there is no file or folder {path}; give csv: the path of your bars")
    # only regular files: a pipe would wait for ever
    files = sorted(
        file
        for file in path.iterdir()
        if file.name.endswith((".csv", ".csv.gz")) and file.is_file()
    )
    if not files:
        raise UsageError(f"{path} has no .csv or .csv.gz file; {NAMING}")
    return files


def _contents(file: Path) -> tuple[str, Timeframe]:
    match = FILE_NAME.fullmatch(file.name)
    if match is None:
        raise UsageError(f"{file.name} does not name a symbol; {NAMING}")
    header = read_header(_content(file), where=file.name)
    stated = match["timeframe"]
    if stated is not None and stated != header.timeframe:
        raise DataIntegrityError(
            f"{file.name}: the name says {stated}, but the column {header.time_column} means "
            f"{header.timeframe} bars; rename the one or the other"
        )
    return match["symbol"].upper(), header.timeframe


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}); check its rights") from error
