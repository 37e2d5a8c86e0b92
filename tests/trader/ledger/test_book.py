"""Accounting laws: cash and shares always add up, whatever the fills."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trader.core.errors import StateError
from trader.core.trading import Activity, ActivityKind, Fill, Portfolio, Position, Side
from trader.ledger.book import Book, BookedFill

NOW = datetime(2025, 3, 3, 21, tzinfo=UTC)


def booked(number, side, quantity, price, *, trade="t", fee="0", reason=None, symbol="AAPL"):
    fill = Fill(
        execution_id=f"x{number}",
        order_id=f"o{number}",
        client_order_id=f"c{number}",
        symbol=symbol,
        side=side,
        quantity=Decimal(quantity),
        price=Decimal(price),
        fee=Decimal(fee),
        filled_at=NOW + timedelta(days=number),
    )
    meaning = reason or ("entry" if side is Side.BUY else "stop")
    return BookedFill(fill=fill, trade_id=trade, reason=meaning, slippage=Decimal(0))


def test_partial_exits_count_the_entry_fee_once():
    book = Book(cash=Decimal(10_000))
    book.apply(booked(1, Side.BUY, 100, 10, fee="10"))
    book.apply(booked(2, Side.SELL, 50, 9, fee="4.5"))
    trade = book.apply(booked(3, Side.SELL, 50, 12, fee="6", reason="target"))
    assert trade.profit == Decimal("450") + 600 - 1000 - Decimal("20.5")
    assert not trade.is_open
    assert trade.exit_reason == "target"
    assert book.cash == Decimal(10_000) + trade.profit
    assert book.quantities == {}


def test_an_open_trade_is_marked_and_stays_open():
    book = Book(cash=Decimal(100_000))
    book.apply(booked(1, Side.BUY, 1, 100))
    assert book.equity({"AAPL": Decimal(110)}) == Decimal(100_010)
    assert [trade.trade_id for trade in book.open_trades("AAPL")] == ["t"]
    assert book.open_trades("MSFT") == ()


def test_selling_what_a_trade_does_not_hold_is_a_contradiction():
    book = Book(cash=Decimal(1_000))
    book.apply(booked(1, Side.BUY, 1, 100))
    cash = book.cash
    with pytest.raises(StateError, match="does not hold"):
        book.apply(booked(2, Side.SELL, 2, 100))
    with pytest.raises(StateError, match="does not hold"):
        book.apply(booked(3, Side.SELL, 1, 100, trade="other"))
    assert book.cash == cash


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.booleans(),
            st.integers(1, 50),
            st.decimals("0.01", "999.9999", places=4),
            st.decimals("0", "9.99", places=2),
        ),
        max_size=40,
    )
)
@settings(deadline=None)
def test_cash_and_shares_balance_after_any_sequence_of_fills(moves):
    start = Decimal(1_000_000)
    book, expected, shares = Book(cash=start), start, dict.fromkeys("abc", Decimal(0))
    for number, (trade, buy, quantity, price, fee) in enumerate(moves):
        side = Side.BUY if buy else Side.SELL
        item = booked(number, side, quantity, price, trade=trade, fee=fee, symbol=trade)
        if not buy and shares[trade] < quantity:
            with pytest.raises(StateError):
                book.apply(item)
            continue
        book.apply(item)
        sign = 1 if buy else -1
        shares[trade] += sign * quantity
        expected -= sign * quantity * price + fee
    assert book.cash == expected
    assert book.quantities == {key: value for key, value in shares.items() if value}
    profits = sum((trade.profit for trade in book.trades.values()), Decimal(0))
    assert start + profits == book.cash
    portfolio = Portfolio(
        cash=book.cash,
        equity=book.cash,
        positions=tuple(
            Position(symbol=s, quantity=q, average_entry_price=Decimal(1), current_price=Decimal(1))
            for s, q in book.quantities.items()
        ),
        as_of=NOW,
    )
    book.require_agreement(portfolio)


def test_a_broker_that_disagrees_is_named_with_both_figures():
    book = Book(cash=Decimal(1_000))
    book.apply(booked(1, Side.BUY, 3, 100))
    other = Portfolio(cash=Decimal(700), equity=Decimal(700), positions=(), as_of=NOW)
    with pytest.raises(StateError, match="holds 0 AAPL, the ledger 3"):
        book.require_agreement(other)
    held = Position(
        symbol="AAPL",
        quantity=Decimal(3),
        average_entry_price=Decimal(100),
        current_price=Decimal(100),
    )
    off = Portfolio(cash=Decimal("700.01"), equity=Decimal(1_000), positions=(held,), as_of=NOW)
    with pytest.raises(StateError, match="cash"):
        book.require_agreement(off)


def moved(kind, *, amount="0", symbol=None, quantity="0"):
    return Activity(
        activity_id="a1",
        kind=kind,
        symbol=symbol,
        amount=Decimal(amount),
        quantity=Decimal(quantity),
        at=NOW,
    )


def test_a_top_up_is_a_transfer_and_a_dividend_is_income():
    book = Book(cash=Decimal(1_000))
    book.apply_activity(moved(ActivityKind.TRANSFER, amount="500"))
    book.apply_activity(moved(ActivityKind.TRANSFER, amount="-200"))
    book.apply_activity(moved(ActivityKind.DIVIDEND, amount="12.34", symbol="AAPL"))
    book.apply_activity(moved(ActivityKind.FEE, amount="-0.34"))
    assert (book.cash, book.transfers, book.income) == (Decimal(1_312), Decimal(300), Decimal(12))


def test_a_split_changes_no_worth_and_no_profit():
    book = Book(cash=Decimal(10_000))
    book.apply(booked(1, Side.BUY, 10, 90, trade="a"))
    book.apply(booked(2, Side.BUY, 5, 90, trade="b"))
    book.apply(booked(3, Side.SELL, 4, 120, trade="a"))
    book.apply_activity(moved(ActivityKind.SPLIT, symbol="AAPL", quantity="22"))  # 11 to 33
    assert book.quantities == {"AAPL": Decimal(33)}
    assert [trade.open_quantity for trade in book.open_trades()] == [Decimal(18), Decimal(15)]
    assert book.trades["a"].entry_price == Decimal(30)
    assert book.trades["a"].exit_price == Decimal(40)
    book.apply(booked(4, Side.SELL, 18, 30, trade="a"))
    book.apply(booked(5, Side.SELL, 15, 30, trade="b"))
    assert book.trades["a"].profit == 480 + 540 - 900
    assert book.trades["b"].profit == 0


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(-30, 300))
@settings(deadline=None)
def test_a_split_of_any_ratio_keeps_every_share_in_a_trade(quantities, added):
    book = Book(cash=Decimal(1_000_000))
    for number, quantity in enumerate(quantities):
        book.apply(booked(number, Side.BUY, quantity, 100, trade=f"t{number}"))
    held = sum(quantities)
    book.apply_activity(moved(ActivityKind.SPLIT, symbol="AAPL", quantity=str(added)))
    expected = held + added if held + added > 0 else held
    assert book.quantities == {"AAPL": Decimal(expected)}
    assert sum(trade.open_quantity for trade in book.open_trades()) == expected
    assert all(trade.open_quantity >= 0 for trade in book.trades.values())


def test_shares_that_come_and_go_without_a_fill_move_no_cash():
    book = Book(cash=Decimal(10_000))
    book.apply(booked(1, Side.BUY, 4, 100, trade="ours"))
    book.bring("import-AAPL-1", "AAPL", Decimal(6), Decimal(90), NOW)
    assert (book.cash, book.quantities) == (Decimal(9_600), {"AAPL": Decimal(10)})
    book.take("AAPL", Decimal(7), NOW)
    assert book.trades["import-AAPL-1"].open_quantity == 0, "imports go first"
    assert book.trades["ours"].open_quantity == 3
    assert book.trades["import-AAPL-1"].profit == 0
    assert book.cash == 9_600
    with pytest.raises(StateError, match="holds fewer"):
        book.take("AAPL", Decimal(4), NOW)


def test_an_adjustment_makes_the_shares_the_brokers_even_a_short():
    book = Book(cash=Decimal(10_000))
    book.apply(booked(1, Side.BUY, 4, 100))
    book.adjust("import-AAPL-1", "AAPL", Decimal(-6), Decimal(0), NOW)
    assert book.quantities == {"AAPL": Decimal(-2)}
    assert book.open_trades() == ()
    book.adjust("import-MSFT-1", "MSFT", Decimal(3), Decimal(50), NOW)
    assert book.trades["import-MSFT-1"].entry_price == 50


def test_a_sale_takes_its_own_trade_first_then_imports_then_the_oldest():
    book = Book(cash=Decimal(10_000))
    for number, trade in enumerate(("old", "new", "own")):
        book.apply(booked(number, Side.BUY, 2, 100, trade=trade))
    book.bring("import-AAPL-1", "AAPL", Decimal(2), Decimal(90), NOW)
    parts = [(trade.trade_id, part) for trade, part in book.sellers("AAPL", Decimal(7), "own")]
    assert parts == [("own", 2), ("import-AAPL-1", 2), ("old", 2), ("new", 1)]
