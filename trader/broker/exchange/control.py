"""The strings behind a served market: its clock, its mishaps and its faults, as small JSON.

GET  /control                                    market time, faults left, faults that have struck
POST /control/advance   {"slots": 1}             or {"seconds": 3600} or {"to": "2026-07-02T20:00Z"}
POST /control/faults    {"seed": 7, "faults": [{"fault": "lost_answer", "where": "POST *orders"}]}
                                                 in the place of all before; `Switch` has the fields
POST /control/drop      {}                       breaks every websocket connection
POST /control/halt      {"symbol": "AAPL", "on": true}
POST /control/split     {"symbol": "AAPL", "ratio": "4", "session": "2026-07-06"}
POST /control/dividend  {"symbol": "AAPL", "per_share": "0.25", "session": "2026-07-06"}
POST /control/deposit   {"amount": "1000"}       negative to take money out
POST /control/fee       {"amount": "0.35", "description": "regulatory fee"}
POST /control/block     {"reason": "by hand"}    empty to let the account trade again
POST /control/reset     {"cash": "100000"}       another account; orders and shares are gone

What is wrong is answered with 422 and its reason, and nothing is changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from trader.broker.exchange.exchange import Exchange
from trader.broker.exchange.faults import Fault, Faults, Switch
from trader.broker.exchange.refusal import RefusalError, bad_field, not_found
from trader.core.errors import TraderError

Body = Mapping[str, Any]
Answer = tuple[int, object]
LONGEST_WALK = 10_000  # slots or
LONGEST_SECONDS = 10 * 366 * 86_400


class Control:
    """Does what /control asks for.

    next_slot  the decision slot after a moment, for {"slots": n}
    walk       moves the market from now to where the function says, and tells its subscribers
    drop       breaks every websocket connection and says how many there were
    """

    def __init__(
        self,
        exchange: Exchange,
        faults: Faults,
        *,
        next_slot: Callable[[datetime], datetime],
        walk: Callable[[Callable[[datetime], datetime]], None],
        drop: Callable[[], int],
    ) -> None:
        self._exchange = exchange
        self._faults = faults
        self._next_slot = next_slot
        self._walk = walk
        self._drop = drop
        self._deeds: dict[str, Callable[[Body], None]] = {
            "advance": self._move,
            "faults": self._set_faults,
            "drop": self._break,
            "halt": self._halt,
            "split": self._split,
            "dividend": self._dividend,
            "deposit": self._deposit,
            "fee": self._charge,
            "block": self._block,
            "reset": self._reset,
        }

    def handle(self, method: str, path: str, body: bytes | None) -> Answer:
        """Answer a request whose path begins with /control."""
        word = path.removeprefix("/control").removeprefix("/")
        try:
            if method == "POST" and word in self._deeds:
                self._deeds[word](_read(body))
            elif (method, word) != ("GET", ""):
                raise not_found(
                    f"there is no {method} {path}; GET /control, or POST one of "
                    f"{', '.join(self._deeds)}"
                )
        except RefusalError as refusal:
            return refusal.status, refusal.body
        except (ValueError, TraderError) as exc:
            return 422, bad_field(str(exc)).body
        return 200, self._state()

    def _state(self) -> dict[str, object]:
        return {
            "market_time": self._exchange.now().isoformat(),
            "faults": [asdict(switch) | {"left": left} for switch, left in self._faults.left()],
            "struck": dict(self._faults.struck),
        }

    def _move(self, body: Body) -> None:
        [(how, value)] = _only(body, "slots", "seconds", "to", exactly=1).items()
        if how == "to":
            to = _moment(value)
            self._walk(lambda _: to)
        elif how == "seconds":
            seconds = float(_number("seconds", value))
            if not 0 <= seconds <= LONGEST_SECONDS:
                raise bad_field(f"seconds must be from 0 to {LONGEST_SECONDS}, not {value!r}")
            self._walk(lambda now: now + timedelta(seconds=seconds))
        else:
            if type(value) is not int or not 1 <= value <= LONGEST_WALK:
                raise bad_field(f"slots must be a whole number from 1 to {LONGEST_WALK}")
            for _ in range(value):
                self._walk(self._next_slot)

    def _set_faults(self, body: Body) -> None:
        _only(body, "seed", "faults")
        seed, wanted = body.get("seed", 0), body.get("faults", [])
        if not isinstance(seed, int) or not isinstance(wanted, list):
            raise bad_field("seed must be a whole number and faults a list")
        self._faults.set([read_switch(item) for item in wanted], seed=seed)

    def _break(self, body: Body) -> None:
        _only(body)
        self._drop()

    def _halt(self, body: Body) -> None:
        _only(body, "symbol", "on", exactly=2)
        if not isinstance(body["on"], bool):
            raise bad_field("on must be true or false")
        self._exchange.halt(_word(body, "symbol"), body["on"])

    def _split(self, body: Body) -> None:
        _only(body, "symbol", "ratio", "session", exactly=3)
        ratio = _number("ratio", body["ratio"])
        self._exchange.split(_word(body, "symbol"), ratio, _session(body))

    def _dividend(self, body: Body) -> None:
        _only(body, "symbol", "per_share", "session", exactly=3)
        per_share = _number("per_share", body["per_share"])
        self._exchange.pay_dividend(_word(body, "symbol"), per_share, _session(body))

    def _deposit(self, body: Body) -> None:
        _only(body, "amount", exactly=1)
        self._exchange.deposit(_number("amount", body["amount"]))

    def _charge(self, body: Body) -> None:
        _only(body, "amount", "description", exactly=2)
        self._exchange.charge(_number("amount", body["amount"]), _word(body, "description"))

    def _block(self, body: Body) -> None:
        _only(body, "reason", exactly=1)
        self._exchange.block(_word(body, "reason"))

    def _reset(self, body: Body) -> None:
        _only(body, "cash", exactly=1)
        self._exchange.reset(_number("cash", body["cash"]))


def read_switch(item: object) -> Switch:
    """A switch of faults from its JSON; RefusalError or ValueError for what is wrong in it."""
    known = [field.name for field in fields(Switch)]
    if not isinstance(item, dict):
        raise bad_field(f"a fault is an object with {', '.join(known)}")
    _only(item, *known)
    words = {name: value for name, value in item.items() if name != "fault"}
    for name, value in words.items():
        wanted = KINDS[name]
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise bad_field(f"{name} cannot be {value!r}")
    return Switch(fault=Fault(item.get("fault", "")), **words)


KINDS: dict[str, Any] = {
    "where": str,
    "probability": int | float,
    "times": int | None,
    "skip": int,
    "reached": bool,
    "lookups": int,
    "code": int,
}


def _read(body: bytes | None) -> Body:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as exc:
        raise bad_field(f"request body format is invalid: {exc}") from exc
    if not isinstance(found, dict):
        raise bad_field("request body format is invalid: it is not a JSON object")
    return found


def _only(body: Body, *known: str, exactly: int | None = None) -> Body:
    strangers = [name for name in body if name not in known]
    if strangers or (exactly is not None and len(body) != exactly):
        how = "" if exactly is None or exactly == len(known) else " (one of them)"
        found = ", ".join(map(str, body)) or "an empty one"
        raise bad_field(f"the body takes {', '.join(known) or 'nothing'}{how}, not {found}")
    return body


def _word(body: Body, name: str) -> str:
    value = body[name]
    if not isinstance(value, str) or not value.isprintable():
        raise bad_field(f"{name} must be text")
    return value


def _number(name: str, value: object) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("nan")
    if isinstance(value, bool) or not number.is_finite():
        raise bad_field(f"{name} must be a number, not {value!r}")
    return number


def _moment(value: object) -> datetime:
    moment = datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        raise bad_field(f"to needs a time zone, as in {value}Z")
    return moment


def _session(body: Body) -> date:
    return date.fromisoformat(_word(body, "session"))
