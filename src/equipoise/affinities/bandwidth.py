"""How far a Gaussian kernel on the data reaches: one bandwidth for all points, or one for each from its neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array, Matrix
from .._warn import warn
from ..arrays.csr import entry_rows


def check_bandwidth(bandwidth: Any) -> Any:
    """Return a bandwidth: "local", "global" or a positive number, infinity included."""
    if isinstance(bandwidth, str) and bandwidth in ("local", "global"):
        return bandwidth
    return check_positive(bandwidth, "bandwidth", '"local", "global" or ')


def check_positive(value: Any, name: str, or_else: str = "") -> float:
    """Return a positive number, infinity included; `or_else` says what else would have been taken."""
    if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not value > 0:
        raise ValueError(f"{name} must be {or_else}a positive number, got {value!r}")
    return float(value)


def variances(d2: Matrix, k: int) -> Array:
    """Return σ_i², the mean of the k smallest squared distances in each row of CSR d2 (m, n)."""
    counts = np.diff(d2.indptr)
    if counts.min() < k:
        i = int(counts.argmin())
        raise ValueError(
            f"row {i} of the precomputed graph stores {counts[i]} neighbours, fewer than n_neighbors={k};"
            " store more, or ask for fewer"
        )
    rows = entry_rows(d2)
    order = np.lexsort((d2.data, rows))
    nearest = np.arange(d2.nnz) - d2.indptr[rows] < k
    return np.bincount(rows[nearest], d2.data[order][nearest], minlength=d2.shape[0]) / k


def positive(sigma2: Array, k: int) -> Array:
    """Return σ² with the smallest positive one in place of zeros, 1 if there is none, and count them in a warning."""
    zero = sigma2 <= 0
    if not zero.any():
        return sigma2
    warn(
        f"{int(zero.sum())} rows (the first is row {int(zero.argmax())}) have {k} duplicates or more and so no"
        " bandwidth of their own; they take the smallest of the others'",
    )
    return np.where(zero, sigma2[~zero].min(initial=np.inf) if not zero.all() else 1.0, sigma2)
