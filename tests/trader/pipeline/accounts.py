"""A whole account at the embedded exchange over hand-written bars."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from strategies.kernels.dispatch import kernels
from tests.trader.pipeline.bars import HandData
from trader.app.assembly import Account, embedded_broker, embedded_exchange, open_account
from trader.app.debaters import Debaters
from trader.core.clock import new_york
from trader.core.config import Config
from trader.core.market import BarSeries, Timeframe, from_ns, session_of
from trader.ledger.store import Ledger
from trader.pipeline.slots import Slot, slots_between

CALENDAR = new_york()
REFERENCE = kernels("reference")


def slots_of(series: BarSeries, start: int, stop: int | None = None) -> list[Slot]:
    """The slots of bars start..stop-1 of a daily series."""
    days = [session_of(from_ns(ns)) for ns in series.timestamp]
    first, last = days[start], days[len(series) - 1 if stop is None else stop - 1]
    return slots_between(CALENDAR, Timeframe.DAY, first, last)


def account_over(
    *series: BarSeries,
    start: Slot,
    debated: bool = True,
    cash: int = 100_000,
    strategies: Sequence[str] = ("atr_trend", "rsi_reversion", "macd_momentum"),
    wrap_broker=None,
    **sections: dict[str, object],
) -> Account:
    """An account that begins at the slot before `start`. sections: changes of the configuration."""
    config = Config.model_validate({"strategies": {"enabled": list(strategies)}, **sections})
    exchange = broker = None
    if wrap_broker is not None:
        exchange = embedded_exchange(
            config,
            data=HandData(*series),
            calendar=CALENDAR,
            start=start.since,
            cash=Decimal(cash),
        )
        broker = wrap_broker(embedded_broker(exchange))
    return open_account(
        config,
        run_id="test",
        symbols=tuple(bars.symbol for bars in series),
        data=HandData(*series),
        calendar=CALENDAR,
        ledger=Ledger(None, durable=False),
        kernels=REFERENCE,
        start=start.since,
        cash=Decimal(cash),
        deliberation=Debaters(config).deliberation("debate" if debated else "nobody"),
        exchange=exchange,
        broker=broker,
    )
