"""What model calls may cost: tokens and money are reserved before a call is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from threading import Lock
from typing import TYPE_CHECKING, Literal

from agents.chat.asking import most_prompt_tokens
from agents.chat.calls import ModelSpec, note_usage, usage_of
from agents.chat.capability import Step
from agents.chat.store import Amount, ChatStore
from trader.core.clock import SystemClock
from trader.core.errors import (
    BudgetError,
    CutReplyError,
    EndpointError,
    RefusedReplyError,
    TimedOutError,
)
from trader.core.ports import ChatModel, ChatReply, ChatRequest, Usage

if TYPE_CHECKING:
    from trader.core.config.models import Budget as BudgetSettings
    from trader.core.config.models import Models

Scope = Literal["call", "decision", "run", "day"]
SCOPES: tuple[Scope, ...] = ("call", "decision", "run", "day")
SMALLEST_PRICE = Decimal("0.000001")  # USD per million tokens; keeps every sum exact
MOST_TOKENS = 10**9  # no call uses more; a server that says so is not believed
PERHAPS_BILLED = (TimedOutError, RefusedReplyError, CutReplyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """Most tokens, in and out, and most USD of one call, one decision, one run and one day."""

    tokens: Mapping[Scope, int]
    usd: Mapping[Scope, Decimal]

    @classmethod
    def of(cls, settings: BudgetSettings) -> BudgetLimits:
        """The configured limits."""
        return cls(
            tokens={scope: getattr(settings, f"tokens_per_{scope}") for scope in SCOPES},
            usd={scope: Decimal(repr(getattr(settings, f"usd_per_{scope}"))) for scope in SCOPES},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """USD per million tokens, at most six decimals."""

    usd_per_million_input: Decimal = Decimal(0)
    usd_per_million_output: Decimal = Decimal(0)

    @classmethod
    def of(cls, models: Models) -> Prices:
        """The configured prices; decimals beyond the sixth are rounded up."""
        return cls(
            usd_per_million_input=_exact(models.usd_per_million_input),
            usd_per_million_output=_exact(models.usd_per_million_output),
        )

    def amount(self, input_tokens: int, output_tokens: int) -> Amount:
        """That many tokens with their cost, exact."""
        millionths = (
            input_tokens * self.usd_per_million_input + output_tokens * self.usd_per_million_output
        )
        return Amount(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cost=millionths.scaleb(-6),
        )


def _exact(price: float) -> Decimal:
    return Decimal(repr(price)).quantize(SMALLEST_PRICE, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Tokens and money set aside for a call. day: UTC, yyyy-mm-dd."""

    subject: str
    day: str
    amount: Amount


class Budget:
    """Every role of a command spends from it.

    A decision is known by its subject, so a repair turn and a hearing count to it. The day is
    kept in the store, where other runs see it, reserved before the call and put right after: a run
    that crashes in between leaves its reservation counted.

    now  the time, UTC; None: the computer's clock
    """

    def __init__(
        self,
        limits: BudgetLimits,
        store: ChatStore,
        *,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._limits, self._store = limits, store
        self._now = now or SystemClock().now
        self._lock = Lock()
        self._run = Amount()
        self._decisions: defaultdict[str, Amount] = defaultdict(Amount)

    def reserve(self, subject: str, amount: Amount) -> Reservation:
        """Set `amount` aside in every scope.

        Raises BudgetError when it does not fit one of them, and then sets nothing aside.
        """
        day = f"{self._now().astimezone(UTC):%Y-%m-%d}"
        with self._lock:
            self._require_fit("call", Amount(), amount)
            self._require_fit("decision", self._decisions[subject], amount)
            self._require_fit("run", self._run, amount)

            def with_this_call(spent: Amount) -> Amount:
                self._require_fit("day", spent, amount)
                return spent + amount

            self._store.spend(day, with_this_call)
            self._decisions[subject] += amount
            self._run += amount
        return Reservation(subject=subject, day=day, amount=amount)

    def settle(self, reservation: Reservation, used: Amount) -> None:
        """Put what the call used in the place of what was set aside for it, once."""
        change = used - reservation.amount
        with self._lock:
            self._decisions[reservation.subject] += change
            self._run += change
            self._store.spend(reservation.day, lambda spent: spent + change)

    def _require_fit(self, scope: Scope, spent: Amount, needed: Amount) -> None:
        tokens, usd = self._limits.tokens[scope], self._limits.usd[scope]
        if spent.tokens + needed.tokens > tokens:
            raise BudgetError(
                f"this call may take {needed.tokens:,} tokens, and of {tokens:,} for one {scope} "
                f"{spent.tokens:,} are spent (models.budget.tokens_per_{scope})"
            )
        if spent.cost + needed.cost > usd:
            raise BudgetError(
                f"this call may cost {_money(needed.cost)} USD, and of {_money(usd)} USD for one "
                f"{scope} {_money(spent.cost)} are spent (models.budget.usd_per_{scope})"
            )


class BudgetedChat:
    """A `ChatModel` that asks `inner` only when the worst case of the call fits the budget.

    The worst case is an upper estimate of the prompt's tokens and the output limit. What counts
    in the end is the usage of the reply. A failed call counts what its error says it used; where
    the error does not say, the worst case if the model may have worked (it timed out, declined or
    was cut short), else nothing.
    """

    def __init__(self, inner: ChatModel, spec: ModelSpec, budget: Budget, prices: Prices) -> None:
        self._inner, self._spec, self._budget, self._prices = inner, spec, budget, prices

    @property
    def name(self) -> str:
        """The model's name."""
        return self._spec.model

    def complete(self, request: ChatRequest) -> ChatReply:
        """The inner model's reply, its usage priced; BudgetError when the call does not fit."""
        prompt = request.prompt()
        tokens = most_prompt_tokens(prompt, Step.TEXT), self._spec.max_output_tokens
        worst = self._prices.amount(*tokens)
        reservation = self._budget.reserve(request.subject, worst)
        try:
            reply = self._inner.complete(replace(request, prompt=lambda: prompt))
        except EndpointError as error:
            assumed = worst if isinstance(error, PERHAPS_BILLED) else Amount()
            note_usage(error, self._settle(reservation, usage_of(error), assumed))
            raise
        return replace(reply, usage=self._settle(reservation, reply.usage, worst))

    def _settle(self, reservation: Reservation, said: Usage | None, assumed: Amount) -> Usage:
        """Settle with the usage that was told, or with `assumed`; what was counted."""
        believed = said is not None and all(
            0 <= tokens <= MOST_TOKENS for tokens in (said.input_tokens, said.output_tokens)
        )
        used = assumed
        if said is not None and believed:
            tokens = said.input_tokens, said.output_tokens
            if said.estimated:  # estimates are upper ones, and so is what was set aside
                most = reservation.amount
                tokens = min(tokens[0], most.input_tokens), min(tokens[1], most.output_tokens)
            used = self._prices.amount(*tokens)
        self._budget.settle(reservation, used)
        return Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            estimated=said.estimated if said is not None and believed else bool(used.tokens),
            cost=used.cost,
        )


def _money(usd: Decimal) -> str:
    return f"{usd.normalize():f}"
