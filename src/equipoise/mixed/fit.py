"""Choose the distance for a metric over columns, and fit it to a table."""

from __future__ import annotations

from typing import Any

from .._types import Array
from .base import ColumnDistance
from .block_distance import BlockDistance
from .block_settings import Blocks
from .gower import Gower
from .nan_euclidean import NanEuclidean
from .settings import Mixed


def fit_columns(X: Any, metric: Any) -> tuple[ColumnDistance, Array]:
    """Return the distance for a metric over columns, fitted to a table, and the rows of the table as codes.

    Parameters
    ----------
    X : data frame, Arrow table or array-like, shape (n, D)
        With metric="nan_euclidean" an array of float64.
    metric : Mixed, Blocks, "mixed" or "nan_euclidean"
    """
    if isinstance(metric, Blocks):
        return BlockDistance.fit_encode(X, metric)
    if isinstance(metric, str) and metric == "nan_euclidean":
        distance = NanEuclidean(X)
        return distance, distance.encode(X)
    return Gower.fit_encode(X, metric if isinstance(metric, Mixed) else Mixed())
