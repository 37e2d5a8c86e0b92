"""Golden files: one debate as it is printed, and the JSON of one backtest."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from trader.cli.telling import tell_debates


def test_a_debate_reads_as_it_did(app, capsys, golden):
    tell_debates(app.debate("AAPL", datetime(2026, 2, 24, 23, tzinfo=UTC)))
    text = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    golden("debate_AAPL_2026-02-24.txt", text + "\n")


def test_the_json_of_a_backtest_is_what_it_was(whole, golden):
    _, result = whole
    body = result.as_json()
    # these name the code and the place, which may change while every decision stays
    for key in ("run_id", "report", "files", "ledger_head"):
        del body[key]
    text = json.dumps(body, indent=1, ensure_ascii=False).replace(result.run_id, "RUN_ID")
    golden("backtest_AAPL_2026.json", text + "\n")
