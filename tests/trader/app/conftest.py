"""One real backtest for all tests of this folder."""

from __future__ import annotations

from datetime import date

import pytest

from trader.app import App, open_app
from trader.app.backtesting import BacktestResult
from trader.broker.rate_limit import rate_limit

FIRST = date(2026, 1, 2)


def opened(state_dir, *settings: str) -> App:
    """The app with defaults, a state folder of its own and the reference kernels."""
    fixed = (f"state_dir={state_dir}", "kernels.backend=reference")
    return open_app(overrides=(*fixed, *settings), environ={})


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> tuple[App, BacktestResult]:
    """AAPL from 2026 on, with the default strategies and the rule debate."""
    app = opened(tmp_path_factory.mktemp("state"))
    return app, app.backtest(start=FIRST)


@pytest.fixture(autouse=True)
def a_count_of_its_own():
    """Each test may send as many requests as a process: they would share one count of a key."""
    rate_limit.cache_clear()


@pytest.fixture
def app(tmp_path) -> App:
    """An app whose state folder is empty."""
    return opened(tmp_path / "state")
