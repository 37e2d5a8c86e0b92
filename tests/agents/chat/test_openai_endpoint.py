"""Endpoint and key of each speaker: own settings first, and no key goes where it was not meant."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.chat.endpoint import NO_KEY, OPENAI_URL, api_key, is_local, model_spec
from trader.core.config import Models, RoleModel
from trader.core.errors import ConfigError

CLOUD = "https" + "://models.paper.invalid/v1"
OTHER = "https" + "://other.paper.invalid/v1"
LOCAL = "http://127.0.0.1:8080/v1"
KEYS = {"OPENAI_API_KEY": "sk-common", "OTHER_KEY": "sk-other"}


def test_the_role_comes_before_the_section_the_environment_and_openai():
    environ = {"OPENAI_BASE_URL": "http://localhost:1234/v1/"}
    own = Models(model="m", base_url=CLOUD, bull=RoleModel(base_url=LOCAL, model="b"))
    assert model_spec(own, "bull", environ).base_url == LOCAL
    assert model_spec(own, "bull", environ).model == "b"
    assert model_spec(own, "bear", environ).base_url == CLOUD
    assert model_spec(own, "bear", environ).model == "m"
    assert model_spec(Models(model="m"), "bear", environ).base_url == "http://localhost:1234/v1"
    assert model_spec(Models(model="m"), "bear", {}).base_url == OPENAI_URL
    assert model_spec(Models(model="m"), "bear", {"OPENAI_BASE_URL": " "}).base_url == OPENAI_URL


def test_parameters_come_from_the_section():
    models = Models(
        model="m",
        api="responses",
        temperature=None,
        seed=3,
        max_output_tokens=100,
        context_tokens=4_096,
    )
    spec = model_spec(models, "arbitrator", {})
    assert (spec.role, spec.api, spec.temperature, spec.seed) == (
        "arbitrator",
        "responses",
        None,
        3,
    )
    assert (spec.max_output_tokens, spec.context_tokens) == (100, 4_096)


def test_no_model_named_says_how_to_name_one():
    with pytest.raises(ConfigError, match=r"models\.model: no model is named for the bear"):
        model_spec(Models(bull=RoleModel(model="b")), "bear", {})
    assert model_spec(Models(bull=RoleModel(model="b")), "bull", {}).model == "b"


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8080",
        "ftp://a/v1",
        "http" + "://user:secret@a/v1",
        "http://localhost/v1?key=secret",
    ],
)
def test_an_address_in_the_environment_is_checked_and_not_printed(address):
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL") as caught:
        model_spec(Models(model="m"), "bull", {"OPENAI_BASE_URL": address})
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_key_of_the_common_server():
    assert api_key(Models(base_url=CLOUD), "bull", KEYS) == "sk-common"
    assert api_key(Models(base_url=CLOUD, api_key_variable="OTHER_KEY"), "bull", KEYS) == "sk-other"
    assert api_key(Models(), "bull", KEYS) == "sk-common"


@pytest.mark.parametrize("base_url", [None, CLOUD])
def test_a_cloud_endpoint_without_a_key_names_the_variable(base_url):
    for environ in ({}, {"OPENAI_API_KEY": ""}):
        with pytest.raises(ConfigError, match=r"OPENAI_API_KEY: .*needs a key"):
            api_key(Models(base_url=base_url), "bull", environ)


def test_a_server_of_ones_own_needs_no_key_and_gets_one_that_is_set():
    assert api_key(Models(base_url=LOCAL), "bull", {}) == NO_KEY
    assert api_key(Models(base_url=LOCAL), "bull", KEYS) == "sk-common"


def test_the_common_key_does_not_follow_a_role_to_another_server():
    for own in (OTHER, CLOUD.replace("https", "http"), CLOUD.replace("/v1", ":8443/v1")):
        models = Models(base_url=CLOUD, bull=RoleModel(base_url=own))
        with pytest.raises(
            ConfigError, match=r"models\.bull\.api_key_variable: .*is not sent there"
        ):
            api_key(models, "bull", KEYS)
    local = Models(base_url=CLOUD, bull=RoleModel(base_url=LOCAL))
    assert api_key(local, "bull", KEYS) == NO_KEY
    cloud = Models(base_url=LOCAL, bear=RoleModel(base_url=OTHER, api_key_variable="OTHER_KEY"))
    assert api_key(cloud, "bear", KEYS) == "sk-other"
    named = Models(
        base_url=CLOUD, bear=RoleModel(base_url=OTHER, api_key_variable="OPENAI_API_KEY")
    )
    assert api_key(named, "bear", KEYS) == "sk-common"
    same = Models(base_url=CLOUD, bear=RoleModel(base_url=CLOUD.replace("/v1", ":443/v2")))
    assert api_key(same, "bear", KEYS) == "sk-common"


@pytest.mark.parametrize(
    "key", ["sk secret", "sk-secret\n", "sk-secret\r\nX: y", "sk-sécret", "\t"]
)
def test_a_key_that_no_header_can_hold_is_refused_unprinted(key):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY: the key holds") as caught:
        api_key(Models(base_url=CLOUD), "bull", {"OPENAI_API_KEY": key})
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("[::1]", True),
        ("10.1.2.3", True),
        ("192.168.0.7", True),
        ("169.254.1.1", True),
        ("localhost", True),
        ("ollama", True),
        ("tower.local", True),
        ("host.docker.internal", True),
        ("8.8.8.8", False),
        ("[2606:4700::1111]", False),
        ("models.paper.invalid", False),
        ("local.paper.invalid", False),
        ("localhost.", True),
        ("127.0.0.1.paper.invalid", False),
    ],
)
def test_which_hosts_need_no_key(host, local):
    assert is_local(f"http://{host}:8080/v1") is local


ADDRESSES = st.sampled_from([None, CLOUD, OTHER, LOCAL])
VARIABLES = st.sampled_from([None, "OPENAI_API_KEY", "OTHER_KEY"])


@given(common=ADDRESSES, own=ADDRESSES, variable=VARIABLES, role=st.sampled_from(["bull", "bear"]))
def test_a_key_goes_to_the_server_that_it_was_named_for(common, own, variable, role):
    models = Models(base_url=common, bull=RoleModel(base_url=own, api_key_variable=variable))
    key = ""
    with contextlib.suppress(ConfigError):
        key = api_key(models, role, KEYS)
    if not key:
        assert role == "bull"
        assert variable is None
        assert own in (CLOUD, OTHER)
        return
    if role == "bull" and variable is None and own not in (None, common):
        assert key == NO_KEY
    elif role == "bull" and variable is not None:
        assert key == KEYS[variable]
    else:
        assert key == "sk-common"
