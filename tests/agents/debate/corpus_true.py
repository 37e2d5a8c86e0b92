"""True statements of every kind, as people say them, seeded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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
    written_percent,
    written_price,
)
from trader.core.decision import Claim, Operator

VALUES = (
    ("close", "The close stands at {n}."),
    ("open", "It opened at {n} today."),
    ("sma_200", "The 200-day average is {n}."),
    ("sma_50", "SMA(50) sits at {n}"),
    ("ema_20", "El promedio exponencial de 20 días está en {n}."),
    ("atr", "ATR 14 is {n}, the usual daily swing."),
    ("bollinger_upper", "The upper Bollinger band (20, 2) runs at {n}."),
    ("entry_price", "An entry would cost {n} a share."),
    ("stop_price", "The stop at {n} lies 2 ATR below the entry."),
    ("close", "Der Schlusskurs liegt bei {n}."),
    ("low", "The day's low was {n}."),
)


def value_now(world: World, rng: Rng) -> Claim:
    field, text = pick(rng, *VALUES)
    value = world.value(field)
    unit = pick(rng, "USD", "usd", "$", "dollars")
    said = text.format(n=written_price(rng, value))
    return claim(world, said, field, "=", rounded(rng, value), unit=unit)


def index_now(world: World, rng: Rng) -> Claim:
    field, name = pick(rng, ("rsi_14", "RSI"), ("adx_14", "ADX"), ("plus_di_14", "+DI"))
    value = world.value(field)
    text = pick(
        rng,
        f"{name} 14 reads {value:.0f}.",
        f"{name}(14) = {value:.1f}",
        f"The {name} of {value:.2f} speaks for itself.",
        f"At {value:.1f} the 14-period {name} is where it should be",
        f"{field} liegt bei {value:.1f}".replace(".", ","),
    )
    return claim(world, text, field, "=", round(value, pick(rng, 0, 1, 2)))


def fraction_now(world: World, rng: Rng) -> Claim:
    field, text = pick(
        rng,
        ("return_20", "Over the last 20 sessions the price moved {n}."),
        ("return_60", "The 60-day return is {n}."),
        ("drawdown_252", "It trades {n} off its 52-week closing high."),
        ("max_drawdown_252", "The worst fall within 252 bars was {n}"),
        ("distance_high_20", "The close is {n} away from the 20-bar high."),
        ("volatility_20", "Annualised volatility over 20 days: {n}"),
        ("position_weight", "The account holds {n} of its equity in it."),
        ("cash_weight", "Cash makes up {n} of equity."),
        ("signal_hit_rate", "Of its closed trades {n} won."),
    )
    value = world.value(field)
    said = written_percent(rng, value)
    if field.startswith(("drawdown", "max_drawdown", "distance")) and rng.random() < 0.5:
        said = said.replace("-", "")
    if rng.random() < 0.5:
        unit, quoted = pick(rng, "percent", "%", "pct"), rounded(rng, 100.0 * value)
    else:
        unit, quoted = "fraction", rounded(rng, value)
    return claim(world, text.format(n=said), field, "=", quoted, unit=unit)


def other_now(world: World, rng: Rng) -> Claim:
    """Ratios, counts, R, shares and dates."""
    level = pick(rng, *[name for name in world.facts if name.startswith("reward_risk_")])
    ratio, closed = world.value(level), world.value("signal_closed")
    hits = world.value(level.replace("reward_risk", "hits"))
    chance = world.value(level.replace("reward_risk", "probability"))
    worth = world.value(level.replace("reward_risk", "expected_value"))
    target = world.value(level.replace("reward_risk", "target"))
    volume, today = world.value("volume"), world.days[-1]
    millions = f"{volume / 1e6:.1f}"
    return pick(
        rng,
        claim(world, f"Reward to risk is {ratio:.2f}:1.", level, "=", round(ratio, 2)),
        claim(world, f"The risk:reward is 1:{ratio:.1f}", level, "=", ratio, unit="x"),
        claim(
            world,
            f"The target at ${target:,.2f} pays {ratio:.2f} R for each 1 R at risk.",
            level,
            "=",
            round(ratio, 2),
        ),
        claim(
            world,
            f"{hits:.0f} of {closed:.0f} past trades got that far: a chance of {chance:.0%}.",
            level.replace("reward_risk", "probability"),
            "=",
            rounded(rng, chance),
        ),
        claim(
            world,
            f"By its past the trade is worth {worth:+.2f} R.",
            level.replace("reward_risk", "expected_value"),
            "=",
            rounded(rng, worth),
        ),
        claim(world, f"Only {closed:.0f} trades closed", "signal_closed", "=", closed),
        claim(world, f"Ese volumen: {millions} mn", "volume", "=", round(volume, -5)),
        claim(world, f"About {millions}M shares changed hands.", "volume", "=", round(volume)),
        claim(
            world,
            f"{volume:,.0f} shares were traded.",
            "volume",
            "=",
            float(millions),
            unit="million shares",
        ),
        claim(
            world,
            f"The decision falls on {written_day(rng, today)}.",
            "session",
            "=",
            int(f"{today:%Y%m%d}"),
        ),
        claim(
            world,
            f"Volume is {world.value('volume_ratio_20'):.2f} times its 20-bar mean",
            "volume_ratio_20",
            "=",
            rounded(rng, world.value("volume_ratio_20")),
        ),
        claim(
            world,
            f"It went from {world.value('close_previous'):.2f}",
            "close_previous",
            "=",
            rounded(rng, world.value("close_previous")),
        ),
    )


def comparison_now(world: World, rng: Rng) -> Claim:
    field = pick(rng, "rsi_14", "close", "adx_14", "return_20", "volume_ratio_20")
    value = world.value(field)
    line = round(value * (1 + pick(rng, -0.2, -0.06, 0.06, 0.2)), 4)
    line = round(line) if field in ("rsi_14", "close", "adx_14") else line
    over = value > line
    operator: Operator = pick(rng, ">", ">=") if over else pick(rng, "<", "<=")
    side = ("above", "below")[not over]
    shown = f"{line:g}" if field != "return_20" else f"{100 * line:.2f}%"
    text = pick(
        rng,
        f"It stands {side} {shown}.",
        f"A reading of {_plainly(field, value)} lies {side} the line of {shown}",
        f"{field} is {side} {shown}, clearly so.",
        f"Ahora {_plainly(field, value)} frente a {shown}",
    )
    return claim(world, text, field, operator, line)


def _plainly(field: str, value: float) -> str:
    return f"{value:.1%}" if field == "return_20" else f"{value:.2f}"


def comparison_of_facts(world: World, rng: Rng) -> Claim:
    first, second, window = pick(
        rng,
        ("close", "sma_200", "200-day average"),
        ("close", "sma_50", "50-session mean"),
        ("sma_50", "sma_200", "SMA 200"),
        ("close", "bollinger_middle", "20-bar mean"),
        ("close", "ema_20", "EMA20"),
        ("close", "entry_price", "entry"),
    )
    a, b = world.value(first), world.value(second)
    operator: Operator = ">" if a > b else "<"
    side, other = ("above", "below") if a > b else ("below", "above")
    text = pick(
        rng,
        f"At {written_price(rng, a)} it is {side} the {window} of {written_price(rng, b)}.",
        f"The {window} of {b:.2f} lies {other} the {a:.2f} seen now.",
        f"It trades {abs(a / b - 1):.1%} {side} the {window}.",
        f"{a:.1f} gegen {b:.1f} ({window})".replace(".", ","),
        f"The gap to the {window} is {abs(a - b):.2f} USD",
    )
    return claim(world, text, first, operator, rounded(rng, b), second)


def crossing(world: World, rng: Rng) -> Claim:
    values = world.series("close")
    now, before = float(values[-1]), float(values[-2])
    line = round((now + before) / 2, 3)
    up = now > before
    operator: Operator = "crosses_above" if up else "crosses_below"
    way = "above" if up else "below"
    if rng.random() < 0.4:
        text = f"The close crossed {way} {line:.3f}: from {before:.2f} to {now:.2f}"
        return claim(world, text, "close", operator, line, "close_previous")
    average = world.series("sma_50")
    over = values > average
    flips = np.flatnonzero(over[1:] != over[:-1]) + 1
    at = int(pick(rng, *flips[-12:]))
    up = bool(over[at])
    operator = "crosses_above" if up else "crosses_below"
    text = pick(
        rng,
        f"On {written_day(rng, world.days[at])} the close crossed {'above' if up else 'below'} "
        f"its 50-day average of {average[at]:.2f}.",
        f"The {values[at]:.2f} of that day crossed the 50-bar mean",
    )
    when = f"{world.days[at]}"
    return claim(
        world, text, "close", operator, rounded(rng, float(average[at])), "sma_50", when=when
    )


def between_now(world: World, rng: Rng) -> Claim:
    field = pick(rng, "rsi_14", "close")
    value = world.value(field)
    low, high = round(value * 0.93), round(value * 1.08)
    text = pick(
        rng,
        f"It sits between {low} and {high}.",
        f"{field} at {value:.1f} is inside {low}-{high}",
        f"a range of {low} to {high} holds it",
    )
    return claim(world, text, field, "between", low, upper=high)


def between_past(world: World, rng: Rng) -> Claim:
    field, count = pick(rng, "close", "rsi_14"), int(rng.integers(5, 60))
    part = world.series(field)[-count:]
    low, high = round(float(part.min()), 1), round(float(part.max()), 1)
    text = pick(
        rng,
        f"Over the last {count} sessions it ranged between {low} and {high}.",
        f"In {count} sessions: {low}-{high}",
    )
    return claim(world, text, field, "between", low, upper=high, when=f"last {count}")


def value_past(world: World, rng: Rng) -> Claim:
    field = pick(rng, "close", "open", "high", "low", "sma_50", "volume")
    at = session(world, rng)
    value, day = float(world.series(field)[at]), world.days[at]
    if field == "volume":
        text = f"On {written_day(rng, day)} {value / 1e6:.1f} million shares were traded"
        return claim(world, text, field, "=", round(value, -4), when=f"{day}")
    name = {"sma_50": "50-day average"}.get(field, field)
    text = pick(
        rng,
        f"The {name} on {written_day(rng, day)} was {written_price(rng, value)}.",
        f"{written_day(rng, day)}: {name} {written_price(rng, value)}",
        f"Back then the {name} was {written_price(rng, value)}",
    )
    return claim(world, text, field, "=", rounded(rng, value), when=f"{day}")


def comparison_past(world: World, rng: Rng) -> Claim:
    if rng.random() < 0.5:
        at = session(world, rng)
        value, line = float(world.series("close")[at]), float(world.series("sma_200")[at])
        operator: Operator = ">" if value > line else "<"
        text = (
            f"On {written_day(rng, world.days[at])} the close of {value:.2f} stood "
            f"{'above' if value > line else 'below'} the 200-day average of {line:.2f}."
        )
        when = f"{world.days[at]}"
        return claim(world, text, "close", operator, rounded(rng, line), "sma_200", when=when)
    count = int(rng.integers(3, 40))
    least = float(world.series("close")[-count:].min())
    line = round(least * 0.99, 1)
    text = f"The close held above {line} in each of the last {count} sessions."
    return claim(world, text, "close", ">", line, when=f"last {count}")


def change(world: World, rng: Rng) -> Claim:
    close, days = world.series("close"), world.days
    kind = pick(rng, "last", "since", "range", "session")
    start, end = session(world, rng), len(days) - 1
    if kind == "last":
        count = int(rng.integers(2, 250))
        start, when, words = end - count, f"last {count}", f"over the last {count} sessions"
    elif kind == "since":
        when, words = f"since {days[start]}", f"since {written_day(rng, days[start])}"
    elif kind == "range":
        end = int(rng.integers(start + 1, end + 1))
        when = f"{days[start]}..{days[end]}"
        words = f"from {written_day(rng, days[start])} to {written_day(rng, days[end])}"
    else:
        end = start
        start, when, words = end - 1, f"{days[end]}", f"on {written_day(rng, days[end])}"
    before, after = float(close[start]), float(close[end])
    move = after / before - 1.0
    verb = "rose" if move > 0 else "fell"
    if rng.random() < 0.25:
        text = f"The close {verb} by {abs(after - before):.2f} USD {words}."
        return claim(world, text, "close", "change", after - before, unit="USD", when=when)
    shown = written_percent(rng, abs(move))
    text = pick(
        rng,
        f"The close {verb} {shown} {words}.",
        f"{words}: {written_percent(rng, move)}, {before:.2f} to {after:.2f}",
        f"It {verb} from {before:.2f} to {after:.2f} {words}",
        f"El cierre: {written_percent(rng, move)} {words}",
    )
    if rng.random() < 0.5:
        return claim(
            world, text, "close", "change", rounded(rng, 100 * move), unit="percent", when=when
        )
    return claim(world, text, "close", "change", rounded(rng, move), unit="fraction", when=when)


def extreme(world: World, rng: Rng) -> Claim:
    operator: Operator = pick(rng, "highest", "lowest")
    field = pick(rng, "close", "high", "low", "rsi_14")
    start, end = session(world, rng), len(world.days) - 1
    kind = pick(rng, "last", "since", "range")
    if kind == "range":
        end = int(rng.integers(start + 1, end + 1))
        when = f"{world.days[start]}..{world.days[end]}"
        words = f"from {written_day(rng, world.days[start])} to {written_day(rng, world.days[end])}"
    elif kind == "since":
        when, words = f"since {world.days[start]}", f"since {written_day(rng, world.days[start])}"
    else:
        count = end - start + 1
        when, words = f"last {count}", f"in the last {count} sessions"
    part = world.series(field)[start : end + 1]
    found = float(part.max() if operator == "highest" else part.min())
    at = start + int(part.argmax() if operator == "highest" else part.argmin())
    day = world.days[at]
    if rng.random() < 0.3:
        text = f"The {operator} {field} {words} came on {written_day(rng, day)}"
        number = int(f"{day:%Y%m%d}")
        return claim(world, text, field, operator, number, unit="date", when=when)
    text = pick(
        rng,
        f"The {operator} {field} {words} was {found:.2f}.",
        f"{found:.1f} is the {operator} {field} {words}",
        f"{words} the {operator} {field}, {found:.2f}, was seen on {written_day(rng, day)}",
    )
    return claim(world, text, field, operator, rounded(rng, found), when=when)


def count(world: World, rng: Rng) -> Claim:
    sessions = int(rng.integers(5, 120))
    close = world.series("close")
    kind = pick(rng, "up", "down", "line", "number")
    steps = np.diff(close[-sessions - 1 :])
    over = f"the last {sessions} sessions"
    when = f"last {sessions}"
    if kind in ("up", "down"):
        number = int(np.count_nonzero(steps > 0 if kind == "up" else steps < 0))
        verb = {"up": "rose", "down": "fell"}[kind]
        text = pick(
            rng,
            f"The close {verb} on {number} of {over}.",
            f"{number}/{sessions} sessions",
            f"In den letzten {sessions} Sitzungen waren es {number}.",
        )
        operator: Operator = "count_up" if kind == "up" else "count_down"
        return claim(world, text, "close", operator, number, unit="count", when=when)
    if kind == "line":
        number = int(np.count_nonzero(close[-sessions:] > world.series("sma_50")[-sessions:]))
        text = f"It closed above its 50-day average on {number} of {over}."
        return claim(
            world, text, "close", "count_above", number, "sma_50", unit="sessions", when=when
        )
    line = round(float(np.median(close[-sessions:])))
    number = int(np.count_nonzero(close[-sessions:] < line))
    text = f"It closed below {line} USD on {number} of {over}."
    return claim(
        world, text, "close", "count_below", number, unit="count", upper=float(line), when=when
    )


KINDS: tuple[Kind, ...] = (
    value_now,
    index_now,
    fraction_now,
    other_now,
    comparison_now,
    comparison_of_facts,
    crossing,
    between_now,
    between_past,
    value_past,
    comparison_past,
    change,
    extreme,
    count,
)


def true_statements(seed: int, each: int) -> Iterator[tuple[World, str, Claim]]:
    """`each` true statements of every kind, over all decisions in turn."""
    return told(KINDS, seed, each)
