"""Speed as ratios measured in one run, which fail no build: `python -m tests.benchmarks.run`."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPEATS = 9


def best(command: list[str], repeats: int = REPEATS, **environment: str) -> float:
    """Fewest seconds of wall time over several runs of a process."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(
            command,
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        found.append(time.perf_counter() - began)
    return min(found)


def help_ratio() -> dict[str, float]:
    """`trader --help` against a bare interpreter."""
    bare = best([sys.executable, "-c", "pass"])
    helped = best([sys.executable, "-m", "trader", "--help"])
    return {"bare_python_s": bare, "help_s": helped, "ratio": helped / bare, "at_most": 12.0}


def backtest_seconds() -> dict[str, float]:
    """The whole backtest of the README with a warm kernel cache, as a process; its memory."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "trader",
            "backtest",
            "--from",
            "2025-01-01",
            "--state-dir",
            folder,
        ]
        best(command, 1)  # fills the cache of compiled kernels
        seconds = best(command, 3)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"seconds": seconds, "at_most_s": 12.0, "peak_mb": peak, "at_most_mb": 500.0}


def debates_per_second() -> dict[str, float]:
    """Debated decisions a second inside the process, when a debate is held in every session.

    A whole cycle is market, evidence, debate, gate, order and ledger; the strategy fires on every
    bar, so its track record is the longest that there can be.
    """
    from decimal import Decimal

    from strategies.kernels.dispatch import kernels
    from trader.app import open_app
    from trader.app.assembly import open_account
    from trader.app.debaters import Debaters
    from trader.backtest.replay import Replay, replay
    from trader.ledger.store import Ledger
    from trader.pipeline.history import RecordedHistory
    from trader.pipeline.slots import slots_between

    app = open_app(overrides=["strategies.enabled=buy_and_hold"], environ={})

    def walk(first: date, last: date) -> tuple[Replay, float]:
        slots = slots_between(app.calendar, app.timeframe, first, last)
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder) / "ledger.db", durable=False)
            account = open_account(
                app.config,
                run_id="benchmark",
                symbols=("AAPL",),
                data=app.data,
                calendar=app.calendar,
                ledger=ledger,
                kernels=kernels("cpu"),
                start=slots[0].since,
                cash=Decimal(100_000),
                deliberation=Debaters(app.config).deliberation("debate"),
            )
            began = time.perf_counter()
            found = replay(account.cycle, slots, book=account.journal.book, ledger=ledger)
            return found, time.perf_counter() - began

    walk(date(2026, 7, 1), date(2026, 7, 10))  # imports and compiled kernels are loaded once
    found, seconds = walk(date(2025, 1, 2), date(2026, 8, 5))
    graph = Debaters(app.config).deliberation("debate")
    past = RecordedHistory({})
    began = time.perf_counter()
    for cycle in found.cycles:
        graph.deliberate(cycle.candidate, cycle.evidence, cycle.cycle_id, past)
    alone = time.perf_counter() - began
    return {
        "debates": len(found.cycles),
        "debates_alone_per_s": len(found.cycles) / alone,
        "whole_cycles_per_s": len(found.cycles) / seconds,
        "aim_per_s": 100.0,
    }


def order_path() -> dict[str, float]:
    """Orders sent, looked up and canceled a second through alpaca-py and the embedded exchange.

    The exchange keeps its books on disk and makes every change durable, as in a paper run.
    """
    from decimal import Decimal

    from trader.app import open_app
    from trader.app.assembly import embedded_broker, embedded_exchange
    from trader.core.trading import OrderIntent, OrderType, Side, TimeInForce

    app, orders = open_app(environ={}), 300
    session = app.calendar.at_or_after(app.config.market.start)
    with tempfile.TemporaryDirectory() as folder:
        exchange = embedded_exchange(
            app.config,
            data=app.data,
            calendar=app.calendar,
            start=app.calendar.close(session),
            cash=Decimal(100_000),
            database=Path(folder) / "exchange.db",
        )
        broker = embedded_broker(exchange)
        began = time.perf_counter()
        for number in range(orders):
            sent = broker.submit(
                OrderIntent(
                    client_order_id=f"benchmark-{number}",
                    symbol="AAPL",
                    side=Side.BUY,
                    quantity=Decimal(1),
                    order_type=OrderType.LIMIT,
                    time_in_force=TimeInForce.GTC,
                    limit_price=Decimal(100),
                )
            )
            broker.order(sent.client_order_id)
            broker.cancel(sent.order_id)
        seconds = time.perf_counter() - began
        exchange.close()
    return {"round_trips_per_s": orders / seconds, "at_least_per_s": 200.0}


def main() -> None:
    """Measure everything and print one JSON object."""
    load = os.getloadavg()[0]
    body = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": load,
        "help": help_ratio(),
        "backtest": backtest_seconds(),
        "debates": debates_per_second(),
        "orders": order_path(),
    }
    print(json.dumps(body, indent=2))  # noqa: T201


if __name__ == "__main__":
    main()
