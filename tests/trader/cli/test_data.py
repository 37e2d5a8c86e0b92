"""`trader data`: fetching, listing, checking and dropping bars, and a backtest over coins."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.servers.market_server import MarketServer
from tests.trader.data.alpaca_rows import days, hours, local
from trader.cli.main import main

HOUR = timedelta(hours=1)


@pytest.fixture
def server():
    with MarketServer() as running:
        yield running


@dataclass(frozen=True)
class Done:
    stdout: str
    stderr: str


@pytest.fixture
def trader(server, tmp_path, monkeypatch, capsys):
    """Run a command as `main` does, its market data from the server; never with a key."""
    for name in [name for name in os.environ if name.startswith("APCA_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0) -> Done:
        command, own = ["trader"], list(arguments)
        while own and not own[0].startswith("-"):
            command.append(own.pop(0))
        command += ["--state-dir", str(tmp_path / "state"), "--set", f"data.base_url={server.url}"]
        command += ["--set", "kernels.backend=reference", *own]
        monkeypatch.setattr(sys, "argv", command)
        before = signal.getsignal(signal.SIGTERM)
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            signal.signal(signal.SIGTERM, before)
        said = capsys.readouterr()
        assert (ended.value.code or 0) == code, said.err
        return Done(said.out, said.err)

    return run


def test_bars_are_fetched_listed_verified_and_dropped(server, trader, tmp_path):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    server.put("MSFT", "1Day", days("2024-12-02", "2024-12-31"))
    done = trader("data", "download", "--symbols", "aapl,MSFT", "--to", "2024-12-20", "--json")
    body = json.loads(done.stdout)
    assert body["schema_version"] == 1
    assert [
        (one["symbol"], one["bars"], one["source"], one["adjustment"], one["first"], one["last"])
        for one in body["symbols"]
    ] == [
        (
            "AAPL",
            19,
            "alpaca iex",
            "splits and dividends",
            "2024-11-25T14:30:00Z",
            "2024-12-20T14:30:00Z",
        ),
        (
            "MSFT",
            15,
            "alpaca iex",
            "splits and dividends",
            "2024-12-02T14:30:00Z",
            "2024-12-20T14:30:00Z",
        ),
    ]
    assert len(server.requests) == 2
    listed = json.loads(trader("data", "list", "--json").stdout)
    assert [(one["file"], one["bars"], one["problem"]) for one in listed["files"]] == [
        ("AAPL_1Day_all_iex.bars", 19, ""),
        ("MSFT_1Day_all_iex.bars", 15, ""),
    ]
    assert "MSFT" in trader("data", "verify").stdout
    path = tmp_path / "state" / "bars" / "MSFT_1Day_all_iex.bars"
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    broken = trader("data", "verify", code=5)
    assert "MSFT_1Day_all_iex.bars: the kept bars" in broken.stdout
    assert "`trader data drop MSFT`" in broken.stdout
    assert trader("data", "drop", "msft").stdout == "removed MSFT_1Day_all_iex.bars\n"
    assert "there are those of AAPL" in trader("data", "drop", "MSFT", code=2).stderr
    assert json.loads(trader("data", "drop", "all", "--json").stdout)["removed"] == [
        "AAPL_1Day_all_iex.bars"
    ]
    assert len(server.requests) == 2  # nobody was asked since


def test_one_refused_symbol_does_not_hold_up_the_others(server, trader):
    server.put("AAPL", "1Day", days("2024-11-25", "2024-12-31"))
    done = trader("data", "download", "--symbols", "NOPE,AAPL", "--json", code=5)
    nope, apple = json.loads(done.stdout)["symbols"]
    assert "no 1Day bars of NOPE in the feed iex" in nope["problem"]
    assert (apple["bars"], apple["problem"]) == (25, "")


def test_news_quotes_and_actions_are_shown(server, trader):
    quote = {"t": "2025-01-02T15:00:00Z", "bp": 10.0, "ap": 12.0}
    server.answers |= {
        "/v2/stocks/snapshots": {"AAPL": {"latestQuote": quote, "latestTrade": None}},
        "/v1beta1/news": {
            "news": [
                {"id": 1, "headline": "\x1b[31mred", "created_at": "2025-01-02T10:00:00Z"},
            ]
        },
        "/v1/corporate-actions": {
            "corporate_actions": {
                "forward_splits": [
                    {"symbol": "AAPL", "new_rate": 4, "old_rate": 1, "ex_date": "2024-08-31"}
                ]
            }
        },
    }
    shown = trader("data", "quote", "AAPL").stdout
    assert "10.00" in shown
    assert "2025-01-02 15:00:00" in shown
    news = trader("data", "news", "AAPL", "--limit", "1").stdout
    assert "red" in news
    assert "\x1b" not in news
    assert server.requests[-1].params["limit"] == "1"
    assert (
        "4 new shares for one" in trader("data", "actions", "AAPL", "--from", "2024-01-01").stdout
    )
    assert "is a coin" in trader("data", "actions", "BTC/USD", code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("download", "--symbols", "AAPL", "--from", "2024-13-01"), 2, "YYYY-MM-DD"),
        (
            ("download", "--symbols", "AAPL", "--from", "2024-03-01", "--to", "2024-02-01"),
            2,
            "--to 2024-02-01 is before",
        ),
        (("download", "--symbols", "AAPL,BTC/USD"), 2, "trade at any hour"),
        (("download", "--symbols", "AAPL", "--timeframe", "1Week"), 2, "--timeframe"),
        (("drop", "AAPL"), 2, "there are none at all"),
        (("quote", "NOPE"), 5, "Alpaca"),
    ],
)
def test_each_mistake_gets_its_exit_code(trader, arguments, code, words):
    assert words in trader("data", *arguments, code=code).stderr


def test_a_share_without_a_key_is_a_matter_of_configuration(server, trader):
    done = trader("data", "download", "--symbols", "AAPL", "--set", "data.base_url=null", code=3)
    assert "set APCA_API_KEY_ID and APCA_API_SECRET_KEY" in done.stderr
    assert server.requests == []


def test_coins_are_backtested_without_a_key_over_every_day_of_the_year(server, trader):
    first = local("2023-01-01T00:00")
    walk = 100.0 * np.cumprod(1.0 + np.random.Generator(np.random.PCG64(3)).normal(0, 0.006, 6000))
    server.put("BTC/USD", "1Hour", hours(first, first + 6000 * HOUR, HOUR, lambda n: walk[n] + 2.0))
    done = trader(
        *("backtest", "--data", "alpaca", "--symbols", "BTC/USD", "--json"),
        *("--from", "2023-06-01", "--to", "2023-08-31", "--debate", "off"),
    )
    body = json.loads(done.stdout)
    assert body["source"]["name"] == "alpaca crypto"
    assert (body["sessions"], body["slots"]) == (92, 92)
    assert body["funnel"]["signals"] > 0
    assert all("apca-api-key-id" not in asked.headers for asked in server.requests)
    page = Path(body["report"]).read_text()
    assert "365 slots a year" in page
