"""Tests of whether the debate earns its cost, and of what models leave on the page."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from tests.trader.report.example import MODELS, by_models, report_contents
from tests.trader.report.reading import Element, read
from trader.core.decision import Decision
from trader.report.page import write_page
from trader.report.wording import number, percent

CONTENTS = report_contents()
MODELLED = by_models(report_contents(debates=6, sessions=80))
TREE = read(write_page(CONTENTS))
MODELLED_TREE = read(write_page(MODELLED))


def part(name: str, tree: Element = TREE) -> Element:
    return tree.one("section", id=name)


def body(table: Element) -> list[Element]:
    return list(table.one("tbody").all("tr"))


def test_it_is_the_first_part_of_the_page():
    first = next(TREE.one("main").all("section", class_="part"))
    assert first.attributes["id"] == "worth"
    assert first.one("h2").words == "Does the debate earn its cost?"


def test_every_column_and_every_difference_has_its_interval():
    columns, differences = part("worth").all("table", class_="spreads")
    found = CONTENTS.worth.intervals
    for row, column in zip(body(columns), CONTENTS.columns, strict=True):
        annual, ratio = found.columns[column.key].annual_return, found.columns[column.key].sharpe
        cells = [cell.words for cell in row.all("td")]
        assert row.one("th").words == column.label
        assert cells[0] == percent(annual.estimate, signed=True)
        assert cells[1] == (
            f"{number(100 * annual.low, signed=True)} to {number(100 * annual.high, signed=True)} %"
        )
        assert cells[2] == number(ratio.estimate)
        assert cells[3] == (
            f"{number(ratio.low, signed=True)} to {number(ratio.high, signed=True)}"
        )
    names = [row.one("th").words for row in body(differences)]
    assert names == ["minus without debate", "minus arbitrator alone"]
    for row, spread in zip(body(differences), found.differences.values(), strict=True):
        holds = spread.annual_return.holds_zero or spread.sharpe.holds_zero
        assert list(row.all("td"))[-1].words == ("yes" if holds else "no")


def test_an_interval_is_drawn_where_it_lies():
    """Left and right ends on one scale from the lowest to the highest end, zero among them."""
    table = next(part("worth").all("table", class_="spreads"))
    found = [CONTENTS.worth.intervals.columns[item.key].annual_return for item in CONTENTS.columns]
    low, high = min(0.0, *(f.low for f in found)), max(0.0, *(f.high for f in found))
    for row, item in zip(body(table), found, strict=True):
        style = row.one("span", class_="range").attributes["style"]
        left, right = (float(side.split(":")[1].rstrip("%")) for side in style.split(";"))
        assert left == round(100 * (item.low - low) / (high - low), 1)
        assert (
            100 - right == round(100 * (item.high - low) / (high - low), 1)
            or abs(100 - right - 100 * (item.high - low) / (high - low)) < 0.06
        )


def test_the_answers_stand_in_words_with_true_minus_signs():
    words = part("worth").words
    assert "this sample cannot tell" in words
    assert "No model was asked; rules cost nothing." in words
    assert not any(f" -{digit}" in words for digit in "0123456789")
    assert f"seed {CONTENTS.worth.intervals.seed}" in words
    assert "in blocks of 8" in words


def test_without_a_debate_the_page_says_so_and_shows_what_ran():
    bare = replace(
        CONTENTS,
        columns=CONTENTS.columns[2:],
        cycles=(),
        worth=replace(
            CONTENTS.worth,
            intervals=replace(CONTENTS.worth.intervals, differences={}),
            refusals=None,
            calibration=None,
            answers={},
        ),
    )
    tree = read(write_page(bare))
    assert "The debate was off" in part("worth", tree).words
    assert len(body(part("worth", tree).one("table"))) == 2
    assert "No debate was held." in part("refusals", tree).words
    assert "No debate was held." in part("confidence", tree).words


def test_every_refusal_is_listed_with_its_end_and_leads_to_its_debate():
    found = CONTENTS.worth.refusals
    sums, rows = part("refusals").all("table")
    total, *flags = body(sums)
    assert total.words.startswith(f"All refusals {found.total.trades} {found.total.won}")
    assert number(found.total.r, signed=True) in total.words
    assert {row.one("th").words for row in flags} == set(found.by_flag)
    for row, trade in zip(body(rows), found.trades, strict=True):
        assert unquote(row.one("a").attributes["href"]) == f"#{trade.cycle_id}"
        assert number(trade.r_multiple, signed=True) in row.words
        assert ", ".join(trade.flags) in row.words
    assert "Nothing that decides ever sees this" in part("refusals").words


def test_a_refused_trade_that_is_open_or_repeats_says_so():
    found = CONTENTS.worth.refusals
    first = replace(
        found.trades[0], is_open=True, exited_at=None, left_by="", repeats=True, r_multiple=None
    )
    changed = replace(CONTENTS.worth, refusals=replace(found, trades=(first,)))
    tree = read(write_page(replace(CONTENTS, worth=changed)))
    words = list(part("refusals", tree).all("table"))[1].words
    assert "still open" in words
    assert "left out of the sums: held already" in words
    assert "no risk" in words


def test_the_reliability_table_counts_every_verdict():
    rows = body(part("confidence").one("table"))
    bins = CONTENTS.worth.calibration.bins
    for row, item in zip(rows, bins, strict=True):
        cells = [cell.words for cell in row.all("td")]
        assert cells[0] == f"{item.count}"
        assert cells[2] == ("n/a" if item.won is None else percent(item.won, 0))
    assert "too few to judge it by" in part("confidence").words


def debate(cycle_id: str) -> Element:
    return MODELLED_TREE.one("details", id=cycle_id)


def test_a_model_debate_names_who_spoke_and_every_call():
    for cycle in MODELLED.cycles:
        words = debate(cycle.cycle_id).words
        if cycle.debate.fallback:
            assert f"Rules debated in place of the model : {cycle.debate.fallback}" in words
            assert (
                "rules in place of the model" in next(debate(cycle.cycle_id).all("summary")).words
            )
            continue
        assert f"bull, bear: {MODELS['bull']}; arbitrator: {MODELS['arbitrator']}" in words
        calls = body(debate(cycle.cycle_id).one("table", class_="calls"))
        hearing = len(cycle.debate.hearing.calls) if cycle.debate.hearing else 0
        assert len(calls) == len(cycle.debate.calls) + hearing
        assert cycle.debate.calls[0].call_id in calls[0].words


def test_the_weighing_the_sides_and_the_answer_of_a_person_are_shown():
    cycle = next(cycle for cycle in MODELLED.cycles if cycle.debate.approval)
    block = debate(cycle.cycle_id)
    weighing = cycle.debate.weighing
    assert f"{weighing.decision} at a confidence of 0.62, resting on B1, R2." in block.words
    assert weighing.rationale in block.words
    assert [row.words for row in body(block.one("table", class_="sides"))] == [
        "Bull 4 1 0 80 %",
        "Bear 2 0 1 67 %",
    ]
    assert "A person approved it." in block.words


def test_claims_carry_the_numbers_that_a_weighing_rests_on():
    cycle = MODELLED.cycles[2]
    rounds = next(debate(cycle.cycle_id).all("div", class_="rounds"))
    for letter, turns in (("B", cycle.debate.arguments), ("R", cycle.debate.rebuttals)):
        stance = "bull" if letter == "B" else "bear"
        names = [
            item.one("small").one("b").words
            for turn in rounds.all("div", class_=stance)
            for item in turn.all("li")
        ]
        count = sum(len(turn.claims) for turn in turns)
        assert names == [f"{letter}{number}" for number in range(1, count + 1)]


def test_a_hearing_says_what_came_of_it():
    cycle = next(cycle for cycle in MODELLED.cycles if cycle.debate.hearing)
    stands = cycle.debate.hearing.verdict.decision is Decision.GO
    words = debate(cycle.cycle_id).words
    assert ("The GO stands." if stands else "It took the GO away.") in words
    assert "Held again with two papers." in words
    other = Decision.NO_GO if stands else Decision.GO
    hearing = replace(
        cycle.debate.hearing, verdict=replace(cycle.debate.hearing.verdict, decision=other)
    )
    turned = replace(cycle, debate=replace(cycle.debate, hearing=hearing))
    page = write_page(replace(MODELLED, cycles=(turned,)))
    assert ("It took the GO away." if stands else "The GO stands.") in read(page).text


def test_a_debate_that_broke_off_keeps_what_was_said():
    cycle = MODELLED.cycles[2]
    broken = replace(
        cycle,
        debate=replace(cycle.debate, rebuttals=(), arguments=cycle.debate.arguments[:1], sides=()),
    )
    tree = read(write_page(replace(MODELLED, cycles=(broken,))))
    assert cycle.debate.arguments[0].thesis in tree.text
    assert not list(tree.all("div", class_="bear"))


def test_the_knowledge_of_the_model_and_its_spend_are_told():
    words = part("worth", MODELLED_TREE).words
    assert "30 calls, the tokens of 3 counted by us" in words
    assert "up to 2025-09-30 the model may have read about" in words.lower()
