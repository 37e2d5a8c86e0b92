"""Tests of numbers, moments and markup as the page writes them."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.report.markup import Html, join, tag
from trader.report.wording import measured, minute, number, percent, price, shares


@given(st.floats(-1e12, 1e12), st.integers(0, 4), st.booleans())
@settings(deadline=None)
def test_numbers_can_be_read_back(value: float, places: int, signed: bool):
    text = number(value, places, signed=signed)
    assert float(text.replace(",", "").replace("−", "-")) == pytest.approx(
        value, abs=0.51 * 10.0**-places, rel=1e-12
    )
    assert re.fullmatch(r"[+−]?\d{1,3}(,\d{3})*(\.\d+)?", text)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (number(-0.001), "0.00"),
        (number(-0.001, signed=True), "0.00"),
        (number(1234567.891), "1,234,567.89"),
        (number(-1234.5, signed=True), "−1,234.50"),
        (number(12.0, signed=True), "+12.00"),
        (number(None), "n/a"),
        (number(math.nan), "n/a"),
        (percent(-0.12345), "−12.35 %"),
        (percent(None), "n/a"),
        (price(0.12345), "0.1235"),
        (price(229.5), "229.50"),
        (measured(None, "USD"), "missing"),
        (measured(0.1234, "fraction"), "12.34 %"),
        (measured(-0.31, "R"), "−0.31 R"),
        (measured(3.0, "count"), "3"),
        (measured(52_345_678.0, "shares"), "52,345,678 shares"),
        (measured(54.2, "index_0_100"), "54.20 of 100"),
        (measured(0.00421, "points"), "0.0042 points"),
    ],
)
def test_values_are_written_in_one_way(written: str, expected: str):
    assert written == expected


def test_moments_are_written_in_utc():
    eastern = timezone(timedelta(hours=-5))
    assert minute(datetime(2025, 1, 2, 20, 0, tzinfo=eastern)) == "2025-01-03 01:00"


def test_only_what_was_built_here_is_left_unescaped():
    assert tag("p", "<b>", tag("b", "&"), Html("<hr>"), class_='"') == (
        '<p class="&quot;">&lt;b&gt;<b>&amp;</b><hr></p>'
    )
    assert join(("'", Html("'"))) == "&#x27;'"
    assert tag("input", disabled=True, hidden=False, title=None, data_x=3) == (
        '<input disabled data-x="3"></input>'
    )


def palettes() -> list[dict[str, str]]:
    """The colours of style.css by name, light and dark."""
    css = files("trader.report").joinpath("style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL)
    return [dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6})", block)) for block in blocks]


def luminance(colour: str) -> float:
    """Relative luminance; WCAG 2.2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_text_colour_can_be_read_on_every_ground(theme: int):
    colours = palettes()[theme]
    for ink in ("ink", "soft", "blue", "amber", "grey", "plum", "good", "bad"):
        for ground in ("page", "tint", "mark", "bad-tint"):
            pair = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
            contrast = (pair[0] + 0.05) / (pair[1] + 0.05)
            assert contrast >= 4.5, (ink, ground, round(contrast, 2))


@pytest.mark.parametrize(
    ("quantity", "written"),
    [
        (149.0, "149"),
        (1_500.0, "1,500"),
        (100, "100"),
        (0.123456789, "0.123456789"),
        (54.3251468, "54.3251468"),
        (0.0, "0"),
    ],
)
def test_shares_are_written_with_the_decimals_that_they_have(quantity, written):
    assert shares(quantity) == written
