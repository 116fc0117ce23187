"""List names of columns, files and categories in messages, and say which names are unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ._suggest import closest

NAMES = 8  # names listed in a message; chosen
MAX_CHARACTERS = 40  # characters of a name or a cell in a message; chosen


def quote(text: str) -> str:
    """Return a name or a cell in quotes, truncated if it is long."""
    return repr(text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…")


def list_names(names: Iterable[str]) -> str:
    """Return the first `NAMES` names, quoted and separated by commas, and the number of the others."""
    names = list(names)
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(quote(name) for name in names[:NAMES]) + more


def suggest_column(name: str, names: Sequence[str]) -> str:
    """Return "did you mean 'X'? " if there is a similar name, followed by the list of the columns."""
    suggestion = closest(name, names)
    meant = "" if suggestion is None else f"did you mean {quote(suggestion)}? "
    return meant + (f"the columns are {list_names(names)}" if names else "there are none to choose from")
