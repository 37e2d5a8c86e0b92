"""Comparing two runs: what differs is named, once, at the part where it began; nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trader.app.conftest import opened
from trader.app.comparing import CompareResult, compare
from trader.core.errors import StateError, UsageError
from trader.ledger.store import Ledger

Body = dict[str, Any]
Change = Callable[[str, Body], Body | None]
OTHER = "bt-other00000"


def as_it_was(_kind: str, body: Body) -> Body:
    return body


def rewritten(whole, folder: Path, change: Change = as_it_was) -> str:
    """The backtest's records under another run id, each as `change` leaves it; None drops it."""
    _, result = whole
    source = Ledger(Path(result.files["ledger.db"]), read_only=True)
    target = Ledger(folder / "ledger.db", durable=False)
    for record in source.records():
        body = change(record.kind, deepcopy(record.body))
        if body is not None:
            if "cycle_id" in body:
                body["cycle_id"] = body["cycle_id"].replace(result.run_id, OTHER)
            name = record.record_id.replace(result.run_id, OTHER)
            target.append(record.kind, name, body)
    source.close()
    target.close()
    return str(folder)


def with_other(whole, tmp_path: Path, change: Change = as_it_was) -> CompareResult:
    app, result = whole
    return compare(app, result.run_id, rewritten(whole, tmp_path / OTHER, change))


def the_go(change: Callable[[Body], None]) -> Change:
    """Change one decision, the first GO."""
    done: list[str] = []

    def one(kind: str, body: Body) -> Body:
        if kind == "cycle" and not done and body["debate"]["verdict"]["decision"] == "GO":
            done.append(body["cycle_id"])
            change(body)
        return body

    return one


def test_nothing_differs_between_a_run_and_itself(whole):
    app, result = whole
    found = compare(app, result.run_id, result.run_id)
    assert found.nothing_differs
    assert found.equal == result.funnel.debates > 0
    assert (found.changed, found.only_a, found.only_b) == ((), (), ())
    assert found.as_json()["schema_version"] == 1


def test_another_run_id_alone_is_no_difference(whole, tmp_path):
    found = with_other(whole, tmp_path)
    assert found.nothing_differs
    assert found.a.run_id != found.b.run_id
    assert found.equal == len(whole[1].debates)


def first_claim(body: Body) -> Body:
    claim: Body = body["debate"]["arguments"][0]["claims"][0]
    return claim


MUTATIONS: dict[str, Callable[[Body], object]] = {
    "evidence": lambda body: body["evidence"][0].update(value=1.5),
    "debaters": lambda body: body["debate"].update(debater="llama"),
    "claims": lambda body: first_claim(body).update(status="contradicted"),
    "levels": lambda body: body["debate"]["verdict"].update(target_price=999.25),
    "confidence": lambda body: body["debate"]["verdict"].update(confidence=0.125),
    "flags": lambda body: body["debate"]["verdict"].update(
        flags=[{"code": "TIMED_OUT", "detail": "", "evidence_ids": []}]
    ),
    "verdict": lambda body: body["debate"]["verdict"].update(decision="NO_GO"),
    "size": lambda body: body["risk"].update(quantity=7),
}


@pytest.mark.parametrize("part", MUTATIONS)
def test_one_changed_part_is_told_as_that_part_alone(whole, tmp_path, part):
    found = with_other(whole, tmp_path, the_go(MUTATIONS[part]))
    (change,) = found.changed
    assert [item.part for item in change.parts] == [part]
    assert change.changed_first == part
    assert change.parts[0].a != change.parts[0].b
    assert change.parts[0].count >= 1
    assert found.equal == len(whole[1].debates) - 1
    assert not found.nothing_differs
    assert (found.settings, found.only_a, found.only_b) == ((), (), ())


def test_the_first_change_is_the_one_that_comes_first_in_the_walk(whole, tmp_path):
    def change(body: Body) -> None:
        for part in ("size", "verdict", "claims", "levels"):
            MUTATIONS[part](body)

    (found,) = with_other(whole, tmp_path, the_go(change)).changed
    assert [item.part for item in found.parts] == ["claims", "levels", "verdict", "size"]
    assert found.changed_first == "claims"
    assert (found.verdict_a, found.verdict_b) == ("GO", "NO_GO")
    said = {item.part: (item.a, item.b) for item in found.parts}
    assert said["verdict"] == ("GO", "NO_GO")
    assert said["size"][1].startswith("7 shares")
    assert said["claims"][0].endswith("verified")
    assert said["claims"][1].endswith("contradicted")
    assert said["levels"][1].endswith("target 999.2500")


def test_words_and_numbering_are_not_compared(whole, tmp_path):
    def change(kind: str, body: Body) -> Body:
        if kind == "cycle":
            body["debate"]["arguments"][0]["thesis"] = "said otherwise"
            first_claim(body)["text"] = "the same fact in other words"
            for fact in body["evidence"]:
                fact["evidence_id"] += "0"
            for turn in (*body["debate"]["arguments"], *body["debate"]["rebuttals"]):
                for claim in turn["claims"]:
                    claim["evidence_ids"] = [f"{key}0" for key in claim["evidence_ids"]]
        return body

    assert with_other(whole, tmp_path, change).nothing_differs


def test_a_difference_in_the_last_bit_of_a_fact_is_shown(whole, tmp_path):
    def change(body: Body) -> None:
        body["evidence"][0]["value"] += 1e-9

    (found,) = with_other(whole, tmp_path, the_go(change)).changed
    assert found.parts[0].a != found.parts[0].b


def test_who_debated_names_models_and_the_rules_that_stood_in(whole, tmp_path):
    call = {"role": "bull", "model": "small", "round": 0}

    def modelled(body: Body) -> None:
        body["debate"] |= {"debater": "small / large", "calls": [call]}

    (found,) = with_other(whole, tmp_path / "1", the_go(modelled)).changed
    assert (found.parts[0].a, found.parts[0].b) == ("rules", "small / large")

    def stood_in(body: Body) -> None:
        body["debate"] |= {"calls": [call], "fallback": "TIMED_OUT: bull"}

    (found,) = with_other(whole, tmp_path / "2", the_go(stood_in)).changed
    assert found.parts[0].b == "rules in place of small"


def test_an_arbitrator_that_was_not_asked_makes_no_other_debaters(whole, tmp_path):
    calls = [{"role": role, "model": "small", "round": 0} for role in ("bull", "bear")]

    def asked(body: Body) -> None:
        body["debate"]["calls"] = calls

    assert with_other(whole, tmp_path, the_go(asked)).nothing_differs


def test_settings_code_and_figures_differ_by_name_and_amount(whole, tmp_path):
    def change(kind: str, body: Body) -> Body:
        if kind == "run":
            body["settings"]["risk"]["atr_multiple"] = 3
            body["settings"]["strategies"]["enabled"] = ["atr_trend"]
            body["code_sha256"] = "f" * 64
            body["data"]["sha256"] = "0" * 64
        if kind == "result":
            body["columns"]["debate"]["total_return"] += 0.25
            body["columns"]["buy_and_hold"] = None
            body["funnel"]["skipped"] = {}
        return body

    found = with_other(whole, tmp_path, change)
    assert {item.name for item in found.settings} == {"risk.atr_multiple", "strategies.enabled"}
    assert next(item.b for item in found.settings if item.name == "risk.atr_multiple") == 3
    assert {item.name for item in found.differences} == {"code_sha256", "bars_sha256"}
    figures = {(item.column, item.name): item for item in found.figures}
    assert figures["debate", "total_return"].difference == pytest.approx(0.25)
    assert figures["debate", "trades"].difference == 0
    assert figures["buy_and_hold", "total_return"].b is None
    assert figures["buy_and_hold", "total_return"].difference is None
    skipped = figures["funnel", "skipped.already held or ordered"]
    assert (skipped.b, skipped.difference) == (0.0, -skipped.a)
    assert not found.nothing_differs


def test_a_decision_of_one_run_alone_comes_with_the_reason_of_the_other(whole, tmp_path):
    dropped: list[Body] = []

    def drop(kind: str, body: Body) -> Body | None:
        if kind == "cycle" and not dropped:
            dropped.append(body)
            return None
        return body

    found = with_other(whole, tmp_path / "1", drop)
    (lone,) = found.only_a
    gone = dropped[0]
    assert lone.cycle_id == gone["cycle_id"]
    assert lone.why == "the signal did not fire"
    assert found.only_b == ()

    def why(change: Change) -> str:
        number = len(list(tmp_path.iterdir()))

        def both(kind: str, body: Body) -> Body | None:
            same = kind == "cycle" and body["cycle_id"] == gone["cycle_id"]
            return None if same else change(kind, body)

        (lone,) = with_other(whole, tmp_path / f"w{number}", both).only_a
        return lone.why

    def skipped(kind: str, body: Body) -> Body:
        if kind == "slot" and body["as_of"] == gone["as_of"]:
            named = {"symbol": gone["symbol"], "strategy": gone["strategy"]}
            body["skipped"] = [{**named, "reason": "already held or ordered"}]
        return body

    def refused(kind: str, body: Body) -> Body:
        if kind == "slot" and body["as_of"] == gone["as_of"]:
            body["refused"] = {gone["symbol"]: "a bar is missing"}
        return body

    def no_slot(kind: str, body: Body) -> Body | None:
        return None if kind == "slot" and body["as_of"] == gone["as_of"] else body

    def unwatched(kind: str, body: Body) -> Body:
        if kind == "run":
            body["settings"]["strategies"]["enabled"] = ["sma_cross"]
        return body

    def elsewhere(kind: str, body: Body) -> Body:
        if kind == "run":
            body["symbols"] = ["MSFT"]
        return body

    assert why(skipped) == "already held or ordered"
    assert why(refused) == "a bar is missing"
    assert why(no_slot) == "it has no slot at that time"
    assert why(unwatched) == f"{gone['strategy']} does not look for entries there"
    assert why(elsewhere) == "AAPL is not among its symbols"


def test_a_real_change_of_a_setting_is_followed_down_to_the_decisions(whole, tmp_path):
    app, result = whole
    wide = opened(app.state_dir, "risk.atr_multiple=3")
    other = wide.backtest(start=date(2026, 6, 15), out=tmp_path)
    found = compare(app, result.run_id, str(tmp_path / other.run_id))
    assert [(item.name, item.a, item.b) for item in found.settings] == [("risk.atr_multiple", 2, 3)]
    assert {item.name for item in found.differences} == {"first", "slots"}
    assert found.changed
    assert {item.changed_first for item in found.changed} == {"evidence"}
    assert any(part.part == "levels" for item in found.changed for part in item.parts)
    assert {item.why for item in found.only_a} == {"it has no slot at that time"}


def test_the_paper_account_and_an_archived_one_are_runs_too(whole, tmp_path):
    app = opened(tmp_path / "state")
    with pytest.raises(UsageError, match="trader run --paper --once"):
        compare(app, "paper", "paper")
    app.run_once()
    app.run_once()
    app.run_once(restart_market=True)
    _, result = whole
    report = str(Path(result.report).parent)
    found = compare(app, "archive/1", report)
    assert {item.bar_at[:10] for item in found.changed} <= {"2026-07-02"}
    assert found.equal + len(found.changed) == found.a.decisions > 0
    assert {item.why for item in found.only_b} == {"it has no slot at that time"}
    figure = next(item for item in found.figures if item.name == "final_equity")
    assert (figure.column, figure.a) == ("debate", 100_000.0)
    assert compare(app, "paper", "paper").a.slots == 1


def test_an_unknown_run_is_a_usage_error_that_names_near_ones(whole):
    app, result = whole
    for name in (result.run_id[:-1] + "x", result.run_id[:6]):
        with pytest.raises(UsageError, match=f"did you mean {result.run_id}"):
            compare(app, result.run_id, name)
    for name in ("", "../..", "\0", "x" * 9000, "archive/7", str(app.state_dir)):
        with pytest.raises(UsageError):
            compare(app, name, result.run_id)


def test_a_ledger_that_was_changed_or_is_none_is_a_state_error(whole, tmp_path):
    app, result = whole
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "ledger.db").write_bytes(b"this is no database" * 500)
    with pytest.raises(StateError):
        compare(app, result.run_id, str(broken))
    Ledger(tmp_path / "empty" / "ledger.db").close()
    with pytest.raises(StateError, match="holds no run"):
        compare(app, result.run_id, str(tmp_path / "empty"))

    def halved(kind: str, body: Body) -> Body:
        return {"cycle_id": body["cycle_id"], "as_of": body["as_of"]} if kind == "cycle" else body

    with pytest.raises(StateError, match="not those of a run"):
        with_other(whole, tmp_path, halved)


def test_a_changed_row_is_found_before_anything_is_compared(whole, tmp_path):
    import sqlite3

    app, result = whole
    folder = rewritten(whole, tmp_path / OTHER)
    with sqlite3.connect(tmp_path / OTHER / "ledger.db") as database:
        database.execute("DROP TRIGGER records_never_change")
        database.execute("UPDATE records SET body = '{}' WHERE kind = 'result'")
    database.close()
    with pytest.raises(StateError, match="does not fit the chain"):
        compare(app, result.run_id, folder)


def test_rows_of_an_older_program_are_read_as_they_stand(whole, tmp_path):
    def older(kind: str, body: Body) -> Body:
        if kind == "cycle":
            for name in ("calls", "hearing", "fallback", "weighing", "sides", "approval"):
                body["debate"].pop(name, None)
            for turn in (*body["debate"]["arguments"], *body["debate"]["rebuttals"]):
                for claim in turn["claims"]:
                    claim.pop("upper_value")
                    claim.pop("when")
        if kind == "run":
            del body["settings"]["market"]
        return body

    found = with_other(whole, tmp_path, older)
    assert found.equal == len(whole[1].debates)
    assert all(item.name.startswith("market.") and item.b is None for item in found.settings)


@settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(dropped=st.sets(st.integers(0, 9)), changed=st.sets(st.integers(0, 9)))
def test_the_other_way_round_is_the_mirror_image(whole, tmp_path_factory, dropped, changed):
    count = -1

    def change(kind: str, body: Body) -> Body | None:
        nonlocal count
        if kind != "cycle":
            return body
        count += 1
        if count in dropped:
            return None
        if count in changed:
            body["risk"]["quantity"] = str(int(body["risk"]["quantity"]) + 1)
        return body

    app, result = whole
    total = len(result.debates)
    folder = rewritten(whole, tmp_path_factory.mktemp("runs"), change)
    there, back = compare(app, result.run_id, folder), compare(app, folder, result.run_id)
    gone = {number for number in dropped if number < total}
    assert len(there.only_a) == len(gone)
    assert len(there.changed) == len({n for n in changed if n < total} - gone)
    assert there.equal + len(there.changed) + len(there.only_a) == total
    assert [item.cycle_id for item in there.only_a] == [item.cycle_id for item in back.only_b]
    assert (there.only_b, back.only_a, there.equal) == ((), (), back.equal)
    assert [(p.a, p.b) for item in there.changed for p in item.parts] == [
        (p.b, p.a) for item in back.changed for p in item.parts
    ]
