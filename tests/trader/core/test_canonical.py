"""Canonical JSON: one text per value, the way back, and what has no text at all."""

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core import costs, decision, market, metrics, trading
from trader.core.canonical import canonical_json, from_primitive, sha256_of, to_primitive
from trader.core.costs import Costs
from trader.core.decision import Claim, Decision, RiskFlag
from trader.core.market import Bar, BarSeries, Timeframe
from trader.core.trading import Fill, Order, Side

RECORDED = [
    kind
    for module in (costs, decision, market, metrics, trading)
    for kind in vars(module).values()
    if dataclasses.is_dataclass(kind)
    and kind.__module__ == module.__name__
    and kind is not BarSeries  # arrays are hashed, never written as JSON
]
CASES = pytest.mark.parametrize("kind", RECORDED, ids=lambda kind: kind.__name__)

SCALARS = {
    str: st.text(max_size=8),
    bool: st.booleans(),
    int: st.integers(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Decimal: st.decimals(min_value=-(10**30), max_value=10**30),
    date: st.dates(),
    datetime: st.datetimes(
        min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC)
    ),
}


def values(kind, depth=0):
    """A strategy for any type that a recorded dataclass may use."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind in SCALARS:
        return SCALARS[kind]
    if origin in (typing.Union, types.UnionType):
        return st.none() | values(parts[0], depth)
    if origin is typing.Literal:
        return st.sampled_from(parts)
    if origin is tuple and parts[-1] is Ellipsis:
        if depth > 4:  # legs of legs of legs
            return st.just(())
        return st.lists(values(parts[0], depth + 1), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(values(part, depth) for part in parts))
    if origin is Mapping:
        return st.dictionaries(st.text(max_size=4), values(parts[1], depth), max_size=2)
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    hints = typing.get_type_hints(kind)
    return st.fixed_dictionaries(
        {field.name: values(hints[field.name], depth + 1) for field in dataclasses.fields(kind)}
    ).map(lambda fields: kind(**fields))


def disguised(value):
    """An equal value that is spelled differently: ints for floats, padded Decimals, other zones."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Decimal) and abs(value.as_tuple().exponent) < 20:
        return Decimal(f"{value:f}" + ("000" if "." in f"{value:f}" else ".000"))
    if isinstance(value, datetime):
        return value.astimezone(timezone(timedelta(hours=-5)))
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(
            value, **{f.name: disguised(getattr(value, f.name)) for f in dataclasses.fields(value)}
        )
    if isinstance(value, tuple):
        return tuple(disguised(item) for item in value)
    if isinstance(value, dict):
        return {key: disguised(item) for key, item in reversed(value.items())}
    return value


def test_every_record_of_the_core_is_covered():
    assert {"CycleRecord", "Order", "Fill", "Bar", "Costs", "Performance"} <= {
        kind.__name__ for kind in RECORDED
    }


@CASES
def test_a_record_read_back_equals_the_one_written(kind):
    @settings(deadline=None, max_examples=10)
    @given(values(kind))
    def law(record):
        assert from_primitive(kind, json.loads(canonical_json(record))) == record

    law()


@CASES
def test_equal_records_have_equal_hashes_however_they_are_spelled(kind):
    @settings(deadline=None, max_examples=10)
    @given(values(kind))
    def law(record):
        twin = disguised(record)
        assert twin == record
        assert sha256_of(twin) == sha256_of(record)
        again = from_primitive(kind, json.loads(canonical_json(record)))
        assert sha256_of(again) == sha256_of(record)

    law()


@settings(deadline=None)
@given(values(Fill), values(Fill))
def test_unequal_records_have_unequal_hashes(one, other):
    assert (one == other) == (sha256_of(one) == sha256_of(other))


@settings(deadline=None)
@given(values(Fill), st.text(min_size=1))
def test_a_change_of_one_letter_changes_the_hash(fill, more):
    assert sha256_of(dataclasses.replace(fill, symbol=fill.symbol + more)) != sha256_of(fill)


def test_the_text_is_written_exactly_so():
    fill = Fill(
        execution_id="x1",
        order_id="o1",
        client_order_id="ü",
        symbol="AAPL",
        side=Side.BUY,
        quantity=Decimal("10.00"),
        price=Decimal("1E+2"),
        fee=Decimal("-0.00"),
        filled_at=datetime(2026, 7, 1, 9, 30, tzinfo=timezone(timedelta(hours=-4))),
    )
    text = (
        '{"client_order_id":"\\u00fc","execution_id":"x1","fee":"0",'
        '"filled_at":"2026-07-01T13:30:00Z","order_id":"o1","price":"100","quantity":"10",'
        '"side":"buy","symbol":"AAPL"}'
    )
    assert canonical_json(fill) == text
    assert sha256_of(fill) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (2.0**53, "9007199254740992"),
        (Decimal("12345678901234567890123456789012.50"), '"12345678901234567890123456789012.5"'),
        (Decimal("1200"), '"1200"'),
        (date(2026, 7, 1), '"2026-07-01"'),
        ({"b": (1, 2), "a": None}, '{"a":null,"b":[1,2]}'),
    ],
)
def test_each_kind_of_value_has_one_text(value, text):
    assert canonical_json(value) == text


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
        datetime(2026, 7, 1),
        [1, {"a": float("nan")}],
    ],
)
def test_a_value_without_a_single_text_is_refused(value):
    with pytest.raises(ValueError, match=r"cannot be recorded|time zone is missing"):
        to_primitive(value)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", 1j, Costs])
def test_an_unknown_type_is_refused(value):
    with pytest.raises(TypeError, match="cannot be recorded"):
        to_primitive(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (float, float("nan")),
        (float, float("inf")),
        (float, 10**400),
        (float, True),
        (float, "1"),
        (int, True),
        (int, 1.5),
        (str, 1),
        (Decimal, 1.5),
        (Decimal, "NaN"),
        (Decimal, "ten"),
        (datetime, "2026-07-01T13:30:00"),
        (datetime, 5),
        (date, "2026-02-30"),
        (Decision, "MAYBE"),
        (tuple[str, ...], "abc"),
        (tuple[str, float], ["a"]),
        (Mapping[str, float], [1.0]),
        (typing.Literal["bull"], "bear"),
        (Costs, {"slippage_bps": 5}),
        (Costs, {"slippage_bps": 5, "fee_bps": 0, "commission_per_order": 0, "more": 1}),
        (RiskFlag, None),
    ],
)
def test_json_of_another_shape_is_refused(kind, value):
    with pytest.raises((TypeError, ValueError)):
        from_primitive(kind, value)


def test_missing_fields_are_refused_even_where_there_is_a_default():
    body = to_primitive(
        Claim(
            text="",
            evidence_ids=("E1",),
            field="close",
            operator="<",
            quoted_value=1.0,
            unit="USD",
        )
    )
    del body["status"]
    with pytest.raises(ValueError, match="not a Claim"):
        from_primitive(Claim, body)


def test_nested_legs_and_enums_come_back_as_their_own_types():
    bar = Bar(
        symbol="ON",
        timeframe=Timeframe.DAY,
        timestamp=datetime(2026, 7, 1, tzinfo=UTC),
        available_at=datetime(2026, 7, 1, 20, tzinfo=UTC),
        open=1.0,
        high=2.0,
        low=1.0,
        close=2.0,
        volume=100.0,
    )
    again = from_primitive(Bar, json.loads(canonical_json(bar)))
    assert isinstance(again.timeframe, Timeframe)
    assert isinstance(again.volume, float)
    assert typing.get_type_hints(Order)["legs"] == tuple[Order, ...]
