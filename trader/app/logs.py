"""The log of a daemon: one line an event, as text for people or as JSON, without any secret."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, Any, Literal

from trader.broker.credentials import credentials
from trader.core.canonical import to_primitive
from trader.core.config import Config
from trader.core.errors import ConfigError

LOGGER = "trader"
BYTES, KEPT = 1_000_000, 3  # of one file; older files beside it
SHORTEST_SECRET = 6  # characters; anything shorter would be struck out of ordinary words
WARNINGS = (  # events a person should see
    "failed",
    "missed",
    "expired",
    "asking",
    "problem",
    "unprotected",
    "emergency",
)


def tell(event: str, **facts: Any) -> None:
    """Write an event with its facts; values as in the ledger."""
    level = logging.WARNING if event in WARNINGS else logging.INFO
    known = {name: to_primitive(value) for name, value in facts.items()}
    logging.getLogger(LOGGER).log(level, event, extra={"facts": known})


def warn(problem: str, *, naked: Mapping[str, str], emergencies: Mapping[str, str]) -> None:
    """Write why nothing may be bought, which trades have no stop and which had to be sold."""
    if problem:
        tell("problem", text=problem)
    for trade_id, why in naked.items():
        tell("unprotected", trade=trade_id, why=why)
    for trade_id, why in emergencies.items():
        tell("emergency", trade=trade_id, why=why)


@contextmanager
def logging_to(
    path: Path | None,
    *,
    form: Literal["text", "json"],
    secrets: Collection[str] = (),
    quiet: bool = False,
) -> Iterator[None]:
    """Log to a file that is begun anew at 1 MB, three older ones kept, or to stderr (None).

    secrets  struck out wherever they turn up, libraries' own lines included
    quiet    warnings and errors only
    """
    handler: logging.Handler = logging.StreamHandler() if path is None else PrivateFile(path)
    handler.setFormatter(Lines(form=form, secrets=secrets))
    root, own = logging.getLogger(), logging.getLogger(LOGGER)
    before = own.level
    root.addHandler(handler)
    own.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        own.setLevel(before)
        root.removeHandler(handler)
        handler.close()


class PrivateFile(RotatingFileHandler):
    """A log that only its owner reads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=BYTES, backupCount=KEPT, encoding="utf-8")

    def _open(self) -> IO[Any]:  # type: ignore[override]
        return open(
            self.baseFilename,
            "a",
            encoding="utf-8",
            opener=lambda path, flags: os.open(path, flags, 0o600),
        )


class Lines(logging.Formatter):
    """One line an event, whoever tells it: time, level, event, facts."""

    def __init__(self, *, form: Literal["text", "json"], secrets: Collection[str]) -> None:
        super().__init__()
        self._form = form
        self._secrets = sorted(
            {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}, key=len, reverse=True
        )

    def format(self, record: logging.LogRecord) -> str:
        """The line, secrets struck out."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level = record.levelname.lower()
        facts: Mapping[str, Any] = getattr(record, "facts", {})
        event = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            facts = {**facts, "error": f"{type(error).__name__}: {error}"}
        if record.name != LOGGER:
            facts = {"library": record.name, **facts}
        if self._form == "json":
            body = {"at": at, "level": level, "event": event, **facts}
            line = json.dumps(body, ensure_ascii=False)
        else:
            words = " ".join(f"{name}={_word(value)}" for name, value in facts.items())
            line = f"{at} {level:<7} {event} {words}".rstrip()
        for secret in self._secrets:
            line = line.replace(secret, "[secret]")
        return "".join(char if char.isprintable() else " " for char in line)


def _word(value: Any) -> str:
    """A value as one word; quoted where it has spaces."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False) if not text or " " in text else text


def secrets_of(config: Config, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be written anywhere: every key that the configuration leads to."""
    models, broker = config.models, config.broker
    names = {
        broker.key_id_variable,
        broker.secret_key_variable,
        models.api_key_variable,
        *(
            side.api_key_variable
            for side in (models.bull, models.bear, models.arbitrator)
            if side.api_key_variable is not None
        ),
    }
    found = [environ[name] for name in sorted(names) if environ.get(name)]
    with suppress(ConfigError):  # a key that nothing can be opened with
        keys = credentials(broker, environ)
        found += [keys.key_id, keys.secret_key] if keys is not None else []
    return tuple(dict.fromkeys(found))
