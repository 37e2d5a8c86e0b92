"""Live trading is impossible by construction: what may stand in the source, and what a client does.

The tests themselves are read too; what they need to prove a refusal is listed here by name.
"""

from __future__ import annotations

import ast
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from alpaca.common.enums import BaseURL
from alpaca.data.historical import StockHistoricalDataClient
from alpaca.trading.client import TradingClient
from alpaca.trading.stream import TradingStream

from trader.broker.guard import GuardedAdapter, require_host
from trader.broker.rate_limit import RateLimit
from trader.broker.session import HOSTS, PAPER_URL, STREAM_HOSTS, guarded
from trader.core.config import BrokerSettings, Config
from trader.core.errors import EndpointError

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for top in ("trader", "agents", "strategies") for path in (ROOT / top).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SESSION, SOCKETS = "trader/broker/session.py", "trader/broker/sockets.py"
HERE = "tests/architecture/test_paper_only.py"

HOST = re.compile(r"[\w.-]*alpaca\.markets", re.IGNORECASE)
PART_OF_HOST = re.compile(r"\.alpaca\b|\.markets\b", re.IGNORECASE)
PAPER_HOSTS = {"paper-api.alpaca.markets", "data.alpaca.markets", "stream.data.alpaca.markets"}
MAKERS = re.compile(
    r"(REST|Trading|Broker|News|Screener|CorporateActions|\w*HistoricalData)Client"
    r"|\w*(Trading|Data|Shares|Coins)Stream"
)
GUARDED = {"EMBEDDED_URL", "_address", "address"}  # what an address given to a client may be
SET_BY_NOBODY = ("_base_url", "_endpoint", "verify", "_sandbox")
UNCHECKED = re.compile(r"_LIVE$|BrokerClient|BROKER_|^BaseURL$|_create_unverified|^CERT_NONE$")
ASK_BY_THEMSELVES = {"get", "post", "put", "patch", "delete", "request", "head", "Session"}

# Tests that make clients or name live hosts in order to prove that they are refused.
MAY_MAKE = {
    HERE,
    "tests/trader/broker/test_session.py",
    "tests/trader/broker/test_alpaca_broker.py",
    "tests/trader/broker/test_broker_port.py",
    "tests/trader/broker/test_guard.py",
}
MAY_MAKE_ON_LOOPBACK = (
    "tests/trader/broker/conformity/",
    "tests/trader/broker/exchange/",
    "tests/trader/data/",
)
MAY_NAME = {
    HERE,
    "tests/architecture/test_shape.py",
    "tests/trader/broker/test_session.py",
    "tests/trader/broker/test_guard.py",
    "tests/trader/core/test_config_schema.py",
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def called(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def words(node: ast.AST) -> set[str]:
    """Names and attributes used in an expression."""
    return {
        getattr(one, "id", getattr(one, "attr", ""))
        for one in ast.walk(node)
        if isinstance(one, ast.Name | ast.Attribute)
    }


def mistakes(path: Path) -> list[str]:
    """Everything in a module that could lead to live money, in words with the line."""
    name, found = name_of(path), []
    for node in nodes(path):
        line = f"{name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            hosts = set(HOST.findall(text))
            if name not in MAY_NAME and not hosts and PART_OF_HOST.search(text):
                found.append(f"{line} names a part of a host: {text!r:.60}")
            if hosts and name != SESSION and name not in MAY_NAME:
                found.append(f"{line} names {hosts}")
            elif hosts - PAPER_HOSTS and name == SESSION:
                found.append(f"{line} names {hosts - PAPER_HOSTS}")
        if isinstance(node, ast.Name | ast.Attribute):
            word = getattr(node, "id", getattr(node, "attr", ""))
            if UNCHECKED.search(word) and name != HERE:
                found.append(f"{line} uses {word}")
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                whole = f"{getattr(node, 'module', None) or ''}.{alias.name}"
                if alias.name == "BrokerClient" or "alpaca.broker" in whole:
                    found.append(f"{line} imports a broker client")
                if alias.asname and MAKERS.fullmatch(alias.name):
                    found.append(f"{line} calls {alias.name} by another name")
                if alias.name == "*" and (getattr(node, "module", "") or "").startswith("alpaca"):
                    found.append(f"{line} imports everything of alpaca")
        inherits = name != SOCKETS and not name.startswith(MAY_MAKE_ON_LOOPBACK)
        if isinstance(node, ast.ClassDef) and inherits:
            found += [f"{line} inherits {word}" for word in _makers(node.bases)]
        if isinstance(node, ast.Call):
            found += [f"{line} {what}" for what in _call(node, name)]
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Attribute) and target.attr in SET_BY_NOBODY:
                    found.append(f"{line} sets {target.attr}")
                ours = name != SESSION and not name.startswith("tests/")
                if ours and isinstance(target, ast.Attribute) and target.attr == "_session":
                    found.append(f"{line} gives a client a session of its own")
                if isinstance(target, ast.Subscript) and _is_any(target.slice, SET_BY_NOBODY):
                    found.append(f"{line} sets a client's attribute by its name")
    return found


def _makers(used: list[ast.expr]) -> set[str]:
    """Classes of clients among expressions, however they are reached."""
    return {word for one in used for word in words(one) if MAKERS.fullmatch(word)}


def _is_any(node: ast.AST, values: Sequence[str]) -> bool:
    return isinstance(node, ast.Constant) and node.value in values


def _call(node: ast.Call, name: str) -> Iterator[str]:
    made = MAKERS.fullmatch(called(node)) is not None
    elsewhere = name != SESSION and name not in MAY_MAKE
    if made and elsewhere and not name.startswith(MAY_MAKE_ON_LOOPBACK):
        yield f"makes {called(node)}"
    if called(node) in ("setattr", "__setattr__", "delattr") and any(
        _is_any(one, SET_BY_NOBODY) for one in node.args
    ):
        yield "sets a client's attribute by its name"
    if called(node) in ("import_module", "__import__") and "alpaca" in ast.unparse(node):
        yield "imports alpaca where nobody sees it"
    if not name.startswith("tests/"):
        yield from _call_of_ours(node, name)
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in given and made and name not in MAY_MAKE:
        yield f"makes {called(node)} with arguments nobody sees"
    if name in MAY_MAKE:
        return
    if "paper" in given and not _is(given["paper"], True):
        yield "gives paper something else than True"
    trades = called(node) == "TradingClient" and not name.startswith("tests/")
    if trades and not _is(given.get("paper"), True):
        yield "makes a client that trades without paper=True"
    checks = name.startswith("agents/") and not isinstance(given.get("verify"), ast.Constant)
    if "verify" in given and not _is(given["verify"], True) and not checks:
        yield "gives verify something else than True"
    if "sandbox" in given:
        yield "gives sandbox"
    if "base_url" in given and called(node) in ("get", "post", "_request"):
        yield "gives a request an address of its own"
    if "url_override" in given and name == SESSION and not words(given["url_override"]) & GUARDED:
        yield "gives a client an address that was not checked"


def _call_of_ours(node: ast.Call, name: str) -> Iterator[str]:
    """What only tests may do."""
    if called(node) not in ("isinstance", "TypeVar") and (passed := _makers(node.args)):
        yield f"passes {passed} on"
    if called(node) == "getattr" and any(
        isinstance(one, ast.Constant) and MAKERS.fullmatch(str(one.value)) for one in node.args
    ):
        yield "finds a client by its name"
    if called(node) == "_request":
        yield "asks past get, post, patch and delete"
    if called(node) == "mount" and name != SESSION:
        yield "mounts a way out"
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if called(node) in ASK_BY_THEMSELVES and isinstance(owner, ast.Name) and owner.id == "requests":
        yield "asks without the guard"


def _is(node: ast.AST | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


@pytest.mark.parametrize("path", SOURCES + TESTS, ids=name_of)
def test_nothing_could_trade_live_money(path):
    assert mistakes(path) == []


def test_every_client_is_given_an_address_that_was_checked():
    made = [
        node
        for node in nodes(ROOT / SESSION)
        if isinstance(node, ast.Call) and MAKERS.fullmatch(called(node))
    ]
    assert len(made) >= 9
    for node in made:
        given = {keyword.arg for keyword in node.keywords}
        assert "url_override" in given, ast.unparse(node)


def test_only_the_session_knows_alpacas_hosts_and_they_are_the_paper_ones():
    named = set(HOST.findall((ROOT / SESSION).read_text(encoding="utf-8")))
    assert named == PAPER_HOSTS == HOSTS | STREAM_HOSTS
    for path in ROOT.glob("*"):
        if path.suffix in (".yaml", ".toml"):
            assert not HOST.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    "source",
    [
        "TradingClient('k', 's', paper=False)",
        "TradingClient('k', 's', paper=not True)",
        "TradingClient('k', 's')",
        "alpaca.trading.client.TradingClient(*keys)",
        "StockHistoricalDataClient('k', 's')",
        "TradingStream('k', 's')",
        "PaperTradingStream('k', 's', url_override='ws://127.0.0.1')",
        "CryptoDataStream('k', 's')",
        "x = 'https://api.alpaca.markets'",
        "x = 'wss://api.alpaca.markets/stream'",
        "x = f'https://{host}.alpaca.markets'",
        "BaseURL.TRADING_LIVE",
        "from alpaca.broker import BrokerClient",
        "from alpaca.broker.client import BrokerClient as Client",
        "import alpaca.broker",
        "from alpaca.trading.enums import *",
        "session.verify = False",
        "session.get(url, verify=False)",
        "client._base_url = url",
        "client.get('/orders', base_url=url)",
        "stream._endpoint = url",
        "from alpaca.trading.client import TradingClient as T",
        "getattr(client, 'TradingClient')('k', 's')",
        "class X(TradingClient): pass",
        "class X(alpaca.trading.stream.TradingStream): pass",
        "functools.partial(TradingClient, 'k')",
        "RESTClient(base_url=url)",
        "importlib.import_module('alpaca.' + 'broker')",
        "__import__('alpaca.broker')",
        "from alpaca import broker",
        "setattr(client, '_base_url', url)",
        "object.__setattr__(client, '_sandbox', True)",
        "client.__dict__['_base_url'] = url",
        "x = 'https://api.alpaca' + '.markets'",
        "x = b'https://api.alpaca.markets'",
        "x = 'https://API.ALPACA.MARKETS'",
        "x = f'https://api.{word}.markets'",
        "requests.get(url)",
        "requests.Session()",
        "client._request('GET', '/x', None, url)",
        "client._session = Other()",
        "client._session.mount('https://', HTTPAdapter())",
        "context = ssl._create_unverified_context()",
        "BaseURL['TRADING_' + 'LIVE']",
    ],
)
def test_the_reading_finds_every_way_that_it_knows(source, tmp_path, monkeypatch):
    path = tmp_path / "trader" / "x.py"
    path.parent.mkdir()
    path.write_text(f"{source}\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert mistakes(path) != []


@pytest.mark.parametrize(
    "source",
    [
        "client = TradingClient('k', 's', paper=True, url_override=url)",
        "client = TradingClient('k', 's', paper=True, url_override=settings.base_url)",
        "client = TradingClient('k', 's', paper=paper, url_override=EMBEDDED_URL)",
        "client = TradingClient('k', 's', url_override=EMBEDDED_URL)",
        "client = StockHistoricalDataClient('k', 's', sandbox=True, url_override=EMBEDDED_URL)",
        "PAPER_URL = 'https://api.alpaca.markets'",
    ],
)
def test_the_reading_finds_what_the_session_itself_could_do_wrong(source, tmp_path, monkeypatch):
    path = tmp_path / SESSION
    path.parent.mkdir(parents=True)
    path.write_text(f"{source}\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert mistakes(path) != []


@pytest.fixture
def no_socket(monkeypatch):
    def refuse(*_):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_socket")
def test_a_live_client_under_the_guard_raises_before_any_socket():
    live = TradingClient("PK", "x", paper=False)
    for address in (str(live._base_url), BaseURL.TRADING_LIVE.value, PAPER_URL):
        with pytest.raises(EndpointError, match="the client would call"):
            guarded(live, {address: GuardedAdapter(HOSTS, RateLimit())})
    # even one whose adapters were mounted by hand
    live._session.mount("https://", GuardedAdapter(HOSTS, RateLimit()))
    with pytest.raises(EndpointError, match=r"refused to call 'api\.alpaca\.markets'"):
        live.get_account()


@pytest.mark.usefixtures("no_socket")
def test_every_address_that_alpaca_py_knows_but_the_paper_ones_is_refused():
    passed = set()
    for url in BaseURL:
        for hosts, schemes in ((HOSTS, ("https", "http")), (STREAM_HOSTS, ("wss", "ws"))):
            try:
                require_host(url.value, hosts, schemes)
            except EndpointError:
                continue
            passed.add(url.name)
    assert passed == {
        "TRADING_PAPER",
        "DATA",
        "MARKET_DATA_STREAM",
        "TRADING_STREAM_PAPER",
    }
    live = TradingStream("PK", "x", paper=False)._endpoint
    with pytest.raises(EndpointError):
        require_host(live, STREAM_HOSTS, ("wss", "ws"))
    sandbox = StockHistoricalDataClient("PK", "x", sandbox=True)
    with pytest.raises(EndpointError):
        guarded(sandbox, {PAPER_URL: GuardedAdapter(HOSTS, RateLimit())})


def test_the_configuration_has_no_word_for_live():
    text = str(Config.model_json_schema()).lower()
    assert "live" not in re.findall(r"[a-z]+", text.replace("for a live account", ""))
    assert BrokerSettings.model_fields["name"].annotation.__args__ == ("embedded", "alpaca")
