"""What a sweep leaves on disk: every set as CSV, and the chosen one as a parameter file."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from strategies.kernels.engines.lanes import METRICS, Outcomes
from strategies.sweep.grid import Grid
from strategies.sweep.luck import Findings, limits_broken, verdict
from trader.app.assembly import program_version
from trader.app.sweep_plan import DISTANCES, LONGEST_HOLD, WINDOW_OF_THE_STOP, Plan
from trader.app.sweep_result import Applied, SweepResult
from trader.core.config import load_config
from trader.core.errors import ConfigError, OrderRefusedError, StateError

CHARACTERS = 20  # of a measure in full precision, at most, with its comma
SPARE = 64 << 20  # bytes that are left free besides


class CsvStream:
    """Every set as one line of a CSV file, written while the sweep goes on.

    The file bears `.partial` behind its name until it is whole; after an interruption it stays so.
    """

    def __init__(self, path: Path, grid: Grid) -> None:
        self.path, self.grid = path, grid
        self.partial = path.with_name(f"{path.name}.partial")
        self.sets = 0  # that have a line
        self._file: IO[str] | None = None

    def __enter__(self) -> CsvStream:
        with self._refusal():
            self._file = self.partial.open("w", encoding="utf-8", newline="")
            self._file.write(",".join((*self.grid.names, *METRICS)) + "\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        if kind is None:
            with self._refusal():
                self._file.close()
        else:  # what went wrong before is what a person must know
            with suppress(OSError):
                self._file.close()

    def add(self, start: int, outcomes: Outcomes) -> None:
        """Write the sets from `start` on; StateError when the disk is full."""
        columns = self.grid.columns(start, start + len(outcomes))
        written = [[_plain(value) for value in columns[name].tolist()] for name in self.grid.names]
        known = (outcomes.trades >= 0).tolist()
        for name in METRICS:
            values = getattr(outcomes, name).tolist()
            written.append(
                [
                    repr(value) if valid and math.isfinite(value) else ""
                    for value, valid in zip(values, known, strict=True)
                ]
            )
        assert self._file is not None
        with self._refusal():
            self._file.write("".join(f"{','.join(row)}\n" for row in zip(*written, strict=True)))
        self.sets += len(outcomes)

    def finish(self) -> None:
        """Give the file its name: it is whole."""
        self.__exit__(None, None, None)
        with self._refusal():
            os.replace(self.partial, self.path)

    @contextmanager
    def _refusal(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise StateError(f"--csv {self.path} cannot be written: {exc.strerror}") from exc


def require_room(path: Path, grid: Grid) -> None:
    """StateError where a CSV of every set of `grid` may not fit on the disk."""
    axes = sum(max(len(_plain(float(axis[at]))) for at in (0, -1)) + 6 for axis in grid.values)
    needed = len(grid) * (axes + CHARACTERS * len(METRICS))
    free = shutil.disk_usage(path.parent).free
    if needed + SPARE > free:
        raise StateError(
            f"--csv {path}: {len(grid):,} sets take up to {needed:,} bytes and {free:,} are free: "
            "make room, coarsen the grid or leave --csv out"
        )


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def parameter_file(strategy: str, numbers: Mapping[str, float], comments: Sequence[str]) -> str:
    """A configuration file in which `strategy` runs with these numbers, all others by default.

    numbers   every number of the set, swept or not
    comments  lines that go before it
    raises    OrderRefusedError for numbers that the configuration has no setting for
    """
    for name in (*DISTANCES[1:], LONGEST_HOLD):
        if numbers[name] != 0.0:
            raise OrderRefusedError(
                f"{name} {numbers[name]:g} has no setting in the configuration, where a "
                f"position leaves by its stop or its signal: choose a set with {name} 0"
            )
    if numbers["stop_atr"] == 0.0:
        raise OrderRefusedError(
            "stop_atr 0 means no stop, and no position is held without one: "
            "choose a set with stop_atr above 0"
        )
    execution = (*DISTANCES, WINDOW_OF_THE_STOP, LONGEST_HOLD)
    own = [
        f"      {name}: {_plain(float(value))}"
        for name, value in numbers.items()
        if name not in execution
    ]
    return "\n".join(
        [
            *(f"# {_one_line(comment)}" for comment in comments),
            "strategies:",
            f"  enabled: [{strategy}]",
            "  parameters:",
            f"    {strategy}:" if own else f"    {strategy}: {{}}",
            *own,
            "risk:",
            f"  atr_multiple: {_plain(float(numbers['stop_atr']))}",
            f"  atr_window: {_plain(float(numbers[WINDOW_OF_THE_STOP]))}",
            "",
        ]
    )


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def write_report(path: Path, page: str) -> Path:
    """Write the page in one step and return where it lies; StateError where that fails."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(page, encoding="utf-8")
        os.replace(beside, path)
    except OSError as exc:
        raise StateError(f"{path} cannot be written: {exc.strerror or exc}") from exc
    finally:
        with suppress(OSError):
            beside.unlink()
    return path


def write_parameters(path: Path, text: str) -> None:
    """Write a parameter file once it is proven to be a configuration.

    Raises OrderRefusedError for numbers beyond what the configuration allows, and StateError where
    the file cannot be written; then there is none.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        load_config(beside, profile=None, overrides=(), environ={})
        os.replace(beside, path)
    except ConfigError as exc:
        what = "; ".join(line.partition(": ")[2] for line in exc.problems)
        raise OrderRefusedError(f"the configuration does not allow this set: {what}") from exc
    except OSError as exc:
        raise StateError(f"{path} cannot be written: {exc.strerror or exc}") from exc
    finally:
        with suppress(OSError):
            beside.unlink()


def apply(
    planned: Plan, result: SweepResult, folder: Path, wanted: Findings | None
) -> Applied | None:
    """Write the parameter file of the wanted rank, or say why there is none.

    folder   of the report, where it goes when no file was named
    wanted   what speaks for and against that rank; None where that is not known
    returns  None where no rank was wanted
    """
    request, luck = planned.request, result.luck
    rank = request.apply_rank
    if rank is None:
        return None
    if luck is None or result.partial:
        refused = "the sweep was interrupted before it was known whether its best is luck"
    elif not luck.better:
        refused = luck.sentence
    elif wanted is None:
        refused = f"there are {len(result.top)} sets only"
    elif limits_broken(wanted):
        refused = verdict(wanted)
    else:
        path = request.to_file or folder / "parameters.yaml"
        try:
            _write_parameters(planned, result, wanted, path)
        except OrderRefusedError as exc:
            refused = str(exc)
        else:
            return Applied(rank=rank, path=str(path), refused=None)
    return Applied(rank=rank, path=None, refused=f"--apply {rank} is refused: {refused}")


def _write_parameters(planned: Plan, result: SweepResult, wanted: Findings, path: Path) -> None:
    rank, source, request = wanted.rank, result.source, planned.request
    row = result.top[rank - 1]
    numbers = {name: row.parameters.get(name, value) for name, value in planned.defaults.items()}
    comments = (
        f"{request.strategy}: rank {rank} of {result.run:,} sets by {request.rank_by}",
        f"luck: {verdict(wanted)}",
        f"period: {result.first_session} to {result.last_session}, {result.bars:,} bars",
        f"data: {source.name} {','.join(source.symbols)}, sha256 {source.sha256}",
        f"sweep: {result.run_id}, debate-trader {program_version()}",
        f"command: {request.command or 'unknown'}",
    )
    write_parameters(path, parameter_file(request.strategy, numbers, comments))
