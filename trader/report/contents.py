"""What a backtest report shows; filled by the backtest, drawn by `page`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from trader.core.decision import CycleRecord
from trader.core.metrics import Performance


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """Where the bars came from; stored with every result."""

    name: str
    symbols: tuple[str, ...]
    first: date
    last: date
    adjustment: Mapping[str, str]  # symbol -> what its prices are adjusted for
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One way of trading the same bars at the same costs, at each of the report's times; USD."""

    key: str  # "debate", "without_debate", "buy_and_hold"
    label: str
    performance: Performance
    equity: tuple[float, ...]
    drawdown: tuple[float, ...]  # fractions <= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeRow:
    """One trade of the debated column; prices USD per share, money USD. None while it is open."""

    trade_id: str  # cycle id of the debate that opened it
    symbol: str
    strategy: str
    quantity: int
    entered_at: datetime
    entry_price: float
    why_entered: str
    exited_at: datetime | None
    exit_price: float | None
    left_by: str = ""  # "stop", "target", "signal", …; "" while it is open
    why_left: str
    profit: float | None  # after costs; of an open trade at the last close
    r_multiple: float | None  # profit over the risk taken at entry
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Funnel:
    """How bars became trades, and where the rest was lost."""

    bars: int
    signals: int
    skipped: Mapping[str, int]  # reason -> fired signals that were not debated
    debates: int
    go: int
    no_go: int
    vetoes: Mapping[str, int]  # flag code -> debates in which the arbitrator's rule failed
    gate_refusals: Mapping[str, int]  # flag code -> GO verdicts that the risk gate refused
    broker_refusals: int
    orders: int
    fills: int
    nearest_miss: str  # the NO_GO with the fewest failed rules, in words; empty when there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContents:
    """Everything on the page."""

    run_id: str
    version: str
    source: SourceInfo
    period: str  # "2025-01-02 to 2026-08-05, 398 sessions"
    settings: Mapping[str, str]
    notices: tuple[str, ...]
    debater: str
    funnel: Funnel
    times: tuple[datetime, ...]  # of the equity points
    columns: tuple[Column, ...]
    trades: tuple[TradeRow, ...]
    cycles: tuple[CycleRecord, ...]  # of the debated column, oldest first
    refusals: Mapping[str, str]  # cycle id -> the broker's words, where it refused the order
    ledger_head: str
    periods_per_year: float = 252.0  # bars; annualises the Sharpe ratio
