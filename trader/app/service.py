"""The daemon as a service: started apart from the terminal, stopped, and installed as a unit."""

from __future__ import annotations

import getpass
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from threading import Event

from trader.app.context import Context
from trader.app.folder import make_folder
from trader.app.heartbeat import holder, read
from trader.core.canonical import Primitive, to_object
from trader.core.clock import monotonic_seconds
from trader.core.errors import (
    ConfigError,
    DataIntegrityError,
    EndpointError,
    LockHeldError,
    OrderRefusedError,
    StateError,
    TraderError,
    UsageError,
)

LOG, FIRST_WORDS = "daemon.log", "daemon.out"
START_SECONDS, LOOK_SECONDS = 120.0, 0.1
UNIT = "trader.service"
LONGEST_WORDS = 4_000  # characters of what a daemon said before it died


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of `trader daemon start` or `stop`."""

    schema_version: int
    changed: bool
    state: str
    pid: int | None
    log: str

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A systemd unit; `path` is None where it was only asked for. next: commands to be typed."""

    schema_version: int
    path: str | None
    text: str
    next: tuple[str, ...]

    def as_json(self) -> dict[str, Primitive]:
        """The JSON object of the command."""
        return to_object(self)


ENDINGS: dict[int, type[TraderError]] = {  # what the exit code of a daemon that died says
    2: UsageError,
    3: ConfigError,
    5: DataIntegrityError,
    6: OrderRefusedError,
    7: StateError,
}


def command(words: Sequence[str]) -> list[str]:
    """The command line of the schedule in the foreground, with options as they are typed.

    The installed script goes first: `python -m` would also import what lies in the folder at hand.
    """
    script = Path(sys.executable).with_name("trader")
    program = [str(script)] if os.access(script, os.X_OK) else [sys.executable, "-m", "trader"]
    return [*program, "run", "--paper", *words]


def start(app: Context, words: Sequence[str]) -> Done:
    """Start the schedule in a session of its own; returns when it is heard.

    words  options of `trader run --paper`
    Raises LockHeldError when another run is at work, and what the daemon itself died of.
    """
    state_dir = make_folder(app.state_dir)
    held = holder(state_dir)
    if held is not None:
        raise LockHeldError(
            f"the state folder {state_dir} is in use by process {held}: "
            "`trader daemon status` tells more"
        )
    log, said = state_dir / LOG, state_dir / FIRST_WORDS
    pid = _spawned(command([*words, "--log", str(log)]), said)
    ends = monotonic_seconds() + START_SECONDS
    code = None
    while code is None:
        heard = read(state_dir)
        if heard is not None and heard.pid == pid and heard.beat.state != "starting":
            return Done(schema_version=1, changed=True, state="running", pid=pid, log=str(log))
        if monotonic_seconds() >= ends:
            raise EndpointError(
                f"the daemon (process {pid}) was started and is not heard after "
                f"{START_SECONDS:.0f} s: look into {log}"
            )
        Event().wait(LOOK_SECONDS)
        code = _exit_code(pid)
    if code == 0:  # the embedded market's bars are over already
        return Done(schema_version=1, changed=False, state="ended", pid=None, log=str(log))
    text = said.read_text(encoding="utf-8", errors="replace")[-LONGEST_WORDS:].strip()
    last = text.splitlines()[-1].removeprefix("trader: ") if text else "it said nothing"
    raise ENDINGS.get(code, EndpointError)(f"the daemon ended at once: {last}")


def _spawned(words: Sequence[str], said: Path) -> int:
    """Start a program in a session of its own; its process id. said: file of what it prints."""
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        words[0],
        list(words),
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(said), writing, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def _exit_code(pid: int) -> int | None:
    """How a process that we started has ended; None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def stop(app: Context, *, seconds: float) -> Done:
    """Tell the daemon to end after the job at hand, and wait for it.

    Raises UsageError when the folder is held by another command, EndpointError when the daemon is
    still at work after so many seconds; it ends on its own then.
    """
    state_dir, log = app.state_dir, str(app.state_dir / LOG)
    held = holder(state_dir)
    if held is None:
        return Done(schema_version=1, changed=False, state="stopped", pid=None, log=log)
    heard = read(state_dir)
    if heard is None or heard.pid != held:
        raise UsageError(
            f"the state folder {state_dir} is in use by process {held}, which is no daemon: "
            "wait for it"
        )
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(held, signal.SIGTERM)
    ends = monotonic_seconds() + seconds
    while holder(state_dir) == held:
        if monotonic_seconds() >= ends:
            raise EndpointError(
                f"the daemon (process {held}) is still at work after {seconds:.0f} s "
                f"({heard.beat.job or 'waiting'}): it ends when that is done"
            )
        Event().wait(LOOK_SECONDS)
    return Done(schema_version=1, changed=True, state="stopped", pid=held, log=log)


def install(app: Context, words: Sequence[str], *, system: bool, write: bool) -> Unit:
    """Write the unit of this daemon where systemd looks for it; nothing is started.

    words   options of `trader run --paper`
    system  for the whole computer; else for this user alone
    """
    state_dir = app.state_dir.expanduser().resolve()
    text = unit_text(words, state_dir=state_dir, system=system)
    folder = Path("/etc/systemd/system") if system else _user_units()
    path = folder / UNIT
    if write:
        make_folder(state_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as exc:
            raise UsageError(
                f"{path} cannot be written ({exc.strerror}): use --print and put it there yourself"
            ) from exc
    scope = "sudo systemctl" if system else "systemctl --user"
    lines = [f"{scope} daemon-reload", f"{scope} enable --now {UNIT}", f"{scope} status {UNIT}"]
    if not system:
        lines.append(
            f"loginctl enable-linger {getpass.getuser()}   (it runs while nobody is there)"
        )
    return Unit(schema_version=1, path=str(path) if write else None, text=text, next=tuple(lines))


def _user_units() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "systemd" / "user"


def unit_text(words: Sequence[str], *, state_dir: Path, system: bool) -> str:
    """The systemd unit that runs the schedule with these options."""
    template = (files("trader") / "deploy" / UNIT).read_text(encoding="utf-8")
    kept = []
    for line in template.splitlines():
        if line.startswith("#system ") or line.startswith("#user "):
            mark, _, rest = line.partition(" ")
            if mark == ("#system" if system else "#user"):
                kept.append(rest)
        else:
            kept.append(line)
    values = {
        "@COMMAND@": " ".join(quoted(word) for word in command(words)),
        "@STATE@": quoted(str(state_dir)).replace("$$", "$"),
        "@FOLDER@": str(Path.cwd()).replace("%", "%%"),
        "@USER@": getpass.getuser(),
    }
    text = "\n".join(kept) + "\n"
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


def quoted(word: str) -> str:
    """A word of a command as systemd reads it: no expansion of % and $, spaces kept together."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if any(c.isspace() or c in "'\"\\;" for c in word) or not word else plain
