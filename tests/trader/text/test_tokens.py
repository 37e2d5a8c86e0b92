"""The token estimate: exact, growing with the text, and hardly below a real vocabulary."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trader.text.tokens import estimated_tokens

MARKET = "\n".join(f"E{n} sma_{n} {200 + n / 7:.2f} USD" for n in range(1, 200))


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("a" * 22, 10), ("é" * 11, 10)])
def test_it_is_bytes_over_two_point_two_rounded_up(text, tokens):
    assert estimated_tokens(text) == tokens


@given(st.text(), st.text())
def test_a_text_never_takes_fewer_tokens_for_being_longer(text, more):
    assert estimated_tokens(text) <= estimated_tokens(text + more)


def test_half_a_surrogate_is_counted_too():
    assert estimated_tokens("\ud800") == 2


@pytest.mark.parametrize("text", [MARKET, "The price rose. " * 50], ids=["table", "prose"])
def test_even_a_bare_table_of_numbers_takes_hardly_more_by_a_real_vocabulary(text):
    bpe = pytest.importorskip("rs_bpe.bpe")
    assert 1.1 * estimated_tokens(text) >= len(bpe.openai.o200k_base().encode(text))
