"""What a word that is not known was probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

ALIKE = 0.7  # share of letters that two words have in common in the same order; chosen: --colour is not --columns


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that one looks most like, whatever its case and dashes before it; none if none is near."""
    spelt = {one.lower().lstrip("-"): one for one in known}
    found = difflib.get_close_matches(word.lower().lstrip("-"), spelt, n=1, cutoff=ALIKE)
    return spelt[found[0]] if found else None


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return what to do about a word that is not known: take the nearest, or what is said otherwise."""
    near = nearest(word, known)
    return f"did you mean {near}?" if near is not None else otherwise
