"""Rule debaters never lie: over many sessions of every kind of market all their claims stand."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal

import pytest

from strategies.kernels.dispatch import kernels
from trader.app.assembly import open_account
from trader.app.debaters import Debaters
from trader.app.opening import open_app
from trader.core.decision import Claim
from trader.ledger.store import Ledger
from trader.pipeline.evidence import AccountView
from trader.pipeline.slots import slots_between


def claims_of(overrides: list[str], symbol: str, first: str, last: str, every: int) -> list[Claim]:
    """Every claim of the debates about `symbol` at every `every`-th slot."""
    app = open_app(environ={}, overrides=overrides)
    deliberation = Debaters(app.config).deliberation("rules")
    slots = slots_between(
        app.calendar, app.timeframe, date.fromisoformat(first), date.fromisoformat(last)
    )[::every]
    account = open_account(
        app.config,
        run_id="rules",
        symbols=(symbol,),
        data=app.data,
        calendar=app.calendar,
        ledger=Ledger(None, durable=False),
        kernels=kernels("reference"),
        start=slots[0].since,
        cash=Decimal(100_000),
        deliberation=deliberation,
    )
    view = AccountView(portfolio=account.broker.portfolio(), open_buy_value_symbol=Decimal(0))
    whole = app.data.bars(symbol, app.timeframe)
    said: list[Claim] = []
    for slot in slots:
        series = whole.until(slot.as_of)
        for item in account.cycle.candidates.prepare_all(slot, series, view):
            debate = deliberation.deliberate(
                item.candidate, item.evidence, item.cycle_id, item.history
            )
            said += [
                claim for turn in (*debate.arguments, *debate.rebuttals) for claim in turn.claims
            ]
            assert item.history.answers == {}
    return said


CROSSINGS = "strategies.enabled=[atr_trend,rsi_reversion,macd_momentum,sma_cross]"


@pytest.mark.parametrize(
    ("overrides", "symbol", "first", "last", "every"),
    [
        ([CROSSINGS], "AAPL", "2025-01-02", "2026-08-03", 67),
        ([CROSSINGS], "NVDA", "2020-01-02", "2026-08-03", 401),
        (["data.source=synthetic"], "SYNA", "2016-01-04", "2026-08-03", 211),
        (["data.source=synthetic", "data.timeframe=1Hour"], "SYNB", "2019-03-01", "2019-06-28", 29),
        (["strategies.parameters.atr_trend.band_atr=0.25"], "AAPL", "2026-02-20", "2026-02-27", 1),
        (["strategies.enabled=[buy_and_hold]"], "AAPL", "2016-01-04", "2016-01-08", 2),
        (["risk.atr_multiple=3"], "MSFT", "2026-01-02", "2026-07-01", 23),
    ],
)
def test_every_claim_of_rule_debaters_is_verified(overrides, symbol, first, last, every):
    said = claims_of(overrides, symbol, first, last, every)
    assert len(said) > 20
    fallen = Counter((claim.text, claim.detail) for claim in said if claim.status != "verified")
    assert not fallen
