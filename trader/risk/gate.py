"""The risk gate: from a verdict and the data to a number of shares, or to the reasons for none.

Entries pass through here; exits, stops and cancels never do. Every number is taken from the data
and the account; the verdict's levels are only compared with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from trader.core.costs import Costs
from trader.core.decision import Decision, RiskDecision, RiskFlag, RiskInputs, Verdict
from trader.core.errors import OrderRefusedError
from trader.core.flags import FlagCode
from trader.core.trading import money, tick_down
from trader.risk.protections import (
    ProtectionLimits,
    SafetyLimits,
    protection_reasons,
    safety_reasons,
)
from trader.risk.sizing import affordable_shares, lot_of, position_weight

CASH_COLLAR = Decimal("1.04")  # a market buy may open above the close; Alpaca holds back as much
HIGHEST_PRICE = 1e9  # USD; no share costs as much, so the number is broken
HARD_CAP = 0.15  # of equity in one symbol; configuration may only tighten it


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskLimits:
    """The limits in force; weights are fractions of equity.

    fractional  whether parts of a share may be bought; coins always are
    """

    risk_per_trade: float = 0.01
    max_position_weight: float = 0.15
    min_reward_risk: float = 2.0
    fractional: bool = False
    protections: ProtectionLimits = field(default_factory=ProtectionLimits)
    safety: SafetyLimits = field(default_factory=SafetyLimits)

    def __post_init__(self) -> None:
        if not 0.0 < self.max_position_weight <= HARD_CAP:
            raise ValueError(f"a cap of {self.max_position_weight} is outside 0 to {HARD_CAP}")


def review(
    verdict: Verdict,
    inputs: RiskInputs,
    *,
    limits: RiskLimits,
    costs: Costs,
    target_required: bool = True,
) -> RiskDecision:
    """Approve a size for the verdict, or refuse with every reason found.

    target_required  False only for the baseline without debate, which has a stop and no target
    """
    reasons = [
        *_verdict_reasons(verdict, inputs, target_required=target_required),
        *_data_reasons(inputs),
    ]
    if verdict.decision is Decision.GO:
        reasons += safety_reasons(inputs.symbol, inputs.circumstances, limits.safety)
        reasons += protection_reasons(inputs.symbol, inputs.circumstances, limits.protections)
    if not reasons:
        reasons += _level_reasons(verdict, inputs, limits, costs)
    quantity = Decimal(0)
    if not reasons:
        quantity, reasons = _size(inputs, limits, costs)
    return RiskDecision(
        approved=not reasons,
        reasons=tuple(reasons),
        quantity=quantity,
        weight_after=_weight_after(inputs, quantity, costs),
        limits={
            "max_position_weight": limits.max_position_weight,
            "min_reward_risk": limits.min_reward_risk,
            "risk_per_trade": limits.risk_per_trade,
        },
    )


def _refuse(code: FlagCode, detail: str) -> RiskFlag:
    return RiskFlag(code=code, detail=detail)


def _verdict_reasons(
    verdict: Verdict, inputs: RiskInputs, *, target_required: bool
) -> list[RiskFlag]:
    if (verdict.symbol, verdict.decided_at) != (inputs.symbol, inputs.as_of):
        detail = (
            f"the verdict is about {verdict.symbol} at {verdict.decided_at}, "
            f"not about {inputs.symbol} at {inputs.as_of}"
        )
        return [_refuse(FlagCode.LEVELS_NOT_FROM_DATA, detail)]
    if verdict.decision is not Decision.GO:
        return [_refuse(FlagCode.NOT_A_GO, f"{verdict.symbol}: the verdict is {verdict.decision}")]
    levels = {"entry": verdict.entry_price, "stop": verdict.stop_price}
    if target_required or verdict.target_price is not None:
        levels["target"] = verdict.target_price
    return [
        _refuse(FlagCode.INVALID_LEVELS, f"{verdict.symbol}: {name} is {price}, not a price")
        for name, price in levels.items()
        if price is None or not math.isfinite(price) or price <= 0.0
    ]


def _data_reasons(inputs: RiskInputs) -> list[RiskFlag]:
    found = []
    if not 0.0 < inputs.close < HIGHEST_PRICE:
        found.append(
            _refuse(FlagCode.DATA_INTEGRITY_FAILURE, f"{inputs.symbol}: close is {inputs.close}")
        )
    if inputs.atr is None or not 0.0 < inputs.atr < HIGHEST_PRICE:
        found.append(
            _refuse(FlagCode.DATA_INTEGRITY_FAILURE, f"{inputs.symbol}: ATR is {inputs.atr}")
        )
    if inputs.portfolio.equity <= 0:
        found.append(
            _refuse(FlagCode.DATA_INTEGRITY_FAILURE, f"equity is {inputs.portfolio.equity} USD")
        )
    if inputs.bar_at != inputs.expected_bar_at:
        found.append(
            _refuse(
                FlagCode.STALE_DATA,
                f"{inputs.symbol}: the newest bar opened {inputs.bar_at}, "
                f"expected {inputs.expected_bar_at}",
            )
        )
    return found


def _level_reasons(
    verdict: Verdict, inputs: RiskInputs, limits: RiskLimits, costs: Costs
) -> Sequence[RiskFlag]:
    if inputs.atr is None or verdict.entry_price is None or verdict.stop_price is None:
        raise ValueError("levels are compared only after they were found to be there")
    entry = costs.expected_entry(inputs.close)
    stop = float(tick_down(max(entry - inputs.atr_multiple * inputs.atr, 0.0)))
    for name, said, computed in (
        ("entry", verdict.entry_price, entry),
        ("stop", verdict.stop_price, stop),
    ):
        if abs(said - computed) >= (0.005 if computed >= 1.0 else 0.00005):
            return [
                _refuse(
                    FlagCode.LEVELS_NOT_FROM_DATA,
                    f"{inputs.symbol}: the verdict's {name} {said:.4f} is not "
                    f"{computed:.4f} as computed",
                )
            ]
    if not 0.0 < stop < entry:
        return [_refuse(FlagCode.INVALID_LEVELS, f"{inputs.symbol}: stop {stop} and entry {entry}")]
    if verdict.target_price is None:
        return []
    if verdict.target_price not in inputs.targets:
        return [
            _refuse(
                FlagCode.LEVELS_NOT_FROM_DATA,
                f"{inputs.symbol}: the target {verdict.target_price:.4f} is none of the levels",
            )
        ]
    ratio = costs.reward_risk_ratio(entry=entry, stop=stop, target=verdict.target_price)
    if ratio < limits.min_reward_risk:
        return [
            _refuse(
                FlagCode.REWARD_RISK_BELOW_MINIMUM,
                f"{inputs.symbol}: reward:risk {ratio:.2f} is below {limits.min_reward_risk:g}",
            )
        ]
    return []


def _size(inputs: RiskInputs, limits: RiskLimits, costs: Costs) -> tuple[Decimal, list[RiskFlag]]:
    if inputs.atr is None:
        raise ValueError("a size is computed only after the ATR was found to be there")
    portfolio = inputs.portfolio
    entry = costs.expected_entry(inputs.close)
    try:
        wanted = position_weight(
            risk_per_trade=limits.risk_per_trade,
            atr_fraction=inputs.atr / entry,
            atr_multiple=inputs.atr_multiple,
        )
    except OrderRefusedError as exc:
        return Decimal(0), [_refuse(FlagCode.DATA_INTEGRITY_FAILURE, f"{inputs.symbol}: {exc}")]
    taken = portfolio.value_of(inputs.symbol) + inputs.open_buy_value_symbol
    room = money(limits.max_position_weight) * portfolio.equity - taken
    price = money(entry)
    lot = lot_of(inputs.symbol, fractional=limits.fractional)
    least = f"less than {lot.least:g} USD" if lot.least else "no share"

    def refused(code: FlagCode, detail: str) -> tuple[Decimal, list[RiskFlag]]:
        return Decimal(0), [_refuse(code, f"{inputs.symbol}: {detail}")]

    below_cap = affordable_shares(budget=room, price=price, lot=lot)
    if not below_cap and not taken:
        return refused(
            FlagCode.POSITION_TOO_SMALL,
            f"{limits.max_position_weight:.0%} of {portfolio.equity:.2f} USD buys {least} "
            f"at {entry:.2f}",
        )
    if not below_cap:
        return refused(
            FlagCode.POSITION_CAP,
            f"{taken / portfolio.equity:.1%} held or ordered leaves {least} "
            f"below the cap of {limits.max_position_weight:.0%}",
        )
    sized = affordable_shares(budget=money(wanted) * portfolio.equity, price=price, lot=lot)
    if not sized:
        return refused(
            FlagCode.POSITION_TOO_SMALL,
            f"{wanted:.2%} of {portfolio.equity:.2f} USD buys {least} at {entry:.2f}",
        )
    free = portfolio.cash - inputs.open_buy_value
    payable = affordable_shares(budget=free, price=price * CASH_COLLAR, costs=costs, lot=lot)
    if not payable:
        return refused(
            FlagCode.INSUFFICIENT_CASH,
            f"{free:.2f} USD of free cash pays {least} at {entry:.2f} with costs",
        )
    quantity = min(below_cap, sized, payable)
    opening = inputs.circumstances.session_equity or portfolio.equity
    allowed = money(limits.safety.notional_per_day) * opening
    if inputs.circumstances.entry_value + quantity * price > allowed:
        return refused(
            FlagCode.DAILY_NOTIONAL,
            f"{quantity * price:.2f} USD on top of the session's "
            f"{inputs.circumstances.entry_value:.2f} pass the {allowed:.2f} allowed",
        )
    return quantity, []


def _weight_after(inputs: RiskInputs, quantity: Decimal, costs: Costs) -> float:
    equity = inputs.portfolio.equity
    if equity <= 0 or not 0.0 < inputs.close < HIGHEST_PRICE:
        return 0.0
    taken = inputs.portfolio.value_of(inputs.symbol) + inputs.open_buy_value_symbol
    return float((taken + quantity * money(costs.expected_entry(inputs.close))) / equity)
