"""The configuration: its schema, where each value came from, and every mistake at its position."""

from trader.core.config.loading import (
    LoadedConfig,
    Setting,
    config_primitives,
    config_schema,
    describe,
    load_config,
)
from trader.core.config.schema import Config, CostSettings, Risk, Section, StrategyName

__all__ = [
    "Config",
    "CostSettings",
    "LoadedConfig",
    "Risk",
    "Section",
    "Setting",
    "StrategyName",
    "config_primitives",
    "config_schema",
    "describe",
    "load_config",
]
