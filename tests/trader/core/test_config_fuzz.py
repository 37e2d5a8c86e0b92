"""Whatever stands in the file, the environment or the command line: a Config or a ConfigError."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trader.core.config import Config, LoadedConfig, load_config
from trader.core.config.layers import variable
from trader.core.config.positions import NotFiniteError, scalar
from trader.core.config.schema import leaves
from trader.core.errors import ConfigError

FUZZ = settings(
    deadline=None,
    max_examples=120,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
NAMES = [leaf.name for leaf in leaves()]
WORDS = sorted({part for name in NAMES for part in name.split(".")} | {"profiles", "p", "<<"})
PIECES = [
    *WORDS,
    *(": ", ", ", "[", "]", "{", "}", "- ", "? ", "# ", "&a", "*a", "!!str", "!x ", "<<: "),
    *("%YAML 1.2\n", "---\n", "...\n", "'", '"', "\\", ">\n", "|\n", "\n", "\n  ", "\n\t", "\t"),
    *("\r\n", "\x00", "\ufeff", "\x85", "\u2028", "é", "\U0001f600", '"\\ud800"', '"\\U00110000"'),
    *(".nan", "-.inf", "1e999", "true", "null", "~", "0.15", "15", "2026-07-01"),
]
YAML_LIKE = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.fixture
def outcome(tmp_path):
    """Loads bytes as config.yaml and returns the configuration, or None after a sound refusal."""

    def load(content, **more):
        path = tmp_path / "config.yaml"
        path.write_bytes(content)
        options = {"profile": None, "overrides": (), "environ": {}, **more}
        try:
            loaded = load_config(path, **options)
        except ConfigError as refusal:
            lines = refusal.problems
        else:
            assert isinstance(loaded, LoadedConfig)
            assert isinstance(loaded.config, Config)
            return loaded.config
        assert lines
        assert len(set(lines)) == len(lines)
        for line in lines:
            assert line.isprintable()  # one line, whatever was in the file
            line.encode()
        return None

    return load


@FUZZ
@given(content=st.binary(max_size=60))
def test_any_bytes_are_a_configuration_or_a_refusal(outcome, content):
    outcome(content)


@FUZZ
@given(text=YAML_LIKE | st.text(max_size=60))
def test_any_text_that_looks_like_yaml_is_a_configuration_or_a_refusal(outcome, text):
    outcome(text.encode("utf-8", "surrogatepass"))


@FUZZ
@given(tree=st.dictionaries(st.sampled_from(WORDS), TREES, max_size=4))
def test_any_tree_of_values_is_a_configuration_or_a_refusal(outcome, tree):
    outcome(json.dumps(tree).encode())


@FUZZ
@given(
    environ=st.dictionaries(
        st.sampled_from([variable(name) for name in NAMES] + ["TRADER_CONFIG_", "HOME"])
        | st.text(min_size=1, max_size=8).map("TRADER_".__add__),
        st.text(max_size=12) | st.sampled_from(PIECES),
        max_size=4,
    ),
    overrides=st.lists(
        st.tuples(st.sampled_from(NAMES) | st.text(max_size=6), st.text(max_size=9)).map("=".join)
        | st.text(max_size=9),
        max_size=3,
    ),
    profile=st.none() | st.text(max_size=5),
)
def test_any_environment_and_command_line_are_a_configuration_or_a_refusal(
    outcome, environ, overrides, profile
):
    outcome(b"profiles: {p: {}}\n", environ=environ, overrides=overrides, profile=profile)


@FUZZ
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(1 - 2**53, 2**53 - 1))
def test_a_number_means_what_python_means_by_it(number):
    found = scalar(str(number))
    assert found == number
    assert isinstance(found, type(number))


@pytest.mark.parametrize("text", ["1_000", "0x1f", "0o7", "1:30", "on", "No", "y", "1e", ".", "+"])
def test_what_other_yaml_readers_take_for_numbers_or_booleans_stays_text(text):
    assert scalar(text) == text


@pytest.mark.parametrize("text", [".nan", ".NaN", "+.inf", "-.INF", "1e400", "9" * 400])
def test_a_number_that_is_not_finite_is_no_value(text):
    with pytest.raises(NotFiniteError):
        scalar(text)


@pytest.mark.parametrize(
    ("text", "value"), [("012", 12), ("+5", 5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0)]
)
def test_numbers_are_decimal(text, value):
    assert scalar(text) == value
