"""What every command works with: configuration, state folder, calendar, data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from trader.core.clock import SessionCalendar, always_open, new_york
from trader.core.config import Config, LoadedConfig
from trader.core.errors import LockHeldError, UsageError
from trader.core.instruments import is_crypto
from trader.core.market import Timeframe
from trader.core.ports import MarketData
from trader.data.source import open_data


@dataclass(frozen=True)
class Context:
    """One configuration and what it opens, each when it is first asked for.

    loaded   the checked configuration with the origin of each value
    environ  the environment, where the keys of models are
    """

    loaded: LoadedConfig
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.loaded.config

    @property
    def state_dir(self) -> Path:
        """The one folder that holds state on disk."""
        try:
            return Path(self.config.state_dir).expanduser()
        except RuntimeError as exc:
            raise LockHeldError(f"the state folder {self.config.state_dir}: {exc}") from exc

    @cached_property
    def calendar(self) -> SessionCalendar:
        """Sessions of the exchange, or of a market that never closes when every symbol is a coin.

        UsageError for coins beside shares: they have no day in common.
        """
        symbols = self.config.symbols or ()
        coins = [symbol for symbol in symbols if is_crypto(symbol)]
        if not coins:
            return new_york()
        if len(coins) < len(symbols):
            shares = [symbol for symbol in symbols if symbol not in coins]
            raise UsageError(
                f"{', '.join(coins)} trade at any hour and {', '.join(shares)} do not: "
                "name coins alone or shares alone"
            )
        return always_open()

    @cached_property
    def data(self) -> MarketData:
        """The bars that the configuration names."""
        return open_data(
            self.config.data.source,
            self.calendar,
            seed=self.config.data.seed,
            alpaca=self._alpaca,
        )

    def _alpaca(self) -> MarketData:
        from trader.app.alpaca_market import alpaca_data

        return alpaca_data(self)

    @property
    def data_notices(self) -> tuple[str, ...]:
        """What a person should know about how the bars came here; empty where they were here."""
        notices: tuple[str, ...] = getattr(self.data, "notices", ())
        return notices

    @property
    def timeframe(self) -> Timeframe:
        """Length of a bar."""
        return Timeframe(self.config.data.timeframe)

    def over(self, settings: Mapping[str, Any]) -> Context:
        """The same, over the market and the costs of recorded settings."""
        merged = self.config.model_dump() | {
            section: settings[section] for section in ("data", "costs", "symbols")
        }
        return replace(self, loaded=replace(self.loaded, config=Config.model_validate(merged)))

    def about(self, symbol: str) -> Context:
        """The same place, looking at one symbol that may trade at other hours than those named."""
        if is_crypto(symbol) == self.calendar.never_closes:
            return self
        merged = self.config.model_dump() | {"symbols": (symbol.strip().upper(),)}
        return replace(self, loaded=replace(self.loaded, config=Config.model_validate(merged)))

    def under(self, settings: Mapping[str, Any]) -> Context:
        """The same place, with recorded settings for all that can change a decision."""
        mine = self.config.model_dump()
        merged = mine | dict(settings)
        merged["debate"] = {"recording": mine["debate"]["recording"], **settings["debate"]}
        return replace(self, loaded=replace(self.loaded, config=Config.model_validate(merged)))

    def trading_at(self, begun: Mapping[str, Any]) -> Context:
        """The same place, with the broker of the record of a run."""
        merged = self.config.model_dump()
        merged["broker"]["name"] = begun.get("broker", "embedded")
        merged["broker"]["base_url"] = begun.get("broker_url", self.config.broker.base_url)
        return replace(self, loaded=replace(self.loaded, config=Config.model_validate(merged)))

    def symbols(self) -> tuple[str, ...]:
        """Symbols to trade: those configured, else AAPL on the sample and all that others name."""
        if self.config.symbols is not None:
            return tuple(self.config.symbols)
        known = self.data.symbols(self.timeframe)
        return ("AAPL",) if self.data.name == "sample" else known
