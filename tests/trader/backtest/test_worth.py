"""What the debate is worth, in numbers and in sentences that do not say more than they know."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from tests.trader.report.example import report_contents
from trader.backtest.worth import worth_of
from trader.core.decision import Decision, FlagCode, RiskFlag
from trader.core.ports import Spend

CONTENTS = report_contents()
MODEL = Spend(
    calls=150, input_tokens=240_000, output_tokens=60_000, estimated=2, cost=Decimal("0.42")
)


def worth(contents=CONTENTS, **changes):
    given = {
        "cycles": contents.cycles,
        "trades": contents.trades,
        "followed": contents.worth.refusals.trades,
        "spend": Spend(),
        "modelled": False,
        "cutoff": None,
        "periods_per_year": 252.0,
    }
    return worth_of(contents.columns, **{**given, **changes})


def test_it_compares_the_debate_with_everything_simpler_and_the_market_with_itself():
    found = worth()
    assert list(found.intervals.columns) == [column.key for column in CONTENTS.columns]
    assert list(found.intervals.differences) == ["without_debate", "arbitrator_alone"]
    assert "this sample cannot tell" in found.answers["against without debate"]
    equal = [replace(CONTENTS.columns[0], key=key) for key in ("debate", "arbitrator_alone")]
    told = worth_of(
        equal,
        cycles=(),
        trades=(),
        followed=(),
        spend=Spend(),
        modelled=False,
        cutoff=None,
        periods_per_year=252.0,
    )
    assert told.answers["against debate"] == "the same in every period"
    assert told.go_share is None


def test_an_edge_beyond_chance_is_said_plainly_and_so_is_a_loss():
    base = CONTENTS.columns[0]
    rising = tuple(100_000.0 * 1.002 ** (n + 1) + 60.0 * (n % 2) for n in range(400))
    falling = tuple(100_000.0 * 0.998 ** (n + 1) + 60.0 * (n % 2) for n in range(400))
    for mine, theirs, words in (
        (rising, falling, "the debate did better"),
        (falling, rising, "the debate did worse"),
    ):
        columns = (
            replace(base, equity=mine),
            replace(base, key="without_debate", label="without debate", equity=theirs),
        )
        found = worth(replace(CONTENTS, columns=columns))
        assert found.answers["against without debate"].endswith(words)


def test_few_periods_give_no_conclusion():
    columns = tuple(replace(column, equity=column.equity[:10]) for column in CONTENTS.columns)
    found = worth(replace(CONTENTS, columns=columns))
    assert found.answers["against without debate"] == "too few periods to tell"


def test_without_a_debate_there_is_nothing_to_ask():
    found = worth_of(
        CONTENTS.columns[2:],
        cycles=(),
        trades=CONTENTS.trades,
        followed=(),
        spend=Spend(),
        modelled=False,
        cutoff=None,
        periods_per_year=252.0,
    )
    assert (found.refusals, found.calibration, found.knowledge, found.go_share) == (None,) * 4
    assert found.answers == {}
    assert set(found.intervals.columns) == {"without_debate", "buy_and_hold"}


def test_spend_is_told_in_all_and_for_each_decision():
    assert worth().answers["spend"] == "no model was asked; rules cost nothing"
    told = worth(spend=MODEL, modelled=True).answers["spend"]
    assert told == (
        "150 calls, the tokens of 2 counted by us, 240,000 tokens in, 60,000 out, 0.4200 USD; "
        "a decision took 5.0 calls, 8,000 tokens in, 2,000 out, 0.0140 USD"
    )
    assert worth(modelled=True).answers["spend"] == "no model was called"
    assert "USD; a decision" not in worth(spend=MODEL, modelled=True, cycles=()).answers["spend"]


def test_rules_that_stood_in_for_the_model_are_counted():
    first, second, *others = CONTENTS.cycles
    failed = replace(first, debate=replace(first.debate, fallback="no answer"))
    found = worth(cycles=(failed, second, *others))
    assert found.answers["fallback"] == "rules debated 1 of 30 in place of the model"
    assert "fallback" not in worth().answers


def test_an_unknown_cutoff_is_safe_for_no_day():
    found = worth(modelled=True)
    assert found.knowledge.decisions_before == found.knowledge.decisions == 30
    assert "no decision is safe" in found.answers["knowledge"]
    assert worth().knowledge is None


def test_a_cutoff_divides_decisions_trades_and_profit_by_the_day_of_the_decision():
    middle = CONTENTS.cycles[14].as_of.date()
    found = worth(modelled=True, cutoff=middle)
    early = {cycle.cycle_id for cycle in CONTENTS.cycles[:15]}
    trades = [trade for trade in CONTENTS.trades if trade.trade_id in early]
    known = found.knowledge
    assert (known.decisions_before, known.trades_before) == (15, len(trades))
    assert known.profit_before == pytest.approx(sum(trade.profit for trade in trades))
    assert known.profit == pytest.approx(sum(trade.profit for trade in CONTENTS.trades))
    assert (
        f"15 of 30 decisions, {len(trades)} of {len(CONTENTS.trades)} trades"
        in (found.answers["knowledge"])
    )
    assert worth(modelled=True, cutoff=date(2020, 1, 1)).knowledge.decisions_before == 0


def test_a_debate_that_always_says_the_same_is_named():
    def all_of(decision, count):
        cycles = tuple(
            replace(
                cycle,
                debate=replace(
                    cycle.debate, verdict=replace(cycle.debate.verdict, decision=decision)
                ),
            )
            for cycle in CONTENTS.cycles[:count]
        )
        return worth(cycles=cycles)

    for decision, share in ((Decision.GO, 1.0), (Decision.NO_GO, 0.0)):
        found = all_of(decision, 10)
        assert (found.collapsed, found.go_share) == (True, share)
        assert f"all 10 debates ended in {decision}" in found.answers["verdicts"]
        assert not all_of(decision, 9).collapsed
    assert not worth().collapsed


def test_a_debate_that_broke_off_is_no_opinion():
    """Endpoint, budget and unusable replies refuse whatever is debated: told apart, not judged."""
    flag = RiskFlag(code=FlagCode.BUDGET_EXHAUSTED, detail="bull: spent")
    refused = [
        cycle for cycle in CONTENTS.cycles if cycle.debate.verdict.decision is Decision.NO_GO
    ]
    ended = {trade.cycle_id for trade in CONTENTS.worth.refusals.trades if not trade.is_open}
    broken = next(cycle for cycle in refused if cycle.cycle_id in ended)
    verdict = replace(broken.debate.verdict, flags=(flag,))
    cycles = tuple(
        replace(cycle, debate=replace(cycle.debate, verdict=verdict)) if cycle is broken else cycle
        for cycle in CONTENTS.cycles
    )
    followed = tuple(
        replace(trade, flags=("BUDGET_EXHAUSTED",), profit=-12.5, r_multiple=-0.5)
        if trade.cycle_id == broken.cycle_id
        else trade
        for trade in CONTENTS.worth.refusals.trades
    )
    found, before = worth(cycles=cycles, followed=followed), worth()
    assert found.calibration.verdicts == before.calibration.verdicts - 1
    assert found.calibration.left_out == before.calibration.left_out + 1
    assert found.refusals.no_go == before.refusals.no_go
    assert found.answers["refusals"].endswith(
        "; 1 of them because the debate failed, not because it argued: -0.50 R, -12.50 USD"
    )
    assert found.answers["verdicts"].endswith(", 1 NO_GO because the debate failed")
    all_broken = tuple(
        replace(cycle, debate=replace(cycle.debate, verdict=verdict)) for cycle in CONTENTS.cycles
    )
    assert not worth(cycles=all_broken).collapsed  # an outage is no habit of the debate


def test_confidence_is_judged_by_the_real_trade_where_there_is_one():
    found = worth()
    closed = [trade for trade in CONTENTS.trades if not trade.is_open]
    shadows = [trade for trade in CONTENTS.worth.refusals.trades if not trade.is_open]
    assert found.calibration.verdicts == len(closed) + len(shadows)
    assert found.calibration.left_out == 30 - found.calibration.verdicts
    won = sum(trade.profit > 0 for trade in closed)
    won += sum(trade.profit_per_share > 0 for trade in shadows)
    assert found.calibration.won == won
    assert "too few to judge it by" in found.answers["confidence"]


def test_a_verdict_whose_real_trade_is_open_is_left_out():
    shadow, *others = CONTENTS.worth.refusals.trades
    row = replace(CONTENTS.trades[0], trade_id=shadow.cycle_id, is_open=True, profit=5.0)
    open_one = worth(trades=(row,), followed=(shadow, *others)).calibration
    assert (
        open_one.verdicts == worth(trades=(), followed=(shadow, *others)).calibration.verdicts - 1
    )


def test_what_refusals_cost_or_saved_is_a_number_with_its_word():
    trades = CONTENTS.worth.refusals.trades
    for sign, word in ((1.0, "cost"), (-1.0, "saved")):
        turned = tuple(
            replace(trade, profit=sign * 100.0, r_multiple=sign, profit_per_share=sign)
            for trade in trades
        )
        told = worth(followed=turned).answers["refusals"]
        assert told.endswith(f"USD at the gate's sizes, which the refusals {word}")
        assert f"{sign * len(trades):+.2f} R" in told
    assert worth(followed=()).answers["refusals"] == "no refused trade could be followed"
