"""Suggest what was meant: a known word for a misspelled one, an object for a class."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

CUTOFF = 0.7  # minimum similarity ratio of difflib; chosen so that --colour does not match --columns


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, ignoring case and leading dashes; None if none is similar."""
    spellings = {spelling.lower().lstrip("-"): spelling for spelling in known}
    matches = difflib.get_close_matches(str(word).lower().lstrip("-"), spellings, n=1, cutoff=CUTOFF)
    return spellings[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return "did you mean X?" for the most similar known word, or `otherwise` if none is similar."""
    match = closest(word, known)
    return f"did you mean {match}?" if match is not None else otherwise


def described(value: object) -> str:
    """Return a wrong value as text for an error message.

    The text is its repr, for a class X followed by "; use X(...) with parentheses". If the repr contains nothing but
    the class and an address in memory, the text is "an object of class X".
    """
    if isinstance(value, type):
        return f"{value!r}; use {value.__name__}(...) with parentheses"
    if type(value).__repr__ is object.__repr__:
        return f"an object of class {type(value).__name__}"
    return repr(value)
