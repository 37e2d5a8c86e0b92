"""Every mistake in a configuration is reported at once, each at its own line and column."""

import pytest

from trader.core.config import load_config
from trader.core.errors import ConfigError


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """A function from the text of config.yaml (and more) to the lines of the ConfigError."""
    monkeypatch.chdir(tmp_path)

    def report(text="", *, profile=None, overrides=(), environ=None):
        content = text if isinstance(text, bytes) else text.encode()
        (tmp_path / "config.yaml").write_bytes(content)
        with pytest.raises(ConfigError) as caught:
            load_config(None, profile=profile, overrides=overrides, environ=environ or {})
        assert str(caught.value) == "\n".join(caught.value.problems)
        return list(caught.value.problems)

    return report


def load(text, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return load_config(path, profile=None, overrides=(), environ={}).config


def test_all_mistakes_of_one_file_are_reported_together_with_exact_positions(problems):
    text = """\
symbols: [ON]
risk:
  min_rewrd_risk: 3
  max_position_weight: 15
  atr_window: 14
  atr_window: 20
  risk_per_trade: "0.01"
cash: 5
"""
    assert problems(text) == [
        "config.yaml:3:3: risk.min_rewrd_risk: unknown setting, did you mean min_reward_risk?",
        "config.yaml:4:3: risk.max_position_weight: 15 must be at most 0.15; "
        "it is a fraction: write 15 % as 0.15",
        "config.yaml:6:3: risk.atr_window: written twice, first on line 5; keep one",
        'config.yaml:7:3: risk.risk_per_trade: "0.01" is text; a number is expected, '
        "in digits and without quotes",
        "config.yaml:8:1: cash: unknown setting here, did you mean account.cash?",
    ]


def test_tickers_that_look_like_booleans_stay_text(tmp_path):
    config = load('symbols: [ON, NO, Y, OFF, "TRUE", YES]\n', tmp_path)
    assert config.symbols == ("ON", "NO", "Y", "OFF", "TRUE", "YES")


@pytest.mark.parametrize(
    ("items", "line"),
    [
        (
            "[AAPL, true]",
            '1:17: symbols: true is not text; quote it if it is a symbol: "TRUE"',
        ),
        ("[600]", '1:11: symbols: 600 is not text; write symbols as text, in quotes: "AAPL"'),
        ("[null]", '1:11: symbols: null is not text; quote it if it is a symbol: "NULL"'),
        (
            "[ aapl]",
            '1:12: symbols: "aapl" is no symbol; write capital letters, digits and dots, '
            "as in BRK.B or BTC/USD, did you mean AAPL?",
        ),
        (
            "[BRK-B]",
            '1:11: symbols: "BRK-B" is no symbol; write capital letters, digits and dots, '
            "as in BRK.B or BTC/USD, did you mean BRK.B?",
        ),
        ("[ON, AAPL, ON]", '1:21: symbols: "ON" is listed twice; remove one'),
        ("[]", "1:1: symbols: the list is empty; name at least one or leave the setting out"),
        ("ON", '1:1: symbols: "ON" is not a list; write it in brackets, as in [A, B]'),
        (
            "\n  - AAPL\n  - ABCDEFGHIJK",
            '3:5: symbols: "ABCDEFGHIJK" is no symbol; write capital letters, digits and dots, '
            "as in BRK.B or BTC/USD",
        ),
    ],
)
def test_a_list_is_refused_at_the_offending_item(problems, items, line):
    assert problems(f"symbols: {items}\n") == [f"config.yaml:{line}"]


def test_a_repeated_item_is_reported_beside_other_wrong_items(problems):
    assert [line[:17] for line in problems("symbols: [ON, ON, 5, true]\n")] == [
        "config.yaml:1:15:",
        "config.yaml:1:19:",
        "config.yaml:1:22:",
    ]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (".nan", ".nan is not a finite number"),
        ("-.inf", "-.inf is not a finite number"),
        ("1e999", "1e999 is not a finite number"),
        ("true", "true is a boolean; a number is expected"),
        ('"5"', '"5" is text; a number is expected, in digits and without quotes'),
        ("0x10", '"0x10" is text; a number is expected, in digits and without quotes'),
        ("[5]", "a list is not a number"),
        ("{a: 5}", "a mapping is not a number"),
        ("null", "null is not a number"),
        ("-1", "-1 must be at least 0"),
        ("10000", "10000 must be below 10000"),
        ("!!float 5", "the tag !!float is not supported; remove it"),
        (
            "!!python/object:os.system x",
            "the tag !!python/object:os.system is not supported; remove it",
        ),
        ("&five 5", "the anchor &five is not supported; remove it"),
    ],
)
def test_a_number_is_a_plain_finite_number(problems, value, what):
    assert problems(f"costs:\n  fee_bps: {value}\n") == [f"config.yaml:2:3: costs.fee_bps: {what}"]


@pytest.mark.parametrize("value", ["14.5", "14.0", "true", "1e3"])
def test_a_window_is_a_whole_number(problems, value):
    (line,) = problems(f"risk: {{atr_window: {value}}}\n")
    assert line.startswith("config.yaml:1:8: risk.atr_window: ")
    assert "whole number" in line


@pytest.mark.parametrize(("weight", "sound"), [("0.15", True), ("0.1500001", False), ("0", False)])
def test_the_position_cap_may_be_tightened_but_never_loosened(problems, tmp_path, weight, sound):
    text = f"risk:\n  max_position_weight: {weight}\n"
    if sound:
        assert load(text, tmp_path).risk.max_position_weight == float(weight)
    else:
        assert len(problems(text)) == 1


def test_the_reward_risk_floor_may_be_raised_but_never_lowered(problems, tmp_path):
    assert load("risk: {min_reward_risk: 50}\n", tmp_path).risk.min_reward_risk == 50
    assert problems("risk: {min_reward_risk: 1.99}\n") == [
        "config.yaml:1:8: risk.min_reward_risk: 1.99 must be at least 2"
    ]


def test_aliases_and_merge_keys_are_refused(problems):
    text = "risk: &r {atr_window: 3}\ndebate: *r\ncosts:\n  <<: *r\n"
    assert problems(text) == [
        "config.yaml:1:1: risk: the anchor &r is not supported; remove it",
        "config.yaml:2:1: debate: the alias *r is not supported; write the value out",
        "config.yaml:4:3: costs: the merge key << is not supported; write the settings out",
        "config.yaml:4:3: costs: the alias *r is not supported; write the value out",
    ]


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("risk:\n\tatr_window: 3\n", "2:1: a tab may not indent YAML"),
        ("symbols: [A\n", "2:1: a comma is missing, or a bracket is not closed"),
        ("state_dir: 'abc", "1:16: a quotation mark is not closed"),
        ("state_dir: a: b\n", "1:13: a second colon"),
        ("risk:\n  atr_window: 3\n debate: 1\n", "3:2: the indentation does not fit"),
        ("state_dir: @home\n", "1:12: found character '@'"),
        ("[1, 2]\n", "1:1: the file must hold settings"),
        ("just words\n", "1:1: the file must hold settings"),
        ("state_dir: a\n---\nstate_dir: b\n", "2:1: a second document begins"),
        ("%YAML 1.1\n---\nstate_dir: a\n", "2:1: % directives are not supported"),
        ("? [a]\n: 1\n", "1:3: a name of a setting is expected here"),
        ("[" * 5000, "1:21: nested more than 20 levels deep"),
        ("symbols: [" + "A," * 20_000 + "]", "1:20007: more than 10000 values"),
        ('state_dir: "\\ud800"\n', "1:1: state_dir: '\\ud800' is half a character"),
        ('state_dir: a\nsymbols: ["\\U99999999"]\n', "2:12: \\U99999999 is no character"),
        ("state_dir: a\x00b\n", "1:13: the character '\\x00' may not stand here"),
        (b"state_dir: a\nsymbols: [\xe9]\n", "2:11: byte 0xe9 is not UTF-8"),
        ("state_dir: é\n".encode("utf-16"), "1:1: byte 0xff is not UTF-8"),
    ],
)
def test_a_file_that_is_no_sound_yaml_is_refused_in_one_line_with_its_position(
    problems, text, start
):
    (line,) = problems(text)
    assert line.startswith(f"config.yaml:{start}")


def test_a_file_over_a_megabyte_is_refused(problems):
    assert problems("#" * 1_000_001) == ["config.yaml: is larger than 1 MB; is it the right file?"]


def test_a_byte_order_mark_does_not_shift_positions(problems):
    assert problems(b"\xef\xbb\xbfcash: 5\n") == problems("cash: 5\n")


def test_unknown_settings_without_a_likely_meaning_are_answered_with_what_is_known(problems):
    assert problems("market:\n  zzz: 1\n") == [
        "config.yaml:2:3: market.zzz: unknown setting; "
        "known here: start, seed, partial_fills, volume_share"
    ]
    assert problems("strategies: {parameters: {buy_and_hold: {sma_window: 3}}}\n") == [
        "config.yaml:1:42: strategies.parameters.buy_and_hold.sma_window: unknown setting here, "
        "did you mean strategies.parameters.atr_trend.sma_window?"
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "strategies:\n  enabled: [atr_trnd]\n",
            '2:13: strategies.enabled: "atr_trnd" is none of atr_trend, rsi_reversion, '
            "macd_momentum, sma_cross, buy_and_hold, did you mean atr_trend?",
        ),
        (
            "strategies:\n  parameters:\n    sma_cros: {fast: 3}\n",
            "3:5: strategies.parameters.sma_cros: unknown setting, did you mean sma_cross?",
        ),
        (
            "data: {timeframe: 1day}\n",
            '1:8: data.timeframe: "1day" is none of 1Day, 1Hour, did you mean 1Day?',
        ),
        (
            "data: {source: sampel}\n",
            '1:8: data.source: "sampel" is none of sample, synthetic, alpaca, csv:PATH, '
            "did you mean sample?",
        ),
        (
            'data: {source: "csv:"}\n',
            '1:8: data.source: "csv:" is none of sample, synthetic, alpaca, csv:PATH',
        ),
        (
            "market: {start: 2026-02-30}\n",
            '1:10: market.start: "2026-02-30" is not a date; write year-month-day, '
            "as in 2026-07-01",
        ),
        (
            "market: {start: 20260701}\n",
            "1:10: market.start: 20260701 is not a date; write year-month-day, as in 2026-07-01",
        ),
        (
            "account: 7\n",
            "1:1: account: 7 is no mapping; write the settings of this section below it, indented",
        ),
        ("state_dir: 5\n", "1:1: state_dir: 5 is not text; put it in quotes"),
        ('state_dir: ""\n', '1:1: state_dir: "" must be one line of printable text'),
        (
            "strategies:\n  parameters:\n    macd_momentum: {fast: 30}\n",
            "3:5: strategies.parameters.macd_momentum: fast 30 must be below slow 26; "
            "change one of them",
        ),
        (
            "strategies:\n  parameters:\n    rsi_reversion: {oversold: 70}\n",
            "3:5: strategies.parameters.rsi_reversion: oversold 70.0 must be below "
            "overbought 70.0; change one of them",
        ),
        (
            "debate: {minimum_confidence: 40}\n",
            "1:10: debate.minimum_confidence: 40 must be at most 1; "
            "it is a fraction: write 40 % as 0.4",
        ),
        (
            "profiles: [a]\n",
            "1:1: profiles: a list is no mapping; write a name and, below it, its settings",
        ),
        (
            "profiles:\n  bold: 3\n",
            "2:3: profiles.bold: 3 is no mapping; write the settings of the profile below it",
        ),
        (
            "profiles:\n  bold:\n    risk: {atr_windw: 3}\n",
            "3:12: profiles.bold.risk.atr_windw: unknown setting, did you mean atr_window?",
        ),
        (
            "profiles:\n  bold:\n    profiles: {}\n",
            "3:5: profiles.bold.profiles: unknown setting; known here: symbols, state_dir, data, "
            "account, strategies, evidence, debate, models, risk, safety, costs, broker, market, "
            "daemon, kernels",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_remedy(problems, text, line):
    assert problems(text) == [f"config.yaml:{line}"]


def test_the_name_of_a_profile_is_a_plain_word(problems):
    assert problems("profiles:\n  two words: {}\n") == [
        "config.yaml:2:3: profiles.two words: a profile is named in letters, digits, - and _, "
        "40 at most"
    ]


def test_a_profile_is_checked_even_when_it_is_not_chosen(problems):
    text = """\
risk: {risk_per_trade: 7}
profiles:
  bold:
    risk:
      max_position_weight: 20
"""
    assert problems(text) == [
        "config.yaml:1:8: risk.risk_per_trade: 7 must be at most 0.1; "
        "it is a fraction: write 7 % as 0.07",
        "config.yaml:5:7: profiles.bold.risk.max_position_weight: 20 must be at most 0.15; "
        "it is a fraction: write 20 % as 0.2",
    ]


def test_file_environment_and_command_line_are_reported_together(problems):
    lines = problems(
        "cash: 5\n",
        environ={
            "TRADER_RISK__MIN_REWRD_RISK": "3",
            "TRADER_SYMBOL": "AAPL",
            "TRADER_RISK": "1",
            "TRADER_STATE_DIR": "",
            "TRADER_DATA__SEED": "seven",
            "TRADER_ACCOUNT__CASH": ".inf",
            "HOME": "/",
        },
        overrides=[
            "risk.atr_windw=3",
            "risk=3",
            "risk.atr_window",
            "costs.fee_bps=",
            "data.seed=x",
        ],
    )
    assert lines == [
        "config.yaml:1:1: cash: unknown setting here, did you mean account.cash?",
        "TRADER_ACCOUNT__CASH: account.cash: .inf is not a finite number",
        "TRADER_RISK: is a section; name one of its settings, such as TRADER_RISK__RISK_PER_TRADE",
        "TRADER_RISK__MIN_REWRD_RISK: unknown setting, did you mean TRADER_RISK__MIN_REWARD_RISK?",
        "TRADER_STATE_DIR: is empty; unset it or give it a value",
        "TRADER_SYMBOL: unknown setting, did you mean TRADER_SYMBOLS?",
        "--set: risk.atr_windw: unknown setting, did you mean risk.atr_window?",
        "--set: risk: is a section; name one of its settings, such as risk.risk_per_trade",
        "--set: risk.atr_window: write it as name=value, as in risk.atr_window=14",
        "--set: costs.fee_bps: is empty; give it a value or leave it out",
        '--set: data.seed: "x" is text; a whole number is expected, in digits and without quotes',
    ]


def test_a_wrong_value_in_the_environment_is_named_after_its_variable(problems):
    assert problems(environ={"TRADER_RISK__MAX_POSITION_WEIGHT": "15"}) == [
        "TRADER_RISK__MAX_POSITION_WEIGHT: risk.max_position_weight: 15 must be at most 0.15; "
        "it is a fraction: write 15 % as 0.15"
    ]


def test_an_unknown_profile_is_refused_with_the_likely_one(problems):
    text = "profiles: {cautious: {risk: {risk_per_trade: 0.005}}}\n"
    assert problems(text, profile="cautios") == [
        "--profile: unknown profile cautios, did you mean cautious?"
    ]
    assert problems(text, environ={"TRADER_PROFILE": "x"}) == [
        "TRADER_PROFILE: unknown profile x; config.yaml defines cautious"
    ]
    assert problems("", profile="x") == ["--profile: unknown profile x; config.yaml defines none"]


@pytest.mark.parametrize("by_variable", [False, True])
def test_a_missing_file_that_was_named_is_an_error(tmp_path, by_variable):
    path = tmp_path / "nowhere.yaml"
    environ = {"TRADER_CONFIG": str(path)} if by_variable else {}
    with pytest.raises(ConfigError) as caught:
        load_config(None if by_variable else path, profile=None, overrides=(), environ=environ)
    assert str(caught.value) == (
        f"{path}: cannot be read (No such file or directory); name an existing file"
    )


def test_a_folder_is_no_configuration(tmp_path):
    with pytest.raises(ConfigError, match="no regular file"):
        load_config(tmp_path, profile=None, overrides=(), environ={})
