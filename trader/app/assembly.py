"""Putting one account together: exchange, broker, journal, debate and the cycle over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from threading import Event

from strategies.indicators.library import indicator_name
from strategies.kernels.dispatch import KernelSet
from strategies.registry import STRATEGIES, make_strategy
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.liquidity import Liquidity
from trader.broker.session import embedded_client
from trader.core.canonical import sha256_of
from trader.core.clock import SessionCalendar, SystemClock
from trader.core.config import Config, config_primitives
from trader.core.costs import Costs
from trader.core.market import Timeframe
from trader.core.ports import Broker, Deliberation, MarketData, Strategy, TradingHalt
from trader.core.trading import money
from trader.ledger.controls import Controls
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.killswitch import KillSwitch
from trader.orders.manager import OrderManager
from trader.orders.tracking import no_wait
from trader.pipeline.candidates import CycleSettings
from trader.pipeline.circumstances import AccountWatch, LatestPrice, RealTime, next_opening
from trader.pipeline.cycle import Cycle
from trader.risk.gate import RiskLimits
from trader.risk.protections import ProtectionLimits, SafetyLimits

NOBODY = "off"  # the debater of the baseline without a debate
PACKAGES = ("trader", "agents", "strategies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One paper account and what trades it. exchange: None where the broker is not in here."""

    exchange: Exchange | None
    broker: Broker
    journal: OrderJournal
    ledger: Ledger
    orders: OrderManager
    cycle: Cycle
    controls: Controls
    watch: AccountWatch
    start: datetime  # market time at which the account began


def costs_of(config: Config) -> Costs:
    """The configured costs."""
    costs = config.costs
    return Costs(
        slippage_bps=costs.slippage_bps,
        fee_bps=costs.fee_bps,
        commission_per_order=costs.commission_per_order,
    )


def limits_of(config: Config) -> RiskLimits:
    """The configured limits of the risk gate."""
    risk = config.risk
    return RiskLimits(
        risk_per_trade=risk.risk_per_trade,
        max_position_weight=risk.max_position_weight,
        min_reward_risk=risk.min_reward_risk,
        fractional=risk.fractional,
        protections=ProtectionLimits(**risk.protections.model_dump()),
        safety=SafetyLimits(**config.safety.model_dump()),
    )


def strategies_of(config: Config, kernels: KernelSet) -> tuple[Strategy, ...]:
    """Every strategy with its configured parameters, enabled or not."""
    return tuple(
        make_strategy(name, dict(getattr(config.strategies.parameters, name)), kernels)
        for name in STRATEGIES
    )


def embedded_exchange(
    config: Config,
    *,
    data: MarketData,
    calendar: SessionCalendar,
    start: datetime,
    cash: Decimal,
    database: Path | None = None,
) -> Exchange:
    """The exchange inside this program.

    start     market time at which it begins
    database  its file; None keeps it in memory
    """
    return Exchange(
        data=data,
        timeframe=Timeframe(config.data.timeframe),
        calendar=calendar,
        costs=costs_of(config),
        cash=cash,
        start=start,
        database=database,
        liquidity=Liquidity(
            seed=config.market.seed,
            partial_fills=config.market.partial_fills,
            volume_share=config.market.volume_share,
        ),
    )


def embedded_broker(exchange: Exchange, *, halt: TradingHalt | None = None) -> Broker:
    """A broker over the exchange inside this program; `halt` is asked before anything is bought."""
    return AlpacaBroker(embedded_client(exchange), halt=halt)


def open_account(
    config: Config,
    *,
    run_id: str,
    symbols: tuple[str, ...],
    data: MarketData,
    calendar: SessionCalendar,
    ledger: Ledger,
    kernels: KernelSet,
    start: datetime,
    cash: Decimal,
    deliberation: Deliberation,
    exchange: Exchange | None = None,
    broker: Broker | None = None,
    controls: Controls | None = None,
    now: Callable[[], datetime] | None = None,
    latest_price: LatestPrice | None = None,
) -> Account:
    """An account and what trades it; without `exchange` and `broker` in a market in memory.

    start         market time at which it began
    exchange      the embedded market that the cycle moves; None where the broker's time is real
    broker        None: a client of `exchange`
    controls      those that `broker` asks; None: the ledger's, and its own broker asks them
    now           the clock to hold the broker's against, where time is real; None: the computer's
    latest_price  the newest price of a symbol, where time is real
    """
    costs, limits = costs_of(config), limits_of(config)
    ends = None
    if broker is None:
        if exchange is None:
            exchange = embedded_exchange(
                config, data=data, calendar=calendar, start=start, cash=cash
            )
            ends = partial(next_opening, calendar)  # nobody is there to resume a backtest
        controls = controls or Controls(ledger, now=exchange.now)
        broker = embedded_broker(exchange, halt=controls)
    now = exchange.now if exchange is not None else now or SystemClock().now
    controls = controls or Controls(ledger, now=now)
    journal = OrderJournal(ledger, cash=cash, costs=costs)
    wait = no_wait if exchange is not None else Event().wait  # a real cancel takes a moment
    orders = OrderManager(broker, journal, controls=controls, wait=wait)
    watch = AccountWatch(
        ledger=ledger,
        journal=journal,
        broker=broker,
        controls=controls,
        switch=KillSwitch(controls, orders, limits=limits.safety, ends=ends),
        calendar=calendar,
        limits=limits,
        real_time=RealTime(now=now, latest_price=latest_price) if exchange is None else None,
    )
    settings = CycleSettings(
        run_id=run_id,
        timeframe=Timeframe(config.data.timeframe),
        symbols=symbols,
        strategies=tuple(config.strategies.enabled),
        atr_window=config.risk.atr_window,
        atr_multiple=config.risk.atr_multiple,
        costs=costs,
        limits=limits,
        indicators=tuple(indicator_name(name) for name in config.evidence.indicators or ()),
        debated=deliberation.debater != NOBODY,
    )
    cycle = Cycle(
        settings=settings,
        data=data,
        calendar=calendar,
        strategies=strategies_of(config, kernels),
        deliberation=deliberation,
        broker=broker,
        market=exchange,
        orders=orders,
        ledger=ledger,
        kernels=kernels,
        watch=watch,
    )
    return Account(
        exchange=exchange,
        broker=broker,
        journal=journal,
        ledger=ledger,
        orders=orders,
        cycle=cycle,
        controls=controls,
        watch=watch,
        start=start,
    )


def program_version() -> str:
    """Version of the installed distribution."""
    return version("debate-trader")


@cache
def code_sha256() -> str:
    """Hash of every module and prompt of the product: another program is another run."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((*(root / package).rglob("*.py"), *(root / package).rglob("*.md"))):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def run_body(
    config: Config, *, symbols: tuple[str, ...], source: str, cash: Decimal, debated: bool
) -> dict[str, object]:
    """The first record of a run: all that its decisions depend on besides the bars."""
    return {
        "settings": config_primitives(config),
        "symbols": symbols,
        "source": source,
        "cash": cash,
        "debated": debated,
        "broker": config.broker.name if debated else "embedded",
        "broker_url": config.broker.base_url if debated else None,
        "version": program_version(),
        "code_sha256": code_sha256(),
    }


def run_id_of(prefix: str, body: dict[str, object], *more: object) -> str:
    """Id derived from everything a run depends on: the same run again has the same id."""
    return f"{prefix}{sha256_of([body, *more])[:10]}"


def starting_cash(config: Config) -> Decimal:
    """The configured cash, USD."""
    return money(config.account.cash)
