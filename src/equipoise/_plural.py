"""Format a count and its noun for messages, such as "1,797 rows"."""

from __future__ import annotations


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a count with its noun: "1 row", "1,797 rows". `nouns` is an irregular plural, as in "2 axes"."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun + 's' if nouns is None else nouns}"
