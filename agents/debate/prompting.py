"""What each speaker of a debate reads.

In the debate that decides, that is facts and checked claims in the words of code, nothing else. In
the hearing the texts among the evidence and the other side's words come with them, in envelopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from agents.debate.claims.quoting import shown_number
from agents.debate.envelope import Origin, cut, envelope, one_line, own_words
from agents.debate.identity import usable
from agents.debate.numbering import numbered_claims
from agents.debate.rendering import (
    claim_lines,
    claimed_fields,
    fact_lines,
    shown_price,
)
from agents.debate.rules import same_price
from agents.debate.schemas import SCHEMA_NAMES, schema_of
from agents.debate.state import DebateContext
from agents.prompts.library import Template, template
from trader.core.decision import FOREIGN_KINDS, Argument, Claim, Rebuttal, Role
from trader.core.past import PastQuestion, Statistic
from trader.core.ports import Message, Prompt

TEXTS_BYTES = 6_000  # of all envelopes in one prompt
REPLY_BYTES = 3_000  # of a reply that is to be repaired
PROBLEM_BYTES = 600
# what the rules and the risk gate look after, what the heading says, and what follows from others
_UNSAID = frozenset(
    """
    atr_fraction bars_behind bollinger_middle cash cash_weight limit_position_weight
    limit_reward_risk limit_risk_per_trade open_buy_weight macd_histogram position_quantity
    risk_fraction risk_per_share session signal_fired signal_session
    """.split()  # noqa: SIM905 - one name a line would say no more
)
# what is asked of the past for every debater: field, operator, sessions
_ASKED: tuple[tuple[str, Statistic, int], ...] = (("low", "lowest", 60), ("close", "count_up", 10))


def write_prompt(
    role: Role,
    turn: int,
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
    *,
    hearing: bool = False,
) -> Prompt:
    """The prompt of one turn.

    turn     0 opens
    hearing  whether texts of strangers and the other side's words are read too
    Raises ValueError for a bear that has nothing to answer.
    """
    words = template(role)
    if role == "arbitrator":
        question = _arbitrator(words, context, arguments, rebuttals)
    elif role == "bull":
        question = _bull(words, turn, context, arguments, rebuttals, hearing=hearing)
    else:
        question = _bear(words, context, arguments, rebuttals, hearing=hearing)
    version = words.title
    if hearing:
        heard = template("hearing")
        texts = "\n\n".join(_texts(role, context, arguments, rebuttals))
        if texts:
            question = f"{question}\n\n{heard.fill('texts', texts=texts)}"
        version = f"{version}, {heard.title}"
    return Prompt(
        version=version,
        messages=(
            Message(role="system", content=words.fill("system")),
            Message(role="user", content=question),
        ),
        schema_name=SCHEMA_NAMES[role],
        schema=schema_of(role),
    )


def repair_prompt(prompt: Prompt, reply: str, problem: str) -> Prompt:
    """The same question, the reply that could not be used and what was wrong with it.

    Both are cut so that the question still fits where the first one did.
    """
    words = template("repair")
    said = cut(own_words(reply[:REPLY_BYTES]), REPLY_BYTES)
    again = words.fill("question", problem=cut(one_line(problem), PROBLEM_BYTES))
    return Prompt(
        version=f"{prompt.version}, {words.title}",
        messages=(
            *prompt.messages,
            Message(role="assistant", content=said.strip() or "(empty)"),
            Message(role="user", content=again),
        ),
        schema_name=prompt.schema_name,
        schema=prompt.schema,
    )


def _bull(
    words: Template,
    turn: int,
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
    *,
    hearing: bool,
) -> str:
    case = _case(context, hearing=hearing)
    if turn == 0 or not rebuttals:
        return words.fill("opening", case=case)
    evidence, own = context.evidence, numbered_claims(arguments, ())
    attacked = [n for n, claim in own.items() if claim.text == rebuttals[-1].weakest_claim]
    return words.fill(
        "answer",
        case=case,
        own=claimed_fields(own, evidence),
        attacked=claim_lines({n: own[n] for n in attacked[-1:]}, evidence, none="your case"),
        other=claim_lines(numbered_claims((), rebuttals), evidence),
    )


def _bear(
    words: Template,
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
    *,
    hearing: bool,
) -> str:
    if not arguments:
        raise ValueError("the bear has nothing to answer yet")
    case, target = _case(context, hearing=hearing), _target(context, arguments[-1])
    other = claim_lines(numbered_claims(arguments, ()), context.evidence)
    if not rebuttals:
        return words.fill("opening", case=case, target=target, other=other)
    return words.fill(
        "answer",
        case=case,
        target=target,
        first=f"B{sum(len(said.claims) for said in arguments[:-1]) + 1}",
        other=other,
        own=claimed_fields(numbered_claims((), rebuttals), context.evidence),
    )


def _arbitrator(
    words: Template,
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
) -> str:
    evidence = context.evidence
    sides = [
        words.fill("bull", claims=claim_lines(numbered_claims(arguments, ()), evidence)),
        words.fill("bear", claims=claim_lines(numbered_claims((), rebuttals), evidence)),
    ]
    first, second = reversed(sides) if context.bear_first else sides
    case = "\n".join((*_heading(context), *_aim(context, arguments)))
    return words.fill("question", case=case, first=first, second=second)


def _case(context: DebateContext, *, hearing: bool) -> str:
    """The instrument, the signal, the levels and the facts that may be quoted."""
    own = context.candidate.instrument
    facts = [
        fact
        for fact in context.evidence.items
        if (fact.kind not in FOREIGN_KINDS or (hearing and not usable(fact, own)))
        and fact.name not in _UNSAID
    ]
    past = tuple(_past(context))
    heads = ("[past]",) if past else ()
    return "\n".join((*_heading(context), fact_lines(facts), *heads, *past))


def _heading(context: DebateContext) -> Iterator[str]:
    candidate = context.candidate
    own, signal = candidate.instrument, candidate.signal
    listed = ", ".join(filter(None, (own.symbol, own.name, own.exchange, own.currency)))
    yield f"{listed}, {signal.as_of:%Y-%m-%d %H:%M} UTC."
    fired = "" if candidate.fired else "did not fire, the case is imagined: "
    yield f"Signal {signal.strategy} ({signal.style.replace('_', ' ')}): {fired}{signal.reason}."


def _level(context: DebateContext, argument: Argument) -> str | None:
    """Name of the target level that an argument aims at."""
    for fact in context.evidence.starting("target_"):
        if fact.value is not None and same_price(fact.value, argument.target_price):
            return fact.name.removeprefix("target_")
    return None


def _target(context: DebateContext, argument: Argument) -> str:
    name = _level(context, argument) or "no target of the list"
    return f"{shown_price(argument.target_price)} ({name})"


def _aim(context: DebateContext, arguments: Sequence[Argument]) -> Iterator[str]:
    """The levels, and what the evidence says of the target."""
    candidate = context.candidate
    entry, stop = shown_price(candidate.entry_price), shown_price(candidate.stop_price)
    yield f"Entry {entry}, stop {stop} {candidate.instrument.currency}."
    if not arguments:
        return
    name, value = _level(context, arguments[-1]), context.evidence.value
    known = {
        "reward:risk after costs": value(f"reward_risk_{name}"),
        "past trades of this signal": value("signal_closed"),
        "that got so far": value(f"hits_{name}"),
        "cautious probability": value(f"probability_{name}"),
        "expected value in R": value(f"expected_value_{name}"),
    }
    said = [f"{what} {shown_number(it)}" for what, it in known.items() if it is not None]
    yield f"{'; '.join((f'Target {_target(context, arguments[-1])}', *said))}."


def _past(context: DebateContext) -> Iterator[str]:
    """A few numbers of the past that claims may quote; every question here is kept on record."""
    for field, statistic, bars in _ASKED:
        fact = context.evidence.named(field)
        if fact is None or fact.value is None:
            continue
        number = context.history.ask(PastQuestion(statistic=statistic, field=field, bars=bars))
        if number is not None:
            yield f"{fact.evidence_id} {field} {statistic} {shown_number(number)} last {bars}"


def _texts(
    role: Role,
    context: DebateContext,
    arguments: Sequence[Argument],
    rebuttals: Sequence[Rebuttal],
) -> Iterator[str]:
    """The other side's last words, then the texts among the evidence, newest first."""
    room = TEXTS_BYTES
    for quotation in (*_words(role, arguments, rebuttals), *_foreign(context)):
        room -= len(quotation.encode())
        if room < 0:
            return
        yield quotation


def _words(
    role: Role, arguments: Sequence[Argument], rebuttals: Sequence[Rebuttal]
) -> Iterator[str]:
    if arguments and role != "bull":
        yield _said("bull", arguments[-1].thesis, arguments[-1].claims)
    if rebuttals and role != "bear":
        yield _said("bear", rebuttals[-1].counter, rebuttals[-1].claims)


def _said(origin: Origin, words: str, claims: Sequence[Claim]) -> str:
    return envelope("\n".join((words, *(claim.text for claim in claims))), origin=origin)


def _foreign(context: DebateContext) -> Iterator[str]:
    own = context.candidate.instrument
    texts = [
        fact
        for fact in context.evidence.items
        if fact.kind in FOREIGN_KINDS and fact.text.strip() and not usable(fact, own)
    ]
    for fact in sorted(texts, key=lambda fact: fact.known_at, reverse=True):
        metadata = {"evidence": fact.evidence_id, "source": fact.source}
        yield envelope(fact.text, origin=cast(Origin, fact.kind), metadata=metadata)
