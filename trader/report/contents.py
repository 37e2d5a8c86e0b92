"""What a backtest report shows; filled by the backtest, drawn by `page`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from trader.core.decision import CycleRecord, Decision
from trader.core.metrics import Performance
from trader.core.ports import Spend


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

    key: str  # "debate", "rules_debate", "arbitrator_alone", "without_debate", "all_in", …
    label: str
    performance: Performance
    equity: tuple[float, ...]
    drawdown: tuple[float, ...]  # fractions <= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeRow:
    """One trade of the first column; prices USD per share, money USD. None while it is open."""

    trade_id: str  # cycle id of the debate that opened it
    symbol: str
    strategy: str
    quantity: float
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
class Interval:
    """A value and the bounds between which most resamples of the same returns put it."""

    estimate: float
    low: float
    high: float

    @property
    def holds_zero(self) -> bool:
        """Whether zero lies between the bounds, both included."""
        return self.low <= 0.0 <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far chance alone could move the two measures; None where they are not known.

    annual_return  a fraction a year
    """

    annual_return: Interval | None
    sharpe: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Bootstrap intervals of every column, and of what the debate adds to the others.

    confidence    share of the resamples inside the bounds
    block_length  periods that are drawn together
    columns       column key -> its own measures
    differences   column key -> debate minus that column, in the same resamples
    """

    method: str
    confidence: float
    resamples: int
    block_length: int
    seed: int
    periods: int
    columns: Mapping[str, Spread]
    differences: Mapping[str, Spread]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowTrade:
    """The trade that a decision was about, followed to its end whatever was decided.

    Prices in USD per share, money in USD after costs. It looks beyond the decision on purpose: it
    is made after the walk and shown to nobody who decides.

    flags       why it was refused; empty after a GO
    quantity    shares the risk gate allows for it at that moment; 0: it would have refused as well
    profit      at that quantity; of an open trade at the last close
    r_multiple  profit over the risk taken at the entry; None when it began at or below its stop
    repeats     the same strategy would have held the symbol already, from an earlier refused one
    """

    cycle_id: str
    as_of: datetime
    symbol: str
    strategy: str
    decision: Decision
    confidence: float
    flags: tuple[str, ...]
    quantity: float
    entered_at: datetime
    entry_price: float
    stop_price: float
    target_price: float | None
    exited_at: datetime | None
    exit_price: float  # the last close while it is open
    left_by: str  # "stop", "target", "signal"; "" while it is open
    profit: float
    profit_per_share: float
    r_multiple: float | None
    is_open: bool
    repeats: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSum:
    """What refused trades would have made together: above zero they cost it, below they saved it.

    trades    followed, repeats left out
    won       of them that would have made money, at the last close where they are open
    """

    trades: int
    won: int
    r: float
    profit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Every NO_GO followed to its end.

    never_entered  no bar came to enter on before the data ended
    repeats        left out of the sums: the strategy would have held the symbol already
    still_open     counted at the last close
    by_flag        veto code -> sum of the refusals that it had a part in
    """

    no_go: int
    never_entered: int
    repeats: int
    still_open: int
    total: RefusalSum
    by_flag: Mapping[str, RefusalSum]
    trades: tuple[ShadowTrade, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Verdicts whose confidence lies in [low, high), the last bin up to and with 1."""

    low: float
    high: float
    count: int
    mean_confidence: float | None  # None in an empty bin
    won: float | None  # share of them that made money


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far the confidence of the verdicts was the chance of winning.

    verdicts    whose trade has ended, taken or followed as a shadow
    left_out    whose trade is open or never began, or whose debate broke off
    brier       mean squared distance of confidence and outcome; 0 is perfect, None without verdicts
    base_brier  the same for one who always says the share that won: the bar to beat
    """

    verdicts: int
    left_out: int
    won: int
    brier: float | None
    base_brier: float | None
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """How much of the result the model may have read about before it decided.

    cutoff  last day it may have read about; None: unknown, and no day is safe
    before  counted up to and with the cutoff; everything where it is unknown
    """

    cutoff: date | None
    decisions: int
    decisions_before: int
    trades: int
    trades_before: int
    profit: float
    profit_before: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Does the debate earn its cost? None where there was no debate, or no model, to ask it of.

    answers  the same in sentences for a person, by topic: "against without debate", "spend", …
    """

    intervals: Intervals
    refusals: Refusals | None
    calibration: Calibration | None
    go_share: float | None
    collapsed: bool  # every one of many debates ended alike
    spend: Spend
    knowledge: Knowledge | None
    answers: Mapping[str, str]


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
    worth: Worth
    periods_per_year: float = 252.0  # bars; annualises the Sharpe ratio
