"""What a cell of text is: a missing value, or a number."""

from __future__ import annotations

import re

# Common spellings of a missing value, in lower case.
MISSING = frozenset(("", "na", "n/a", "nan", "#n/a", "null", "none", "-", "?"))

CODE = re.compile(r"\s*[+-]?0[0-9]+\s*")


def is_missing(cell: str) -> bool:
    """Return whether a cell marks a missing value."""
    return cell.strip().lower() in MISSING


def is_number(cell: str) -> bool:
    """Return whether a cell is a number, finite or not; Python's digit groups (1_000) are not accepted."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and not is_missing(cell)


def is_code(cell: str) -> bool:
    """Return whether a cell is an integer with a leading zero, such as the postcode "01234"; "0" and "0.5" are not."""
    return CODE.fullmatch(cell) is not None
