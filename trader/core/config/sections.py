"""What every section of the configuration shares: strictness and plain problems."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from trader.core.config.wording import shown

ONE_LINE = r"^[^\x00-\x1f\x7f]+$"
FRACTION: JsonDict = {"unit": "fraction"}  # a value of 1 or more is most likely a percentage


class Section(BaseModel):
    """Settings that belong together; a section that is left empty keeps its defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _empty(cls, value: Any) -> Any:
        return {} if value is None else value


def problem(kind: Any, message: str) -> PydanticCustomError:
    """An error of ours with its own plain sentence."""
    return PydanticCustomError(kind, "{problem}", {"problem": message})


def day(value: Any) -> Any:
    """A date as year-month-day; other words are refused with an example."""
    if not isinstance(value, str):
        return value
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return date.fromisoformat(value)
    except ValueError:
        pass  # a thirteenth month, a 30th of February: refused below like any other text
    raise problem("date", f"{shown(value)} is not a date; write year-month-day, as in 2026-07-01")
