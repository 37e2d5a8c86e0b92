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
from trader.core.config.unattended import BrokerSettings, Daemon, Protections, Safety

__all__ = [
    "BrokerSettings",
    "Config",
    "CostSettings",
    "Daemon",
    "LoadedConfig",
    "Models",
    "Protections",
    "Risk",
    "RoleModel",
    "Safety",
    "Section",
    "Setting",
    "StrategyName",
    "config_primitives",
    "config_schema",
    "describe",
    "load_config",
]
