"""Counted nouns in messages."""

from __future__ import annotations

import pytest

from equipoise._plural import plural


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((0, "row"), "0 rows"), ((1, "row"), "1 row"), ((1797, "row"), "1,797 rows"), ((2, "axis", "axes"), "2 axes")],
)
def test_plural_counts_nouns(arguments, expected):
    assert plural(*arguments) == expected
