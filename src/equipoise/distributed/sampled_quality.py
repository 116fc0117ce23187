"""How well a map that several ranks share preserves neighbours, measured on a random sample of its points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import is_integer
from .exact_scan import OwnVectors, SearchedRows, nearest_rows
from .exchange import fetch, most_rounds
from .row_vectors import RowVectors
from .shared_map import SharedMap

ROUND_POINTS = 4096  # points of a rank whose neighbours are searched at a time; chosen


@dataclass(frozen=True)
class MapQuality:
    """How well a map preserves neighbours; the same on all ranks.

    Attributes
    ----------
    n, n_sample : int
        Number of points of the map, and of those in the sample.
    k : int
        Number of neighbours.
    recall : float
        Mean fraction of the k nearest neighbours in the data that are among the k nearest in the map.
    recall_error : float
        Standard error of `recall`, because it is measured on a sample.
    accuracy, data_accuracy : float or None
        Fraction of the points with the same label as their nearest neighbour in the map, and in the data; None without
        labels.
    """

    n: int
    n_sample: int
    k: int
    recall: float
    recall_error: float
    accuracy: float | None = None
    data_accuracy: float | None = None

    def __str__(self) -> str:
        lines = [
            f"{self.n_sample:,} of {self.n:,} points, exact neighbours",
            f"{f'recall of {self.k} neighbours':<27}{self.recall:.3f} ± {self.recall_error:.3f}",
        ]
        if self.accuracy is not None and self.data_accuracy is not None:
            lines += [
                f"1-NN accuracy in the map   {self.accuracy:.3f}",
                f"1-NN accuracy in the data  {self.data_accuracy:.3f}",
            ]
        return "\n".join(lines)


def sampled_quality(
    shared: SharedMap, fitted: SearchedRows, Y: Array, labels: Array | None, k: int, sample: Array
) -> MapQuality:
    """Return how well a map preserves neighbours; all ranks call this function.

    Parameters
    ----------
    shared : SharedMap
    fitted : SearchedRows
        The rows of the data.
    Y : array of shape (own, d)
        The own points of the map.
    labels : array of int64, shape (own,), or None
        The labels of the own points.
    k : int
        Number of neighbours.
    sample : array of int64, shape (m,)
        Positions of the points in the sample, ascending.
    """
    group, own, n = shared.group, shared.partition.own, shared.partition.n
    mine = sample[(sample >= own.start) & (sample < own.stop)]
    counts = np.zeros(4, np.int64)  # neighbours in common, their squares, equal labels in the map and in the data
    with group.stage("evaluation"):
        points = _points_of(shared, Y)
        for r in range(most_rounds(group, -(-len(mine) // ROUND_POINTS))):
            at = mine[r * ROUND_POINTS : (r + 1) * ROUND_POINTS]
            in_data, in_map = (
                nearest_rows(group, rows, np.ascontiguousarray(rows.rows[at - own.start]), k, at)[0]
                for rows in (fitted, points)
            )
            common = (in_data[:, :, None] == in_map[:, None, :]).sum(axis=(1, 2))
            counts[:2] += common.sum(), np.square(common).sum()
            if labels is not None:
                first = np.concatenate([in_map[:, 0], in_data[:, 0]])
                positions, which = np.unique(first, return_inverse=True)
                found = fetch(group, shared.partition, labels, positions)[which].reshape(2, len(at))
                counts[2:] += (found == labels[at - own.start]).sum(axis=1)
        total, squares, *equal = group.all_reduce(counts).tolist()
    m = len(sample)
    mean = total / (m * k)
    spread = max(squares / (m * k**2) - mean**2, 0.0) ** 0.5
    accuracies = () if labels is None else (equal[0] / m, equal[1] / m)
    return MapQuality(n, m, k, mean, spread / max(m - 1, 1) ** 0.5, *accuracies)


def _points_of(shared: SharedMap, Y: Array) -> OwnVectors:
    """Return the points of a map, among which neighbours are searched; all ranks call this function."""
    vectors = RowVectors("euclidean", Y.shape[1])
    vectors.center = shared.mean(Y)
    vectors.scale = max(shared.maximum(float(np.abs(Y - vectors.center).max(initial=0.0))), np.finfo(np.float64).tiny)
    return OwnVectors(shared.partition, Y, vectors, shared.n_threads)


def draw_sample(n: int, n_sample: Any, k: Any, random_state: Any) -> Array:
    """Return the positions, int64 and ascending, of a random sample of n points; raise if a parameter is invalid."""
    if not (is_integer(n_sample) and n_sample >= 1):
        raise ValueError(f"n_sample must be a positive integer, got {n_sample!r}")
    if not (is_integer(k) and 0 < k < n):
        raise ValueError(f"k must be an integer from 1 to n_samples - 1 = {n - 1}, got {k!r}")
    if not (is_integer(random_state) and random_state >= 0):
        raise ValueError(
            f"random_state must be a nonnegative integer, so that all ranks draw the same sample, got {random_state!r}"
        )
    chosen = np.random.default_rng(int(random_state)).choice(n, size=min(int(n_sample), n), replace=False)
    return np.sort(chosen).astype(np.int64)


def label_codes(labels: Any, n: int) -> Array:
    """Return labels of any type as integers (n,), equal where the labels are."""
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(f"labels has shape {labels.shape}; pass one label for each of the {n:,} rows of the table")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64).reshape(n)
