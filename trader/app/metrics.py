"""Metrics of a daemon for Prometheus, on 127.0.0.1 only: ages, money, orders, stopped entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from trader.core.clock import SystemClock
from trader.core.errors import UsageError

HOST = "127.0.0.1"
TYPE = "text/plain; version=0.0.4; charset=utf-8"
REQUEST_SECONDS = 5.0  # a client that says nothing for so long is left


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The account when it was last looked at; money in USD.

    unresolved   orders whose outcome the broker has not told
    unprotected  open trades without a waiting stop
    stopped      what stops entries now: halted, frozen, paused, locked -> 0 or 1
    """

    equity: Decimal
    cash: Decimal
    positions: int
    open_orders: int
    unresolved: int
    unprotected: int
    stopped: dict[str, int]


@dataclass(slots=True, kw_only=True)
class Metrics:
    """What a daemon counts since it was started; one thread writes, others only read.

    heard_at     when the broker's stream last said something, where one is listened to; system time
    stream_open  whether it can be relied on; None where none is listened to
    """

    standing: Standing | None = None
    beat_at: datetime | None = None
    cycle_at: datetime | None = None
    heard_at: datetime | None = None
    stream_open: bool | None = None
    fills: int = 0
    failures: int = 0
    decisions: Counter[str] = field(default_factory=Counter)
    jobs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def beaten(self, at: datetime) -> None:
        """Note when the daemon last said that it is well, system time."""
        self.beat_at = at

    def text(self, now: datetime) -> str:
        """Prometheus' text format; what is not known yet is left out. now: system time."""
        lines: list[str] = []

        def say(name: str, kind: str, meaning: str, *values: tuple[str, object]) -> None:
            lines.append(f"# HELP trader_{name} {meaning}")
            lines.append(f"# TYPE trader_{name} {kind}")
            lines.extend(f"trader_{name}{labels} {value}" for labels, value in values)

        for name, at, meaning in (
            ("heartbeat_age_seconds", self.beat_at, "Since the daemon last said that it is well."),
            ("last_cycle_age_seconds", self.cycle_at, "Since a decision slot was finished."),
            ("stream_age_seconds", self.heard_at, "Since the broker's stream last said anything."),
        ):
            if at is not None:
                say(name, "gauge", meaning, ("", max((now - at).total_seconds(), 0.0)))
        if self.stream_open is not None:
            meaning = "Whether the broker's stream can be relied on."
            say("stream_up", "gauge", meaning, ("", int(self.stream_open)))
        if self.standing is not None:
            found = self.standing
            for name, number, meaning in (
                ("equity_usd", found.equity, "Worth of the paper account."),
                ("cash_usd", found.cash, "Cash of the paper account."),
                ("positions", found.positions, "Symbols held."),
                ("open_orders", found.open_orders, "Orders open at the broker, legs included."),
                ("unresolved_orders", found.unresolved, "Orders whose outcome is not known."),
                ("unprotected_positions", found.unprotected, "Open trades without a stop."),
            ):
                say(name, "gauge", meaning, ("", number))
            say(
                "entries_stopped",
                "gauge",
                "Whether entries are stopped, by what.",
                *((f'{{by="{name}"}}', number) for name, number in found.stopped.items()),
            )
        say("fills_total", "counter", "Fills booked since the start.", ("", self.fills))
        say("failures_total", "counter", "Jobs and looks that failed.", ("", self.failures))
        say(
            "decisions_total",
            "counter",
            "Decisions by verdict.",
            *((f'{{verdict="{name}"}}', self.decisions[name]) for name in ("GO", "NO_GO")),
        )
        say(
            "jobs_total",
            "counter",
            "Jobs by outcome.",
            *(
                (f'{{job="{job}",outcome="{outcome}"}}', count)
                for (job, outcome), count in sorted(self.jobs.items())
            ),
        )
        return "\n".join(lines) + "\n"


@contextmanager
def served(port: int | None, text: Callable[[datetime], str]) -> Iterator[str]:
    """Serve a text under /metrics while the block runs; its address, empty for no port.

    port  0 takes a free one. Raises UsageError when it is taken.
    """
    if port is None:
        yield ""
        return
    try:
        server = ThreadingHTTPServer((HOST, port), _handler(text))
    except OSError as exc:
        raise UsageError(
            f"the metrics cannot be served on {HOST}:{port} ({exc.strerror}): "
            "set daemon.metrics_port to another port, or to null"
        ) from exc
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"{HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(text: Callable[[datetime], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET /metrics and nothing else."""

        timeout = REQUEST_SECONDS

        def do_GET(self) -> None:
            found = self.path.split("?")[0] == "/metrics"
            body = text(SystemClock().now()).encode() if found else b"see /metrics\n"
            self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
            self.send_header("Content-Type", TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Requests are not logged."""

    return Handler
