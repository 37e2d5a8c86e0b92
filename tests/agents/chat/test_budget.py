"""Budgets: no call whose worst case does not fit, exact sums, and what failures cost."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.chat.asking import most_prompt_tokens
from agents.chat.budget import Budget, BudgetedChat, BudgetLimits, Prices
from agents.chat.calls import note_usage, usage_of
from agents.chat.capability import Step
from agents.chat.recorded_chat import Meter, RecordedChat, RecordingChat
from agents.chat.store import Amount, ChatStore
from tests.agents.chat.scripted import PROMPT, SPEC, Scripted, asks, usage
from trader.core.config import Models
from trader.core.config.models import Budget as BudgetSettings
from trader.core.errors import (
    BudgetError,
    CutReplyError,
    EndpointError,
    RefusedReplyError,
    TimedOutError,
)
from trader.core.ports import ChatReply, Prompt, Usage

ROOT = Path(__file__).parents[3]
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = "2026-03-02"
PRICES = Prices(usd_per_million_input=Decimal("0.15"), usd_per_million_output=Decimal("0.6"))
PLENTY = dict.fromkeys(
    ("tokens_per_call", "tokens_per_decision", "tokens_per_run", "tokens_per_day"), 10**9
) | dict.fromkeys(("usd_per_call", "usd_per_decision", "usd_per_run", "usd_per_day"), 1e6)


def budget(store: ChatStore | None = None, **limits: float) -> Budget:
    settings = BudgetSettings.model_validate(PLENTY | limits)
    return Budget(BudgetLimits.of(settings), store or ChatStore(None), now=lambda: NOON)


def tokens(number: int) -> Amount:
    return Amount(input_tokens=number)


def dollars(number: str) -> Amount:
    return Amount(cost=Decimal(number))


# limits


def test_thirty_thousand_a_call_and_fifty_in_all_is_one_call_and_an_exact_sum():
    store = ChatStore(None)
    spent = budget(store, tokens_per_run=50_000)
    first = spent.reserve("a", Amount(input_tokens=28_800, output_tokens=1_200))
    spent.settle(first, Amount(input_tokens=28_800, output_tokens=1_200))
    with pytest.raises(BudgetError) as caught:
        spent.reserve("b", tokens(30_000))
    assert str(caught.value) == (
        "this call may take 30,000 tokens, and of 50,000 for one run 30,000 are spent "
        "(models.budget.tokens_per_run)"
    )
    assert store.spent(DAY) == Amount(input_tokens=28_800, output_tokens=1_200)


@pytest.mark.parametrize("scope", ["call", "decision", "run", "day"])
def test_each_scope_has_its_limit_of_tokens(scope):
    spent = budget(**{f"tokens_per_{scope}": 1_000})
    if scope == "call":
        spent.reserve("a", tokens(1_000))
    else:
        spent.reserve("a", tokens(600))
        spent.reserve("a", tokens(400))
    with pytest.raises(BudgetError, match=rf"for one {scope} .*\(models.budget.tokens_per_{scope}"):
        spent.reserve("a", tokens(1_001 if scope == "call" else 1))


@pytest.mark.parametrize("scope", ["call", "decision", "run", "day"])
def test_each_scope_has_its_limit_of_money(scope):
    spent = budget(**{f"usd_per_{scope}": 0.3})
    spent.reserve("a", dollars("0.3" if scope == "call" else "0.1"))
    if scope != "call":
        spent.reserve("a", dollars("0.2"))  # 0.1 + 0.2 is 0.3 here
    with pytest.raises(BudgetError) as caught:
        spent.reserve("a", dollars("0.300001" if scope == "call" else "0.000001"))
    assert f"of 0.3 USD for one {scope} {'0' if scope == 'call' else '0.3'} are spent" in str(
        caught.value
    )


@pytest.mark.parametrize("scope", ["decision", "run", "day"])
def test_what_was_set_aside_and_not_used_can_be_spent(scope):
    spent = budget(**{f"tokens_per_{scope}": 1_000})
    spent.settle(spent.reserve("a", tokens(1_000)), tokens(400))
    spent.reserve("a", tokens(600))
    with pytest.raises(BudgetError, match=f"for one {scope} 1,000 are spent"):
        spent.reserve("a", tokens(1))


def test_decisions_do_not_share_their_budget():
    spent = budget(tokens_per_decision=1_000)
    spent.reserve("a", tokens(1_000))
    spent.reserve("b", tokens(1_000))
    with pytest.raises(BudgetError, match="for one decision 1,000 are spent"):
        spent.reserve("a", tokens(1))


def test_runs_of_one_day_share_the_day_and_midnight_gives_a_new_one():
    store, now = ChatStore(None), [NOON]
    limits = BudgetLimits.of(BudgetSettings.model_validate(PLENTY | {"tokens_per_day": 1_000}))
    first, second = (Budget(limits, store, now=lambda: now[0]) for _ in range(2))
    first.reserve("a", tokens(700))
    with pytest.raises(BudgetError, match="for one day 700 are spent"):
        second.reserve("b", tokens(400))
    now[0] = datetime(2026, 3, 2, 23, 30, tzinfo=timezone(timedelta(hours=-5)))  # 04:30 UTC
    late = second.reserve("b", tokens(400))
    assert late.day == "2026-03-03"


def test_a_reservation_is_settled_on_the_day_it_was_made():
    store, now = ChatStore(None), [NOON]
    limits = BudgetLimits.of(BudgetSettings.model_validate(PLENTY))
    spent = Budget(limits, store, now=lambda: now[0])
    made = spent.reserve("a", tokens(900))
    now[0] += timedelta(days=1)
    spent.settle(made, tokens(400))
    assert store.spent(DAY) == tokens(400)
    assert store.spent("2026-03-03") == Amount()


def test_a_refused_reservation_sets_nothing_aside():
    store = ChatStore(None)
    spent = budget(store, tokens_per_day=1_000, tokens_per_run=2_000)
    for _ in range(5):
        with pytest.raises(BudgetError):
            spent.reserve("a", tokens(1_500))
    spent.reserve("a", tokens(1_000))
    assert store.spent(DAY) == tokens(1_000)


def test_a_run_that_ends_before_it_settles_leaves_its_reservation_counted(tmp_path):
    path = tmp_path / "chats.db"
    budget(ChatStore(path), tokens_per_day=1_000).reserve("a", tokens(800))  # and is gone
    with pytest.raises(BudgetError, match="for one day 800 are spent"):
        budget(ChatStore(path), tokens_per_day=1_000).reserve("a", tokens(300))


STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 400),
        st.integers(0, 400),
        st.fractions(0, 1),  # what of it was used in the end
        st.booleans(),  # whether it is settled before the next call
    ),
    max_size=40,
)


@given(steps=STEPS, again=st.integers(0, 40))
def test_nothing_is_ever_spent_beyond_a_limit_and_sums_are_exact(steps, again):
    """A second run on the same day begins at step `again`."""
    limits = {
        "tokens_per_call": 600,
        "tokens_per_decision": 1_500,
        "tokens_per_run": 2_000,
        "tokens_per_day": 2_500,
        "usd_per_call": 0.0003,
        "usd_per_decision": 0.0006,
        "usd_per_run": 0.0008,
        "usd_per_day": 0.001,
    }
    store = ChatStore(None)
    kept: list[tuple[int, str, Amount]] = []  # run, decision, settled or still set aside
    waiting = []
    runs = [budget(store, **limits), budget(store, **limits)]
    for number, (subject, into, out, share, at_once) in enumerate(steps):
        run = int(number >= again)
        try:
            made = runs[run].reserve(subject, PRICES.amount(into, out))
        except BudgetError:
            continue
        used = PRICES.amount(int(into * share), int(out * share))
        if at_once:
            runs[run].settle(made, used)
        else:
            waiting.append((len(kept), run, made, used))
        kept.append((run, subject, used if at_once else made.amount))
        total = sum((amount for *_, amount in kept), Amount())
        assert store.spent(DAY) == total
        assert total.tokens <= 2_500
        assert total.cost <= Decimal("0.001")
        mine = [(who, amount) for by, who, amount in kept if by == run]
        in_run = sum((amount for _, amount in mine), Amount())
        assert in_run.tokens <= 2_000
        assert in_run.cost <= Decimal("0.0008")
        in_decision = sum((amount for who, amount in mine if who == subject), Amount())
        assert in_decision.tokens <= 1_500
        assert in_decision.cost <= Decimal("0.0006")
        assert made.amount.tokens <= 600
    for place, run, made, used in waiting:
        runs[run].settle(made, used)
        kept[place] = (*kept[place][:2], used)
    assert store.spent(DAY) == sum((amount for *_, amount in kept), Amount())


RACE = """
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from agents.chat.budget import SCOPES, Budget, BudgetLimits
from agents.chat.store import Amount, ChatStore
from trader.core.errors import BudgetError

limits = BudgetLimits(
    tokens=dict.fromkeys(SCOPES, 10_000), usd=dict.fromkeys(SCOPES, Decimal(1))
)
now = datetime(2026, 3, 2, 12, tzinfo=UTC)
spent = Budget(limits, ChatStore(Path(sys.argv[1])), now=lambda: now)
made = 0
print("ready", flush=True)
sys.stdin.readline()
try:
    while True:
        spent.reserve("a", Amount(input_tokens=190))
        made += 1
except BudgetError:
    print(made)
"""


def test_two_processes_never_spend_the_last_tokens_twice(tmp_path):
    path = tmp_path / "chats.db"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    made = [int(racer.communicate()[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert sum(made) == 10_000 // 190
    assert ChatStore(path).spent(DAY) == tokens(190 * (10_000 // 190))


def test_two_threads_never_spend_the_last_tokens_twice():
    both = Barrier(2)

    class Busy(ChatStore):
        """Two threads that have found room for their calls would meet here."""

        def spend(self, *change):
            with suppress(BrokenBarrierError):
                both.wait(0.2)
            super().spend(*change)

    store = Busy(None)
    spent = budget(store, tokens_per_decision=1_000)

    def take(_: int) -> bool:
        try:
            spent.reserve("a", tokens(600))
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(take, range(2))) == 1
    assert store.spent(DAY) == tokens(600)


# prices


def test_prices_are_exact():
    assert PRICES.amount(30_000, 1_200).cost == Decimal("0.00522")
    assert PRICES.amount(1, 0).cost == Decimal("0.00000015")
    total = sum((PRICES.amount(1, 1) for _ in range(10_000)), Amount())
    assert total.cost == Decimal("0.0075")


def test_configured_prices_and_limits_are_the_decimals_that_were_written():
    models = Models(usd_per_million_input=0.1, usd_per_million_output=0.2)
    assert Prices.of(models) == Prices(
        usd_per_million_input=Decimal("0.1"), usd_per_million_output=Decimal("0.2")
    )
    tiny = Models(usd_per_million_input=1e-9)
    assert Prices.of(tiny).usd_per_million_input == Decimal("0.000001")  # never rounded to free
    limits = BudgetLimits.of(models.budget)
    assert limits.tokens == {
        "call": 8_000,
        "decision": 30_000,
        "run": 5_000_000,
        "day": 10_000_000,
    }
    assert limits.usd == {
        "call": Decimal("0.25"),
        "decision": Decimal("0.5"),
        "run": Decimal(10),
        "day": Decimal(20),
    }


# calls


WORST = PRICES.amount(most_prompt_tokens(PROMPT, Step.TEXT), SPEC.max_output_tokens)
NOTHING = Usage(input_tokens=0, output_tokens=0, estimated=False, cost=Decimal(0))
WORST_USAGE = Usage(
    input_tokens=WORST.input_tokens,
    output_tokens=WORST.output_tokens,
    estimated=True,
    cost=WORST.cost,
)


def test_the_worst_case_is_prompt_schema_and_output_limit():
    letters = sum(len(message.content) for message in PROMPT.messages)
    assert WORST.input_tokens > (letters + len(str(PROMPT.schema))) / 2.2
    assert WORST.output_tokens == SPEC.max_output_tokens
    exact = budget(tokens_per_call=WORST.tokens)
    BudgetedChat(Scripted(ChatReply(text="{}")), SPEC, exact, PRICES).complete(asks())
    inner = Scripted()
    tight = BudgetedChat(inner, SPEC, budget(tokens_per_call=WORST.tokens - 1), PRICES)
    with pytest.raises(BudgetError, match=f"{WORST.tokens:,} tokens"):
        tight.complete(asks())
    assert inner.asked == []  # the call was not made


def test_a_reply_counts_what_it_used_and_is_priced():
    store = ChatStore(None)
    chat = BudgetedChat(
        Scripted(ChatReply(text="{}", usage=usage(40, 10))), SPEC, budget(store), PRICES
    )
    reply = chat.complete(asks())
    assert reply.usage == usage(40, 10, cost="0.000012")
    assert store.spent(DAY) == PRICES.amount(40, 10)


@pytest.mark.parametrize("said", [None, usage(-5, 10), usage(10, -5), usage(10**30, 1)])
def test_a_usage_that_is_missing_or_absurd_counts_as_the_worst_case(said):
    store = ChatStore(None)
    chat = BudgetedChat(Scripted(ChatReply(text="{}", usage=said)), SPEC, budget(store), PRICES)
    assert chat.complete(asks()).usage == WORST_USAGE
    assert store.spent(DAY) == WORST


def test_an_estimate_never_counts_more_than_the_worst_case():
    store = ChatStore(None)
    guess = replace(usage(60, 10 * SPEC.max_output_tokens), estimated=True)
    chat = BudgetedChat(Scripted(ChatReply(text="{}", usage=guess)), SPEC, budget(store), PRICES)
    reply = chat.complete(asks())
    assert reply.usage is not None
    assert reply.usage.estimated
    assert store.spent(DAY) == PRICES.amount(60, SPEC.max_output_tokens)


def test_more_than_was_set_aside_is_counted_and_ends_the_budget():
    store = ChatStore(None)
    chat = BudgetedChat(
        Scripted(ChatReply(text="{}", usage=usage(9_000, 10))),
        SPEC,
        budget(store, tokens_per_decision=9_000),
        PRICES,
    )
    chat.complete(asks())
    assert store.spent(DAY).tokens == 9_010
    with pytest.raises(BudgetError, match="of 9,000 for one decision 9,010 are spent"):
        chat.complete(asks())


@pytest.mark.parametrize(
    ("failure", "counted"),
    [
        (EndpointError("nothing listens there"), NOTHING),
        (TimedOutError("slow"), WORST_USAGE),
        (RefusedReplyError("no"), WORST_USAGE),
        (CutReplyError("cut"), WORST_USAGE),
    ],
)
def test_a_failed_call_counts_unless_it_surely_cost_nothing(failure, counted):
    store = ChatStore(None)
    chat = BudgetedChat(Scripted(failure), SPEC, budget(store), PRICES)
    with pytest.raises(type(failure)) as caught:
        chat.complete(asks())
    assert caught.value is failure
    assert usage_of(failure) == counted
    assert store.spent(DAY).tokens == counted.input_tokens + counted.output_tokens
    assert store.spent(DAY).cost == counted.cost


@pytest.mark.parametrize("kind", [EndpointError, TimedOutError, RefusedReplyError, CutReplyError])
def test_a_failure_that_says_what_it_used_counts_that(kind):
    store, failure = ChatStore(None), kind("empty reply")
    note_usage(failure, usage(100, 50))
    with pytest.raises(kind):
        BudgetedChat(Scripted(failure), SPEC, budget(store), PRICES).complete(asks())
    assert store.spent(DAY) == PRICES.amount(100, 50)
    assert usage_of(failure) == usage(100, 50, cost="0.000045")


def test_a_crash_inside_a_call_leaves_its_reservation_counted():
    class Broken:
        name = "broken"

        def complete(self, request):
            raise KeyboardInterrupt

    store = ChatStore(None)
    with pytest.raises(KeyboardInterrupt):
        BudgetedChat(Broken(), SPEC, budget(store), PRICES).complete(asks())
    assert store.spent(DAY) == WORST


def test_a_prompt_is_written_once():
    written = []

    def write() -> Prompt:
        written.append(1)
        return PROMPT

    BudgetedChat(Scripted(ChatReply(text="{}")), SPEC, budget(), PRICES).complete(asks(write))
    assert written == [1]


def test_roles_share_a_decision_and_the_whole_stack_replays_with_its_stop():
    """Bull and bear of one decision; the third call does not fit, then and in the recording."""
    store, now, then = ChatStore(None), Meter(), Meter()
    shared = budget(store, tokens_per_decision=2 * WORST.tokens + 200)
    bear = replace(SPEC, role="bear")
    full = usage(WORST.input_tokens, WORST.output_tokens)

    def stack(spec):
        inner = Scripted(*[ChatReply(text="{}", usage=full)] * 2)
        return RecordingChat(BudgetedChat(inner, spec, shared, PRICES), spec, store, meter=now)

    def debate(bull, other):
        said = [bull.complete(asks()), other.complete(asks(role="bear"))]
        with pytest.raises(BudgetError) as caught:
            bull.complete(asks(replace(PROMPT, version="bull 2"), turn=1))
        return [*said, str(caught.value), caught.value.call]

    made = debate(stack(SPEC), stack(bear))
    again = debate(RecordedChat(SPEC, store, meter=then), RecordedChat(bear, store, meter=then))
    assert again == made
    assert now.spend == then.spend
    assert (now.spend.calls, now.spend.cost) == (2, 2 * WORST.cost)
    assert store.spent(DAY).tokens == 2 * WORST.tokens
