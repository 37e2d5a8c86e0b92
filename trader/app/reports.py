"""The folders of backtest reports: written beside, put in place whole, remains swept away."""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from trader.core.canonical import to_object
from trader.report.contents import TradeRow


def trades_csv(rows: Sequence[TradeRow]) -> str:
    """The trades as CSV, one line each, with a header."""
    names = list(TradeRow.__dataclass_fields__)
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: "" if value is None else value for key, value in to_object(row).items()}
        )
    return text.getvalue()


def sweep(reports: Path) -> None:
    """Remove what backtests that were killed left half done."""
    for path in reports.glob(".bt-*"):
        process = path.name.rpartition(".")[2]
        if process.isdigit() and not Path("/proc", process).exists() and Path("/proc").exists():
            shutil.rmtree(path, ignore_errors=True)


def replace_folder(folder: Path, work: Path) -> None:
    """Put the finished folder in the place of an earlier run with the same id."""
    while True:
        old = folder.with_name(f".{folder.name}.old.{os.getpid()}")
        with suppress(FileNotFoundError):  # there is none yet, or another run just took it away
            os.rename(folder, old)
        try:
            os.rename(work, folder)
        except OSError:
            if not folder.exists():
                raise
            continue  # the same run ended elsewhere in between; its equal files give way to ours
        finally:
            shutil.rmtree(old, ignore_errors=True)
        return
