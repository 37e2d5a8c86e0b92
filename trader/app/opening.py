"""Opening the product: configuration, state folder, calendar, data; then one method a command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trader.app.context import Context
from trader.core.config import Config, LoadedConfig, load_config

if TYPE_CHECKING:
    from trader.app.backtesting import BacktestProgress, BacktestResult
    from trader.app.beginning import Made
    from trader.app.checking import Check
    from trader.app.debating import DebateResult
    from trader.app.replaying import ReplayResult
    from trader.app.running import RunResult
    from trader.app.viewing import JournalView, OrdersView, PositionsView, StatusView


class App(Context):
    """The product with one configuration; every command is one method."""

    def backtest(
        self,
        *,
        start: date,
        end: date | None = None,
        out: Path | None = None,
        progress: BacktestProgress | None = None,
    ) -> BacktestResult:
        """Replay history from `start` to `end` (the data's end when None) beside two baselines."""
        from trader.app.backtesting import backtest

        return backtest(self, start=start, end=end, out=out, progress=progress)

    def run_once(self, *, restart_market: bool = False) -> RunResult:
        """Walk the embedded paper market to its next decision slot and act there."""
        from trader.app.running import run_once

        return run_once(self, restart_market=restart_market)

    def debate(self, symbol: str, as_of: datetime | None = None) -> DebateResult:
        """Hold a debate about one symbol; nothing is ordered or recorded."""
        from trader.app.debating import debate

        return debate(self, symbol, as_of)

    def replay(self, cycle_id: str) -> ReplayResult:
        """Take a recorded decision again and compare."""
        from trader.app.replaying import replay_cycle

        return replay_cycle(self, cycle_id)

    def status(self) -> StatusView:
        """The paper account in short."""
        from trader.app.viewing import status

        return status(self)

    def orders(self) -> OrdersView:
        """Orders of the paper account, with their legs."""
        from trader.app.viewing import orders

        return orders(self)

    def positions(self) -> PositionsView:
        """Positions of the paper account, each with its stop."""
        from trader.app.viewing import positions

        return positions(self)

    def journal(self, last: int) -> JournalView:
        """The newest records of the ledger."""
        from trader.app.viewing import journal

        return journal(self, last)

    def doctor(self) -> tuple[Check, ...]:
        """Every check of this installation, with what to do about those that fail."""
        from trader.app.checking import checks

        return checks(self)

    def init(self, path: Path) -> Made:
        """Write a configuration with every default to `path` and make the state folder."""
        from trader.app.beginning import begin

        return begin(path, self.state_dir)


def open_app(
    *,
    config_path: Path | None = None,
    profile: str | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> App:
    """Load the configuration and open the product; ConfigError with every mistake at once."""
    loaded = load_config(
        config_path,
        profile=profile,
        overrides=overrides,
        environ=os.environ if environ is None else environ,
    )
    app = App(loaded)
    # numba writes compiled kernels beside the source unless told otherwise; an installation may be
    # read-only
    os.environ.setdefault("NUMBA_CACHE_DIR", str(app.state_dir / "numba"))
    return app


def open_defaults(state_dir: Path | None) -> App:
    """The product with built-in defaults, whatever files and environment say."""
    config = Config() if state_dir is None else Config(state_dir=str(state_dir))
    loaded = LoadedConfig(
        config=config, origins={}, path=None, profile=None, profiles=(), notices=()
    )
    return App(loaded)
