"""A dense table with a metric tensor h(x) that varies from point to point (Lin et al. 2024, eq. 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._types import Array
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import is_tensor, to_numpy
from ..data import check_finite
from ..data.checks.metric_tensors import check_tensors
from .base import Input, Nearby
from .precomputed import Distances
from .table import Table


def with_metric_function(X: Array, h: Callable[[Array], Any]) -> Input:
    """Return rows X (n, D) as an input with the metric tensors h(X): (D, D) for all rows, or (n, D, D), one per row."""
    H = _tensors(h, X)
    return Table(X, "euclidean", H) if H.ndim == 2 else Varying(X, H, h)


class Varying(Distances):
    """Input whose points are rows x_i with one metric tensor h_i each.

    The squared distances d²_ij = (x_i − x_j)ᵀ ½(h_i + h_j) (x_i − x_j) are computed for all n² pairs.
    """

    def __init__(self, X: Array, H: Array, h: Callable[[Array], Any]):
        require_memory(
            3 * 8.0 * len(X) ** 2, f"a function h(X) compares all pairs of {len(X):,} points, which", available_memory()
        )
        self.X, self.H, self.h = X, H, h
        with np.errstate(over="ignore", invalid="ignore"):
            d2 = _quadratic_forms(X, H, X)
            d2 = (d2 + d2.T) / 2
        if not np.isfinite(d2).all():
            i, j = np.argwhere(~np.isfinite(d2))[0]
            raise ValueError(
                f"the squared distance between rows {i} and {j} in the metric h(X) overflows; divide X by a constant"
            )
        super().__init__(np.sqrt(d2))
        self.limit = min(X.shape)

    def check_new(self, X: Any) -> Array:
        X = np.ascontiguousarray(X, dtype=np.float64)
        check_finite(X, "X")
        return X

    def nearest(self, X: Array, k: int, n_threads: int) -> Nearby:
        return super().nearest(np.sqrt(self.squared_to_all(X)), k, n_threads)

    def rows(self, i: Array) -> Array:
        return self.X[i]

    def new_block(self, X: Array, columns: Array) -> Array:
        return np.sqrt(self.squared_to_all(X)[:, columns])

    def squared_to_all(self, X: Array) -> Array:
        return (_quadratic_forms(X, self._tensors_at(X), self.X) + _quadratic_forms(self.X, self.H, X).T) / 2

    def _tensors_at(self, X: Array) -> Array:
        """Return the metric tensors at new rows; raise ValueError if the tensor of a row depends on other rows too."""
        subset = self.X[: min(2, self.n - 1)]
        if not np.allclose(_tensors(self.h, subset), self.H[: len(subset)], rtol=1e-6, atol=0):
            raise ValueError(
                "transform requires that the metric tensor h(X) of a row depends on that row alone, but it changes when"
                " other rows are omitted; if h needs the mean of all rows, for example, compute it before the fit"
            )
        H = _tensors(self.h, X)
        return np.broadcast_to(H, (len(X), *H.shape[-2:]))


def _quadratic_forms(X: Array, H: Array, to: Array) -> Array:
    """Return the squared distances (x_i − t_j)ᵀ h_i (x_i − t_j), shape (m, n).

    x_i are the rows of X (m, D), h_i the tensors in H (m, D, D), and t_j the rows of `to` (n, D).
    """
    d2 = np.empty((len(X), len(to)))
    for i, (x, h) in enumerate(zip(X, H, strict=True)):
        diff = x - to
        d2[i] = ((diff @ h) * diff).sum(axis=1)
    return d2


def _tensors(h: Callable[[Array], Any], X: Array) -> Array:
    """Return h(X) as a float64 array; raise ValueError unless it contains valid metric tensors."""
    found = h(X)
    try:
        H = np.asarray(to_numpy(found.detach() if is_tensor(found) else found), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"h(X) must return metric tensors as arrays of numbers; it returned {found!r}") from None
    check_tensors(H, "h(X)", *X.shape)
    return H
