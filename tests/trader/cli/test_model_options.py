"""Options of the model debate: what they set, how a wrong one is told, what a person approves."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.servers.chat_server import ChatServer
from tests.trader.cli.debates import (
    ATTACK,
    CANDIDATE,
    DEBATE,
    OPENING,
    TIMED_OUT,
    VERDICT,
    WEIGHING,
)
from tests.trader.cli.test_cli import FAST, trader
from trader.app.paper import RunResult
from trader.cli import account, output, study
from trader.cli.main import app
from trader.cli.options import Shared
from trader.cli.telling import tell_debate, tell_run
from trader.core.decision import AwaitedApproval, ChatCall, Decision, Hearing
from trader.core.errors import ConfigError, UsageError
from trader.core.ports import Spend

SHARED: dict[str, Any] = {
    "as_json": False,
    "config": None,
    "profile": None,
    "state_dir": None,
    "settings": None,
    "quiet": True,
    "verbose": 0,
}


@pytest.fixture(autouse=True)
def _loud(monkeypatch):
    monkeypatch.setattr(output, "SPEECH", output.Speech())


DEBATING = [
    ("backtest", "--from", "2026-08-03"),
    ("debate", "AAPL"),
    ("run", "--paper", "--once"),
]


@pytest.mark.parametrize("command", DEBATING, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--rounds", "40"), "--rounds: 40 must be at most 5"),
        (("--rounds", "-1"), "--rounds: -1"),
        (("--debate", "lmm"), '--debate: "lmm" is none of rules, llm, off'),
        (("--base-url", "127.0.0.1:8080/v1"), "--base-url: "),
        (("--base-url", "http://me:secret@test/v1"), "--base-url: "),
        (("--base-url", ""), "--base-url: is empty"),
        (("--model", ""), "--model: is empty"),
        (("--model", "a\nb"), "--model: "),
        (("--record", "--from-recording"), "--record and --from-recording exclude each other"),
    ],
)
def test_a_wrong_value_is_told_in_terms_of_the_option(tmp_path, command, given, words):
    done = typed(*command, *given, state=tmp_path)
    assert isinstance(done.exception, UsageError), done.exception
    assert words in str(done.exception)
    assert "secret" not in str(done.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "idle"),
    [
        (("--base-url", "http://test/v1", "--model", "m"), "--base-url, --model"),
        (("--record",), "--record"),
        (("--from-recording",), "--from-recording"),
    ],
)
def test_an_option_about_models_without_a_model_debate_is_told(tmp_path, given, idle):
    debate = ("debate", "AAPL", "--as-of", "2026-07-01")
    note = f"{idle}: without effect, no model debates; say --debate llm"
    assert note in typed(*debate, *given, state=tmp_path).stderr
    assert "without effect" not in typed(*debate, "--rounds", "0", state=tmp_path).stderr


def test_the_doctor_looks_at_the_model_that_is_named(tmp_path):
    with ChatServer(lambda messages, body: '{"ready": true}', models=["m"]) as server:
        done = typed("doctor", "--base-url", server.base_url, "--model", "m", state=tmp_path)
    assert f"{server.base_url} reached, no key needed, has m" in done.stdout
    assert "replies of m: asked by json_schema" in done.stdout
    assert "without effect" not in done.stderr
    unnamed = typed("doctor", "--base-url", "http://127.0.0.1:1/v1", state=tmp_path)
    assert unnamed.exit_code == 4
    assert "no model is named" in unnamed.stdout
    wrong = typed("doctor", "--base-url", "test", state=tmp_path)
    assert isinstance(wrong.exception, UsageError), wrong.exception


def test_a_wrong_option_is_exit_2(tmp_path):
    done = trader("debate", "AAPL", "--rounds", "40", state=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--rounds: 40 must be at most 5" in done.stderr


def typed(*words: str, state: Path) -> Result:
    """The command in this process, with the reference kernels."""
    return CliRunner().invoke(app, [*words, *FAST, "--state-dir", str(state)])


def test_a_run_without_a_debate_is_refused(tmp_path):
    done = typed("run", "--paper", "--once", "--debate", "off", state=tmp_path)
    assert isinstance(done.exception, UsageError)
    assert "never trades without a debate" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_model_debate_without_a_model_names_the_setting(tmp_path):
    done = typed(
        "debate", "AAPL", "--debate", "llm", "--base-url", "http://test/v1", state=tmp_path
    )
    assert isinstance(done.exception, ConfigError | UsageError), done.exception
    assert "models.model" in str(done.exception)
    assert done.stdout == ""


@dataclass
class Asked:
    """An app that remembers what it was asked; every command ends there."""

    overrides: dict[str, object] = field(default_factory=dict)
    calls: list[tuple[str, tuple[object, ...], dict[str, object]]] = field(default_factory=list)

    def __getattr__(self, name: str):
        def method(*arguments: object, **named: object):
            self.calls.append((name, arguments, named))
            return SimpleNamespace(notices=(), as_json=lambda: {"schema_version": 1})

        return method


class FakeShared(Shared):
    """Options that open an `Asked`."""

    def open(self, **overrides: object):
        ASKED.overrides = {key: value for key, value in overrides.items() if value is not None}
        return ASKED


ASKED = Asked()


@pytest.fixture
def shared(capsys):
    ASKED.overrides, ASKED.calls = {}, []
    return FakeShared(**{**SHARED, "as_json": True})


def test_options_become_settings(shared):
    models = {"base_url": "http://test/v1", "model": "small", "debate_by": "llm", "rounds": 2}
    expected = {
        "debate__mode": "llm",
        "debate__rounds": 2,
        "models__base_url": "http://test/v1",
        "models__model": "small",
    }
    study.debate(shared, symbol="aapl", **models, record=True)
    assert ASKED.overrides == {**expected, "debate__recording": "write"}
    study.backtest(shared, start="2026-08-03", **models, from_recording=True)
    assert ASKED.overrides == {**expected, "debate__recording": "read"}
    account.run(shared, paper=True, once=True, approve=True, **models)
    assert ASKED.overrides == {**expected, "debate__approval": "true"}
    account.run(shared, paper=True, once=True)
    assert ASKED.overrides == {}


def test_the_debate_is_watched_while_it_goes_on(shared, monkeypatch):
    study.debate(shared, symbol="aapl")
    account.run(shared, paper=True, once=True, restart_market=True)
    (debated, arguments, watched), (walked, _, named) = ASKED.calls
    assert (debated, arguments) == ("debate", ("AAPL", None))
    assert watched["listener"] is not None
    assert (walked, named["restart_market"]) == ("run_once", True)
    assert named["listener"] is not None
    monkeypatch.setattr(output.SPEECH, "quiet", True)
    study.debate(shared, symbol="aapl")
    assert ASKED.calls[-1][2]["listener"] is None


def test_a_person_answers_with_approve_or_reject(shared):
    account.approve(shared, cycle_id="paper-1-20260702T1330-AAPL-atr_trend")
    account.reject(shared, cycle_id="other")
    (first, second) = ASKED.calls
    assert first[:2] == ("answer_approval", ("paper-1-20260702T1330-AAPL-atr_trend",))
    assert (first[2]["approved"], second[2]["approved"]) == (True, False)
    assert second[1] == ("other",)


def test_an_answer_that_nobody_asked_for_is_a_usage_error(tmp_path):
    for command in ("approve", "reject"):
        done = typed(command, "paper-1-x", state=tmp_path)
        assert isinstance(done.exception, UsageError), done.exception
        assert "paper-1-x" in str(done.exception)


WAITS = AwaitedApproval(
    cycle_id="paper-1-20260702T1330-AAPL-atr_trend",
    as_of=CANDIDATE.signal.as_of,
    symbol="AAPL",
    strategy="atr_trend",
    entry_price=272.0,
    stop_price=258.75,
    target_price=312.0,
    reward_risk_ratio=2.99,
    rationale="GO, all rules pass\nVERDICT forged",
)


def a_run(**changes: Any) -> RunResult:
    fields: dict[str, Any] = {
        "schema_version": 1,
        "run_id": "paper-1",
        "market_time": CANDIDATE.signal.as_of,
        "simulated": True,
        "session": date(2026, 3, 2),
        "source": "sample",
        "notices": (),
        "slot": None,
        "awaiting": (),
        "spend": Spend(),
        "fills": (),
        "cycles": (),
        "orders": (),
        "positions": (),
        "cash": Decimal(100_000),
        "equity": Decimal(100_000),
        "ledger_head": "f" * 64,
    }
    return RunResult(**(fields | changes))


def test_a_go_that_waits_is_shown_with_the_commands_to_type(capsys):
    given = {
        "state_dir": Path("my state"),
        "config": Path("c.yaml"),
        "settings": ["risk.atr_multiple=3"],
    }
    options = Shared(**{**SHARED, **given}).again()
    tell_run(a_run(awaiting=(WAITS,)), options)
    out = capsys.readouterr().out
    assert "buy AAPL (atr_trend), entry 272.00, stop 258.75, target 312.00, offers 2.99" in out
    assert "\nVERDICT" not in out
    assert "no signal fired" not in out
    found = [line.strip() for line in out.splitlines() if line.strip().startswith("trader ")]
    assert len(found) == 2
    for line, command in zip(found, ("approve", "reject"), strict=True):
        words = shlex.split(line)
        assert words[:3] == ["trader", command, WAITS.cycle_id]
        assert words[3:] == [
            *("--config", "c.yaml"),
            *("--state-dir", "my state"),
            *("--set", "risk.atr_multiple=3"),
        ]


def test_where_no_slot_was_due_nothing_is_said_about_signals(capsys):
    tell_run(a_run(simulated=False))
    out = capsys.readouterr().out
    assert "no signal fired" not in out
    assert "simulated" not in out


def test_spend_is_told_when_models_were_asked(capsys):
    spend = Spend(
        calls=5, input_tokens=6_300, output_tokens=1_900, estimated=2, cost=Decimal("0.01234")
    )
    tell_run(a_run(spend=spend))
    out = capsys.readouterr().out
    assert "5 calls (2 of them estimated), 6,300 tokens in, 1,900 out, 0.0123 USD" in out
    tell_run(a_run())
    assert "models" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("legs", "words"),
    [
        ({}, "its stop near 258.75 is placed once it is bought"),
        ({"stop_loss_price": Decimal("258.75")}, "stop 258.75, no target"),
        (
            {"stop_loss_price": Decimal("258.75"), "take_profit_price": Decimal(312)},
            "stop 258.75, target 312",
        ),
    ],
)
def test_an_order_says_where_it_is_left(legs, words, capsys):
    intent = SimpleNamespace(
        **{"quantity": Decimal("0.5"), "stop_loss_price": None, "take_profit_price": None} | legs
    )
    cycle = SimpleNamespace(
        cycle_id="c",
        symbol="AAPL",
        evidence=(),
        candidate=CANDIDATE,
        debate=DEBATE,
        intent=intent,
        risk=SimpleNamespace(weight_after=0.08, reasons=()),
    )
    tell_run(a_run(cycles=(cycle,)))
    assert f"order  buy 0.5 AAPL at the next open, {words}; 8.0%" in capsys.readouterr().out


def call(role: str, model: str) -> ChatCall:
    return ChatCall(
        role=role,  # type: ignore[arg-type]
        round=0,
        model=model,
        prompt=f"{role} 1",
        call_id="0" * 64,
        reply_sha256="1" * 64,
    )


def told(debate: Any, capsys) -> str:
    tell_debate(CANDIDATE, debate, {})
    text: str = capsys.readouterr().out
    return text


def test_a_debate_of_models_says_who_spoke_and_what_was_weighed(capsys):
    modelled = replace(
        DEBATE,
        debater="small / large",
        weighing=WEIGHING,
        calls=(call("bull", "small"), call("bear", "small"), call("arbitrator", "large")),
        approval="rejected",
    )
    text = told(modelled, capsys)
    for words in (
        "debated by small / large; 3 model calls: bull small, bear small, arbitrator large",
        "ARBITRATOR weighs: GO at 0.71, rests on B1, R1",
        "The bull has the facts.",
        "bull 0.50 (1 true, 1 false, 1 unverifiable); bear 1.00",
        "✗ The close is 300.",
        "contradicted: E1 close is 272",
        "a person rejected it",
    ):
        assert words in text, words


def test_a_failed_debate_shows_its_flag_and_what_was_said_until_then(capsys):
    text = told(replace(DEBATE, rebuttals=()), capsys)
    assert "BULL  It rises because it rose." in text
    assert "BEAR" not in text
    assert "flags: REWARD_RISK_BELOW_MINIMUM, TIMED_OUT" in text
    assert "TIMED_OUT: bear: no answer within 60 s" in text
    again = told(
        replace(DEBATE, fallback="TIMED_OUT: bear: late", calls=(call("bull", "m"),)), capsys
    )
    assert "rules debated in place of the model: TIMED_OUT: bear: late" in again
    assert "1 model call: bull m" in again


def test_a_hearing_is_told_after_the_debate_that_it_can_only_take_away(capsys):
    heard = Hearing(
        arguments=(replace(OPENING, thesis="heard thesis"),),
        rebuttals=(ATTACK,),
        verdict=replace(VERDICT, rationale="NO_GO by the texts"),
        weighing=replace(WEIGHING, decision=Decision.NO_GO),
        calls=(call("bull", "small"),),
    )
    text = told(replace(DEBATE, hearing=heard), capsys)
    first, second = text.split("HEARING of the foreign texts; 1 model call: bull small")
    assert "heard thesis" not in first
    assert "heard thesis" in second
    assert "ARBITRATOR weighs: NO_GO" in second
    assert "HEARING ends in NO_GO by the texts" in second
    assert "HEARING" not in told(DEBATE, capsys)


def test_no_words_of_a_model_make_a_line_of_their_own(capsys):
    words = "fine\nGO, all 13 rules pass\r\x1b[2K\u202e"
    said = replace(OPENING.claims[1], text=words, detail=words)
    hostile = replace(
        DEBATE,
        arguments=(replace(OPENING, thesis=words, claims=(said,)),),
        rebuttals=(replace(ATTACK, weakest_claim=words, counter=words),),
        weighing=replace(WEIGHING, rationale=words),
        fallback=words,
        verdict=replace(VERDICT, rationale=words, flags=(replace(TIMED_OUT, detail=words),)),
    )
    text = told(hostile, capsys)
    assert not any(line.startswith("GO, all") for line in text.splitlines())
    assert all(char.isprintable() or char == "\n" for char in text)


def test_panels_are_progress_and_the_result_stays_on_stdout(tmp_path):
    words = ("debate", "AAPL", "--as-of", "2026-02-24", "--strategy", "macd_momentum", "--json")
    done = typed(*words, state=tmp_path)
    assert done.exception is None
    assert json.loads(done.stdout)["symbol"] == "AAPL"
    turns = [line for line in done.stderr.splitlines() if line.startswith("AAPL macd_momentum: ")]
    assert any(" bull (" in line for line in turns)
    assert any(" bear (" in line for line in turns)
    assert " verdict NO_GO" in turns[-1]
    assert typed(*words, "-q", state=tmp_path).stderr == ""


def test_a_go_waits_for_a_person_and_becomes_an_order_when_it_is_approved(tmp_path):
    begun = ("run", "--paper", "--once", "--approve")
    typed(*begun, state=tmp_path)
    asked = typed(*begun, state=tmp_path)
    (line,) = [line.strip() for line in asked.stdout.splitlines() if "trader approve" in line]
    words = shlex.split(line)
    assert words[-2:] == ["--set", FAST[1]]
    done = CliRunner().invoke(app, words[1:])
    assert done.exception is None
    assert "a person approved it" in done.stdout
    assert "order  buy" in done.stdout
    assert isinstance(CliRunner().invoke(app, words[1:]).exception, UsageError)
