"""What a slot leaves behind besides its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A strategy's exit signal and the order that follows it."""

    trade_id: str
    symbol: str
    strategy: str
    reason: str
    client_order_id: str
    problem: str = ""  # the words of the broker that refused it; the next slot tries again


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A fired signal that was not debated, and why."""

    symbol: str
    strategy: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRecord:
    """One decision slot: the account after matching, and everything that happened but debates.

    fills      execution ids booked in this slot
    hashes     symbol -> SHA-256 of the bars known at this slot; the next slot must find them again
    closes     USD per share, the newest close known of each symbol
    refused    symbols whose data were not fit for a decision, with the reason
    resolved   client order ids whose unknown outcome was settled
    protected  trades that had lost their stop and got a new one
    naked      trades without a stop although one was tried -> the broker's words
    expired    client order ids of entries whose one bar never came, canceled
    emergencies  trades sold at market because no stop could stand -> why
    problem    why nothing could be bought, where broker and ledger could not be compared or differ
    cycles     ids of the decisions taken
    refusals   cycle id -> the broker's words, where it refused the order
    """

    session: date
    as_of: datetime
    cash: Decimal
    equity: Decimal
    positions: Mapping[str, Decimal]
    closes: Mapping[str, float]
    hashes: Mapping[str, str]
    fills: tuple[str, ...]
    exits: tuple[Exit, ...]
    refused: Mapping[str, str]
    resolved: tuple[str, ...]
    protected: tuple[str, ...]
    naked: Mapping[str, str]
    expired: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    cycles: tuple[str, ...]
    refusals: Mapping[str, str]
    emergencies: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
