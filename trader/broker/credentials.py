"""The key of the paper account: read from the environment or from a file that only its owner reads.

The key never stands in the configuration, in the state folder, in a log or in an error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from trader.core.config import BrokerSettings
from trader.core.errors import ConfigError

LARGEST_FILE = 65_536  # bytes
USABLE = re.compile(r"[!-~]{1,200}")  # what a header can carry
LINE = re.compile(r"\s*(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*(.*?)\s*")
PAPER, LIVE = "PK", "AK"  # how Alpaca's key ids begin: a custom, not a promise
OTHERS = 0o077  # permissions of everyone but the owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A key id and its secret; neither is shown by `repr` or `str`.

    source  where they come from, in words
    """

    key_id: str
    secret_key: str
    source: str

    def __repr__(self) -> str:
        return f"Credentials({self.source})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials are not stored")

    @property
    def is_paper(self) -> bool:
        """Whether the id begins like that of a paper key."""
        return self.key_id.startswith(PAPER)


def credentials(settings: BrokerSettings, environ: Mapping[str, str]) -> Credentials | None:
    """The key that the settings lead to, or None where there is none; `broker.key_file` goes first.

    ConfigError for half a key, for one that no request can carry, for one of a live account, and
    for a file that others may read.
    """
    values: Mapping[str, str] = environ
    names = settings.key_id_variable, settings.secret_key_variable
    if settings.key_file is not None:
        try:
            path = Path(settings.key_file).expanduser()
        except RuntimeError as exc:
            raise ConfigError(f"the key file {settings.key_file}: {exc}") from exc
        values, source = _file(path), f"the file {path}"
    else:
        source = f"the environment variables {' and '.join(names)}"
    found = [values.get(name, "").strip() for name in names]
    if not any(found) and settings.key_file is None:
        return None
    for name, value in zip(names, found, strict=True):
        if not value:
            raise ConfigError(f"{name} is not set in {source}; a key has an id and a secret")
        if not USABLE.fullmatch(value):
            raise ConfigError(
                f"{name} in {source} is no key (spaces, line breaks or other letters, or too "
                "long); copy it anew"
            )
    keys = Credentials(key_id=found[0], secret_key=found[1], source=source)
    refuse_live(keys)
    return keys


def refuse_live(keys: Credentials) -> None:
    """ConfigError for the key of a live account, which is not used even to read."""
    if keys.key_id.startswith(LIVE):
        raise ConfigError(
            f"the key in {keys.source} begins with {LIVE}: it belongs to a live account, and this "
            "program never trades live; make a key of the paper account"
        )


def require_paper(keys: Credentials) -> None:
    """ConfigError for a key that is not one of a paper account, as far as its id tells."""
    if not keys.is_paper:
        raise ConfigError(
            f"the key in {keys.source} does not begin with {PAPER}, as those of Alpaca's paper "
            "accounts do; make a key of the paper account"
        )


def _file(path: Path) -> dict[str, str]:
    """NAME=VALUE lines of a file that belongs to this user and that nobody else may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        raise ConfigError(f"the key file {path} cannot be read: {exc.strerror}") from exc
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"the key file {path} is not a regular file")
        if status.st_uid != os.geteuid():
            raise ConfigError(f"the key file {path} belongs to another user; make one of your own")
        if status.st_mode & OTHERS:
            raise ConfigError(f"others may read or write the key file {path}; chmod 600 {path}")
        if status.st_size > LARGEST_FILE:
            raise ConfigError(f"the key file {path} holds {status.st_size} bytes; two lines do")
        raw = os.read(descriptor, LARGEST_FILE)
    finally:
        os.close(descriptor)
    values: dict[str, str] = {}
    try:
        lines = raw.decode().splitlines()
    except UnicodeDecodeError:
        # the cause would show the bytes that could not be read
        raise ConfigError(f"the key file {path} is not text") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = LINE.fullmatch(line)
        if parts is None:
            raise ConfigError(f"{path}, line {number}: not NAME=VALUE")
        if parts[1] in values:
            raise ConfigError(f"{path}, line {number}: {parts[1]} is given twice")
        values[parts[1]] = _unquoted(parts[2])
    return values


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
