"""A person's own files as a source of market data."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

import pytest

from tests.trader.data.test_csv_file import DAILY, HOURLY
from trader.core.errors import DataIntegrityError, UsageError
from trader.core.market import Timeframe
from trader.data.csv_data import CsvData


def test_one_file_is_one_symbol(tmp_path, calendar):
    (tmp_path / "brk.b.csv").write_text(DAILY)
    source = CsvData(tmp_path / "brk.b.csv", calendar)
    assert source.name == "csv:brk.b.csv"
    assert source.symbols(Timeframe.DAY) == ("BRK.B",)
    assert source.symbols(Timeframe.HOUR) == ()
    assert source.bars("BRK.B", Timeframe.DAY).source == "csv:brk.b.csv"


def test_a_folder_holds_many_symbols_and_both_timeframes(tmp_path, calendar):
    (tmp_path / "B.csv").write_text(DAILY)
    (tmp_path / "A.csv.gz").write_bytes(gzip.compress(DAILY.encode()))
    (tmp_path / "A_1Hour.csv").write_text(HOURLY)
    (tmp_path / "C.csv").write_text(HOURLY)
    (tmp_path / "remarks.txt").write_text("not bars")
    source = CsvData(tmp_path, calendar)
    assert source.symbols(Timeframe.DAY) == ("A", "B")
    assert source.symbols(Timeframe.HOUR) == ("A", "C")
    assert len(source.bars("A", Timeframe.DAY)) == 5
    assert len(source.bars("a", Timeframe.HOUR)) == 4
    assert source.bars("B", Timeframe.DAY).symbol == "B"


def test_a_fault_in_one_file_refuses_that_symbol_only(tmp_path, calendar):
    (tmp_path / "GOOD.csv").write_text(DAILY)
    (tmp_path / "BAD.csv").write_text(DAILY.replace("104,600", "-104,600"))
    source = CsvData(tmp_path, calendar)
    assert len(source.bars("GOOD", Timeframe.DAY)) == 5
    with pytest.raises(DataIntegrityError, match=r"BAD\.csv:5: BAD 1Day 2024-11-29: close -104"):
        source.bars("BAD", Timeframe.DAY)


def test_until_hides_bars_not_yet_complete(tmp_path, calendar):
    (tmp_path / "A.csv").write_text(DAILY)
    source = CsvData(tmp_path, calendar)
    close = datetime(2024, 11, 27, 21, tzinfo=UTC)
    assert len(source.bars("A", Timeframe.DAY, until=close)) == 3
    assert len(source.bars("A", Timeframe.DAY, until=close.replace(hour=20, minute=59))) == 2
    with pytest.raises(DataIntegrityError, match="A has no 1Day bars that were complete at 2023"):
        source.bars("A", Timeframe.DAY, until=datetime(2023, 1, 3, tzinfo=UTC))


def test_a_file_is_read_once(tmp_path, calendar):
    (tmp_path / "A.csv").write_text(DAILY)
    source = CsvData(tmp_path, calendar)
    first = source.bars("A", Timeframe.DAY)
    (tmp_path / "A.csv").unlink()
    assert source.bars("A", Timeframe.DAY) is first


def test_an_unknown_symbol_is_answered_with_those_that_exist(tmp_path, calendar):
    (tmp_path / "GOOG.csv").write_text(DAILY)
    (tmp_path / "IBM.csv").write_text(DAILY)
    source = CsvData(tmp_path, calendar)
    with pytest.raises(
        DataIntegrityError, match=r"'GOGO', only of: GOOG, IBM; did you mean GOOG\?"
    ):
        source.bars("GOGO", Timeframe.DAY)
    with pytest.raises(DataIntegrityError, match="no 1Hour bars of 'IBM', only of: none"):
        source.bars("IBM", Timeframe.HOUR)


def test_two_files_of_the_same_bars_are_refused(tmp_path, calendar):
    (tmp_path / "A.csv").write_text(DAILY)
    (tmp_path / "A_1Day.csv").write_text(DAILY)
    with pytest.raises(UsageError, match=r"A_1Day\.csv and A\.csv both hold 1Day bars of A"):
        CsvData(tmp_path, calendar)


def test_a_name_that_contradicts_its_columns_is_refused(tmp_path, calendar):
    (tmp_path / "A_1Hour.csv").write_text(DAILY)
    with pytest.raises(DataIntegrityError, match="name says 1Hour, but the column date means 1Day"):
        CsvData(tmp_path, calendar)


@pytest.mark.parametrize("name", ["my bars.csv", "_1Day.csv", "A_5Min.csv", "1A.csv"])
def test_a_file_that_names_no_symbol_is_refused(tmp_path, calendar, name):
    (tmp_path / name).write_text(DAILY)
    with pytest.raises(UsageError, match=r"does not name a symbol; name files SYMBOL\.csv"):
        CsvData(tmp_path, calendar)


def test_nothing_to_read_is_refused(tmp_path, calendar):
    with pytest.raises(UsageError, match=r"there is no file or folder .*nowhere"):
        CsvData(tmp_path / "nowhere", calendar)
    with pytest.raises(UsageError, match=r"has no \.csv or \.csv\.gz file"):
        CsvData(tmp_path, calendar)
