"""Every setting with type, bounds, default and description: the definition of config.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    BeforeValidator,
    Field,
    model_validator,
)
from pydantic.fields import FieldInfo

from trader.core.config.models import Debate, Models
from trader.core.config.sections import FRACTION, ONE_LINE, Section, day, problem
from trader.core.config.unattended import (
    BrokerSettings,
    Daemon,
    LoopbackUrl,
    Protections,
    Safety,
)
from trader.core.config.wording import closest, shown
from trader.core.instruments import standard_symbol

T = TypeVar("T")
SYMBOL_PATTERN = r"^[A-Z][A-Z0-9.]{0,9}(/[A-Z]{3,5})?$"
SOURCES = ("sample", "synthetic", "alpaca")


def _symbol(value: Any) -> str:
    """A ticker symbol; an unquoted TRUE is a boolean in YAML and gets a hint of its own."""
    if isinstance(value, bool) or value is None:
        what = f'{shown(value)} is not text; quote it if it is a symbol: "{shown(value).upper()}"'
    elif not isinstance(value, str):
        what = f'{shown(value)} is not text; write symbols as text, in quotes: "AAPL"'
    elif re.fullmatch(SYMBOL_PATTERN, value):
        return value
    else:
        spelling = "capital letters, digits and dots, as in BRK.B or BTC/USD"
        what = f"{shown(value)} is no symbol; write {spelling}"
        if re.fullmatch(SYMBOL_PATTERN, standard_symbol(value)):
            what += f", did you mean {standard_symbol(value)}?"
    raise problem("symbol", what)


def _source(value: Any) -> Any:
    """Where bars come from; CSV files are named after the colon."""
    if not isinstance(value, str) or value in SOURCES:
        return value
    if value.startswith("csv:") and re.fullmatch(ONE_LINE, value[4:]):
        return value
    close = closest(value, SOURCES)
    hint = f", did you mean {close}?" if close else ""
    raise problem("source", f"{shown(value)} is none of {', '.join(SOURCES)}, csv:PATH{hint}")


@dataclass(frozen=True, slots=True)
class _Repeat:
    """An item that was in the list before; it is refused at its own place, with the other items."""

    item: str


def _mark_repeats(items: Any) -> Any:
    if not isinstance(items, list | tuple):
        return items
    if not items:
        raise problem("empty", "the list is empty; name at least one or leave the setting out")
    seen: set[str] = set()
    marked: list[Any] = []
    for item in items:
        marked.append(_Repeat(item) if isinstance(item, str) and item in seen else item)
        if isinstance(item, str):
            seen.add(item)
    return marked


def _new(item: Any) -> Any:
    if isinstance(item, _Repeat):
        raise problem("repeat", f"{shown(item.item)} is listed twice; remove one")
    return item


Listed = Annotated[
    tuple[Annotated[T, BeforeValidator(_new)], ...],
    Field(strict=False, json_schema_extra={"minItems": 1, "uniqueItems": True}),
    BeforeValidator(_mark_repeats),
]
Symbol = Annotated[str, Field(pattern=SYMBOL_PATTERN), BeforeValidator(_symbol)]
IndicatorName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.]{0,79}$")]
Window = Annotated[int, Field(ge=1, le=2000)]
StrategyName = Literal["atr_trend", "rsi_reversion", "macd_momentum", "sma_cross", "buy_and_hold"]


class Data(Section):
    """Where bars come from."""

    source: Annotated[str, BeforeValidator(_source)] = Field(
        default="sample",
        description="Bars: sample (bundled real bars), synthetic (made up), alpaca or csv:PATH",
    )
    timeframe: Literal["1Day", "1Hour"] = Field(default="1Day", description="Length of a bar")
    seed: int = Field(default=7, ge=0, le=2**32 - 1, description="Seed of the synthetic bars")
    feed: Literal["iex", "sip"] = Field(
        default="iex", description="Alpaca's feed: iex (one exchange) or sip (all of them)"
    )
    adjustment: Literal["all", "split", "raw"] = Field(
        default="all", description="What Alpaca adjusts its bars for: all, split or raw (nothing)"
    )
    base_url: LoopbackUrl = Field(
        default=None,
        description="Address of market data on this computer; null for Alpaca's own",
    )


class Account(Section):
    """The paper account."""

    cash: float = Field(
        default=100_000.0, ge=1, le=1e12, description="Paper money at the start, USD"
    )


class AtrTrend(Section):
    """Follow a close that leaves its mean upward."""

    sma_window: Window = Field(default=50, description="Bars of the simple moving average")
    band_atr: float = Field(
        default=0.5,
        ge=0,
        le=100,
        description="How far above the average a close must cross, in ATR",
    )
    atr_window: Window = Field(default=14, description="Bars of the average true range")


class RsiReversion(Section):
    """Buy the return from an oversold reading."""

    rsi_window: Window = Field(default=14, description="Bars of the relative strength index")
    oversold: float = Field(
        default=30.0, gt=0, lt=100, description="Enter when the RSI crosses up through this"
    )
    overbought: float = Field(
        default=70.0, gt=0, lt=100, description="Leave when the RSI crosses down through this"
    )

    @model_validator(mode="after")
    def _ordered(self) -> RsiReversion:
        return _below(self, "oversold", "overbought")


class MacdMomentum(Section):
    """Follow the cross of the MACD line and its signal line."""

    fast: Window = Field(default=12, description="Bars of the fast exponential average")
    slow: Window = Field(default=26, description="Bars of the slow exponential average")
    signal: Window = Field(default=9, description="Bars of the signal line")

    @model_validator(mode="after")
    def _ordered(self) -> MacdMomentum:
        return _below(self, "fast", "slow")


class SmaCross(Section):
    """Follow the cross of two simple moving averages."""

    fast: Window = Field(default=20, description="Bars of the fast simple average")
    slow: Window = Field(default=50, description="Bars of the slow simple average")

    @model_validator(mode="after")
    def _ordered(self) -> SmaCross:
        return _below(self, "fast", "slow")


class BuyAndHold(Section):
    """Buy once and keep; it has no parameters."""


SectionT = TypeVar("SectionT", bound=Section)


def _below(section: SectionT, low: str, high: str) -> SectionT:
    below, above = getattr(section, low), getattr(section, high)
    if not below < above:
        raise problem(
            "order",
            f"{low} {shown(below)} must be below {high} {shown(above)}; change one of them",
        )
    return section


class Parameters(Section):
    """The numbers of each strategy, used when the strategy is enabled or named in a command."""

    atr_trend: AtrTrend = Field(default=AtrTrend(), description="Numbers of atr_trend")
    rsi_reversion: RsiReversion = Field(
        default=RsiReversion(), description="Numbers of rsi_reversion"
    )
    macd_momentum: MacdMomentum = Field(
        default=MacdMomentum(), description="Numbers of macd_momentum"
    )
    sma_cross: SmaCross = Field(default=SmaCross(), description="Numbers of sma_cross")
    buy_and_hold: BuyAndHold = Field(default=BuyAndHold(), description="buy_and_hold has none")


class Strategies(Section):
    """Which rules look for entries."""

    enabled: Listed[StrategyName] = Field(
        default=("atr_trend", "rsi_reversion", "macd_momentum"),
        description="Strategies that run together",
    )
    parameters: Parameters = Field(default=Parameters(), description="Numbers of each strategy")


class EvidenceSettings(Section):
    """What the debaters may quote besides the facts that every debate has."""

    indicators: Listed[IndicatorName] | None = Field(
        default=None, description="Further indicators of the ta library, e.g. TSIIndicator"
    )


class Risk(Section):
    """What the risk gate allows."""

    risk_per_trade: float = Field(
        default=0.01,
        gt=0,
        le=0.1,
        description="Equity lost when a stop is hit, a fraction",
        json_schema_extra=FRACTION,
    )
    max_position_weight: float = Field(
        default=0.15,
        gt=0,
        le=0.15,
        description="Largest share of equity in one symbol, a fraction; may only be tightened",
        json_schema_extra=FRACTION,
    )
    min_reward_risk: float = Field(
        default=2.0, ge=2, description="Smallest reward over risk, after costs"
    )
    atr_window: Window = Field(default=14, description="Bars of the ATR that places the stop")
    atr_multiple: float = Field(default=2.0, gt=0, description="Stop distance from entry, in ATR")
    fractional: bool = Field(
        default=False, description="Whether parts of a share may be bought; coins always are"
    )
    protections: Protections = Field(
        default=Protections(), description="Rules that give a bad stretch time to pass"
    )


class CostSettings(Section):
    """What trading costs; the same numbers serve the exchange, the gate and every baseline."""

    slippage_bps: float = Field(
        default=5.0, ge=0, lt=10_000, description="Slippage of market and stop orders, basis points"
    )
    fee_bps: float = Field(
        default=0.0, ge=0, lt=10_000, description="Fee on the notional of each side, basis points"
    )
    commission_per_order: float = Field(
        default=0.0, ge=0, description="Commission of each filled order, USD"
    )


class Market(Section):
    """The embedded market of `trader run`."""

    start: Annotated[date, BeforeValidator(day)] = Field(
        default=date(2026, 7, 1), description="First session of the embedded market"
    )
    seed: int = Field(
        default=7, ge=0, le=2**32 - 1, description="Seed of what is left to chance in it"
    )
    partial_fills: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Orders that are filled in parts, a fraction of all",
        json_schema_extra=FRACTION,
    )
    volume_share: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Largest share of a bar's volume that one bar fills; null for any",
        json_schema_extra=FRACTION,
    )


class Kernels(Section):
    """Who computes indicators and sweeps."""

    backend: Literal["auto", "cpu", "reference"] = Field(
        default="auto", description="auto, cpu (compiled) or reference (plain NumPy)"
    )


class Config(Section):
    """The settings of one run, after profile, environment and command line have spoken."""

    symbols: Listed[Symbol] | None = Field(
        default=None, description="Symbols to trade; null lets the data source choose"
    )
    state_dir: str = Field(
        default="~/.local/share/trader",
        pattern=ONE_LINE,
        description="Folder that holds everything the bot remembers",
    )
    data: Data = Field(default=Data(), description="Where bars come from")
    account: Account = Field(default=Account(), description="The paper account")
    strategies: Strategies = Field(default=Strategies(), description="Which rules look for entries")
    evidence: EvidenceSettings = Field(
        default=EvidenceSettings(), description="What may be quoted besides the usual facts"
    )
    debate: Debate = Field(default=Debate(), description="How an entry is argued over")
    models: Models = Field(default=Models(), description="The language models that may debate")
    risk: Risk = Field(default=Risk(), description="What the risk gate allows")
    safety: Safety = Field(default=Safety(), description="When the kill switch trips")
    costs: CostSettings = Field(default=CostSettings(), description="What trading costs")
    broker: BrokerSettings = Field(default=BrokerSettings(), description="Where orders go")
    market: Market = Field(default=Market(), description="The embedded market of trader run")
    daemon: Daemon = Field(default=Daemon(), description="The schedule of trader run --paper")
    kernels: Kernels = Field(default=Kernels(), description="Who computes indicators")


class ConfigFile(Config):
    """The shape of config.yaml: the settings, and named profiles that replace some of them."""

    profiles: Mapping[str, Config] = Field(
        default={}, description="Named sets of settings, chosen with --profile"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One setting that holds a value: its dotted name and how its value is written as one word.

    optional  it may be null
    """

    name: str
    kind: Literal["number", "text", "list"]
    optional: bool
    description: str


def leaves(section: type[Section] = Config, prefix: str = "") -> Iterator[Leaf]:
    """Every setting of a section, in the order of the file."""
    for name, field in section.model_fields.items():
        inner = section_of(field)
        if inner is not None:
            yield from leaves(inner, f"{prefix}{name}.")
        else:
            kind, optional = _kind(field.annotation)
            yield Leaf(
                name=prefix + name,
                kind=kind,
                optional=optional,
                description=field.description or "",
            )


def section_of(field: FieldInfo) -> type[Section] | None:
    """The section that a field holds, or None when it holds a value."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _kind(annotation: Any) -> tuple[Literal["number", "text", "list"], bool]:
    """How a value is written as one word, and whether it may be null."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0])
    if origin in (Union, UnionType):
        (inner,) = [item for item in get_args(annotation) if item is not NoneType]
        return _kind(inner)[0], True
    if origin is tuple:
        return "list", False
    return ("number" if annotation in (int, float, bool) else "text"), False
