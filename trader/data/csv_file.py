"""The CSV format of bars, read strictly: every complaint names file, line, column and value.

    # adjustment: splits and dividends
    # split: 2020-08-31 4
    date,open,high,low,close,volume
    2020-08-28,504.05,505.77,498.31,499.23,46907500

Columns are found by name, in any order and case; others are ignored, `adj_close` too. The time
column decides the timeframe: `date` or `session` (2020-08-28, New York) means daily bars;
`timestamp` or `datetime` (2024-08-06T09:30:00-04:00, when the bar opens, with Z or an offset)
means hourly bars. `volume` is required: a column left out could not be told from a feed with gaps.

Lines beginning with # may come before the header. `adjustment` says what the prices are adjusted
for; without it nobody knows, and "unknown (csv)" is stored. `split` names a session and the new
shares for one old share (0.25 for a reverse split of 1 for 4) of a split the prices still show:
never one they are adjusted for. Others are remarks.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trader.core.errors import DataIntegrityError
from trader.core.market import BarSeries, Timeframe, session_of, to_ns
from trader.data.grid import HOUR_NS
from trader.data.integrity import first_of, inspect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trader.core.clock import SessionCalendar

TIME_COLUMNS = {
    "date": Timeframe.DAY,
    "session": Timeframe.DAY,
    "timestamp": Timeframe.HOUR,
    "datetime": Timeframe.HOUR,
}
NUMBER_COLUMNS = ("open", "high", "low", "close", "volume")
UNKNOWN_ADJUSTMENT = "unknown (csv)"
EXAMPLE_HEADER = "date,open,high,low,close,volume"
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What stands above the bars."""

    timeframe: Timeframe
    time_column: str
    columns: dict[str, int]  # place of the time column and of the numbers
    width: int  # cells in a line
    adjustment: str
    splits: tuple[tuple[date, float], ...]


LARGEST_SPLIT = 1_000.0  # new shares for one old share, or the other way round
LARGEST_FILE = 300_000_000  # bytes of text; a small gzip file can hold far more


def read_header(raw: bytes, *, where: str) -> Header:
    """The header of a file, plain or gzipped; DataIntegrityError naming file and line."""
    return _header(_rows(raw, where), where)


def read_bars(
    raw: bytes, *, where: str, symbol: str, source: str, calendar: SessionCalendar
) -> BarSeries:
    """The bars of a file, plain or gzipped, checked by `integrity.inspect`.

    where   the file's name in messages
    source  what the series says about where it comes from
    Raises DataIntegrityError naming file, line, column and value of the first fault.
    """
    rows = _rows(raw, where)
    table = _Table(_header(rows, where), rows, where)
    daily = table.header.timeframe is Timeframe.DAY
    timestamp, available_at = (_daily_times if daily else _hourly_times)(table, calendar)
    for day, _ in table.header.splits:
        with _told(f"{where}: line '# split: {day} …'"):
            calendar.open(day)
    series = BarSeries(
        symbol=symbol,
        timeframe=table.header.timeframe,
        timestamp=timestamp,
        available_at=available_at,
        open=_numbers(table, "open"),
        high=_numbers(table, "high"),
        low=_numbers(table, "low"),
        close=_numbers(table, "close"),
        volume=_numbers(table, "volume"),
        source=source,
        adjustment=table.header.adjustment,
        splits=table.header.splits,
    )
    errors = [fault for fault in inspect(series, calendar) if fault.severity == "error"]
    if errors:
        bar = errors[0].bar
        place = where if bar is None else f"{where}:{table.lines[bar]}"
        raise DataIntegrityError(f"{place}: {first_of(errors)}")
    return series


class _Table:
    """The cells under the header, and the line each row stands on."""

    def __init__(self, header: Header, rows: Iterator[tuple[int, list[str]]], where: str) -> None:
        self.header = header
        self.where = where
        self.lines: list[int] = []
        kept: list[list[str]] = []
        for line, row in rows:
            if len(row) != header.width:
                raise DataIntegrityError(
                    f"{where}:{line}: {len(row)} cells where the header has {header.width}: "
                    f"{','.join(row)!r}; write one cell for each column"
                )
            self.lines.append(line)
            kept.append(row)
        if not kept:
            raise DataIntegrityError(f"{where}: no bars under the header")
        self._columns = list(zip(*kept, strict=True))

    def cells(self, column: str) -> tuple[str, ...]:
        return self._columns[self.header.columns[column]]

    def fault(self, row: int, column: str, complaint: str) -> DataIntegrityError:
        cell = self.cells(column)[row]
        place = f"{self.where}:{self.lines[row]}: column {column}"
        return DataIntegrityError(f"{place}: {cell!r} {complaint}")


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Put `place` before the message of a DataIntegrityError."""
    try:
        yield
    except DataIntegrityError as error:
        raise DataIntegrityError(f"{place}: {error}") from error


def _unpacked(raw: bytes) -> bytes:
    """The text of a gzip file, read no further than a sane file reaches."""
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
        return packed.read(LARGEST_FILE + 1)


def _rows(raw: bytes, where: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is not blank."""
    try:
        data = _unpacked(raw) if raw.startswith(GZIP_MAGIC) else raw
        if len(data) > LARGEST_FILE:
            raise DataIntegrityError(f"{where}: more than {LARGEST_FILE:,} bytes; split the file")
        text = data.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise DataIntegrityError(f"{where}: damaged gzip file ({error}); get it again") from error
    except UnicodeDecodeError as error:
        raise DataIntegrityError(
            f"{where}: byte {error.start} is not UTF-8 text; save the file as UTF-8"
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            if any(row):
                yield reader.line_num, row
    except csv.Error as error:
        raise DataIntegrityError(f"{where}:{reader.line_num}: not CSV ({error})") from error


def _header(rows: Iterator[tuple[int, list[str]]], where: str) -> Header:
    adjustment = UNKNOWN_ADJUSTMENT
    splits: list[tuple[date, float]] = []
    for line, row in rows:
        place = f"{where}:{line}"
        if not row[0].startswith("#"):
            names = [cell.strip().lower() for cell in row]
            time_column = _time_column(names, place)
            return Header(
                timeframe=TIME_COLUMNS[time_column],
                time_column=time_column,
                columns=_columns(names, time_column, place),
                width=len(names),
                adjustment=adjustment,
                splits=tuple(sorted(splits)),
            )
        key, _, value = ",".join(row).lstrip("#").partition(":")
        if key.strip().lower() == "adjustment":
            adjustment = value.strip() or UNKNOWN_ADJUSTMENT
        elif key.strip().lower() == "split":
            splits.append(_split(value.strip(), place))
    raise DataIntegrityError(f"{where}: no header line; name the columns: {EXAMPLE_HEADER}")


def _split(text: str, place: str) -> tuple[date, float]:
    try:
        day, ratio = text.split()
        split = date.fromisoformat(day), float(ratio)
    except ValueError:
        split = date.min, 0.0
    if not 1 / LARGEST_SPLIT <= split[1] <= LARGEST_SPLIT or split[1] == 1.0:
        raise DataIntegrityError(
            f"{place}: split {text!r} is not a session and the new shares for one old share; "
            "write it like 2020-08-31 4"
        )
    return split


def _time_column(names: list[str], place: str) -> str:
    times = [name for name in names if name in TIME_COLUMNS]
    if len(times) != 1:
        raise DataIntegrityError(
            f"{place}: {len(times)} of the columns {', '.join(names)} tell the time; have exactly "
            f"one of {', '.join(TIME_COLUMNS)} and commas between columns: {EXAMPLE_HEADER}"
        )
    return times[0]


def _columns(names: list[str], time_column: str, place: str) -> dict[str, int]:
    for name in NUMBER_COLUMNS:
        if names.count(name) != 1:
            raise DataIntegrityError(
                f"{place}: {names.count(name)} of the columns {', '.join(names)} are called "
                f"{name}; have exactly one: {EXAMPLE_HEADER}"
            )
    return {name: names.index(name) for name in (time_column, *NUMBER_COLUMNS)}


def _numbers(table: _Table, column: str) -> NDArray[np.float64]:
    cells = table.cells(column)
    joined = "".join(cells)
    # float() also reads 1_000 and digits of other scripts, which no feed writes on purpose
    strange = "_" in joined or not joined.isascii()
    try:
        values = list(map(float, cells))
    except ValueError:
        strange = True
    if not strange:
        return np.array(values)
    row = next(row for row, cell in enumerate(cells) if not _is_number(cell))
    raise table.fault(row, column, "is not a number; write digits and a point, such as 1234.5")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def _daily_times(
    table: _Table, calendar: SessionCalendar
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    column = table.header.time_column
    days = [_session(table, row) for row in range(len(table.lines))]
    try:
        return calendar.opens_ns(days), calendar.closes_ns(days)
    except DataIntegrityError:
        for line, day in zip(table.lines, days, strict=True):
            with _told(f"{table.where}:{line}: column {column}"):
                calendar.open(day)
        raise


def _session(table: _Table, row: int) -> date:
    """A date, also as spreadsheets and pandas write one: with midnight behind it."""
    column = table.header.time_column
    cell = table.cells(column)[row].strip()
    try:
        if len(cell) == len("2020-08-28"):  # not the week dates that ISO 8601 knows too
            return date.fromisoformat(cell)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(cell)
    except ValueError:
        raise table.fault(row, column, "is not a date; write it like 2020-08-28") from None
    if moment.time() != time():
        hint = "has a time of day; call the column timestamp if the bars are hourly"
        raise table.fault(row, column, hint)
    return moment.date()


def _hourly_times(
    table: _Table, calendar: SessionCalendar
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    moments = [_moment(table, row) for row in range(len(table.lines))]
    timestamp = np.array([to_ns(moment) for moment in moments])
    with _told(table.where):
        _, closes = calendar.hours_between(session_of(min(moments)), session_of(max(moments)))
    closes = np.append(closes, np.iinfo(np.int64).max)
    next_close = closes[np.searchsorted(closes, timestamp, side="right")]
    return timestamp, np.minimum(timestamp + HOUR_NS, next_close)


def _moment(table: _Table, row: int) -> datetime:
    column = table.header.time_column
    try:
        moment = datetime.fromisoformat(table.cells(column)[row].strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "is not a time; write it like 2024-08-06T09:30:00-04:00"
        raise table.fault(row, column, hint) from None
    if moment.tzinfo is None:
        hint = "has no time zone; add Z for UTC or an offset such as -04:00"
        raise table.fault(row, column, hint)
    return moment
