"""Looking a name up among those that exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence that says `name` does not exist and what was probably meant."""
    names = sorted(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    close = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(close)}?" if close else f"choose one of {', '.join(names)}"
    return f"{kind} {name!r} does not exist; {hint}"
