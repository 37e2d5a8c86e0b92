"""The errors of the product, one class per reaction.

TraderError
├── ConfigError           stop: a person must edit config.yaml (file:line:column)
├── DataIntegrityError    refuse this symbol for this cycle, keep the record
├── OrderRefusedError     the gate or the broker said no; never retried
├── EndpointError         an outside service failed; retried with backoff where that is safe
│   ├── TimedOutError     it did not answer before the deadline
│   ├── RateLimitedError  it asked us to wait; nothing was done
│   ├── RefusedReplyError a model declined to answer
│   └── CutReplyError     a model's reply ended before it was whole
├── RecordingError        a reply was to come from the recordings and is not there
├── ApprovalPendingError  a person has to approve before the slot can go on
├── BudgetError           tokens or money are spent; no further call
├── LockHeldError         another run owns this state folder
├── StateError            the state folder cannot be used, or its records contradict each other
└── UsageError            the command asks for something that does not exist
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trader.core.decision import AwaitedApproval, ChatCall


class TraderError(Exception):
    """Root of every error this product raises on purpose; the message is one line for a person."""


class ConfigError(TraderError):
    """The configuration is wrong; `problems` holds one line per mistake, with its position."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DataIntegrityError(TraderError):
    """Bars that must not be traded on; names the symbol, the bar and the value."""


class OrderRefusedError(TraderError):
    """The risk gate or the broker refused an order; `code` is the broker's, where it gave one."""

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class EndpointError(TraderError):
    """An outside service could not be reached or answered with nonsense.

    `call` is the model call that failed, where there was one.
    """

    def __init__(self, message: str, *, call: ChatCall | None = None) -> None:
        super().__init__(message)
        self.call = call


class TimedOutError(EndpointError):
    """An outside service did not answer before the deadline."""


class RateLimitedError(EndpointError):
    """An outside service has had too many requests; it did nothing, and may be asked again later.

    retry_seconds  how long it wants to be left alone, where it said so
    """

    def __init__(self, message: str, *, retry_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class RefusedReplyError(EndpointError):
    """A model declined to answer, or a filter withheld its answer."""


class CutReplyError(EndpointError):
    """A model's reply ended before it was whole: the output limit was reached."""


class RecordingError(TraderError):
    """A model's reply was to come from the recordings and is not there; names the call."""


class ApprovalPendingError(TraderError):
    """Debates ended in GO and wait for a person (`requests`); the slot is not finished."""

    def __init__(self, *requests: AwaitedApproval) -> None:
        super().__init__(f"waiting for approval: {', '.join(item.cycle_id for item in requests)}")
        self.requests = requests


class BudgetError(TraderError):
    """Tokens or money for model calls are spent; `call` is the call that was not made."""

    def __init__(self, message: str, *, call: ChatCall | None = None) -> None:
        super().__init__(message)
        self.call = call


class LockHeldError(TraderError):
    """Another run owns this state folder."""


class StateError(TraderError):
    """The state folder cannot be used, or its records do not agree with each other."""


class UsageError(TraderError):
    """The command names a thing that does not exist, such as an unknown strategy or cycle."""
