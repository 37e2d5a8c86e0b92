"""The errors of the product, one class per reaction.

TraderError
├── ConfigError           stop: a person must edit config.yaml (file:line:column)
├── DataIntegrityError    refuse this symbol for this cycle, keep the record
├── OrderRefusedError     the gate or the broker said no; never retried
├── EndpointError         an outside service failed; retried with backoff where that is safe
├── BudgetError           tokens or money are spent; no further call
├── LockHeldError         another run owns this state folder
├── StateError            the state folder cannot be used, or its records contradict each other
└── UsageError            the command asks for something that does not exist
"""

from __future__ import annotations


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
    """An outside service could not be reached or answered with nonsense."""


class BudgetError(TraderError):
    """Tokens or money for model calls are spent."""


class LockHeldError(TraderError):
    """Another run owns this state folder."""


class StateError(TraderError):
    """The state folder cannot be used, or its records do not agree with each other."""


class UsageError(TraderError):
    """The command names a thing that does not exist, such as an unknown strategy or cycle."""
