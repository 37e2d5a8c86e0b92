"""Tests of the whole page: complete, safe, self-contained, and true to the contents."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trader.report.example import by_models, report_contents, with_words, without_trading
from tests.trader.report.reading import Element, read
from trader.core.decision import Debate, Decision
from trader.report.contents import ReportContents
from trader.report.page import POLICY, write_page
from trader.report.wording import fact, number

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)></td></details>\"' &amp; //x"
SMALL = report_contents(debates=2, sessions=40)
MODELLED = by_models(report_contents(debates=6, sessions=80))


@pytest.fixture(scope="module")
def contents() -> ReportContents:
    return report_contents()


@pytest.fixture(scope="module")
def page(contents: ReportContents) -> str:
    return write_page(contents)


@pytest.fixture(scope="module")
def tree(page: str) -> Element:
    return read(page)


@pytest.fixture(scope="module")
def blocks(tree: Element) -> dict[str, Element]:
    """Every debate on the page by its anchor."""
    return blocks_of(tree)


def blocks_of(tree: Element) -> dict[str, Element]:
    return {item.attributes["id"]: item for item in tree.all("details", class_="debate")}


THIN = {
    "no bar": without_trading(points=0),
    "one bar": without_trading(points=1),
    "flat": without_trading(points=40),
    "a month": without_trading(points=29, move=10.0),
    "a quarter": without_trading(points=62, move=10.0),
    "no column": replace(without_trading(points=0), columns=()),
    "two debates": SMALL,
    "models": MODELLED,
}


@pytest.mark.parametrize("name", THIN)
def test_page_is_well_formed_however_thin_the_contents(name: str) -> None:
    check_structure(write_page(THIN[name]))


def test_page_is_well_formed_with_thirty_debates(page: str) -> None:
    check_structure(page)


def check_structure(page: str) -> None:
    """Balanced, ids unique, links resolve, tables have captions and scopes, nothing reads None."""
    tree = read(page)
    ids = Counter(element.attributes["id"] for element in tree.all() if "id" in element.attributes)
    assert [name for name, count in ids.items() if count > 1] == []
    assert not [name for name in ids if re.search(r"\s", name)]
    for link in tree.all("a"):
        assert link.attributes["href"][0] == "#"
        assert unquote(link.attributes["href"][1:]) in ids
        assert link.words
    for table in tree.all("table"):
        assert table.one("caption").words
        assert all(cell.attributes.get("scope") in {"row", "col"} for cell in table.all("th"))
        assert all(cell.words for cell in table.one("thead").all("th"))
    words = tree.one("body").text
    assert not re.search(r"\b(None|nan|NaN|inf|Infinity)\b", words)
    assert not re.search(r"\b(None|nan|NaN|inf)\b", " ".join(styles(tree)))


def styles(tree: Element) -> list[str]:
    return [element.attributes.get("style", "") for element in tree.all()]


def test_page_asks_for_nothing_from_anywhere(page: str, tree: Element) -> None:
    policy = next(tree.all("meta", **{"http-equiv": "Content-Security-Policy"}))
    assert policy.attributes["content"] == POLICY
    assert "default-src 'none'" in POLICY
    assert "http://" not in page
    assert "https://" not in page
    for element in tree.all():
        assert not {"src", "srcset", "action", "data", "poster"} & set(element.attributes)
        assert not any(name.startswith("on") for name in element.attributes)
        assert element.attributes.get("rel") != "stylesheet"
        assert "//" not in element.attributes.get("href", "")
    assert next(tree.all("link")).attributes == {"rel": "icon", "href": "data:,"}
    written = "".join(str(child) for style in tree.all("style") for child in style.children)
    assert "url(" not in written
    assert "@import" not in written
    assert "//" not in written
    code = "".join(str(child) for script in tree.all("script") for child in script.children)
    assert not re.search(r"fetch|XMLHttpRequest|import\s|innerHTML|eval", code)


def test_markup_in_any_words_is_shown_as_text() -> None:
    page = write_page(with_words(SMALL, HOSTILE))
    check_structure(page)
    tree = read(page)
    assert [script.attributes.get("type") for script in tree.all("script")] == [
        "application/json",
        None,
    ]
    assert not list(tree.all("img"))
    plain = Counter(element.name for element in read(write_page(with_words(SMALL, "word"))).all())
    assert Counter(element.name for element in tree.all()) == plain
    for turn in tree.all("div", class_="bull"):
        assert HOSTILE in turn.text
    assert HOSTILE in tree.one("ul", class_="notices").text
    assert HOSTILE in tree.one("table", class_="results").text


@settings(deadline=None, max_examples=15)
@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs"]), min_size=1, max_size=60))
def test_any_words_come_back_as_they_were(words: str) -> None:
    tree = read(write_page(with_words(SMALL, words)))
    quotes = [quote.text for quote in tree.all("blockquote")]
    assert quotes == [words] * sum(len(cycle.debate.rebuttals) for cycle in SMALL.cycles)


def test_characters_that_no_file_can_hold_are_replaced() -> None:
    page = write_page(with_words(SMALL, "half \ud800 nul \x00 escape \x1b[31m"))
    assert "half � nul � escape �[31m" in page
    page.encode("utf-8")


@pytest.mark.parametrize("mark", ["\u202e", "\u2066", "\u200f", "\u061c", "\u200b", "\ufeff"])
def test_marks_that_turn_or_hide_what_is_read_are_shown(mark: str) -> None:
    page = write_page(with_words(MODELLED, f"buy {mark}lles"))
    assert mark not in page
    assert "buy �lles" in page


def test_markup_of_models_is_shown_as_text_wherever_they_speak() -> None:
    page = write_page(with_words(MODELLED, HOSTILE))
    check_structure(page)
    tree = read(page)
    assert not list(tree.all("img"))
    plain = read(write_page(with_words(MODELLED, "word")))
    assert Counter(element.name for element in tree.all()) == Counter(
        element.name for element in plain.all()
    )
    for name in ("weighing", "calls", "asked"):
        assert HOSTILE in next(tree.all(class_=name)).text


def test_every_cycle_has_its_anchor_and_its_words(
    contents: ReportContents, blocks: dict[str, Element]
) -> None:
    assert len(contents.cycles) == 30
    for cycle in contents.cycles:
        debate = blocks[cycle.cycle_id]
        verdict = cycle.debate.verdict
        summary = next(debate.all("summary"))
        assert summary.words.startswith(f"{verdict.decision.value} {cycle.as_of:%Y-%m-%d} AAPL")
        assert f"confidence {number(verdict.confidence)}" in summary.words
        assert f"reward:risk {number(verdict.reward_risk_ratio)}" in summary.words
        assert verdict.rationale in summary.words
        assert cycle.candidate.signal.reason in debate.words


def test_every_trade_is_listed_and_leads_to_its_debate(
    contents: ReportContents, tree: Element
) -> None:
    table = tree.one("section", id="trades").one("table")
    rows = list(table.one("tbody").all("tr"))
    assert len(rows) == len(contents.trades) > 5
    for row, trade in zip(rows, contents.trades, strict=True):
        assert unquote(row.one("a").attributes["href"]) == f"#{trade.trade_id}"
        assert number(trade.profit, signed=True) in row.words
        assert number(trade.r_multiple, signed=True) in row.words
        assert trade.why_entered in row.words
        assert ("still open" if trade.is_open else trade.why_left) in row.words
    total = sum(trade.profit or 0.0 for trade in contents.trades)
    assert number(total, signed=True) in table.one("tfoot").words


def test_open_trade_and_trade_without_a_record_are_named_as_such() -> None:
    base = report_contents(debates=6)
    trade = replace(
        report_contents().trades[0],
        trade_id="unknown",
        exited_at=None,
        exit_price=None,
        is_open=True,
        profit=None,
        r_multiple=None,
    )
    tree = read(write_page(replace(base, trades=(trade,))))
    row = next(tree.one("section", id="trades").one("tbody").all("tr"))
    assert "still open" in row.words
    assert "not recorded" in row.words
    assert row.words.count("n/a") == 2
    check_structure(write_page(replace(base, trades=(trade,))))


def test_rounds_alternate_bull_bear_and_claims_carry_their_mark(
    contents: ReportContents, tree: Element, blocks: dict[str, Element]
) -> None:
    for cycle in contents.cycles:
        turns = list(blocks[cycle.cycle_id].one("div", class_="rounds").all("div", class_="turn"))
        assert [turn.attributes["class"] for turn in turns] == ["turn bull", "turn bear"] * 2
        said = [
            turn
            for pair in zip(cycle.debate.arguments, cycle.debate.rebuttals, strict=True)
            for turn in pair
        ]
        for shown, turn in zip(turns, said, strict=True):
            marks = [mark.words for mark in shown.all("span", class_="mark")]
            signs = {"verified": "✓", "contradicted": "✗", "unverifiable": "?"}
            assert marks == [f"{signs[claim.status]} {claim.status}" for claim in turn.claims]
            assert all(claim.text in shown.words for claim in turn.claims)
    statuses = {mark.words for mark in tree.all("span", class_="mark")}
    assert {"✓ verified", "✗ contradicted", "? unverifiable"} <= statuses


def test_evidence_of_a_claim_leads_to_the_row_with_its_value(
    contents: ReportContents, tree: Element, blocks: dict[str, Element]
) -> None:
    rows = {row.attributes["id"]: row for row in tree.all("tr") if "id" in row.attributes}
    assert len(rows) == sum(len(cycle.evidence) for cycle in contents.cycles)
    for cycle in contents.cycles:
        facts = {item.evidence_id: item for item in cycle.evidence}
        links = [link for claims in blocks[cycle.cycle_id].all("small") for link in claims.all("a")]
        assert links
        for link in links:
            row = rows[unquote(link.attributes["href"][1:])]
            item = facts[link.words]
            assert row.words.startswith(f"{item.evidence_id} {item.name}")
            assert fact(item) in row.words
            assert link.attributes["title"] == f"{item.name} {fact(item)}"


def test_evidence_that_was_not_given_is_said_to_be_missing(
    contents: ReportContents, blocks: dict[str, Element]
) -> None:
    cycle = next(
        cycle
        for cycle in contents.cycles
        for turn in cycle.debate.arguments
        for claim in turn.claims
        if claim.evidence_ids == ("E99",)
    )
    assert "E99 (no such evidence)" in blocks[cycle.cycle_id].words


def test_rules_gate_and_order_are_told_as_they_were(
    contents: ReportContents, blocks: dict[str, Element]
) -> None:
    kinds = set()
    for cycle in contents.cycles:
        debate = blocks[cycle.cycle_id]
        rows = list(debate.one("table", class_="rules").one("tbody").all("tr"))
        for row, rule in zip(rows, cycle.debate.verdict.rules, strict=True):
            cells = [cell.words for cell in row.all("td")]
            assert cells == [rule.value, rule.limit, "pass" if rule.passed else "fail"]
        for flag in (*cycle.debate.verdict.flags, *cycle.risk.reasons):
            assert f"{flag.code.value} {flag.detail}" in debate.words
        if cycle.risk.approved:
            assert f"Approved : {cycle.risk.quantity} shares" in debate.words
        else:
            assert "Refused" in debate.words
        if cycle.intent is None:
            assert "No order" in debate.words
        else:
            assert cycle.intent.client_order_id in debate.words
            assert number(float(cycle.intent.stop_loss_price or 0)) in debate.words
        refusal = contents.refusals.get(cycle.cycle_id, "")
        if refusal:
            assert f"The broker refused : {refusal}" in debate.words
        kinds.add((cycle.debate.verdict.decision, cycle.risk.approved, bool(refusal)))
    assert kinds == {
        (Decision.GO, True, False),
        (Decision.GO, True, True),
        (Decision.GO, False, False),
        (Decision.NO_GO, False, False),
    }


def test_debate_that_was_never_held_says_so() -> None:
    cycle = SMALL.cycles[0]
    verdict = replace(
        cycle.debate.verdict,
        rules=(),
        flags=(),
        entry_price=None,
        stop_price=None,
        target_price=None,
        reward_risk_ratio=None,
        expected_value_r=None,
    )
    for debater, words in (("off", "No debate was held."), ("rules", "Neither side was heard.")):
        silent = replace(
            cycle,
            debate=Debate(debater=debater, arguments=(), rebuttals=(), verdict=verdict),
            evidence=(),
        )
        page = write_page(replace(SMALL, cycles=(silent,)))
        check_structure(page)
        assert words in blocks_of(read(page))[silent.cycle_id].words


def test_filter_offers_all_go_and_no_go_with_their_counts(
    contents: ReportContents, tree: Element
) -> None:
    go = sum(cycle.debate.verdict.decision is Decision.GO for cycle in contents.cycles)
    labels = [label.words for label in tree.one("fieldset").all("label")]
    assert labels == ["All 30", f"GO {go}", f"NO_GO {30 - go}"]
    assert len(list(tree.all("details", class_="go"))) == go
    assert len(list(tree.all("details", class_="no-go"))) == 30 - go
    checked = [box.attributes["id"] for box in tree.all("input") if "checked" in box.attributes]
    assert checked == ["show-all"]


def test_head_says_paper_where_the_data_come_from_and_who_debated(
    contents: ReportContents, tree: Element
) -> None:
    head = tree.one("header").words
    for words in (
        "debate-trader 0.1.0 PAPER",
        "not advice",
        contents.run_id,
        contents.period,
        "AAPL splits and dividends",
        contents.source.sha256[:12],
        "rules, no model",
        "slippage 5 bps a side",
        contents.notices[0],
    ):
        assert words in head
    assert contents.ledger_head in tree.one("footer").words


def test_same_contents_give_the_same_bytes(page: str) -> None:
    assert write_page(report_contents()).encode() == page.encode()


def test_a_column_with_other_points_than_the_times_is_refused() -> None:
    broken = replace(SMALL, times=SMALL.times[:-1])
    with pytest.raises(ValueError, match="40 points for 39 times"):
        write_page(broken)


def test_hourly_reports_show_the_hour() -> None:
    start = SMALL.times[0]
    hourly = replace(
        SMALL,
        times=tuple(start + timedelta(hours=index) for index in range(40)),
        cycles=(replace(SMALL.cycles[0], as_of=start + timedelta(hours=3)),),
    )
    tree = read(write_page(hourly))
    summary = next(tree.one("details", class_="debate").all("summary"))
    assert f"{start + timedelta(hours=3):%Y-%m-%d %H:%M}" in summary.words


def test_a_page_of_a_hundred_debates_stays_small() -> None:
    assert len(write_page(report_contents(debates=100)).encode()) < 3_000_000
