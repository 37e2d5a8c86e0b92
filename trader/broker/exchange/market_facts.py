"""The rest of Alpaca's market data: news, corporate actions and the screeners."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trader.broker.exchange import market_data
from trader.broker.exchange.postings import Happening
from trader.broker.exchange.records import derived_id
from trader.broker.exchange.refusal import bad_data_request
from trader.broker.exchange.request import Request
from trader.broker.exchange.wire import Json, moment
from trader.core.instruments import is_crypto
from trader.core.market import from_ns, session_of

if TYPE_CHECKING:
    from trader.broker.exchange.desk import Desk

ACTIONS = {
    "reverse_split": "reverse_splits",
    "forward_split": "forward_splits",
    "cash_dividend": "cash_dividends",
    **{  # none of these ever happens here
        name: f"{name}s"
        for name in (
            *("unit_split", "stock_dividend", "spin_off", "cash_merger", "stock_merger"),
            *("stock_and_cash_merger", "redemption", "name_change", "worthless_removal"),
            *("rights_distribution", "partial_call"),
        )
    },
}
MOST_ACTIONS, MOST_NEWS, MOST_ACTIVE, MOST_MOVERS = 1000, 50, 100, 50


def handler(words: tuple[str, ...]) -> Callable[[Desk, Request], Json] | None:
    """What answers GET of a path; None where this module has none."""
    match words:
        case ("v1beta1", "news"):
            return news
        case ("v1", "corporate-actions"):
            return corporate_actions
        case ("v1beta1", "screener", "stocks", "most-actives"):
            return most_actives
        case ("v1beta1", "screener", "stocks" | "crypto", "movers"):
            return movers
    return None


def news(_desk: Desk, request: Request) -> Json:
    """No article: the exchange has no newsroom."""
    request.only(
        *("symbols", "start", "end", "limit", "sort", "page_token"),
        *("include_content", "exclude_contentless"),
    )
    request.count("limit", 10, MOST_NEWS)
    request.choice("sort", "desc", "asc")
    request.moment("start")
    request.moment("end")
    return {"news": [], "next_page_token": None}


def corporate_actions(desk: Desk, request: Request) -> Json:
    """Splits and cash dividends with an ex-date from `start` to `end`, by kind.

    Those that were announced are known at once, those that only the bars show from their opening
    on. Without dates the present day is meant.
    """
    request.only(
        *("symbols", "types", "start", "end", "ids", "cusips", "limit", "sort", "page_token")
    )
    found = [
        (_kind(one), one)
        for symbol in sorted(desk.prices.symbols & _named(request, desk.prices.symbols))
        for one in desk.prices.happenings(symbol)
        if one.at_ns <= desk.store.clock_ns() or desk.prices.is_announced(one)
    ]
    if "ids" in request.query:
        ids = request.query["ids"].split(",")
        found = [(kind, one) for kind, one in found if _id(kind, one) in ids]
    else:
        today = session_of(from_ns(desk.store.clock_ns()))
        first, last = request.date("start") or today, request.date("end") or today
        types = request.query.get("types", ",".join(ACTIONS)).split(",")
        for name in types:
            if name not in ACTIONS:
                raise bad_data_request(f"invalid type: {name}")
        found = [(k, one) for k, one in found if k in types and first <= one.session <= last]
    forward = request.choice("sort", "asc", "desc") == "asc"
    found.sort(key=lambda pair: (pair[1].session, pair[1].symbol), reverse=not forward)
    limit = request.count("limit", 100, MOST_ACTIONS)
    skipped = request.count("page_token", 1, 10**6) if request.query.get("page_token") else 0
    actions: dict[str, list[Json]] = {}
    for kind, one in found[skipped : skipped + limit]:
        actions.setdefault(ACTIONS[kind], []).append(_action_json(kind, one))
    following = skipped + limit
    return {
        "corporate_actions": actions,
        "next_page_token": str(following) if following < len(found) else None,
    }


def most_actives(desk: Desk, request: Request) -> Json:
    """Shares with the most volume of the newest day; how many trades there were is not known."""
    request.only("by", "top")
    request.choice("by", "volume", "trades")
    days = _days(desk, coins=False)
    ranked = sorted(days, key=lambda symbol: (-float(str(days[symbol][-1]["v"])), symbol))
    top = ranked[: request.count("top", 10, MOST_ACTIVE)]
    return {
        "most_actives": [
            {"symbol": symbol, "volume": days[symbol][-1]["v"], "trade_count": 0} for symbol in top
        ],
        "last_updated": moment(desk.store.clock_ns()),
    }


def movers(desk: Desk, request: Request) -> Json:
    """What gained and what lost the most from the day before to the newest day, percent."""
    request.only("top")
    count = request.count("top", 10, MOST_MOVERS)
    market = request.words[2]
    moved = []
    for symbol, days in _days(desk, coins=market == "crypto").items():
        if len(days) == 2:  # the day before and the newest
            before, now = (float(str(day["c"])) for day in days)
            moved.append(
                {
                    "symbol": symbol,
                    "percent_change": round(100 * (now / before - 1), 2),
                    "change": round(now - before, 4),
                    "price": now,
                }
            )
    moved.sort(key=lambda row: float(str(row["percent_change"])))
    return {
        "gainers": [row for row in moved[::-1] if float(str(row["change"])) > 0][:count],
        "losers": [row for row in moved if float(str(row["change"])) < 0][:count],
        "market_type": market,
        "last_updated": moment(desk.store.clock_ns()),
    }


def _days(desk: Desk, *, coins: bool) -> dict[str, list[Json]]:
    """The two newest daily bars of every symbol that has one."""
    symbols = sorted(name for name in desk.prices.symbols if is_crypto(name) is coins)
    found = {symbol: market_data.days_of(desk, symbol) for symbol in symbols}
    return {symbol: days for symbol, days in found.items() if days}


def _named(request: Request, everything: frozenset[str]) -> frozenset[str]:
    """The symbols asked for, all when none is named."""
    if "symbols" not in request.query:
        return everything
    return frozenset(request.query["symbols"].split(","))


def _kind(happening: Happening) -> str:
    if happening.ratio == 1:
        return "cash_dividend"
    return "forward_split" if happening.ratio > 1 else "reverse_split"


def _id(kind: str, happening: Happening) -> str:
    return str(derived_id("corporate action", f"{kind}:{happening.symbol}:{happening.session}"))


def _action_json(kind: str, happening: Happening) -> Json:
    """Every date of it is its session: who held at the close before has it at the opening."""
    day = happening.session.isoformat()
    told: Json = {
        "id": _id(kind, happening),
        "symbol": happening.symbol,
        "process_date": day,
        "ex_date": day,
        "record_date": day,
        "payable_date": day,
    }
    if kind == "cash_dividend":
        rate = float(happening.per_share)
        return told | {"cusip": "", "rate": rate, "special": False, "foreign": False}
    told |= {"new_rate": happening.ratio.numerator, "old_rate": happening.ratio.denominator}
    cusips = ("cusip",) if kind == "forward_split" else ("old_cusip", "new_cusip")
    return told | dict.fromkeys(cusips, "")
