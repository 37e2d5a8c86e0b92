"""How the exchange says no: an HTTP status, Alpaca's error code and Alpaca's words."""

from __future__ import annotations

from decimal import Decimal

BAD_FIELD = 40010001
FORBIDDEN = 40310000
NOT_FOUND = 40410000
UNPROCESSABLE = 42210000


class RefusalError(Exception):
    """A request that is answered with an error; `extra` holds further fields of the body."""

    def __init__(self, status: int, code: int | None, message: str, **extra: str) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, object] = {"message": message, **extra}
        if code is not None:
            self.body = {"code": code, **self.body}


def bad_field(message: str) -> RefusalError:
    """422: a field is missing, malformed or used before."""
    return RefusalError(422, BAD_FIELD, message)


def unprocessable(message: str, **extra: str) -> RefusalError:
    """422: well formed, but not an order this market takes."""
    return RefusalError(422, UNPROCESSABLE, message, **extra)


def not_offered(what: str) -> RefusalError:
    """422: Alpaca has it, the embedded exchange does not."""
    return unprocessable(f"{what} is not offered by the embedded exchange")


def forbidden(message: str, **extra: str) -> RefusalError:
    """403: the account may not do that now."""
    return RefusalError(403, FORBIDDEN, message, **extra)


def not_found(message: str) -> RefusalError:
    """404: there is no such thing."""
    return RefusalError(404, NOT_FOUND, message)


def bad_data_request(message: str) -> RefusalError:
    """400 of the market data, which names no code."""
    return RefusalError(400, None, message)


def no_subscription(message: str) -> RefusalError:
    """403 of the market data: the plan does not pay for it."""
    return RefusalError(403, None, message)


def plain(value: Decimal) -> str:
    """A Decimal as Alpaca writes it: no exponent, no trailing zeros."""
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
