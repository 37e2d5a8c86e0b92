"""The schema, the shipped config.yaml, what is hashed, and what loading may import."""

import json
import re
import subprocess
import sys
import typing
from datetime import date
from pathlib import Path

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from trader.core.canonical import canonical_json, sha256_of
from trader.core.config import (
    Config,
    config_primitives,
    config_schema,
    describe,
    load_config,
)
from trader.core.config.schema import Data, leaves
from trader.core.costs import Costs
from trader.core.market import Timeframe

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "config.yaml"


def shipped(profile=None):
    return load_config(SHIPPED, profile=profile, overrides=(), environ={})


def test_the_shipped_file_says_every_default_and_nothing_else():
    loaded = shipped()
    assert loaded.config == Config()
    assert not [name for name, origin in loaded.origins.items() if origin == "default"]


def test_every_setting_of_the_shipped_file_has_a_comment_above_it():
    lines = SHIPPED.read_text().splitlines()
    for setting in describe(shipped()):
        number = int(re.fullmatch(r".*config\.yaml:(\d+)", setting.origin).group(1))
        assert lines[number - 2].strip().startswith("# "), setting.name


def test_the_example_profile_halves_the_risk_and_nothing_else():
    base, cautious = Config(), shipped("cautious").config
    assert cautious.risk.risk_per_trade == base.risk.risk_per_trade / 2 == 0.005
    risk = cautious.risk.model_copy(update={"risk_per_trade": 0.01})
    assert cautious.model_copy(update={"risk": risk}) == base


def test_the_documented_defaults():
    config = Config()
    assert config.symbols is None
    assert config.strategies.enabled == ("atr_trend", "rsi_reversion", "macd_momentum")
    assert config.strategies.parameters.model_dump() == {
        "atr_trend": {"sma_window": 50, "band_atr": 0.5, "atr_window": 14},
        "rsi_reversion": {"rsi_window": 14, "oversold": 30.0, "overbought": 70.0},
        "macd_momentum": {"fast": 12, "slow": 26, "signal": 9},
        "sma_cross": {"fast": 20, "slow": 50},
        "buy_and_hold": {},
    }
    assert config.risk.model_dump() == {
        "risk_per_trade": 0.01,
        "max_position_weight": 0.15,
        "min_reward_risk": 2.0,
        "atr_window": 14,
        "atr_multiple": 2.0,
        "fractional": False,
        "protections": {
            "cooldown_sessions": 1,
            "stops": 6,
            "stops_sessions": 10,
            "drawdown": 0.15,
            "drawdown_sessions": 60,
            "lock_sessions": 5,
            "max_positions": 20,
        },
    }
    assert config.broker.model_dump() == {
        "name": "embedded",
        "base_url": None,
        "key_id_variable": "APCA_API_KEY_ID",
        "secret_key_variable": "APCA_API_SECRET_KEY",
        "key_file": None,
    }
    assert config.safety.model_dump() == {
        "daily_loss": 0.03,
        "liquidate": False,
        "orders_per_minute": 30,
        "notional_per_day": 2.0,
        "open_orders": 100,
        "quote_seconds": 900.0,
        "clock_skew_seconds": 2.0,
    }
    assert config.debate.model_dump() == {
        "mode": "rules",
        "rounds": 1,
        "minimum_verified_claims": 3,
        "minimum_confidence": 0.4,
        "fallback": "none",
        "approval": False,
        "recording": "write",
        "seconds": 300.0,
    }
    assert (config.market.start, config.account.cash) == (date(2026, 7, 1), 100_000.0)


def test_settings_that_mirror_other_parts_of_the_core_agree_with_them():
    timeframes = typing.get_args(Data.model_fields["timeframe"].annotation)
    assert timeframes == tuple(Timeframe)
    assert Costs(**Config().costs.model_dump()) == Costs()


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Config().risk.atr_window = 3
    hash(Config())


def nodes(schema):
    yield schema
    for value in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(value, dict | list):
            yield from nodes(value)


def test_the_json_schema_describes_every_property_and_refuses_unknown_ones():
    schema = config_schema()
    json.dumps(schema, allow_nan=False)
    objects = [node for node in nodes(schema) if isinstance(node, dict) and "properties" in node]
    assert len(objects) >= 15
    for node in objects:
        assert node["additionalProperties"] is False
        assert all("description" in each or "$ref" in each for each in node["properties"].values())
    weight = schema["$defs"]["Risk"]["properties"]["max_position_weight"]
    assert (weight["exclusiveMinimum"], weight["maximum"], weight["default"]) == (0, 0.15, 0.15)
    assert "profiles" in schema["properties"]
    assert schema["$defs"]["Strategies"]["properties"]["enabled"]["minItems"] == 1


def test_every_setting_has_a_description():
    assert all(leaf.description for leaf in leaves())


def test_the_hashed_settings_are_all_that_can_change_a_decision():
    body = config_primitives(Config())
    assert "state_dir" not in body
    assert "kernels" not in body  # every backend equals the reference
    assert body["market"]["start"] == "2026-07-01"
    assert json.loads(canonical_json(body)) == body
    names = {name.partition(".")[0] for name in (leaf.name for leaf in leaves())}
    unread = {"state_dir", "kernels", "broker", "daemon"}  # where, when and how fast
    assert set(body) == names - {*unread, "models"}
    assert "recording" not in body["debate"]  # asked for or read: the replies are the same
    models = config_primitives(Config.model_validate({"debate": {"mode": "llm"}}))
    assert set(models) == names - unread


def test_the_hash_of_the_settings_does_not_depend_on_how_they_are_written(tmp_path):
    def digest(text):
        path = tmp_path / "c.yaml"
        path.write_text(text)
        return sha256_of(
            config_primitives(load_config(path, profile=None, overrides=(), environ={}).config)
        )

    same = digest("account: {cash: 100000}\nstate_dir: /a\n")
    assert same == digest("state_dir: /b\naccount:\n  cash: 1.0e5\ncosts: {fee_bps: -0.0}\n")
    assert same != digest("account: {cash: 100001}\n")


def test_the_shipped_file_means_the_same_to_another_reader():
    plain = YAML(typ="safe", pure=True).load(SHIPPED.read_text())
    del plain["profiles"]
    assert Config.model_validate(plain) == Config()


def test_loading_imports_no_heavy_library():
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from trader.core.config import config_schema, load_config\n"
        "load_config(Path('config.yaml'), profile=None, overrides=(), environ={})\n"
        "config_schema()\n"
        "heavy = 'numpy pandas numba langgraph openai alpaca exchange_calendars typer'.split()\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_file_that_init_writes_is_the_one_at_the_root():
    written = ROOT / "trader" / "core" / "config" / "default.yaml"
    assert written.read_bytes() == SHIPPED.read_bytes()
