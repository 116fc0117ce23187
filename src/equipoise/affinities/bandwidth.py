"""Compute bandwidths of a Gaussian kernel on the data: one for all points, or one per point from its neighbours."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._plural import plural
from .._tags import tagged
from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import entry_rows
from ..arrays.namespace import is_positive

RANGE = 1e-75, 1e75  # of a given σ: the product σ_i² σ_j² neither underflows nor overflows


@tagged("methods.kernel_neighborhoods.Bandwidth")
@dataclass
class Bandwidth:
    """Computes the squared bandwidths σ² of the kernel k_x = exp(−d² / 2σ²) on the data.

    Parameters
    ----------
    bandwidth : "local", "global" or float
        "local" gives each point a σ_i of its own, whose square is the mean squared distance to its k nearest
        neighbours. "global" gives all points the same σ, whose square is the mean of the local σ_i². A number is the
        σ of all points.
    k : int
        Number of neighbours.
    """

    bandwidth: Any
    k: int
    _mean: float = field(default=np.nan, init=False)

    def fit(self, d2: Matrix) -> Array:
        """Return σ_i² for each row of d2, a CSR matrix (n, n) of squared distances.

        With "global", σ² is stored for `of_new`; it is 1 if all local σ_i² are 0.
        """
        if not isinstance(self.bandwidth, str):
            return np.full(d2.shape[0], self.bandwidth**2)
        sigma2 = variances(d2, self.k)
        self._mean = float(sigma2.mean()) or 1.0
        return positive(sigma2, self.k) if self.bandwidth == "local" else np.full(len(sigma2), self._mean)

    def of_new(self, d2: Matrix) -> Array:
        """Return σ_i² for m new rows; CSR d2 (m, n) contains their squared distances to the fitted points."""
        if self.bandwidth != "local":
            return np.full(d2.shape[0], self._mean if self.bandwidth == "global" else self.bandwidth**2)
        with warnings.catch_warnings():  # the fit has already warned about duplicates
            warnings.simplefilter("ignore", UserWarning)
            return positive(variances(d2, self.k), self.k)


def check_bandwidth(bandwidth: Any) -> Any:
    """Return `bandwidth`; raise ValueError unless it is "local", "global", infinity or a number in `RANGE`."""
    if isinstance(bandwidth, str) and bandwidth in ("local", "global"):
        return bandwidth
    sigma = check_positive(bandwidth, "bandwidth", '"local", "global" or ')
    if not (RANGE[0] <= sigma <= RANGE[1] or sigma == np.inf):
        raise ValueError(
            f"bandwidth={sigma:g} is out of range: its fourth power would overflow or underflow; rescale the data, and"
            f" use a bandwidth between {RANGE[0]:g} and {RANGE[1]:g}"
        )
    return sigma


def check_positive(value: Any, name: str, alternatives: str = "") -> float:
    """Return a value as float; raise ValueError unless it is a positive number, possibly infinite.

    `alternatives` lists other values that the caller accepts. The message puts them before "a positive number".
    """
    if not (is_positive(value) or (isinstance(value, float | np.floating) and value == np.inf)):
        raise ValueError(f"{name} must be {alternatives}a positive number, got {value!r}")
    return float(value)


def variances(d2: Matrix, k: int) -> Array:
    """Return σ_i², the mean of the k smallest squared distances in each row of CSR d2 (m, n)."""
    counts = np.diff(d2.indptr)
    if counts.min() < k:
        i = int(counts.argmin())
        raise ValueError(
            f"row {i} of the precomputed graph stores {plural(counts[i], 'neighbour')}, fewer than n_neighbors={k};"
            " store more neighbours, or lower n_neighbors"
        )
    rows = entry_rows(d2)
    order = np.lexsort((d2.data, rows))
    nearest = np.arange(d2.nnz) - d2.indptr[rows] < k
    return np.bincount(rows[nearest], d2.data[order][nearest], minlength=d2.shape[0]) / k


def positive(sigma2: Array, k: int) -> Array:
    """Return σ² with zeros replaced by the smallest positive σ², or by 1 if all σ² are 0.

    A row with σ² = 0 has at least k duplicates. If there are such rows, a warning says how many.
    """
    zero = sigma2 <= 0
    if not zero.any():
        return sigma2
    first, count = f"row {int(zero.argmax())}", int(zero.sum())
    warn(
        f"{f'{first} has' if count == 1 else f'{count} rows (the first is {first}) have'} at least"
        f" {plural(k, 'duplicate')}, so {'its' if count == 1 else 'their'} bandwidth is 0;"
        f" {'1' if zero.all() else 'the smallest positive bandwidth'} is used instead",
    )
    return np.where(zero, sigma2[~zero].min(initial=np.inf) if not zero.all() else 1.0, sigma2)
