"""The market of every test here, over each transport."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.trader.broker.conformity.venue import HTTP, IN_PROCESS, Venue, open_venue


@pytest.fixture(params=[IN_PROCESS, HTTP])
def venue(request: pytest.FixtureRequest) -> Iterator[Venue]:
    with open_venue(request.param) as opened:
        yield opened
