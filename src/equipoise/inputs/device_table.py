"""Defines `DeviceTable`, the input for a dense table that is a PyTorch tensor, on a GPU or the CPU."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from .. import progress
from .._plural import plural
from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import make_csr
from ..arrays.device_csr import Rows
from ..arrays.namespace import LARGEST, check_finite
from ..arrays.tiles import in_tiles
from ..arrays.to_device import as_tensor, available_device
from ..linalg.pca import finish, principal_scores
from ..linalg.row_products import by_row_blocks
from ..neighbors.gpu import search
from ..neighbors.gpu_scan import nearest
from ..neighbors.search import MIN_RECALL
from ..neighbors.vectors import undefined_for_row
from .base import Input, Nearby
from .table import Table


@tagged("inputs.device_table.DeviceTable")
class DeviceTable(Input):
    """Input whose points are the rows of a dense table on a device.

    Neighbours are found among float32 copies of the rows. The copies are centred and scaled to values between −1 and 1;
    for the cosine metric they are scaled to unit length instead. Distances between points are computed from a copy on
    the CPU. Measures and stress use the class `Table` instead of this class.

    Parameters
    ----------
    X : floating-point tensor, shape (n, D)
    metric : {"euclidean", "l2", "cosine"}
    """

    on_device = True

    def __init__(self, X: torch.Tensor, metric: str):
        self.X, self.metric = X, metric
        self.n, self.limit = len(X), min(X.shape)
        self._center = X.double().mean(dim=0)
        self._scale = (X - self._center).abs().max().clamp(min=torch.finfo(torch.float64).tiny)
        self._V = self._vectors(X)

    def _vectors(self, X: torch.Tensor) -> torch.Tensor:
        """Return rows as float32 vectors for the search: centred and scaled, or of unit length for cosine."""
        return self._double_vectors(X).float()

    def _double_vectors(self, X: torch.Tensor) -> torch.Tensor:
        if self.metric == "cosine":
            norm = row_sums(X.double().square()).sqrt()
            if not bool(norm.all()):
                raise undefined_for_row(int(norm.argmin()), self.metric)
            return X / norm
        return (X - self._center) / self._scale

    def _squared(self, d2: torch.Tensor) -> torch.Tensor:
        """Convert d2, the squared distances between vectors of the search, to squared distances in the metric.

        Euclidean distances are scaled back to the units of X, unless they would overflow or underflow.
        """
        if self.metric == "cosine":
            return (d2 / 2).square()
        scale, largest = float(self._scale), 1e100 if d2.dtype == torch.float64 else 1e12
        return d2 * scale**2 if 1 / largest < scale < largest else d2

    @cached_property
    def _on_host(self) -> Table:
        return Table(self.X.double().cpu().numpy(), self.metric)

    @property
    def coordinates(self) -> torch.Tensor:
        return self.X

    @property
    def points(self) -> Array | None:
        return self._on_host.points

    def block(self, rows: Array, columns: Array | None = None) -> Array:
        return self._on_host.block(rows, columns)

    def squared(self) -> Array:
        return self._on_host.squared()

    def neighbors(self, k: int, n_threads: int, min_recall: float = MIN_RECALL) -> tuple[Any, float]:
        if not 0 < k < self.n:
            raise ValueError(f"k must be between 1 and n_samples - 1 = {self.n - 1}, got {k}")
        progress.stage("neighbours", self.n)
        found = search(self._V, k, min_recall)
        return Rows.of_neighbors(self._squared(found.d2), found.indices), found.recall

    def measured_neighbors(self, k: int, n_threads: int) -> tuple[Matrix, float]:
        graph, recall = self.neighbors(k, n_threads)
        V, neighbors = self._double_vectors(self.X), graph.indices.reshape(self.n, -1)
        d2 = torch.empty(neighbors.shape, dtype=torch.float64, device=V.device)

        def rows(part: slice) -> None:
            d2[part] = (V[part, None] - V[neighbors[part]]).square().sum(dim=2)

        in_tiles(self.n, neighbors.shape[1] * V.shape[1], rows)
        return Rows(self._squared(d2).flatten(), graph.indices, graph.indptr).host(), recall

    def check_new(self, X: Any) -> torch.Tensor:
        return check_tensor(X, self.X.device, min_rows=1)

    def nearest(self, X: torch.Tensor, k: int, n_threads: int) -> Nearby:
        found = nearest(self._vectors(X), self._V, k, independent=True)
        in_float32 = 1e-12 < float(self._scale) < 1e12  # otherwise in float64, in the units of `measured_neighbors`
        d2 = self._squared(found.d2 if in_float32 else found.d2.double()).double().cpu().numpy()
        indices = found.indices.cpu().numpy()
        rows = make_csr(d2.ravel(), indices.ravel(), np.arange(0, d2.size + 1, k, dtype=np.int64), (len(d2), self.n))
        return Nearby(rows, np.where(d2[:, 0] == 0, indices[:, 0], -1))

    def rows(self, i: Array) -> torch.Tensor:
        return self.X[torch.as_tensor(i, device=self.X.device)]

    def scaled(self, rows: torch.Tensor) -> torch.Tensor:
        return rows

    def unscaled(self, d2: Array) -> Array:
        return np.sqrt(d2)

    def squared_to_all(self, X: torch.Tensor) -> Array:
        return np.asarray(by_row_blocks(self.squared_from, X).cpu())

    def squared_from(self, X: torch.Tensor) -> torch.Tensor:
        """Return d² (m, n) from new rows X to all fitted points, in float64 and on the device of the table."""
        V, U = self._double_vectors(self.X), self._double_vectors(X)
        d2 = torch.addmm(V.square().sum(dim=1), U, V.T, alpha=-2)
        d2 += U.square().sum(dim=1, keepdim=True)
        return self._squared(d2.clamp_(min=0))

    def check_power(self, power: int) -> None:
        _check_range(self.X, power)

    def principal(self, d: int, rng: np.random.RandomState) -> Any:
        """Return the same as `linalg.pca.principal_components`, but with noise generated on the device."""
        X = ((self.X - self._center) / self._scale).float()
        return finish(principal_scores(X, d), d, rng)

    def __getstate__(self) -> dict[str, Any]:
        X = self.X.float() if self.X.element_size() < 4 else self.X  # NumPy has no bfloat16
        return {"X": X.cpu().numpy(), "metric": self.metric, "device": self.X.device.type}

    def __setstate__(self, state: dict[str, Any]) -> None:
        X = as_tensor(state["X"]).to(available_device(state["device"]))
        self.__init__(X, state["metric"])  # type: ignore[misc]


def row_sums(A: torch.Tensor) -> torch.Tensor:
    """Return the sums (m, 1) of the rows of A (m, D); the last digit of a sum does not depend on m.

    The right half of the columns is added to the left half until one column is left. `torch.sum` is not used, because
    its order of addition depends on m.
    """
    while (D := A.shape[1]) > 1:
        half = (D + 1) // 2
        left = A[:, :half].clone()
        left[:, : D - half] += A[:, half:]
        A = left
    return A


def check_tensor(X: Any, device: torch.device, min_rows: int = 2) -> torch.Tensor:
    """Return the table X as a floating-point tensor on a device.

    Raise ValueError if X is not a valid table of at least `min_rows` rows.
    """
    if sparse.issparse(X):
        raise ValueError("X is a sparse matrix, but the fitted table is dense; use X.toarray()")
    X = as_tensor(X) if isinstance(X, np.ndarray) else torch.as_tensor(X).detach()
    if X.layout != torch.strided or X.is_meta:
        kind = "meta tensor, which has no values" if X.is_meta else f"{X.layout} tensor"
        raise ValueError(f"X is a {kind}; pass a dense tensor{'' if X.is_meta else ', for example X.to_dense()'}")
    if X.ndim != 2 or len(X) < min_rows or X.shape[1] == 0:
        raise ValueError(
            f"X must be a table of at least {plural(min_rows, 'row')} and one column, got shape {tuple(X.shape)}"
        )
    if X.is_complex():
        raise ValueError("X is complex; pass real numbers")
    X = X.to(device) if X.is_floating_point() else X.to(device, torch.float64)
    _check_range(X)
    return X


def _check_range(X: torch.Tensor, power: int = 1) -> None:
    """Raise ValueError if `check_finite` rejects X; only a rejected tensor is copied to the CPU."""
    largest = LARGEST ** (1 / power)
    if not (float(X.amax()) <= largest and float(X.amin()) >= -largest):  # true for NaN
        check_finite(X.double().cpu().numpy(), "X", power=power)
