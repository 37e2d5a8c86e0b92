"""A made-up market of six symbols: seeded, labelled, the same bit for bit on every machine.

Only the raw words of PCG64, which NumPy promises never to change, and the operations every machine
rounds alike (+, -, ×, ÷, square root) go into a price; no exponential, no library of distributions.

How a price moves. A market factor is in one of three regimes (a Markov chain: bull, bear, sideways)
that set its drift and scale its volatility; market and symbols each have a GARCH(1, 1) variance;
a symbol's session is beta × market + its own shock. A third of the variance and all jumps happen
overnight, the rest in steps of a quarter of an hour, from which hourly and daily bars are cut: so
they always agree. Volume rises with volatility and with the size of the step.

Calibrated to AAPL and NVDA, 2015 to 2025, daily: standard deviation 1.8 and 3.1 %, kurtosis 9.4 and
11.3, autocorrelation of |return| 0.22 and 0.16 at lag 1, share of the variance overnight 0.43 and
0.37, correlation of log volume and |return| 0.37 and 0.47.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trader.core.market import BarSeries, Timeframe
from trader.data.grid import HOUR_NS, expected_bars
from trader.data.integrity import require_sound
from trader.data.lookup import complete_bars, known_symbol

if TYPE_CHECKING:
    from datetime import datetime

    from trader.core.clock import SessionCalendar

FIRST_SESSION = date(2015, 1, 2)
LAST_SESSION = date(2026, 8, 5)
ADJUSTMENT = "none (synthetic)"

# Regimes: bull, bear, sideways. Drift of the market a session, scale of its volatility, and the
# chance to stay; whoever leaves goes to either of the others alike.
REGIME_DRIFT = np.array([0.0010, -0.0012, 0.0002])
REGIME_SCALE = np.array([0.8, 1.7, 1.0])
REGIME_STAY = np.array([0.990, 0.970, 0.980])

MARKET_VOLATILITY = 0.0095  # standard deviation of a session's return
GARCH_SHOCK, GARCH_MEMORY = 0.11, 0.865  # a finite kurtosis: (a + b)² + 2 a² below 1
OVERNIGHT_SHARE = 0.33  # of the variance, before jumps
JUMP_CHANCE = 0.012  # a session, about three a year: earnings
JUMP_SMALLEST, JUMP_SPREAD = 1.5, 3.5  # times the own volatility
LARGEST_GAP = 0.25  # well below the cliff of the smallest split, 3 for 2
LOWEST_PRICE = 1.0  # USD; cents would be too coarse below
STEP_NS = HOUR_NS // 4
STEPS_A_SESSION = 26  # quarters of an hour from 09:30 to 16:00


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """What distinguishes one made-up symbol from another."""

    beta: float  # to the market factor
    own_volatility: float  # standard deviation of a session's own shock
    drift: float  # own, a session
    price: float  # USD before the first session
    shares: float  # mean volume of a step


COMPANIES = {
    "SYNA": Company(beta=1.1, own_volatility=0.013, drift=0.0003, price=27.0, shares=4.2e6),
    "SYNB": Company(beta=1.6, own_volatility=0.022, drift=0.0008, price=20.0, shares=1.9e6),
    "SYNC": Company(beta=1.0, own_volatility=0.013, drift=0.0002, price=46.0, shares=1.1e6),
    "SYND": Company(beta=1.2, own_volatility=0.016, drift=0.0001, price=155.0, shares=1.5e5),
    "SYNE": Company(beta=0.8, own_volatility=0.014, drift=-0.0001, price=88.0, shares=3.1e5),
    "SYNF": Company(beta=1.4, own_volatility=0.019, drift=0.0003, price=64.0, shares=7.5e5),
}


class SyntheticData:
    """Made-up bars from 2015-01-02 to 2026-08-05, daily and hourly; a pure function of the seed."""

    name = "synthetic"

    def __init__(self, calendar: SessionCalendar, *, seed: int = 0) -> None:
        self._calendar = calendar
        self._seed = seed
        self._loaded: dict[tuple[str, Timeframe], BarSeries] = {}

    def symbols(self, timeframe: Timeframe) -> tuple[str, ...]:  # noqa: ARG002  alike for both
        """SYNA to SYNF, for every timeframe."""
        return tuple(COMPANIES)

    def bars(self, symbol: str, timeframe: Timeframe, until: datetime | None = None) -> BarSeries:
        """Bars of `symbol` that were complete at `until` (all bars when None).

        Raises DataIntegrityError for an unknown symbol, and when no bar was complete
        at `until`.
        """
        known = known_symbol(symbol, timeframe, self)
        if (known, timeframe) not in self._loaded:
            self._make(known)
        return complete_bars(self._loaded[known, timeframe], until)

    @cached_property
    def _market(self) -> _Market:
        return _market(self._sessions, _Dice(self._seed, 0))

    @cached_property
    def _sessions(self) -> int:
        return len(self._calendar.between(FIRST_SESSION, LAST_SESSION))

    def _make(self, symbol: str) -> None:
        """Draw the steps of `symbol` once and cut both timeframes from them."""
        dice = _Dice(self._seed, 1 + list(COMPANIES).index(symbol))
        steps = _walk(COMPANIES[symbol], self._market, self._steps_of_sessions, dice)
        for timeframe in Timeframe:
            grid = expected_bars(FIRST_SESSION, LAST_SESSION, timeframe, self._calendar)
            counts = -((grid.timestamp - grid.available_at) // STEP_NS)
            first = np.cumsum(counts) - counts
            series = BarSeries(
                symbol=symbol,
                timeframe=timeframe,
                timestamp=grid.timestamp,
                available_at=grid.available_at,
                open=steps.open[first],
                high=np.maximum.reduceat(np.maximum(steps.open, steps.close), first),
                low=np.minimum.reduceat(np.minimum(steps.open, steps.close), first),
                close=steps.close[first + counts - 1],
                volume=np.add.reduceat(steps.volume, first),
                source=self.name,
                adjustment=ADJUSTMENT,
            )
            require_sound(series, self._calendar)
            self._loaded[symbol, timeframe] = series

    @cached_property
    def _steps_of_sessions(self) -> NDArray[np.int64]:
        """[S] quarters of an hour in each session: 26, on half days 14."""
        opens, closes = self._calendar.hours_between(FIRST_SESSION, LAST_SESSION)
        return np.asarray((closes - opens) // STEP_NS)


class _Dice:
    """Random numbers from the raw words of PCG64, one independent stream per (seed, stream)."""

    def __init__(self, seed: int, stream: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, stream]))

    def uniform(self, count: int) -> NDArray[np.float64]:
        """[count] in [0, 1), 53 bits each."""
        words = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        return (words >> np.uint64(11)).astype(np.float64) / 2**53

    def normal(self, *shape: int) -> NDArray[np.float64]:
        """Nearly normal, mean 0 and variance 1: the sum of twelve 16-bit uniforms (Irwin-Hall)."""
        count = int(np.prod(shape))
        words = np.asarray(self._bits.random_raw(3 * count), dtype="<u8")
        dots = words.view("<u2").reshape(count, 12).sum(axis=1, dtype=np.int64)
        centred: NDArray[np.float64] = (dots.reshape(shape) - 6 * 65_535) / 65_536
        return centred


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Market:
    """The factor all symbols share. Arrays [S]; `step` [S, 26]."""

    drift: NDArray[np.float64]
    scale: NDArray[np.float64]  # of every volatility, by regime
    volatility: NDArray[np.float64]
    overnight: NDArray[np.float64]
    step: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Steps:
    """Quarter hours of one symbol in a row; prices in whole cents. Arrays [steps]."""

    open: NDArray[np.float64]
    close: NDArray[np.float64]
    volume: NDArray[np.float64]


def _regimes(uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """[S] the Markov chain: 0 bull, 1 bear, 2 sideways."""
    regime, out = 0, np.empty(uniform.size, dtype=np.int64)
    for session, draw in enumerate(uniform.tolist()):
        stay = float(REGIME_STAY[regime])
        if draw >= stay:
            regime = (regime + (1 if draw < (1.0 + stay) / 2.0 else 2)) % 3
        out[session] = regime
    return out


def _garch(shocks: NDArray[np.float64]) -> NDArray[np.float64]:
    """[S] volatility of mean square 1: h[t] = 1 - a - b + a h[t-1] z[t-1]² + b h[t-1]."""
    variance, out = 1.0, np.empty(shocks.size)
    for session, shock in enumerate(shocks.tolist()):
        out[session] = variance
        calm = 1.0 - GARCH_SHOCK - GARCH_MEMORY
        variance = calm + (GARCH_SHOCK * shock * shock + GARCH_MEMORY) * variance
    return np.sqrt(out)


def _shocks(
    sessions: int, dice: _Dice
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Volatility [S], overnight shock [S] and steps [S, 26] of one factor, in its mean sigma."""
    night, day = dice.normal(sessions), dice.normal(sessions, STEPS_A_SESSION)
    day *= np.sqrt((1.0 - OVERNIGHT_SHARE) / STEPS_A_SESSION)
    night *= np.sqrt(OVERNIGHT_SHARE)
    total = night.copy()
    for step in range(STEPS_A_SESSION):  # one by one: the order of a sum decides its last bit
        total += day[:, step]
    volatility = _garch(total)
    return volatility, night * volatility, day * volatility[:, np.newaxis]


def _market(sessions: int, dice: _Dice) -> _Market:
    regime = _regimes(dice.uniform(sessions))
    scale = REGIME_SCALE[regime]
    volatility, overnight, step = _shocks(sessions, dice)
    sigma = MARKET_VOLATILITY * scale
    return _Market(
        drift=REGIME_DRIFT[regime],
        scale=scale,
        volatility=volatility * scale,
        overnight=overnight * sigma,
        step=step * sigma[:, np.newaxis],
    )


def _walk(
    company: Company, market: _Market, steps_of_sessions: NDArray[np.int64], dice: _Dice
) -> _Steps:
    """The path of one symbol through every step of every session."""
    sessions = market.drift.size
    volatility, overnight, step = _shocks(sessions, dice)
    own = company.own_volatility * (0.25 + 0.75 * market.scale)
    jumps = company.own_volatility * _jumps(sessions, dice)
    gap = company.beta * market.overnight + own * overnight + jumps
    drift = company.drift + company.beta * market.drift
    move = company.beta * market.step + own[:, np.newaxis] * step
    move += drift[:, np.newaxis] / STEPS_A_SESSION
    traded = np.arange(STEPS_A_SESSION) < steps_of_sessions[:, np.newaxis]
    opens, closes = _prices(company.price, gap, move, traded)

    level = 0.5 * (volatility + market.volatility)
    size = np.abs(move) / (company.own_volatility / np.sqrt(STEPS_A_SESSION))
    noise = 0.6 + 0.8 * dice.uniform(sessions * STEPS_A_SESSION).reshape(move.shape)
    level = level + 12.0 * np.maximum(np.abs(gap) - 0.02, 0.0)
    smile = 0.7 + 1.1 * np.square(np.linspace(-1.0, 1.0, STEPS_A_SESSION))  # busy at both ends
    shares = company.shares * smile * noise * (0.3 + 0.25 * size) * level[:, np.newaxis]
    return _Steps(open=opens, close=closes, volume=np.rint(shares[traded]) + 1.0)


def _jumps(sessions: int, dice: _Dice) -> NDArray[np.float64]:
    """[S] overnight jumps in units of the own volatility, mostly 0, up and down alike."""
    happens, size, side = (dice.uniform(sessions) for _ in range(3))
    jump = (JUMP_SMALLEST + JUMP_SPREAD * size) * np.where(side < 0.5, -1.0, 1.0)
    return np.where(happens < JUMP_CHANCE, jump, 0.0)


def _prices(
    price: float,
    gap: NDArray[np.float64],
    move: NDArray[np.float64],
    traded: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Opening and closing price of every traded step in a row, USD in whole cents."""
    growth = 1.0 + move
    growth[:, 0] *= 1.0 + np.clip(gap, -LARGEST_GAP, LARGEST_GAP)
    close = np.maximum(price * np.cumprod(growth[traded]), LOWEST_PRICE)
    open_ = np.concatenate([[price], close[:-1]])
    first = np.flatnonzero(np.broadcast_to(np.arange(STEPS_A_SESSION) == 0, traded.shape)[traded])
    open_[first] *= 1.0 + np.clip(gap, -LARGEST_GAP, LARGEST_GAP)
    return np.round(np.maximum(open_, LOWEST_PRICE), 2), np.round(close, 2)
