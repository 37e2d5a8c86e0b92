"""The pitfalls of trading at Alpaca, each with the tests that keep us out of it.

The list is that of what has gone wrong in public bots and in alpaca-py itself. A row names what the
right behaviour is; the tests lie in the room that behaves so.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "trader"
STREAMS, PORT, GUARD = (
    "broker/test_streams.py",
    "broker/test_broker_port.py",
    "broker/test_guard.py",
)
BROKER, RULES = "broker/test_alpaca_broker.py", "broker/exchange/test_rules.py"
DATA, PARTS = "data/test_alpaca_data.py", "broker/exchange/test_partial_fills.py"
PROTECTION, INCIDENTS = "orders/test_protection.py", "orders/test_incidents.py"

PITFALLS: dict[int, tuple[str, tuple[str, ...]]] = {
    1: (
        "too many connections (406): one owner, and 90 seconds of patience",
        (
            f"{STREAMS}::test_after_too_many_connections_the_next_comes_no_sooner_than_90_seconds",
            f"{STREAMS}::test_every_error_of_market_data_ends_the_connection_with_its_code",
        ),
    ),
    2: (
        "connected but mute; a storm of reconnections",
        (
            f"{STREAMS}::test_silence_in_market_hours_is_noticed_within_30_seconds",
            f"{STREAMS}::test_a_quiet_stream_is_mute_only_when_a_message_was_due",
            f"{STREAMS}::test_no_five_minutes_ever_see_more_than_eight_connections",
        ),
    ),
    3: (
        "insufficient subscription (409): the thread ends without a word",
        (f"{STREAMS}::test_a_thread_that_ended_is_told_and_connected_anew_after_a_pause",),
    ),
    4: (
        "the 31st symbol (405): no exception and no data",
        (
            f"{STREAMS}::test_more_symbols_than_a_connection_carries_are_refused_before_it_is_opened",
            f"{STREAMS}::test_every_error_of_market_data_ends_the_connection_with_its_code",
        ),
    ),
    5: (
        "updates missed during a gap are never sent again",
        (
            f"{STREAMS}::test_trade_updates_over_a_real_connection_that_drops_and_comes_back",
            f"{STREAMS}::test_an_update_that_cannot_be_read_makes_the_consumer_look",
            f"{INCIDENTS}::test_15_what_the_fills_do_not_tell_is_learned_from_the_orders",
        ),
    ),
    6: (
        "recent SIP data on the free plan is a 403",
        (
            f"{DATA}::test_the_free_plan_of_all_exchanges_ends_sixteen_minutes_ago",
            f"{DATA}::test_recent_bars_that_the_plan_refuses_are_asked_for_once_more_and_older",
        ),
    ),
    7: (
        "volumes of one exchange are not those of all: the feed is stored with the series",
        (f"{DATA}::test_adjustment_and_feed_are_asked_for_stored_and_kept_apart",),
    ),
    8: (
        "raw prices have split cliffs",
        (f"{DATA}::test_a_cliff_of_a_split_that_nobody_adjusted_is_refused",),
    ),
    9: (
        "a corporate action that is wrong upstream",
        (
            f"{DATA}::test_a_leap_over_night_needs_a_corporate_action",
            f"{DATA}::test_a_split_that_was_adjusted_the_wrong_way_round_is_no_explanation",
        ),
    ),
    10: (
        "parts of a share: a day, simple, four types",
        (
            f"{RULES}::test_types_classes_and_lives_that_do_not_go_together",
            f"{PROTECTION}::test_a_part_of_a_share_gets_a_new_stop_in_every_session",
        ),
    ),
    11: ("parts of a share are never sold short", (f"{RULES}::test_nothing_is_sold_short",)),
    12: (
        "an order is worth a dollar at least, of a coin ten",
        (
            f"{RULES}::test_parts_of_a_share_cost_a_dollar_at_least",
            f"{RULES}::test_rules_of_coins",
        ),
    ),
    13: (
        "nine decimals and no binary rounding",
        (
            "broker/conformity/test_orders.py::test_a_float_goes_out_as_it_is_and_may_have_nine_decimals",
            f"{PORT}::test_a_replacement_carries_exact_numbers_and_its_own_client_id",
        ),
    ),
    14: (
        "prices lie on ticks",
        (
            f"{RULES}::test_prices_lie_on_ticks",
            f"{BROKER}::test_an_intent_becomes_an_order_with_legs_and_exact_prices",
        ),
    ),
    15: (
        "legs lie a cent beyond the base price",
        (f"{RULES}::test_bracket_levels_lie_a_cent_beyond_the_last_price",),
    ),
    16: (
        "a bracket is an entry, with both legs",
        (f"{RULES}::test_a_bracket_must_be_an_entry_and_an_oco_an_exit",),
    ),
    17: (
        "legs inherit the life of their entry: a day's stop is gone at the close",
        (
            "broker/exchange/test_fills.py::test_the_legs_of_a_day_bracket_expire_with_the_session_of_their_entry",
            f"{INCIDENTS}::test_13_a_stop_that_ended_with_the_session_is_placed_again",
        ),
    ),
    18: (
        "legs wake only when the entry has filled whole",
        (
            f"{PARTS}::test_legs_come_to_life_only_when_the_entry_has_traded_whole",
            f"{PROTECTION}::test_the_legs_of_an_entry_filled_in_part_guard_nothing_so_its_rest_goes_and_a_stop_comes",
        ),
    ),
    19: (
        "shares held by legs cannot be sold before the cancel is through",
        (
            f"{RULES}::test_shares_held_by_legs_cannot_be_sold_again_and_a_pair_holds_them_once",
            "orders/test_manager.py::test_shares_are_sold_only_once_their_stop_is_surely_canceled",
        ),
    ),
    20: (
        "a resting stop makes a new limit buy a wash trade",
        (f"{RULES}::test_wash_trades_are_refused_and_complex_orders_are_exempt",),
    ),
    21: (
        "a client id is used once, for ever, and has 48 characters at most",
        (
            f"{RULES}::test_a_client_order_id_is_never_taken_twice_even_after_a_cancel",
            f"{BROKER}::test_sending_the_same_intent_twice_returns_the_first_order",
        ),
    ),
    22: (
        "a cancel of a filled order is an error that means nothing",
        (
            f"{BROKER}::test_canceling_what_is_already_final_is_no_error_and_what_is_unknown_is_one",
            f"{INCIDENTS}::test_14_a_stop_that_was_filled_or_lost_while_nobody_looked_is_no_exception",
        ),
    ),
    23: (
        "pending and accepted orders are live, and so is an unknown status",
        (
            f"{BROKER}::test_an_unknown_status_loses_no_order_and_counts_as_open",
            "broker/exchange/test_routes.py::test_an_order_is_new_while_the_market_is_open_and_accepted_while_it_is_closed",
        ),
    ),
    24: (
        "a replacement that was refused and happened, a stop that was replaced by itself",
        (
            f"{PORT}::test_a_replacement_that_was_refused_or_lost_and_happened_all_the_same_is_found",
            f"{PORT}::test_what_took_the_place_of_a_replaced_leg_stands_beside_it",
            f"{PORT}::test_canceling_a_replaced_order_cancels_what_took_its_place",
        ),
    ),
    25: (
        "an error although the order went through; nothing that acts is repeated",
        (
            f"{BROKER}::test_an_answer_lost_after_the_order_was_taken_ends_in_that_one_order",
            f"{GUARD}::test_what_acts_is_sent_once",
            "broker/test_session.py::test_the_client_asks_once_and_never_again_by_itself",
        ),
    ),
    26: (
        "no position is a 404 and no error",
        ("broker/exchange/test_routes.py::test_a_flat_symbol_and_an_unknown_one_have_no_position",),
    ),
    27: (
        "one spelling of every symbol",
        (
            "core/test_instruments.py::test_each_spelling_has_one_meaning",
            f"{PORT}::test_a_position_of_coins_is_told_in_the_spelling_of_its_orders",
            f"{DATA}::test_shares_are_asked_for_in_alpacas_spelling",
        ),
    ),
    28: (
        "orders of coins live until canceled and have no legs",
        (
            f"{RULES}::test_rules_of_coins",
            f"{PROTECTION}::test_each_instrument_has_its_kind_of_stop",
        ),
    ),
    29: (
        "extended hours want a limit and a day",
        (
            f"{RULES}::test_contradictory_sizes_prices_and_hours_are_refused",
            f"{RULES}::test_an_extended_hours_order_is_shown_as_one",
        ),
    ),
    30: (
        "paper is optimistic: parts and caps can be asked for",
        (
            f"{PARTS}::test_about_the_wanted_fraction_of_orders_trades_in_parts",
            f"{PARTS}::test_an_order_beyond_the_share_of_the_volume_goes_on_with_the_next_bars",
        ),
    ),
    31: (
        "alpaca-py waits for ever",
        (
            f"{GUARD}::test_a_timeout_is_always_given_and_proxies_never_are",
            f"{GUARD}::test_a_server_that_never_answers_is_given_up",
        ),
    ),
    32: (
        "a moment without a time zone is no moment",
        (
            f"{DATA}::test_a_naive_moment_is_no_moment",
            f"{BROKER}::test_what_cannot_be_read_is_an_endpoint_error_that_names_it",
            f"{PORT}::test_the_clock_is_told_in_utc",
        ),
    ),
    33: (
        "news without a limit are fetched to the last page",
        ("data/test_alpaca_reads.py::test_news_has_a_limit_and_no_page_beyond_it_is_asked_for",),
    ),
    34: (
        "what a handler of a stream raises is swallowed: it only puts things aside",
        (
            f"{STREAMS}::test_updates_are_read_with_their_order_and_exact_numbers",
            f"{STREAMS}::test_every_failure_of_trade_updates_ends_the_connection_with_its_reason",
        ),
    ),
    35: (
        "half days and cut-offs come from a calendar",
        (
            "broker/exchange/test_fills.py::test_a_day_order_expires_at_the_early_close_of_a_half_day",
            f"{RULES}::test_on_a_half_day_the_cut_off_for_the_close_is_earlier_and_on_a_holiday_there_is_none",
            f"{DATA}::test_the_last_hour_of_a_half_day_ends_at_one",
        ),
    ),
}


@cache
def named_in(module: str) -> frozenset[str]:
    path = ROOT / module
    assert path.exists(), f"there is no {module}"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_pitfall_is_there():
    assert sorted(PITFALLS) == list(range(1, 36))


@pytest.mark.parametrize("number", PITFALLS)
def test_the_tests_of_a_pitfall_exist(number):
    behaviour, tests = PITFALLS[number]
    assert behaviour
    assert tests
    for name in tests:
        module, _, test = name.partition("::")
        assert test in named_in(module), name
