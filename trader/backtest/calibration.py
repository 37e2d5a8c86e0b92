"""Calibration: whether a verdict's confidence was the chance that its trade makes money."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trader.report.contents import Calibration, ReliabilityBin

BINS = 5


def calibrate(outcomes: Sequence[tuple[float, bool]], *, left_out: int = 0) -> Calibration:
    """Brier score and reliability table of verdicts.

    outcomes  confidence in [0, 1] and whether the trade made money, one pair for each verdict
    left_out  verdicts whose trade has no end, told with the result

    brier       mean of (confidence - outcome)²
    base_brier  p (1 - p) with p the share that won: what always saying p would score
    source      Brier (1950), Verification of forecasts expressed in terms of probability
    """
    confidence = np.array([pair[0] for pair in outcomes], dtype=np.float64)
    won = np.array([pair[1] for pair in outcomes], dtype=np.float64)
    if not bool(((confidence >= 0.0) & (confidence <= 1.0)).all()):
        raise ValueError(f"a confidence lies outside 0 to 1: {confidence.tolist()}")
    share = float(won.mean()) if won.size else None
    return Calibration(
        verdicts=int(won.size),
        left_out=left_out,
        won=int(won.sum()),
        brier=float(((confidence - won) ** 2).mean()) if won.size else None,
        base_brier=None if share is None else share * (1.0 - share),
        bins=tuple(
            ReliabilityBin(
                low=number / BINS,
                high=(number + 1) / BINS,
                count=int(inside.sum()),
                mean_confidence=float(confidence[inside].mean()) if inside.any() else None,
                won=float(won[inside].mean()) if inside.any() else None,
            )
            for number in range(BINS)
            for inside in [_bin_of(confidence) == number]
        ),
    )


def _bin_of(
    confidence: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """[K] number of each confidence's bin; an edge belongs to the bin above it, 1 to the last."""
    edges = np.arange(1, BINS) / BINS
    return np.searchsorted(edges, confidence, side="right")
