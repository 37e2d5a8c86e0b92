"""Why a debate or the risk gate said no: the codes, and what each means in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class FlagCode(StrEnum):
    """Why a debate or the risk gate said no."""

    DATA_INTEGRITY_FAILURE = "DATA_INTEGRITY_FAILURE"
    STALE_DATA = "STALE_DATA"
    UNVERIFIABLE_THESIS = "UNVERIFIABLE_THESIS"
    CONTRADICTED_CLAIM = "CONTRADICTED_CLAIM"
    INSUFFICIENT_EVIDENCE = "INSUFFICIENT_EVIDENCE"
    INVALID_LEVELS = "INVALID_LEVELS"
    REWARD_RISK_BELOW_MINIMUM = "REWARD_RISK_BELOW_MINIMUM"
    NEGATIVE_EXPECTED_VALUE = "NEGATIVE_EXPECTED_VALUE"
    POSITION_CAP = "POSITION_CAP"
    MOMENTUM_TRAP_RISK = "MOMENTUM_TRAP_RISK"
    LOW_CONFIDENCE = "LOW_CONFIDENCE"
    NO_SIGNAL = "NO_SIGNAL"
    INVALID_REPLY = "INVALID_REPLY"
    ENDPOINT_FAILURE = "ENDPOINT_FAILURE"
    INSUFFICIENT_CASH = "INSUFFICIENT_CASH"
    POSITION_TOO_SMALL = "POSITION_TOO_SMALL"
    LEVELS_NOT_FROM_DATA = "LEVELS_NOT_FROM_DATA"
    NOT_A_GO = "NOT_A_GO"
    TIMED_OUT = "TIMED_OUT"
    REFUSED_REPLY = "REFUSED_REPLY"
    TRUNCATED_REPLY = "TRUNCATED_REPLY"
    OTHER_ISSUER = "OTHER_ISSUER"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    NOT_CONVERGED = "NOT_CONVERGED"
    ARBITRATOR_AGAINST = "ARBITRATOR_AGAINST"
    FOREIGN_TEXT_AGAINST = "FOREIGN_TEXT_AGAINST"
    NOT_APPROVED = "NOT_APPROVED"
    APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
    TRADING_HALTED = "TRADING_HALTED"
    TRADING_FROZEN = "TRADING_FROZEN"
    TRADING_PAUSED = "TRADING_PAUSED"
    SYMBOL_LOCKED = "SYMBOL_LOCKED"
    ACCOUNT_BLOCKED = "ACCOUNT_BLOCKED"
    NOT_RECONCILED = "NOT_RECONCILED"
    COOLDOWN = "COOLDOWN"
    TOO_MANY_STOPS = "TOO_MANY_STOPS"
    DRAWDOWN = "DRAWDOWN"
    TOO_MANY_POSITIONS = "TOO_MANY_POSITIONS"
    ORDER_RATE = "ORDER_RATE"
    DAILY_NOTIONAL = "DAILY_NOTIONAL"
    OPEN_ORDERS = "OPEN_ORDERS"
    STALE_QUOTE = "STALE_QUOTE"
    CLOCK_SKEW = "CLOCK_SKEW"


FLAG_WORDS: Mapping[FlagCode, str] = {
    FlagCode.DATA_INTEGRITY_FAILURE: "the bars or the account hold a number that cannot be",
    FlagCode.STALE_DATA: "the newest bar is not the one that should be known",
    FlagCode.UNVERIFIABLE_THESIS: "claims cannot be checked against the evidence",
    FlagCode.CONTRADICTED_CLAIM: "a claim is contradicted by the evidence",
    FlagCode.INSUFFICIENT_EVIDENCE: "too few claims are verified",
    FlagCode.INVALID_LEVELS: "entry, stop and target are not in order",
    FlagCode.REWARD_RISK_BELOW_MINIMUM: "the reward is too small for the risk",
    FlagCode.NEGATIVE_EXPECTED_VALUE: "the expected value is not above zero",
    FlagCode.POSITION_CAP: "the cap per symbol is reached",
    FlagCode.MOMENTUM_TRAP_RISK: "the move may be over",
    FlagCode.LOW_CONFIDENCE: "the confidence is too low",
    FlagCode.NO_SIGNAL: "no rule fired",
    FlagCode.INVALID_REPLY: "a model's reply could not be read",
    FlagCode.ENDPOINT_FAILURE: "a model could not be reached",
    FlagCode.INSUFFICIENT_CASH: "free cash pays too little",
    FlagCode.POSITION_TOO_SMALL: "the size comes to nothing",
    FlagCode.LEVELS_NOT_FROM_DATA: "a level is not the one that the data give",
    FlagCode.NOT_A_GO: "the verdict is not GO",
    FlagCode.TIMED_OUT: "a model did not answer in time",
    FlagCode.REFUSED_REPLY: "a model declined to answer",
    FlagCode.TRUNCATED_REPLY: "a model's reply ended too early",
    FlagCode.OTHER_ISSUER: "a model spoke of another company",
    FlagCode.BUDGET_EXHAUSTED: "the budget for models is spent",
    FlagCode.NOT_CONVERGED: "the debate did not come to an end",
    FlagCode.ARBITRATOR_AGAINST: "the arbitrator's model said no",
    FlagCode.FOREIGN_TEXT_AGAINST: "with foreign texts in it the debate ended in no",
    FlagCode.NOT_APPROVED: "a person rejected it",
    FlagCode.APPROVAL_EXPIRED: "nobody approved it in time",
    FlagCode.TRADING_HALTED: "trading is halted, by the kill switch or by a person",
    FlagCode.TRADING_FROZEN: "broker and ledger disagree, and nobody has acknowledged it",
    FlagCode.TRADING_PAUSED: "a person paused entries",
    FlagCode.SYMBOL_LOCKED: "entries are locked until a moment",
    FlagCode.ACCOUNT_BLOCKED: "the broker blocks the account, or cannot be asked",
    FlagCode.NOT_RECONCILED: "the ledger could not be compared with the broker",
    FlagCode.COOLDOWN: "the symbol rests after its stop was hit",
    FlagCode.TOO_MANY_STOPS: "entries rest after a run of stops",
    FlagCode.DRAWDOWN: "entries rest after a fall of equity",
    FlagCode.TOO_MANY_POSITIONS: "as many symbols are held as may be",
    FlagCode.ORDER_RATE: "too many entries within a minute",
    FlagCode.DAILY_NOTIONAL: "the session's entries would be worth too much",
    FlagCode.OPEN_ORDERS: "too many orders are open",
    FlagCode.STALE_QUOTE: "the newest price is too old",
    FlagCode.CLOCK_SKEW: "the broker's clock and ours differ",
}
