"""Invented statements of every kind: fields, sentences, dates and windows that are false."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import numpy as np

from agents.debate.claims.quoting import quotes
from tests.agents.debate.corpus import (
    Kind,
    Rng,
    World,
    claim,
    pick,
    rounded,
    session,
    told,
    written_day,
)
from tests.agents.debate.corpus_true import change, count, crossing, index_now, value_now
from trader.core.decision import Claim, Operator


def _wrong(rng: Rng, value: float) -> float:
    """A plausible number that nobody would take for a rounded `value`."""
    return round(value * pick(rng, 0.93, 0.945, 1.055, 1.07), 2)


def ten_times(world: World, rng: Rng) -> Claim:
    field = pick(rng, "close", "sma_200", "atr", "entry_price")
    value = round(world.value(field) * pick(rng, 10.0, 0.1), 2)
    return claim(world, f"{field} is at {value}.", field, "=", value)


def near_miss(world: World, rng: Rng) -> Claim:
    field = pick(rng, "rsi_14", "adx_14", "close", "sma_50", "volume_ratio_20")
    value = _wrong(rng, world.value(field))
    return claim(world, f"It reads {value}.", field, "=", value)


def crude_rounding(world: World, rng: Rng) -> Claim:
    """Whole tens where nobody rounds to them."""
    field = pick(rng, "close", "rsi_14", "sma_200")
    value = world.value(field)
    off = [ten for ten in (10 * (value // 10), 10 * (value // 10 + 1)) if abs(ten - value) > 0.6]
    said = float(pick(rng, *off))
    return claim(world, f"It reads {said:.0f}.", field, "=", said)


def wrong_sign(world: World, rng: Rng) -> Claim:
    field = pick(rng, "return_20", "return_60", "macd", "signal_average_r")
    value = world.value(field)
    if abs(value) < 0.001:
        field, value = "drawdown_252", world.value("drawdown_252") or -0.05
    if rng.random() < 0.5 and field.startswith("return"):
        text = f"The price {'fell' if value > 0 else 'rose'} over 20 or 60 bars."
        said = claim(world, text, field, "=", rounded(rng, value))
    else:
        text = f"The value of {-value:.4f} is known."
        said = claim(world, text, field, "=", -value)
    return said


def neighbours_value(world: World, rng: Rng) -> Claim:
    first, second = pick(
        rng,
        ("close", "sma_200"),
        ("rsi_14", "adx_14"),
        ("plus_di_14", "minus_di_14"),
        ("high", "low"),
        ("sma_50", "sma_200"),
    )
    a, b = world.value(first), world.value(second)
    b = b if not quotes(round(b, 2), a) and round(a, 1) != round(b, 1) else b * 1.2
    if rng.random() < 0.5:
        return claim(world, f"The {first} stands at {b:.2f}.", first, "=", round(b, 2))
    return claim(world, f"The reading is {b:.2f}.", first, "=", round(a, 2))


def swapped_operands(world: World, rng: Rng) -> Claim:
    first, second = pick(rng, ("close", "sma_200"), ("sma_50", "sma_200"), ("close", "entry_price"))
    a, b = world.value(first), world.value(second)
    operator: Operator = "<" if a > b else ">"
    return claim(world, f"{a:.2f} against {b:.2f}.", first, operator, round(b, 2), second)


def sentence_of_other_numbers(world: World, rng: Rng) -> Claim:
    """True fields under a sentence that says something else."""
    field = pick(rng, "close", "rsi_14", "return_60", "sma_50", "entry_price")
    value = world.value(field)
    wrong = _wrong(rng, 100 * value if field == "return_60" else value)
    shown = f"{wrong:.2f}%" if field == "return_60" else f"{wrong:.2f}"
    text = pick(
        rng,
        f"The {field} reads {shown}.",
        f"**{shown}** says it all",
        f"Der Wert beträgt {shown.replace('.', ',')}.",
        f"It reads {shown}, not a cent less.",
    )
    return claim(world, text, field, "=", rounded(rng, value))


def sentence_with_more(world: World, rng: Rng) -> Claim:
    """A true claim whose sentence adds what was never checked."""
    value = world.value("close")
    more = pick(
        rng,
        "with support at 187.35",
        "and earnings up 43 %",
        "and analysts see $431",
        "after 17 sessions of calm",
        "the best since 1987",
        "as of 2019-03-04",
        "with a P/E of 31.7",
        "and 3.9 million buyers",
        "and RSI 7 is 12.3",
        "since the split of 7:1",
        "against E199",
        "above its 199-day average",
        "as the SMA 51 shows",
        "at 03:17",
    )
    return claim(world, f"The close of {value:.2f} stands {more}.", "close", "=", round(value, 2))


def sentence_of_other_direction(world: World, rng: Rng) -> Claim:
    value = world.value("rsi_14")
    kind = pick(rng, "line", "change", "extreme", "count")
    close = world.series("close")
    if kind == "line":
        line = round(value) - 5
        return claim(world, f"RSI is below {line}.", "rsi_14", ">", line)
    if kind == "change":
        sessions = int(rng.integers(5, 100))
        move = float(close[-1] / close[-1 - sessions] - 1.0)
        text = f"The close {'fell' if move > 0 else 'rose'} {abs(move):.2%} in {sessions} sessions"
        return claim(world, text, "close", "change", move, unit="fraction", when=f"last {sessions}")
    if kind == "extreme":
        top = float(close[-30:].max())
        text = f"{top:.2f} is the lowest close of the last 30 sessions"
        return claim(world, text, "close", "highest", round(top, 2), when="last 30")
    number = int(np.count_nonzero(np.diff(close[-31:]) > 0))
    text = f"The close fell on {number} of the last 30 sessions"
    return claim(world, text, "close", "count_up", number, unit="count", when="last 30")


def unknown_evidence(world: World, rng: Rng) -> Claim:
    said = value_now(world, rng)
    return pick(
        rng,
        replace(said, evidence_ids=("E999",)),
        replace(said, evidence_ids=()),
        replace(said, field="rsi_7"),
        replace(said, evidence_ids=(world.facts["cash"].evidence_id,)),
    )


def wrong_unit(world: World, rng: Rng) -> Claim:
    said = pick(rng, value_now, index_now)(world, rng)
    unit = pick(rng, "percent", "fraction", "shares", "R", "count", "EUR", "date")
    return replace(said, unit=unit)


def wrong_scale(world: World, rng: Rng) -> Claim:
    """0.05 said to be 0.05 %, or 5."""
    value = world.value(pick(rng, "return_60", "volatility_20"))
    field = next(name for name in ("return_60", "volatility_20") if world.value(name) == value)
    quoted = round(value, 4)
    return pick(
        rng,
        claim(world, f"It is {quoted} %.", field, "=", quoted),
        claim(world, "It is known.", field, "=", quoted, unit="percent"),
        claim(world, "It is known.", field, "=", round(100 * value, 2)),
    )


def _other_session(world: World, rng: Rng, field: str) -> tuple[int, int]:
    """Two neighbouring sessions whose values nobody confounds."""
    values = world.series(field)
    while True:
        at = session(world, rng)
        other = at + pick(rng, -1, 1)
        if other < len(values) and abs(values[at] - values[other]) > 0.1:
            return at, other


def one_day_off(world: World, rng: Rng) -> Claim:
    field = pick(rng, "close", "high", "low", "open", "rsi_14")
    at, other = _other_session(world, rng, field)
    value, day = float(world.series(field)[other]), world.days[at]
    text = f"On {written_day(rng, day)} the {field} was {value:.2f}"
    return claim(world, text, field, "=", round(value, 2), when=f"{day}")


def wrong_date_said(world: World, rng: Rng) -> Claim:
    """True fields, but the sentence dates them a day off."""
    at, other = _other_session(world, rng, "close")
    value, day = float(world.series("close")[at]), world.days[at]
    text = f"On {written_day(rng, world.days[other])} the close was {value:.2f}"
    return claim(world, text, "close", "=", round(value, 2), when=f"{day}")


def todays_value_said(world: World, rng: Rng) -> Claim:
    """True fields of a past session, but the sentence gives it today's price."""
    now = world.value("close")
    while True:
        at = session(world, rng)
        value = float(world.series("close")[at])
        if abs(value - now) > 0.02 * now:
            break
    text = f"On {world.days[at]} the close was {now:.2f}"
    return claim(world, text, "close", "=", round(value, 2), when=f"{world.days[at]}")


def no_such_day(world: World, rng: Rng) -> Claim:
    today, value = world.days[-1], round(world.value("close"), 2)
    sunday = today - timedelta(days=today.weekday() + 1)
    when = pick(
        rng,
        f"{sunday}",
        f"{today + timedelta(days=1)}",
        f"since {today + timedelta(days=30)}",
        f"{today}..{today + timedelta(days=5)}",
        "2025-02-30",
        "1901-05-06",
        "last 99999",
        "last 0",
        "yesterday",
        f"{today}..2020-01-02",
        "2024-12-25",
    )
    operator: Operator = "=" if when.startswith(("1", "2")) and ".." not in when else "highest"
    return claim(world, "It was so.", "close", operator, value, when=when)


def window_off_by_one(world: World, rng: Rng) -> Claim:
    """A change, or a count, of one session more or less."""
    close = world.series("close")
    while True:
        sessions = int(rng.integers(4, 60))
        other = sessions + pick(rng, -1, 1)
        move = float(close[-1] / close[-1 - sessions] - 1.0)
        moved = float(close[-1] / close[-1 - other] - 1.0)
        if abs(move - moved) > 0.002:
            break
    if rng.random() < 0.5:
        text = f"A change of {move:.2%} over the last {other} sessions"
        quoted = round(100 * move, 2)
        return claim(world, text, "close", "change", quoted, unit="percent", when=f"last {other}")
    text = f"A change of {move:.2%} over the last {other} sessions"
    quoted = round(100 * move, 2)
    return claim(world, text, "close", "change", quoted, unit="%", when=f"last {sessions}")


def wrong_change(world: World, rng: Rng) -> Claim:
    said = change(world, rng)
    factor = pick(rng, -1.0, 1.3, 0.7, 10.0)
    while abs(said.quoted_value) < 0.02:
        said = change(world, rng)
    return replace(said, text="It changed.", quoted_value=said.quoted_value * factor)


def no_extreme(world: World, rng: Rng) -> Claim:
    """A close or an earlier high passed off as the extreme of a longer period."""
    close = world.series("close")
    sessions = int(rng.integers(20, 250))
    part = close[-sessions:]
    second = float(np.sort(part)[-2])
    top = float(part.max())
    value = second if top - second > 0.02 else top * 0.97
    if rng.random() < 0.3:
        days = world.days[-sessions:]
        wrong = [day for day, price in zip(days, part, strict=True) if price < top]
        day = pick(rng, *wrong)
        text = f"The highest close of the last {sessions} sessions came on {day}"
        number = int(f"{day:%Y%m%d}")
        return claim(world, text, "close", "highest", number, unit="date", when=f"last {sessions}")
    text = f"At {value:.2f} the close is the highest of the last {sessions} sessions"
    return claim(world, text, "close", "highest", round(value, 2), when=f"last {sessions}")


def miscounted(world: World, rng: Rng) -> Claim:
    said = count(world, rng)
    wrong = said.quoted_value + pick(rng, -1, 1, 2)
    return replace(said, text="It was counted.", quoted_value=wrong)


def count_said_wrongly(world: World, rng: Rng) -> Claim:
    sessions = int(rng.integers(15, 60))
    number = int(np.count_nonzero(np.diff(world.series("close")[-sessions - 1 :]) > 0))
    wrong = number + pick(rng, -1, 1)
    text = f"The close rose on {wrong} of the last {sessions} sessions"
    when = f"last {sessions}"
    return claim(world, text, "close", "count_up", number, unit="count", when=when)


def outside(world: World, rng: Rng) -> Claim:
    if rng.random() < 0.5:
        value = world.value("rsi_14")
        low = round(value) + 2
        return claim(world, "In between.", "rsi_14", "between", low, upper=low + 20.0)
    part = world.series("close")[-40:]
    low, high = float(part.min()), float(part.max())
    ends = pick(rng, (low * 1.03, high), (low, high * 0.97))
    return claim(world, "In between.", "close", "between", ends[0], upper=ends[1], when="last 40")


def no_crossing(world: World, rng: Rng) -> Claim:
    said = crossing(world, rng)
    if rng.random() < 0.5:
        other: Operator = "crosses_below" if said.operator == "crosses_above" else "crosses_above"
        return replace(said, text="It crossed.", operator=other)
    now, before = world.value("close"), world.value("close_previous")
    line = round(max(now, before) * 1.02, 2)
    return claim(world, "It crossed.", "close", "crosses_above", line, "close_previous")


def false_bound(world: World, rng: Rng) -> Claim:
    field = pick(rng, "rsi_14", "close", "adx_14")
    value = world.value(field)
    above = rng.random() < 0.5
    line = round(value * (1.04 if above else 0.96), 1)
    if rng.random() < 0.5:
        text = f"It is {'above' if above else 'below'} {line}"
        return claim(world, text, field, ">" if above else "<", line)
    # the fields hold, the sentence claims more
    easy = round(value * (0.7 if above else 1.3), 1)
    text = f"It is {'above' if above else 'below'} {line}"
    return claim(world, text, field, ">" if above else "<", easy)


def unsteady(world: World, rng: Rng) -> Claim:
    """What held in most sessions said of all."""
    part = world.series("close")[-30:]
    line = round(float(np.sort(part)[3]), 2)
    text = f"Each of the last 30 closes stood above {line}"
    return claim(world, text, "close", ">", line, when="last 30")


def wrong_ratio(world: World, rng: Rng) -> Claim:
    level = pick(rng, *[name for name in world.facts if name.startswith("reward_risk_")])
    value = world.value(level)
    wrong = round(value + pick(rng, 0.3, 1.0, 2.0), 1)
    if rng.random() < 0.5:
        return claim(world, f"It offers 1:{wrong}.", level, "=", wrong)
    return claim(world, f"It offers 1:{wrong}.", level, "=", round(value, 2))


def wrong_shares(world: World, rng: Rng) -> Claim:
    volume = world.value("volume")
    wrong = round(volume * pick(rng, 0.9, 1.1, 0.001, 1000.0), -5)
    text = f"{wrong / 1e6:.1f} million shares"
    if rng.random() < 0.5:
        return claim(world, text, "volume", "=", wrong)
    return claim(world, text, "volume", "=", round(volume))


FABRICATIONS: tuple[Kind, ...] = (
    ten_times,
    near_miss,
    crude_rounding,
    wrong_sign,
    neighbours_value,
    swapped_operands,
    sentence_of_other_numbers,
    sentence_with_more,
    sentence_of_other_direction,
    unknown_evidence,
    wrong_unit,
    wrong_scale,
    one_day_off,
    wrong_date_said,
    todays_value_said,
    no_such_day,
    window_off_by_one,
    wrong_change,
    no_extreme,
    miscounted,
    count_said_wrongly,
    outside,
    no_crossing,
    false_bound,
    unsteady,
    wrong_ratio,
    wrong_shares,
)


def fabrications(seed: int, each: int) -> Iterator[tuple[World, str, Claim]]:
    """`each` invented statements of every kind, over all decisions in turn."""
    return told(FABRICATIONS, seed, each)
