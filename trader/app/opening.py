"""Opening the product: configuration, state folder, calendar, data; then one method a command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from strategies.kernels.cache import keep_in
from trader.app.context import Context
from trader.core.config import Config, LoadedConfig, load_config

if TYPE_CHECKING:
    from trader.app.backtesting import BacktestProgress, BacktestResult
    from trader.app.bars import Actions, Downloaded, Dropped, KeptFiles, News, Quoted
    from trader.app.beginning import Made
    from trader.app.checking import Check
    from trader.app.comparing import CompareResult
    from trader.app.controlling import Controlled, Order
    from trader.app.debating import DebateResult
    from trader.app.heartbeat import DaemonStatus
    from trader.app.jobs import DaemonResult
    from trader.app.journaling import JournalView
    from trader.app.kernel_work import Benched, CompiledKernels, KernelList, VerifiedKernels
    from trader.app.ledger_files import LedgerFile
    from trader.app.paper import RunResult
    from trader.app.replaying import ReplayResult
    from trader.app.running import AnswerRecorded
    from trader.app.service import Done, Unit
    from trader.app.serving import Served
    from trader.app.sweep_plan import SweepRequest
    from trader.app.sweeping import SweepResult
    from trader.app.viewing import OrdersView, PositionsView, StatusView
    from trader.core.ports import DebateListener

    SweepProgress = Callable[[str, int, int], None]  # what is worked on, sets done, sets in all


class App(Context):
    """The product with one configuration; every command is one method."""

    def backtest(
        self,
        *,
        start: date,
        end: date | None = None,
        out: Path | None = None,
        sizing: str = "risk",
        progress: BacktestProgress | None = None,
    ) -> BacktestResult:
        """Replay history from `start` to `end` (the data's end when None) beside two baselines.

        sizing  "risk" as the gate sizes, or "all_in" to measure one strategy with all the cash
        """
        from trader.app.backtesting import backtest

        return backtest(self, start=start, end=end, out=out, sizing=sizing, progress=progress)

    def sweep(self, request: SweepRequest, *, progress: SweepProgress | None = None) -> SweepResult:
        """Try every set of a grid of numbers, and say how much of the best one is luck."""
        from trader.app.sweeping import sweep

        return sweep(self, request, progress)

    def run_once(
        self, *, restart_market: bool = False, listener: DebateListener | None = None
    ) -> RunResult:
        """Walk the embedded paper market to its next decision slot and act there."""
        from trader.app.running import run_once

        return run_once(self, restart_market=restart_market, listener=listener)

    def follow(
        self,
        *,
        restart_market: bool = False,
        log: Path | None = None,
        quiet: bool = False,
        listener: DebateListener | None = None,
    ) -> DaemonResult:
        """Do what the schedule says until the market's bars end or a signal comes."""
        from trader.app.daemon import follow

        return follow(self, restart_market=restart_market, log=log, quiet=quiet, listener=listener)

    def daemon_start(self, words: Sequence[str]) -> Done:
        """Start the schedule apart from the terminal, with options of `trader run --paper`."""
        from trader.app.service import start

        return start(self, words)

    def daemon_stop(self, seconds: float) -> Done:
        """End the daemon after the job at hand."""
        from trader.app.service import stop

        return stop(self, seconds=seconds)

    def daemon_status(self) -> DaemonStatus:
        """How the daemon is."""
        from trader.app.heartbeat import status_of

        return status_of(self.state_dir)

    def daemon_install(self, words: Sequence[str], *, system: bool, write: bool) -> Unit:
        """Write the systemd unit of the daemon, or only show it."""
        from trader.app.service import install

        return install(self, words, system=system, write=write)

    def answer_approval(
        self, cycle_id: str, *, approved: bool, listener: DebateListener | None = None
    ) -> RunResult | AnswerRecorded:
        """Approve or reject a GO that waits for a person, and finish its slot."""
        from trader.app.running import answer_approval

        return answer_approval(self, cycle_id, approved=approved, listener=listener)

    def debate(
        self,
        symbol: str,
        as_of: datetime | None = None,
        *,
        listener: DebateListener | None = None,
    ) -> DebateResult:
        """Hold a debate about one symbol; nothing is ordered or recorded."""
        from trader.app.debating import debate

        return debate(self.about(symbol), symbol, as_of, listener=listener)

    def replay(self, cycle_id: str) -> ReplayResult:
        """Take a recorded decision again and compare."""
        from trader.app.replaying import replay_cycle

        return replay_cycle(self, cycle_id)

    def control(
        self,
        order: Order,
        *,
        target: str | None = None,
        reason: str,
        until: date | None = None,
        force: bool = False,
    ) -> Controlled:
        """Record what a person forbids, allows again or wants left, and see to it."""
        from trader.app.controlling import control

        return control(self, order, target=target, reason=reason, until=until, force=force)

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
        from trader.app.journaling import journal

        return journal(self, last)

    def verify_ledger(self) -> LedgerFile:
        """The ledger, checked in full."""
        from trader.app.ledger_files import verify

        return verify(self)

    def back_up_ledger(self, to: Path | None) -> LedgerFile:
        """Copy the ledger to a new file."""
        from trader.app.ledger_files import backup

        return backup(self, to)

    def restore_ledger(self, source: Path) -> LedgerFile:
        """Put a backup in the ledger's place."""
        from trader.app.ledger_files import restore

        return restore(self, source)

    def export_ledger(self, to: Path) -> LedgerFile:
        """Write the ledger to a new file as lines of JSON."""
        from trader.app.ledger_files import export

        return export(self, to)

    def compare(self, a: str, b: str) -> CompareResult:
        """What differs between two runs."""
        from trader.app.comparing import compare

        return compare(self, a, b)

    def serve_exchange(
        self,
        *,
        port: int = 0,
        stream_port: int | None = None,
        speed: float = 0.0,
        fresh: bool = False,
        database: Path | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> AbstractContextManager[Served]:
        """Offer an exchange of its own to other programs on this computer."""
        from trader.app.serving import serve_exchange

        return serve_exchange(
            self,
            port=port,
            stream_port=stream_port,
            speed=speed,
            fresh=fresh,
            database=database,
            tell=tell,
        )

    def download_bars(self, *, first: date | None, last: date | None) -> Downloaded:
        """Fetch Alpaca's bars from `first` to `last` and keep them."""
        from trader.app.bars import download

        return download(self, first=first, last=last)

    def kept_bars(self) -> KeptFiles:
        """The bars that are kept."""
        from trader.app.bars import kept_files

        return kept_files(self)

    def verify_bars(self) -> KeptFiles:
        """The bars that are kept, every one checked."""
        from trader.app.bars import verify

        return verify(self)

    def drop_bars(self, symbol: str) -> Dropped:
        """Remove the kept bars of a symbol, or of `all`."""
        from trader.app.bars import drop

        return drop(self, symbol)

    def quote(self, symbol: str) -> Quoted:
        """The newest trade and quote of a symbol."""
        from trader.app.bars import quote

        return quote(self, symbol)

    def news(self, symbol: str, *, limit: int) -> News:
        """The newest news about a symbol."""
        from trader.app.bars import news

        return news(self, symbol, limit=limit)

    def corporate_actions(self, symbol: str, *, first: date | None, last: date | None) -> Actions:
        """What the company of a symbol did to its shares."""
        from trader.app.bars import actions

        return actions(self, symbol, first=first, last=last)

    def list_kernels(self) -> KernelList:
        """Every kernel with what it promises."""
        from trader.app.kernel_work import list_kernels

        return list_kernels()

    def verify_kernels(self, names: Sequence[str], backend: str) -> VerifiedKernels:
        """Compare kernels with their definition."""
        from trader.app.kernel_work import verify_kernels

        return verify_kernels(names, backend)

    def compile_kernels(
        self, names: Sequence[str], progress: Callable[[str], None]
    ) -> CompiledKernels:
        """Compile CUDA kernels without a device, against their budgets."""
        from trader.app.kernel_work import compile_kernels

        return compile_kernels(names, progress)

    def bench_kernels(self, names: Sequence[str]) -> Benched:
        """Time kernels on this machine."""
        from trader.app.kernel_work import bench_kernels

        return bench_kernels(names)

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
    environ = os.environ if environ is None else environ
    app = App(_pinned(loaded, environ), environ)
    keep_in(app.state_dir / "numba")  # an installation may be read-only
    return app


def _pinned(loaded: LoadedConfig, environ: Mapping[str, str]) -> LoadedConfig:
    """The configuration with the address that models are asked at, wherever it came from.

    A run is known by its settings: an address that stayed in the environment would be lost.
    """
    config = loaded.config
    if config.debate.mode != "llm" or config.models.base_url is not None:
        return loaded
    from agents.chat.endpoint import common_base_url

    models = config.models.model_copy(update={"base_url": common_base_url(config.models, environ)})
    origin = "OPENAI_BASE_URL" if environ.get("OPENAI_BASE_URL") else "default"
    return replace(
        loaded,
        config=config.model_copy(update={"models": models}),
        origins={**loaded.origins, "models.base_url": origin},
    )


def open_defaults(state_dir: Path | None) -> App:
    """The product with built-in defaults, whatever files and environment say."""
    config = Config() if state_dir is None else Config(state_dir=str(state_dir))
    loaded = LoadedConfig(
        config=config, origins={}, path=None, profile=None, profiles=(), notices=()
    )
    return App(loaded)
