"""Words for market data, and the source each of them opens."""

from __future__ import annotations

import pytest

from tests.trader.data.test_csv_file import DAILY
from trader.core.errors import UsageError
from trader.core.market import Timeframe
from trader.data.source import open_data


def test_each_word_opens_its_source(tmp_path, calendar):
    (tmp_path / "ABC.csv").write_text(DAILY)
    assert open_data("sample", calendar, seed=1).name == "sample"
    assert open_data("synthetic", calendar, seed=1).name == "synthetic"
    own = open_data(f"csv:{tmp_path}", calendar, seed=1)
    assert own.symbols(Timeframe.DAY) == ("ABC",)


def test_the_seed_reaches_the_synthetic_market_only(calendar):
    def sha256(spec, symbol, seed):
        return open_data(spec, calendar, seed=seed).bars(symbol, Timeframe.DAY).sha256

    assert sha256("synthetic", "SYNA", 1) != sha256("synthetic", "SYNA", 2)
    assert sha256("synthetic", "SYNA", 2) == sha256("synthetic", "SYNA", 2)
    assert sha256("sample", "AAPL", 1) == sha256("sample", "AAPL", 2)


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("sampel", "; did you mean sample?"),
        ("Synthetic", "; did you mean synthetic?"),
        ("csv:", ""),
        ("csv", ""),
        ("", ""),
        ("quandl", ""),
    ],
)
def test_any_other_word_is_refused_with_the_words_there_are(calendar, spec, hint):
    with pytest.raises(UsageError) as caught:
        open_data(spec, calendar, seed=1)
    message = f"there is no market data {spec!r}; use sample, synthetic, alpaca or csv:PATH"
    assert str(caught.value).startswith(message + hint)


def test_a_path_that_does_not_exist_is_refused(calendar, tmp_path):
    with pytest.raises(UsageError, match=r"there is no file or folder .*missing"):
        open_data(f"csv:{tmp_path}/missing", calendar, seed=1)
