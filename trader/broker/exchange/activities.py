"""Account activities: fills and everything else that moved cash or shares, page by page."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from trader.broker.exchange.bar_frames import midnight_ns
from trader.broker.exchange.postings import Movement
from trader.broker.exchange.refusal import bad_field, plain
from trader.broker.exchange.request import FARTHEST_NS, Request
from trader.broker.exchange.wire import Json, moment, trade_json
from trader.core.market import from_ns, session_of

if TYPE_CHECKING:
    from trader.broker.exchange.desk import Desk

MOST_ACTIVITIES = 100
TRADES = ("FILL",)
OTHERS = (  # Alpaca's words; those that never happen here have no rows
    *("ACATC", "ACATS", "CFEE", "CIL", "CSD", "CSW", "DIV", "DIVCGL", "DIVCGS", "DIVFEE", "DIVFT"),
    *("DIVNRA", "DIVROC", "DIVTW", "DIVTXEX", "DIVWH", "EXTRD", "FEE", "FXTRD", "INT", "INTNRA"),
    *("INTPNL", "INTTW", "JNL", "JNLC", "JNLS", "MA", "MEM", "MISC", "NC", "OCT", "OPASN", "OPCA"),
    *("OPCSH", "OPEXC", "OPEXP", "OPTRD", "OPXRC", "PTC", "PTR", "REORG", "SC", "SPIN", "SPLIT"),
    *("SSO", "SSP", "SWP", "TRANS", "VOF", "WH"),
)
CATEGORIES = {"": TRADES + OTHERS, "trade_activity": TRADES, "non_trade_activity": OTHERS}


def activities(desk: Desk, request: Request) -> tuple[int, object]:
    """GET /v2/account/activities[/TYPE], in the order of booking, the newest first by default.

    A page token is the id of the last activity of the page before.
    """
    request.only(
        *("activity_types", "category", "date", "after", "until"),
        *("direction", "page_size", "page_token"),
    )
    after_ns, until_ns = _window(request)
    token = request.query.get("page_token")
    place = desk.store.postings.place(token) if token else None
    if token and place is None:
        raise bad_field(f"invalid page_token {token!r}")
    found = desk.store.postings.chosen(
        kinds=json.dumps(_kinds(request)),
        after=after_ns,
        until=until_ns,
        place=place and place[0],
        step=place and place[1],
        direction=1 if request.choice("direction", "desc", "asc") == "asc" else -1,
        limit=request.count("page_size", MOST_ACTIVITIES, MOST_ACTIVITIES),
    )
    return 200, [
        trade_json(desk.store.trade(sequence))
        if kind == "FILL"
        else movement_json(desk.store.postings.movement(sequence))
        for kind, sequence in found
    ]


def _kinds(request: Request) -> list[str]:
    """The kinds of activity asked for, in the path or by name or by category."""
    named = request.query.get("activity_types", "")
    category = request.choice("category", *CATEGORIES)
    if request.words[-1] != "activities":
        if named or category:
            raise bad_field("activity types can be given in the path or as a parameter, not both")
        named = request.words[-1]
    if not named:
        return list(CATEGORIES[category])
    if category:
        raise bad_field("activity_types and category cannot be given together")
    kinds = [kind.strip() for kind in named.split(",")]
    for kind in kinds:
        if kind not in TRADES + OTHERS:
            raise bad_field(f"invalid activity type: {kind}")
    return kinds


def _window(request: Request) -> tuple[int, int]:
    """Moments between which an activity must lie, both excluded."""
    day = request.date("date")
    after, until = request.moment("after"), request.moment("until")
    if day is not None:
        if after is not None or until is not None:
            raise bad_field("date cannot be given together with after or until")
        return midnight_ns(day) - 1, midnight_ns(day + timedelta(days=1))
    return (
        -FARTHEST_NS if after is None else after,
        FARTHEST_NS if until is None else until,
    )


def movement_json(movement: Movement) -> Json:
    """An activity that is no fill; its `qty` is that of shares which came, went or earned it."""
    quantity = movement.quantity if movement.shares is None else movement.shares
    told: Json = {
        "id": movement.activity_id,
        "activity_type": movement.kind,
        "date": session_of(from_ns(movement.at_ns)).isoformat(),
        "created_at": moment(movement.at_ns),
        "net_amount": plain(movement.amount),
        "description": movement.description,
        "status": "executed",
    }
    if movement.symbol is not None:
        told |= {"symbol": movement.symbol, "qty": plain(quantity)}
    if movement.per_share is not None:
        told["per_share_amount"] = plain(movement.per_share)
    return told
