"""Templates: strict placeholders, and no change of words without a change of version."""

from __future__ import annotations

import hashlib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.prompts.library import read_template, template

# a changed text needs a higher version: recordings and records name both
VERSIONS = {
    "arbitrator": (1, "033a454444660bbad499264ba3a595ed9f412764bcfe93dee4151dddba0b8907"),
    "bear": (2, "20e53f460a1ed91395714ff20c65d80ff03fb51ee280fcf2e2a917b421830fcc"),
    "bull": (2, "ada91c495b0f76646bafd933848bbdd5a00bae38e472fd6d00f5c8616954cc84"),
    "hearing": (1, "45572e4a7be6b6b8f10135698aef1de7d098c959b50f35e695aeb0ed12f5a7f7"),
    "repair": (1, "5b87ec0f8a458c6dd8852b626207ddc16d6b5723335dab3ecca45f70d0afeaf2"),
}
GREETING = "---\nname: greeting\nversion: 3\n---\n# system\nBe kind.\n\n# user\n{who}, {what}.\n"


def test_words_change_only_together_with_their_version():
    names = sorted(
        path.name[:-3] for path in files("agents.prompts").iterdir() if path.name.endswith(".md")
    )
    found = {name: (template(name).version, template(name).sha256) for name in names}
    assert found == VERSIONS, "raise the version in the front matter, then write this table anew"


def test_the_hash_is_that_of_the_words_without_front_matter():
    text = GREETING.partition("---\n# ")[2]
    expected = hashlib.sha256(f"# {text}".strip().encode()).hexdigest()
    read = read_template("greeting", GREETING)
    assert (read.sha256, read.version, read.title) == (expected, 3, "greeting 3")


def test_a_section_is_filled_and_a_value_is_never_looked_at_again():
    greeting = read_template("greeting", GREETING)
    assert greeting.fill("system") == "Be kind."
    assert greeting.fill("user", who="{what}", what="# system {who}") == "{what}, # system {who}."


@given(st.text(), st.text())
def test_no_value_can_pull_in_another(who, what):
    filled = read_template("greeting", GREETING).fill("user", who=who, what=what)
    assert filled == f"{who}, {what}."


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("user", {"who": "a"}),
        ("user", {"who": "a", "what": "b", "why": "c"}),
        ("system", {"who": "a"}),
        ("developer", {}),
    ],
)
def test_a_missing_or_unknown_placeholder_or_section_is_an_error(section, values):
    with pytest.raises(ValueError, match="greeting 3"):
        read_template("greeting", GREETING).fill(section, **values)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "# system\nBe kind.",
        GREETING.replace("version: 3", "version: 0"),
        GREETING.replace("version: 3\n", ""),
        GREETING.replace("name: greeting", "name: other"),
        GREETING.replace("{who}", "{Who}"),
        GREETING.replace("{who}", "{who"),
        GREETING.replace("{who}", "{0}"),
        GREETING.replace("{who}", "{who!r}"),
        GREETING.replace("# user", "# system"),
        GREETING.replace("# system\n", ""),
        "---\nname: greeting\nversion: 3\n---\n",
    ],
)
def test_a_file_that_is_no_template_is_refused(content):
    with pytest.raises(ValueError, match="greeting"):
        read_template("greeting", content)


@pytest.mark.parametrize("role", ["bull", "bear", "arbitrator"])
def test_every_speaker_is_told_what_counts(role):
    told = template(role).fill("system")
    assert "Reply in JSON" in told
    assert "Name no other company" in told


def test_debaters_are_told_the_same_about_claims():
    parts = [template(role).fill("system").partition("Each claim:")[2] for role in ("bull", "bear")]
    assert parts[0] == parts[1] != ""
