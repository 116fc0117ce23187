"""Fixtures of the tests of saved runs."""

from __future__ import annotations

import pytest

from equipoise.inputs import table
from equipoise.saving import neighbors_cache


@pytest.fixture
def searches(monkeypatch):
    """Return a list that records the sizes of searched tables; neighbours are saved for any number of points."""
    sizes, search = [], table.nearest_neighbors
    monkeypatch.setattr(neighbors_cache, "MIN_POINTS", 0)
    monkeypatch.setattr(table, "nearest_neighbors", lambda X, *a, **b: sizes.append(len(X)) or search(X, *a, **b))
    return sizes
