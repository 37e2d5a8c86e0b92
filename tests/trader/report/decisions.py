"""Records of hypothetical debates, made from a seed, in which claims, rules and orders agree."""

from __future__ import annotations

import random
from datetime import datetime
from decimal import Decimal

from trader.core.decision import (
    Argument,
    Candidate,
    Claim,
    CycleRecord,
    Debate,
    Decision,
    Evidence,
    EvidenceKind,
    FlagCode,
    Operator,
    Rebuttal,
    RiskDecision,
    RiskFlag,
    RiskInputs,
    RuleCheck,
    Signal,
    Verdict,
)
from trader.core.instruments import instrument_of
from trader.core.trading import OrderClass, OrderIntent, OrderType, Portfolio, Side

RUN = "bt-5f3a9c1e"
STRATEGIES = ("atr_trend", "rsi_reversion", "macd_momentum")
WINDOWS = ("high_20", "high_60", "high_252", "measured_move", "excursion_quartile")
INDICATORS = (
    *(f"sma_{window}" for window in (20, 50, 200)),
    *("ema_20", "bollinger_upper", "bollinger_middle", "bollinger_lower"),
)
OSCILLATORS = ("rsi_14", "rsi_14_previous", "adx_14", "plus_di_14", "minus_di_14")
FRACTIONS = (
    *("atr_fraction", "volatility_20", "volatility_rank_252", "obv_change_20", "return_20"),
    *("return_60", "gap_last", "gap_worst_252", "drawdown_252", "max_drawdown_252"),
    *("distance_high_20", "distance_low_20", "distance_high_252", "distance_low_252"),
    *("position_weight", "open_buy_weight", "cash_weight", "signal_hit_rate"),
)


def _facts(
    chance: random.Random, as_of: datetime, close: float, levels: tuple[float, float, float]
) -> tuple[Evidence, ...]:
    entry, stop, target = levels
    rows: list[tuple[EvidenceKind, str, float | None, str, str]] = [
        ("technical", "close", close, "USD", "bars:sample"),
        ("technical", "open", close * 0.995, "USD", "bars:sample"),
        ("technical", "high", close * 1.006, "USD", "bars:sample"),
        ("technical", "low", close * 0.991, "USD", "bars:sample"),
        ("technical", "volume", float(chance.randrange(30_000_000, 90_000_000)), "shares", "bars"),
        ("technical", "bars_behind", 0.0, "count", "bars:sample"),
        ("technical", "atr", (entry - stop) / 2, "USD", "indicators.volatility"),
        ("technical", "rule_value", close, "points", "strategies.atr_trend"),
        ("technical", "rule_value_previous", close * 0.98, "points", "strategies.atr_trend"),
        ("technical", "rule_line", close * 0.99, "points", "strategies.atr_trend"),
        ("technical", "rule_line_previous", close * 0.988, "points", "strategies.atr_trend"),
        ("technical", "macd_histogram", chance.uniform(-0.9, 0.9), "USD", "indicators.momentum"),
        ("technical", "volume_ratio_20", chance.uniform(0.5, 1.8), "ratio", "indicators.volume"),
        ("level", "entry_price", entry, "USD", "pipeline.levels"),
        ("level", "stop_price", stop, "USD", "pipeline.levels"),
        ("track_record", "signal_closed", float(chance.randrange(8, 60)), "count", "track record"),
        ("track_record", "signal_average_r", chance.uniform(-0.3, 0.5), "R", "track record"),
    ]
    for name in INDICATORS:
        rows.append(("technical", name, close * chance.uniform(0.9, 1.05), "USD", "indicators"))
    for name in OSCILLATORS:
        rows.append(("technical", name, chance.uniform(15.0, 75.0), "index_0_100", "indicators"))
    for name in FRACTIONS:
        rows.append(("technical", name, chance.uniform(-0.2, 0.9), "fraction", "statistics"))
    for window in WINDOWS:
        known = window == "measured_move" or chance.random() > 0.3
        rows.append(("level", f"target_{window}", target if known else None, "USD", "levels"))
        rows.append(("level", f"reward_risk_{window}", chance.uniform(0.4, 3.5), "ratio", "levels"))
        rows.append(("track_record", f"probability_{window}", 0.41, "fraction", "track record"))
        rows.append(("track_record", f"expected_value_{window}", 0.18, "R", "track record"))
    return tuple(
        Evidence(
            evidence_id=f"E{number}",
            symbol="AAPL",
            kind=kind,
            name=name,
            value=None if value is None else round(value, 6),
            unit=unit,
            as_of=as_of,
            known_at=as_of,
            source=source,
            text="no such level above the entry" if value is None else "",
        )
        for number, (kind, name, value, unit, source) in enumerate(rows, start=1)
    )


def _claim(
    evidence: tuple[Evidence, ...], text: str, name: str, operator: Operator, line: float | str
) -> Claim:
    by_name = {fact.name: fact for fact in evidence}
    fact = by_name[name]
    other = by_name[line] if isinstance(line, str) else None
    limit = other.value if other else line
    assert isinstance(limit, float)
    assert fact.value is not None
    holds = fact.value > limit if operator == ">" else fact.value < limit
    ids = (fact.evidence_id, other.evidence_id) if other else (fact.evidence_id,)
    detail = f"{fact.evidence_id} {name} is {fact.value:.6g}"
    return Claim(
        text=text,
        evidence_ids=ids,
        field=name,
        operator=operator,
        quoted_value=round(limit, 2),
        unit=fact.unit,
        status="verified" if holds else "contradicted",
        detail=f"{detail}, {other.evidence_id} {other.name} is {limit:.6g}" if other else detail,
    )


def _turns(
    chance: random.Random, evidence: tuple[Evidence, ...], levels: tuple[float, float, float]
) -> tuple[tuple[Argument, ...], tuple[Rebuttal, ...]]:
    entry, stop, target = levels
    bull = (
        _claim(evidence, "The price trades above its opening.", "close", ">", "open"),
        _claim(evidence, "The close crossed above its line.", "rule_value", ">", "rule_line"),
        _claim(evidence, "The close is above its 200-bar average.", "close", ">", "sma_200"),
        _claim(evidence, "Over 2 for each 1 at risk.", "reward_risk_measured_move", ">", 2.0),
        _claim(evidence, "Volume confirms the move.", "volume_ratio_20", ">", 1.0),
    )
    bear = (
        _claim(evidence, "Few get that far.", "probability_measured_move", "<", 0.5),
        _claim(evidence, "ADX shows no trend.", "adx_14", "<", 20.0),
    )
    lost = Claim(
        text="Earnings will surprise on the upside next week.",
        evidence_ids=("E99",),
        field="earnings_surprise",
        operator=">",
        quoted_value=0.0,
        unit="fraction",
        status="unverifiable",
        detail="E99 is not in the evidence",
    )
    true = [claim for claim in bull if claim.status == "verified"]
    false = [claim for claim in bull if claim.status == "contradicted"]
    opening = (*true[:3], *(false[:1] if chance.random() < 0.15 else ()))
    answer = (*true[3:], *((lost,) if chance.random() < 0.15 else ()))
    words = (
        f"Close crossed above its line: buy AAPL near {entry:.2f}, stop {stop:.2f}, "
        f"target {target:.2f} (measured move), +0.18 R expected."
    )
    arguments = tuple(
        Argument(
            stance="bull",
            round=turn,
            thesis=words if turn == 0 else f"Against “{opening[-1].text}” stands more evidence.",
            claims=opening if turn == 0 else answer,
            entry_price=entry,
            stop_price=stop,
            target_price=target,
        )
        for turn in (0, 1)
    )
    rebuttals = tuple(
        Rebuttal(
            stance="bear",
            round=turn,
            weakest_claim=opening[-1 - turn].text,
            counter="The 60-bar high stands in the way; up to there only 1.10 for each 1 at risk.",
            claims=bear[turn : turn + 1] if bear[turn].status == "verified" else (),
        )
        for turn in (0, 1)
    )
    return arguments, rebuttals


def _rule(
    code: FlagCode, words: str, value: str, limit: str, *ids: str, passed: bool = True
) -> RuleCheck:
    return RuleCheck(
        code=code, rule=words, value=value, limit=limit, passed=passed, evidence_ids=ids
    )


def _claim_rules(claims: list[Claim]) -> tuple[RuleCheck, ...]:
    counts = {
        status: sum(claim.status == status for claim in claims)
        for status in ("verified", "contradicted", "unverifiable")
    }
    return (
        _rule(
            FlagCode.UNVERIFIABLE_THESIS,
            "claims of the bull that cannot be checked",
            str(counts["unverifiable"]),
            "0",
            passed=not counts["unverifiable"],
        ),
        _rule(
            FlagCode.CONTRADICTED_CLAIM,
            "claims of the bull that the data contradict",
            str(counts["contradicted"]),
            "0",
            passed=not counts["contradicted"],
        ),
        _rule(
            FlagCode.INSUFFICIENT_EVIDENCE,
            "verified claims of the bull",
            str(counts["verified"]),
            ">= 3",
            passed=counts["verified"] >= 3,
        ),
    )


def _rules(
    claims: list[Claim], ratio: float, confidence: float, *, trap: bool
) -> tuple[RuleCheck, ...]:
    return (
        _rule(FlagCode.DATA_INTEGRITY_FAILURE, "prices and ATR are finite", "sound", "> 0"),
        _rule(FlagCode.STALE_DATA, "the newest bar just closed", "0 bars behind", "0", "E6"),
        *_claim_rules(claims),
        _rule(
            FlagCode.INVALID_LEVELS,
            "entry and stop are the ones computed, the target is a level from the evidence",
            "stop < entry < target (measured_move)",
            "stop < entry < target",
        ),
        _rule(
            FlagCode.REWARD_RISK_BELOW_MINIMUM,
            "reward:risk from the price that will be paid, after costs",
            f"{ratio:.2f}",
            ">= 2.00",
            passed=ratio >= 2.0,
        ),
        _rule(
            FlagCode.NEGATIVE_EXPECTED_VALUE,
            "expected value by this signal's own closed past",
            "+0.18 R",
            "> 0 R",
            "E16",
        ),
        _rule(FlagCode.POSITION_CAP, "weight of the symbol leaves room", "0.0%", "< 15%"),
        _rule(
            FlagCode.MOMENTUM_TRAP_RISK,
            "no mean reversion against a strong down trend",
            "down trend, ADX 31" if trap else "not a mean-reversion entry",
            "ADX < 25 when down",
            "E1",
            passed=not trap,
        ),
        _rule(
            FlagCode.LOW_CONFIDENCE,
            "confidence from the verified claims of both sides",
            f"{confidence:.2f}",
            ">= 0.40",
            passed=confidence >= 0.4,
        ),
    )


def _verdict(
    cycle_id: str,
    as_of: datetime,
    levels: tuple[float, float, float],
    *,
    rules: tuple[RuleCheck, ...],
    ratio: float,
    confidence: float,
) -> Verdict:
    failed = [rule for rule in rules if not rule.passed]
    reasons = "; ".join(f"{rule.rule} is {rule.value}, wanted {rule.limit}" for rule in failed)
    return Verdict(
        verdict_id=f"V-{cycle_id[-24:]}",
        symbol="AAPL",
        decision=Decision.NO_GO if failed else Decision.GO,
        confidence=confidence,
        entry_price=levels[0],
        stop_price=levels[1],
        target_price=levels[2],
        reward_risk_ratio=ratio,
        expected_value_r=0.18,
        rationale=f"NO_GO, {len(failed)} of {len(rules)} rules fail: {reasons}."
        if failed
        else f"GO, all {len(rules)} rules pass: {ratio:.2f} R offered at a chance of 41%.",
        flags=tuple(
            RiskFlag(
                code=rule.code,
                detail=f"{rule.rule}: {rule.value}, wanted {rule.limit}",
                evidence_ids=rule.evidence_ids,
            )
            for rule in failed
        ),
        rules=rules,
        decided_at=as_of,
    )


def _signal(order: int, strategy: str, as_of: datetime, close: float) -> Signal:
    return Signal(
        signal_id=f"S-{order:016d}",
        strategy=strategy,
        style={"atr_trend": "trend", "rsi_reversion": "mean_reversion"}.get(strategy, "momentum"),
        symbol="AAPL",
        side="buy",
        strength=1.0,
        bar_at=as_of.replace(hour=5),
        as_of=as_of,
        features={"close": close, "entry_line": round(close * 0.99, 4)},
        reason=f"close {close:.2f} crossed above SMA 50 + 0.5 ATR = {close * 0.99:.2f}",
    )


def _intent(
    order: int, as_of: datetime, quantity: int, levels: tuple[float, float, float]
) -> OrderIntent:
    return OrderIntent(
        client_order_id=f"tr-{as_of:%Y%m%d}-AAPL-{order:010x}-e",
        symbol="AAPL",
        side=Side.BUY,
        quantity=Decimal(quantity),
        order_type=OrderType.MARKET,
        order_class=OrderClass.BRACKET,
        take_profit_price=Decimal(str(levels[2])),
        stop_loss_price=Decimal(str(levels[1])),
    )


def cycle_record(chance: random.Random, order: int, as_of: datetime, close: float) -> CycleRecord:
    strategy = STRATEGIES[order % len(STRATEGIES)]
    bar_at = as_of.replace(hour=5)
    cycle_id = f"{RUN}-{bar_at:%Y%m%dT%H%M}-AAPL-{strategy}"
    if order >= 400:
        cycle_id += f"-{order}"
    entry = round(close * 1.0005, 4)
    stop = round(close * 0.965, 2)
    ratio = round(chance.choice((0.74, 1.31, 1.92, 2.08, 2.2, 2.44, 2.8, 3.1)), 2)
    levels = (entry, stop, round(entry + ratio * (entry - stop), 2))
    evidence = _facts(chance, as_of, close, levels)
    arguments, rebuttals = _turns(chance, evidence, levels)
    confidence = round(chance.uniform(0.38, 0.8), 4)
    trap = strategy == "rsi_reversion" and chance.random() < 0.4
    claims = [claim for turn in arguments for claim in turn.claims]
    rules = _rules(claims, ratio, confidence, trap=trap)
    verdict = _verdict(cycle_id, as_of, levels, rules=rules, ratio=ratio, confidence=confidence)
    go = verdict.decision is Decision.GO
    approved = go and chance.random() > 0.15
    quantity = int(14_000 / entry) if approved else 0
    portfolio = Portfolio(
        cash=Decimal("86412.55"), equity=Decimal("101223.10"), positions=(), as_of=as_of
    )
    no = RiskFlag(code=FlagCode.NOT_A_GO, detail="AAPL: the verdict is NO_GO")
    cap = RiskFlag(code=FlagCode.POSITION_CAP, detail="AAPL: 14.9% held leaves no share below 15%")
    return CycleRecord(
        cycle_id=cycle_id,
        as_of=as_of,
        symbol="AAPL",
        strategy=strategy,
        source="sample",
        data_hashes={"AAPL": "a17e" * 16},
        candidate=Candidate(
            signal=_signal(order, strategy, as_of, close),
            instrument=instrument_of("AAPL"),
            entry_price=entry,
            stop_price=stop,
        ),
        open_buy_value_seen=Decimal(0),
        evidence=evidence,
        debate=Debate(debater="rules", arguments=arguments, rebuttals=rebuttals, verdict=verdict),
        risk_inputs=RiskInputs(
            symbol="AAPL",
            as_of=as_of,
            bar_at=bar_at,
            expected_bar_at=bar_at,
            close=close,
            atr=round((entry - stop) / 2, 4),
            atr_multiple=2.0,
            portfolio=portfolio,
            open_buy_value=Decimal(0),
            open_buy_value_symbol=Decimal(0),
            targets=(),
        ),
        risk=RiskDecision(
            approved=approved,
            reasons=() if approved else (cap if go else no,),
            quantity=quantity,
            weight_after=quantity * entry / 101223.10,
            limits={"max_position_weight": 0.15, "min_reward_risk": 2.0, "risk_per_trade": 0.01},
        ),
        intent=_intent(order, as_of, quantity, levels) if approved else None,
    )
