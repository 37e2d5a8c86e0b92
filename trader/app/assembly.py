"""Putting one account together: exchange, broker, journal, debate and the cycle over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from pathlib import Path

from strategies.indicators.library import indicator_name
from strategies.kernels.dispatch import KernelSet
from strategies.registry import STRATEGIES, make_strategy
from trader.broker.alpaca_broker import AlpacaBroker
from trader.broker.exchange.exchange import Exchange
from trader.broker.session import embedded_client
from trader.core.canonical import sha256_of
from trader.core.clock import SessionCalendar
from trader.core.config import Config, config_primitives
from trader.core.costs import Costs
from trader.core.market import Timeframe
from trader.core.ports import Broker, Deliberation, MarketData, Strategy
from trader.core.trading import money
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.orders.manager import OrderManager
from trader.pipeline.candidates import CycleSettings
from trader.pipeline.cycle import Cycle
from trader.risk.gate import RiskLimits

NOBODY = "off"  # the debater of the baseline without a debate
PACKAGES = ("trader", "agents", "strategies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One paper account and what trades it."""

    exchange: Exchange
    broker: Broker
    journal: OrderJournal
    ledger: Ledger
    cycle: Cycle
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
    )


def strategies_of(config: Config, kernels: KernelSet) -> tuple[Strategy, ...]:
    """Every strategy with its configured parameters, enabled or not."""
    return tuple(
        make_strategy(name, dict(getattr(config.strategies.parameters, name)), kernels)
        for name in STRATEGIES
    )


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
    database: Path | None = None,
    wrap_broker: Callable[[Broker], Broker] | None = None,
) -> Account:
    """An account at the embedded exchange.

    database  file of the exchange; None keeps it in memory
    """
    costs = costs_of(config)
    timeframe = Timeframe(config.data.timeframe)
    exchange = Exchange(
        data=data,
        timeframe=timeframe,
        calendar=calendar,
        costs=costs,
        cash=cash,
        start=start,
        database=database,
    )
    broker: Broker = AlpacaBroker(embedded_client(exchange))
    if wrap_broker is not None:
        broker = wrap_broker(broker)
    journal = OrderJournal(ledger, cash=cash, costs=costs)
    settings = CycleSettings(
        run_id=run_id,
        timeframe=timeframe,
        symbols=symbols,
        strategies=tuple(config.strategies.enabled),
        atr_window=config.risk.atr_window,
        atr_multiple=config.risk.atr_multiple,
        costs=costs,
        limits=limits_of(config),
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
        orders=OrderManager(broker, journal),
        ledger=ledger,
        kernels=kernels,
    )
    return Account(
        exchange=exchange,
        broker=broker,
        journal=journal,
        ledger=ledger,
        cycle=cycle,
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
        "version": program_version(),
        "code_sha256": code_sha256(),
    }


def run_id_of(prefix: str, body: dict[str, object], *more: object) -> str:
    """Id derived from everything a run depends on: the same run again has the same id."""
    return f"{prefix}{sha256_of([body, *more])[:10]}"


def starting_cash(config: Config) -> Decimal:
    """The configured cash, USD."""
    return money(config.account.cash)
