"""How well neighbours survive the embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from .._types import Array


def neighbor_recall(X: Array, Y: Array, k: int = 10) -> float:
    """Return the fraction of each point's k nearest neighbours in X that are among its k nearest in Y, on average."""
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} rows and Y has {len(Y)}; they must be the same points")
    if not 0 < k < len(X):
        raise ValueError(f"k must be between 1 and n_samples - 1 = {len(X) - 1}, got {k}")
    near_x, near_y = (NearestNeighbors(n_neighbors=k).fit(V).kneighbors(return_distance=False) for V in (X, Y))
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(near_x, near_y, strict=True)]))


def one_nn_error(Y: Array, labels: Any, folds: int = 10) -> float:
    """Return the error of a 1-nearest-neighbour classifier on the map, cross-validated (Lin et al. 2024, Table 2).

    Classes smaller than the number of folds lower it to their size, and to no less than 2.
    """
    smallest = int(np.unique(np.asarray(labels), return_counts=True)[1].min())
    split = StratifiedKFold(n_splits=max(2, min(folds, smallest)), shuffle=True, random_state=0)
    return float(1 - cross_val_score(KNeighborsClassifier(n_neighbors=1), Y, labels, cv=split).mean())
