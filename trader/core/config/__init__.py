"""The configuration: its schema, where each value came from, and every mistake at its position."""

from trader.core.config.loading import (
    LoadedConfig,
    Setting,
    config_primitives,
    config_schema,
    describe,
    load_config,
)
from trader.core.config.models import Models, RoleModel
from trader.core.config.schema import Config, CostSettings, Risk, StrategyName
from trader.core.config.sections import Section

__all__ = [
    "Config",
    "CostSettings",
    "LoadedConfig",
    "Models",
    "Risk",
    "RoleModel",
    "Section",
    "Setting",
    "StrategyName",
    "config_primitives",
    "config_schema",
    "describe",
    "load_config",
]
