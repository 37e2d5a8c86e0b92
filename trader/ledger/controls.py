"""Controls: what stops entries, and what a person wants done, each recorded before anything acts.

Records of the kind `control` only ever grow; the state is what they add up to. Several processes
may append: a command writes here while a daemon holds the folder, and the daemon reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from trader.core.canonical import from_primitive
from trader.core.clock import SystemClock
from trader.core.decision import RiskFlag
from trader.core.errors import OrderRefusedError, UsageError
from trader.core.flags import FlagCode
from trader.core.market import session_of
from trader.ledger.store import Ledger

WishAction = Literal["close", "cancel", "acknowledge"]
Action = Literal[
    "halt", "resume", "freeze", "pause", "unpause", "lock", "close", "cancel", "acknowledge", "done"
]
CODES: Mapping[Action, FlagCode] = {
    "halt": FlagCode.TRADING_HALTED,
    "freeze": FlagCode.TRADING_FROZEN,
    "pause": FlagCode.TRADING_PAUSED,
    "lock": FlagCode.SYMBOL_LOCKED,
}
WORDS: Mapping[Action, str] = {
    "halt": "trading halted",
    "resume": "trading resumed",
    "freeze": "trading frozen",
    "pause": "entries paused",
    "unpause": "entries allowed again",
    "lock": "entries locked",
    "close": "close",
    "cancel": "cancel order",
    "acknowledge": "the broker's numbers acknowledged",
    "done": "done with",
}
ENTRIES = "entries"
KILL_SWITCH = "the kill switch"
PERSON = "a person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One thing that was forbidden, allowed again or wished for.

    target  the symbol that is paused, locked or closed (None: all), the order that is canceled, or
            the wish that is done
    until   when it ends by itself; None: when someone ends it
    """

    control_id: str
    action: Action
    target: str | None
    reason: str
    by: str
    at: datetime  # market time, UTC
    until: datetime | None

    @property
    def words(self) -> str:
        """What it says, for a person."""
        what, target = WORDS[self.action], self.target or ("all" if self.action == "close" else "")
        if target and what.startswith(ENTRIES):
            what = f"{ENTRIES} in {target}{what.removeprefix(ENTRIES)}"
        elif target:
            what = f"{what} {target}"
        until = f" until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else ""
        return f"{what}{until}, by {self.by}: {self.reason}"

    def ended(self, at: datetime) -> bool:
        """Whether it had an end and that has come."""
        return self.until is not None and at >= self.until


class Controls:
    """The guard over entries of one ledger; implements `TradingHalt`.

    Every method that changes something has recorded it when it returns, and must not be called
    inside a transaction that may still be undone. Times are market time.

    now  market time, for what ends by itself and where a method is not told the time
    """

    def __init__(self, ledger: Ledger, *, now: Callable[[], datetime] | None = None) -> None:
        self._ledger, self._now = ledger, now or SystemClock().now
        self._seq = self._count = 0
        self._halts: list[Control] = []
        self._overruled: Control | None = None
        self._frozen: Control | None = None
        self._pauses: dict[str | None, Control] = {}
        self._locks: list[Control] = []
        self._wishes: dict[str, Control] = {}
        self._outcomes: dict[str, str] = {}

    # ---- asking

    def blocked(self, symbol: str) -> str:
        """Why nothing may be bought of `symbol` now; empty if it may."""
        return "; ".join(flag.detail for flag in self.flags(symbol))

    def flags(self, symbol: str, at: datetime | None = None) -> tuple[RiskFlag, ...]:
        """Everything that forbids an entry in `symbol` at `at`, as the risk gate says it."""
        return tuple(
            RiskFlag(code=CODES[control.action], detail=control.words)
            for control in self.in_force(at)
            if control.target in (None, symbol)
        )

    def in_force(self, at: datetime | None = None) -> tuple[Control, ...]:
        """Halts, the freeze, pauses and locks that hold at `at` (now when None), oldest first."""
        self._catch_up()
        moment = self._moment(at)
        frozen = (self._frozen,) if self._frozen else ()
        standing = (*self._halts, *frozen, *self._pauses.values(), *self._locks)
        return tuple(
            sorted(
                (control for control in standing if not control.ended(moment)),
                key=lambda control: control.control_id,
            )
        )

    def halted(self, at: datetime | None = None) -> Control | None:
        """The first halt in force, or None."""
        return next((item for item in self.in_force(at) if item.action == "halt"), None)

    @property
    def overruled(self) -> Control | None:
        """The newest resumption on the very day on which the kill switch had tripped, or None."""
        self._catch_up()
        return self._overruled

    @property
    def frozen(self) -> str:
        """Why broker and ledger disagree; empty when they do not, or when that was settled."""
        self._catch_up()
        return self._frozen.reason if self._frozen else ""

    def wishes(self) -> tuple[Control, ...]:
        """What a person wants done and nobody has done yet, oldest first.

        An `acknowledge` is one of them: it is done when the book has been made equal to the
        broker's, and until then trading stays frozen.
        """
        self._catch_up()
        return tuple(self._wishes.values())

    def outcome(self, wish_id: str) -> str:
        """What became of a wish; empty while it is open."""
        self._catch_up()
        return self._outcomes.get(wish_id, "")

    @property
    def acknowledged(self) -> Control | None:
        """The wish to go on with the broker's numbers, or None."""
        return next((wish for wish in self.wishes() if wish.action == "acknowledge"), None)

    # ---- forbidding and allowing

    def halt(
        self,
        reason: str,
        *,
        by: str = PERSON,
        at: datetime | None = None,
        until: datetime | None = None,
    ) -> Control:
        """Forbid every entry until `resume` (or `until`)."""
        return self._append("halt", None, reason, by=by, at=at, until=until)

    def resume(
        self,
        reason: str,
        *,
        by: str = PERSON,
        at: datetime | None = None,
        force: bool = False,
    ) -> Control:
        """End every halt.

        Raises UsageError when there is none, OrderRefusedError for one of the kill switch on its
        own New York date, unless `force`: a bad day is not traded on.
        """
        self._catch_up()
        moment = self._moment(at)
        halts = [halt for halt in self._halts if not halt.ended(moment)]
        if not halts:
            raise UsageError("trading is not halted")
        for halt in halts:
            early = session_of(moment) <= session_of(halt.at)
            if halt.by == KILL_SWITCH and early and not force:
                raise OrderRefusedError(
                    f"{KILL_SWITCH} halted trading on {session_of(halt.at)} ({halt.reason}): "
                    "resume on a later New York date, or with --force"
                )
        return self._append("resume", None, reason, by=by, at=moment)

    def freeze(
        self, reason: str, *, by: str = "reconciliation", at: datetime | None = None
    ) -> None:
        """Forbid every entry because broker and ledger disagree, until that is acknowledged.

        The same reason again is not recorded twice; another one is, and wants its own
        acknowledgement.
        """
        if self.frozen != reason:
            self._append("freeze", None, reason, by=by, at=at)

    def acknowledge(self, reason: str, *, by: str = PERSON, at: datetime | None = None) -> Control:
        """Wish to go on with the broker's numbers; UsageError when nothing is frozen."""
        if not self.frozen:
            raise UsageError("trading is not frozen")
        return self.acknowledged or self._append("acknowledge", None, reason, by=by, at=at)

    def pause(
        self, symbol: str | None, reason: str, *, by: str = PERSON, at: datetime | None = None
    ) -> Control:
        """Forbid entries in a symbol (all when None) until `unpause`; exits go on."""
        return self._append("pause", symbol, reason, by=by, at=at)

    def unpause(
        self, symbol: str | None, reason: str, *, by: str = PERSON, at: datetime | None = None
    ) -> Control:
        """End the pause and the locks of a symbol (None: those of all symbols at once).

        UsageError where there is none.
        """
        held = [
            control
            for control in self.in_force(at)
            if control.action in ("pause", "lock") and control.target == symbol
        ]
        if not held:
            raise UsageError(f"entries are not paused{f' in {symbol}' if symbol else ''}")
        return self._append("unpause", symbol, reason, by=by, at=at)

    def lock(
        self,
        symbol: str | None,
        until: datetime,
        reason: str,
        *,
        by: str = PERSON,
        at: datetime | None = None,
    ) -> Control:
        """Forbid entries in a symbol (all when None) until a moment; UsageError for a past one."""
        moment = self._moment(at)
        if until <= moment:
            raise UsageError(
                f"{until:%Y-%m-%d %H:%M} UTC is not later than {moment:%Y-%m-%d %H:%M}"
            )
        return self._append("lock", symbol, reason, by=by, at=moment, until=until)

    # ---- what a person wants done

    def wish(
        self,
        action: Literal["close", "cancel"],
        what: str | None,
        reason: str,
        *,
        by: str = PERSON,
        at: datetime | None = None,
    ) -> Control:
        """Ask for a symbol (None: all) to be closed, or for an order to be canceled."""
        return self._append(action, what, reason, by=by, at=at)

    def done(self, wish_id: str, outcome: str, *, at: datetime | None = None) -> None:
        """Record what became of a wish; done with an acknowledgement, trading is not frozen."""
        self._catch_up()
        if wish_id in self._wishes:
            self._append("done", wish_id, outcome, by="trader", at=at)

    # ---- records

    def _moment(self, at: datetime | None) -> datetime:
        return self._now() if at is None else at

    def _append(
        self,
        action: Action,
        target: str | None,
        reason: str,
        *,
        by: str,
        at: datetime | None,
        until: datetime | None = None,
    ) -> Control:
        moment = self._moment(at)
        with self._ledger.transaction():
            self._catch_up()  # another process may have taken the next number
            control = Control(
                control_id=f"{self._count + 1:06d}",
                action=action,
                target=target,
                reason=reason,
                by=by,
                at=moment,
                until=until,
            )
            self._ledger.append("control", control.control_id, control)
        self._catch_up()
        return control

    def _catch_up(self) -> None:
        """Read the records that came since the last look."""
        for record in self._ledger.since(self._seq, "control"):
            self._seq, self._count = record.seq, self._count + 1
            self._fold(from_primitive(Control, record.body))

    def _fold(self, control: Control) -> None:
        match control.action:
            case "halt":
                self._halts.append(control)
            case "resume":
                day = session_of(control.at)
                if any(h.by == KILL_SWITCH and session_of(h.at) == day for h in self._halts):
                    self._overruled = control
                self._halts.clear()
            case "freeze":
                self._frozen = control
                self._forget("acknowledge")
            case "pause":
                self._pauses[control.target] = control
            case "unpause":
                self._pauses.pop(control.target, None)
                self._locks = [lock for lock in self._locks if lock.target != control.target]
            case "lock":
                self._locks.append(control)
            case "close" | "cancel" | "acknowledge":
                self._wishes[control.control_id] = control
            case "done":
                self._outcomes[control.target or ""] = control.reason
                settled = self._wishes.pop(control.target or "", None)
                if settled is not None and settled.action == "acknowledge":
                    self._frozen = None

    def _forget(self, action: WishAction) -> None:
        self._wishes = {key: wish for key, wish in self._wishes.items() if wish.action != action}
