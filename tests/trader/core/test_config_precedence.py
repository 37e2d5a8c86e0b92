"""Command line over environment over profile over file over defaults, and where a value is from."""

import itertools
import json
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.config import Config, describe, load_config

SETTINGS = {
    "risk.atr_window": st.integers(1, 2000),
    "risk.risk_per_trade": st.sampled_from([0.001, 0.005, 0.02]),
    "data.source": st.sampled_from(["sample", "synthetic", "csv:bars.csv"]),
    "debate.mode": st.sampled_from(["rules", "off"]),
    "costs.fee_bps": st.floats(0, 100),
    "market.start": st.dates(date(2020, 1, 1), date(2030, 1, 1)).map(str),
    "symbols": st.lists(st.sampled_from(["AAPL", "ON", "NO", "TRUE"]), min_size=1, unique=True),
}


def value_of(config, name):
    for part in name.split("."):
        config = getattr(config, part)
    return list(config) if isinstance(config, tuple) else config


def written(value):
    """A value as it stands in YAML and on the command line alike."""
    return json.dumps(value) if isinstance(value, list) else str(value)


def as_yaml(values, indent=""):
    """Settings by dotted name as the lines of a mapping, and the line each of them stands on."""
    lines, places = [], {}
    for section, names in itertools.groupby(sorted(values), lambda name: name.rpartition(".")[0]):
        lines += [f"{indent}{section}:"] if section else []
        for name in names:
            inner = indent + "  " if section else indent
            lines.append(f"{inner}{name.rpartition('.')[2]}: {written(values[name])}")
            places[name] = len(lines)
    return lines, places


LAYER = st.fixed_dictionaries({}, optional=SETTINGS)


@settings(deadline=None, max_examples=60)
@given(st.tuples(LAYER, LAYER, LAYER, LAYER))
def test_the_highest_layer_that_says_anything_wins_setting_by_setting(tmp_path_factory, drawn):
    file, profile, environment, command = drawn
    lines, in_file = as_yaml(file)
    more, in_profile = as_yaml(profile, indent="    ")
    start = len(lines) + 2
    path = tmp_path_factory.mktemp("law") / "my.yaml"
    path.write_text("\n".join([*lines, "profiles:", "  p:", *more]) + "\n")
    loaded = load_config(
        path,
        profile="p",
        overrides=[f"{name}={written(value)}" for name, value in command.items()],
        environ={
            f"TRADER_{name.upper().replace('.', '__')}": written(value)
            for name, value in environment.items()
        },
    )
    for name in SETTINGS:
        if name in command:
            value, origin = command[name], "--set"
        elif name in environment:
            value, origin = environment[name], f"TRADER_{name.upper().replace('.', '__')}"
        elif name in profile:
            value, origin = profile[name], f"profile p ({path}:{start + in_profile[name]})"
        elif name in file:
            value, origin = file[name], f"{path}:{in_file[name]}"
        else:
            value, origin = value_of(Config(), name), "default"
        found = value_of(loaded.config, name)
        assert (str(found) if isinstance(found, date) else found) == (
            str(value) if isinstance(value, date) else value
        )
        assert loaded.origins[name] == origin


def load(path=None, profile=None, overrides=(), environ=None):
    return load_config(path, profile=profile, overrides=overrides, environ=environ or {})


def test_a_missing_default_file_gives_the_defaults_and_a_notice(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = load()
    assert loaded.config == Config()
    assert loaded.path is None
    assert loaded.notices == ("no config.yaml here: the defaults are used",)
    assert set(loaded.origins.values()) == {"default"}


def test_the_file_beside_is_read_without_being_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("account: {cash: 5}\n")
    loaded = load()
    assert loaded.config.account.cash == 5
    assert str(loaded.path) == "config.yaml"
    assert loaded.notices == ()
    assert loaded.origins["account.cash"] == "config.yaml:1"


def test_the_environment_may_name_file_and_profile_and_the_caller_outranks_it(tmp_path):
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("profiles: {a: {account: {cash: 1}}, b: {account: {cash: 2}}}\n")
    two.write_text("profiles: {a: {account: {cash: 3}}}\n")
    environ = {"TRADER_CONFIG": str(one), "TRADER_PROFILE": "b"}
    assert load(environ=environ).config.account.cash == 2
    assert load(environ=environ).profile == "b"
    assert load(profile="a", environ=environ).config.account.cash == 1
    assert load(two, profile="a", environ=environ).config.account.cash == 3
    assert load(environ=environ).profiles == ("a", "b")


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "risk:\nprofiles:\nsymbols:\n"])
def test_a_file_that_says_nothing_gives_the_defaults(tmp_path, text):
    (tmp_path / "c.yaml").write_text(text)
    assert load(tmp_path / "c.yaml").config == Config()


def test_an_empty_section_of_a_profile_leaves_the_file_in_force(tmp_path):
    (tmp_path / "c.yaml").write_text("risk: {atr_window: 3}\nprofiles:\n  p:\n    risk:\n")
    assert load(tmp_path / "c.yaml", profile="p").config.risk.atr_window == 3


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("AAPL,MSFT", ("AAPL", "MSFT")),
        (" ON , NO ", ("ON", "NO")),
        ("TRUE", ("TRUE",)),
        ('["AAPL", MSFT]', ("AAPL", "MSFT")),
        ("null", None),
    ],
)
def test_lists_are_separated_by_commas_in_environment_and_command(
    tmp_path, monkeypatch, text, symbols
):
    monkeypatch.chdir(tmp_path)
    assert load(environ={"TRADER_SYMBOLS": text}).config.symbols == symbols
    assert load(overrides=[f"symbols={text}"]).config.symbols == symbols


def test_text_is_taken_as_it_stands_and_the_last_override_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = load(
        overrides=["state_dir=1", "data.source=csv:a=b.csv", "state_dir=true"],
    )
    assert loaded.config.state_dir == "true"
    assert loaded.config.data.source == "csv:a=b.csv"


def test_describing_names_every_setting_with_value_origin_and_meaning(tmp_path):
    (tmp_path / "c.yaml").write_text("risk:\n  atr_window: 20\n")
    lines = describe(load(tmp_path / "c.yaml", environ={"TRADER_DEBATE__ROUNDS": "2"}))
    by_name = {line.name: line for line in lines}
    assert by_name["risk.atr_window"][1:3] == (20, f"{tmp_path / 'c.yaml'}:2")
    assert by_name["debate.rounds"][1:3] == (2, "TRADER_DEBATE__ROUNDS")
    assert by_name["account.cash"][1:3] == (100_000.0, "default")
    assert len(by_name) == len(lines) == 100
    assert all(line.description for line in lines)
