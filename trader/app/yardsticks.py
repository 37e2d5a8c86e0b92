"""The columns of a backtest that no debate and no gate has seen: buy & hold, and all in."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, get_args

from strategies.kernels.dispatch import KernelSet
from trader.app.assembly import costs_of, embedded_broker, embedded_exchange, strategies_of
from trader.app.context import Context
from trader.app.periods import Coverage
from trader.backtest.all_in import AllIn, Rules, all_in, market_cash
from trader.backtest.baseline import buy_and_hold
from trader.backtest.evaluation import column
from trader.backtest.replay import Progress
from trader.core.errors import DataIntegrityError, UsageError
from trader.core.instruments import is_crypto
from trader.ledger.store import Ledger
from trader.orders.journal import OrderJournal
from trader.pipeline.slots import Slot
from trader.report.contents import Column

Sizing = Literal["risk", "all_in"]
NOTICES: dict[Sizing, tuple[str, ...]] = {
    "risk": (),
    "all_in": (
        "all in is a yardstick like buy & hold: one strategy with all the cash and its stop; "
        "neither the cap on a symbol nor the risk gate applies to it, and no paper run trades so",
    ),
}


def read_sizing(app: Context, sizing: str) -> Sizing:
    """The sizing that was asked for; UsageError where it cannot be measured with these settings."""
    known = get_args(Sizing)
    if sizing not in known:
        raise UsageError(f"--sizing {sizing}: choose one of {', '.join(known)}")
    if sizing == "risk":
        return "risk"
    config = app.config
    if config.debate.mode != "off":
        raise UsageError(
            "--sizing all_in measures a strategy without a debate and without the risk gate: "
            "say --debate off with it"
        )
    enabled = config.strategies.enabled
    if len(enabled) != 1:
        raise UsageError(
            f"--sizing all_in gives all the cash to one strategy, and {len(enabled)} are enabled "
            f"({', '.join(enabled)}): name one, e.g. --strategy {enabled[0]}"
        )
    coins = [symbol for symbol in app.symbols() if is_crypto(symbol)]
    if coins:
        raise UsageError(
            f"--sizing all_in sends a stop with every entry, which coins do not take "
            f"({', '.join(coins)}): name shares, or say --sizing risk"
        )
    if config.market.partial_fills or config.market.volume_share is not None:
        raise UsageError(
            "--sizing all_in counts on whole fills: set market.partial_fills=0 and "
            "market.volume_share=null with it"
        )
    return "all_in"


def walk_all_in(
    app: Context,
    coverage: Coverage,
    slots: Sequence[Slot],
    compute: KernelSet,
    *,
    run_id: str,
    cash: Decimal,
    ledger: Ledger,
    progress: Progress | None,
) -> AllIn:
    """Walk the one enabled strategy with all the cash; see trader.backtest.all_in.

    DataIntegrityError for bars that show a split: what all the cash buys is counted before it.
    """
    config = app.config
    for symbol, bars in coverage.series.items():
        shown = [day for day, _ in bars.splits if day >= coverage.first]
        if shown:
            raise DataIntegrityError(
                f"{symbol}: the bars show a split on {shown[0]}; --sizing all_in needs prices "
                "that are adjusted for it"
            )
    (name,) = config.strategies.enabled
    exchange = embedded_exchange(
        config,
        data=app.data,
        calendar=app.calendar,
        start=slots[0].since,
        cash=market_cash(cash),
    )
    return all_in(
        next(item for item in strategies_of(config, compute) if item.name == name),
        coverage.series,
        slots,
        run_id=run_id,
        market=exchange,
        broker=embedded_broker(exchange),
        journal=OrderJournal(ledger, cash=cash, costs=costs_of(config)),
        calendar=app.calendar,
        kernels=compute,
        rules=Rules(
            costs=costs_of(config),
            atr_window=config.risk.atr_window,
            atr_multiple=config.risk.atr_multiple,
        ),
        progress=progress,
    )


def hold(
    app: Context,
    coverage: Coverage,
    slots: Sequence[Slot],
    *,
    label: str,
    cash: Decimal,
    periods_per_year: float,
) -> Column:
    """The column of buy & hold."""
    times = [slot.as_of for slot in slots]
    book, equity = buy_and_hold(
        coverage.series,
        cash=cash,
        costs=costs_of(app.config),
        start=app.calendar.open(coverage.first),
        times=times,
    )
    exposed = sum(
        any(trade.entered_at <= moment for trade in book.trades.values()) for moment in times
    )
    return column(
        "buy_and_hold",
        label,
        equity=equity,
        exposed=exposed,
        book=book,
        initial=float(cash),
        periods_per_year=periods_per_year,
    )
