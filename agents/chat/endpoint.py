"""Where each speaker's model lives, and which key goes there and nowhere else."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from agents.chat.calls import ModelSpec
from trader.core.config import Models, RoleModel
from trader.core.decision import Role
from trader.core.errors import ConfigError

OPENAI_HOST = "api.openai.com"
OPENAI_URL = f"https://{OPENAI_HOST}/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
NO_KEY = "local"  # what a server of one's own is sent; it reads no key, but the client wants one
LOCAL_NAMES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
DEFAULT_PORTS = {"http": 80, "https": 443}


def model_spec(models: Models, role: Role, environ: Mapping[str, str]) -> ModelSpec:
    """The role's endpoint, model and parameters: its own settings over the common ones.

    An address comes from the role, else from `models`, else from OPENAI_BASE_URL, else it is
    OpenAI's. Raises ConfigError when no model is named or OPENAI_BASE_URL is no address.
    """
    own = _own(models, role)
    model = own.model or models.model
    if not model:
        raise ConfigError(
            f"models.model: no model is named for the {role}; set it in config.yaml "
            "(models: {model: NAME}) or with --model NAME"
        )
    return ModelSpec(
        role=role,
        base_url=own.base_url or common_base_url(models, environ),
        model=model,
        api=models.api,
        temperature=models.temperature,
        seed=models.seed,
        max_output_tokens=models.max_output_tokens,
        context_tokens=models.context_tokens,
    )


def key_variable(models: Models, role: Role) -> str:
    """Name of the environment variable that holds the role's key."""
    return _own(models, role).api_key_variable or models.api_key_variable


def api_key(models: Models, role: Role, environ: Mapping[str, str]) -> str:
    """The key that the role's endpoint is sent; "local" where a server of one's own needs none.

    The common key goes to the common server only: a role with another server has a key when it
    names its variable. Raises ConfigError for a cloud endpoint without a key.
    """
    own = _own(models, role)
    common = common_base_url(models, environ)
    base_url = own.base_url or common
    variable = key_variable(models, role)
    meant_for_it = own.api_key_variable is not None or _server(base_url) == _server(common)
    key = environ.get(variable, "") if meant_for_it else ""
    if key:
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise ConfigError(
                f"{variable}: the key holds a space, a line break or a character that no key has; "
                "set it again"
            )
        return key
    if is_local(base_url):
        return NO_KEY
    if not meant_for_it:
        raise ConfigError(
            f"models.{role}.api_key_variable: {base_url} is another server than the common one, "
            f"so the key in {variable} is not sent there; name the variable that holds its key"
        )
    raise ConfigError(
        f"{variable}: {base_url} needs a key and this environment variable is not set; set it, or "
        "point models.base_url at a server of your own"
    )


def is_local(base_url: str) -> bool:
    """Whether the host is this machine or in one's own network, where no key is needed."""
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(LOCAL_NAMES)
    return address.is_private or address.is_loopback or address.is_link_local


def common_base_url(models: Models, environ: Mapping[str, str]) -> str:
    """The common server's address: of `models`, of OPENAI_BASE_URL, or OpenAI's own.

    Raises ConfigError when OPENAI_BASE_URL is no address.
    """
    if models.base_url:
        return models.base_url
    address = environ.get(URL_VARIABLE, "").strip()
    if not address:
        return OPENAI_URL
    try:
        return RoleModel(base_url=address).base_url or OPENAI_URL
    except ValueError:  # the address is not printed: somebody may have put a key into it
        raise ConfigError(
            f"{URL_VARIABLE}: not the address of a server; it begins with http:// or https:// and "
            "holds no user, key or query"
        ) from None


def _own(models: Models, role: Role) -> RoleModel:
    return {"bull": models.bull, "bear": models.bear, "arbitrator": models.arbitrator}[role]


def _server(base_url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port: whoever shares them is one server."""
    parts = urlsplit(base_url)
    return (
        parts.scheme,
        (parts.hostname or "").rstrip("."),
        parts.port or DEFAULT_PORTS.get(parts.scheme),
    )
