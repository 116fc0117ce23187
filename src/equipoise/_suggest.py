"""Suggestions for misspelled words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CUTOFF = 0.7  # minimum similarity ratio of difflib; chosen so that --colour does not match --columns


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, ignoring case and leading dashes; None if none is similar."""
    spellings = {one.lower().lstrip("-"): one for one in known}
    found = difflib.get_close_matches(word.lower().lstrip("-"), spellings, n=1, cutoff=CUTOFF)
    return spellings[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean X?" for the most similar known word, or `otherwise` if none is similar."""
    near = closest(word, known)
    return f"did you mean {near}?" if near is not None else otherwise
