"""Data for the thread pool, faiss and the mesh: many rows, more columns than a k-d tree takes, and tight clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.methods import brief

_rng = np.random.default_rng(0)
X = _rng.normal(size=(8, 12))[_rng.integers(0, 8, 1520)] + 0.01 * _rng.normal(size=(1520, 12))
X, NEW = X[:1500], X[1500:]
for table in (X, NEW):
    table.flags.writeable = False


def brief_on_clusters(Method: Any, **parameters: Any) -> Any:
    """Return the method with settings for a short run on these data."""
    return brief(Method, **{"n_iter": 10, "n_jobs": 2} | parameters)
