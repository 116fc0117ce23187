"""Preprocess a table before it is embedded, and apply the same preprocessing to new rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._plural import plural
from .._types import Array, Matrix
from ..arrays.namespace import check_finite, entry_place, is_integer
from ..linalg.pca import one_blas_thread
from ..linalg.randomized import Directions
from .dataset import Dataset
from .missing import is_frame_of_columns


@dataclass(frozen=True, eq=False, repr=False)
class Preparation:
    """Preprocessing of rows x: x·total/Σx, log(1 + x), (x − shift)/scale, Vᵀ(x − mean); each step is optional.

    Parameters
    ----------
    log1p : bool, default=False
        Whether to replace x by log(1 + x).
    shift, scale : array, shape (D,), default=None
        Mean and standard deviation of each column. For a sparse table `shift` is None, so that the table stays sparse.
    mean : array, shape (D,), default=None
        Mean row after the preceding steps, subtracted before the projection on the principal directions.
    directions : array, shape (D, k), default=None
        The k principal directions, the columns of V.
    total : float, default=None
        The total to which each row is scaled first.
    fill : array, shape (D,), default=None
        Values that replace missing ones before all other steps.
    gaps : bool, default=False
        Keep missing values; then there are no other steps.
    """

    log1p: bool = False
    shift: Array | None = None
    scale: Array | None = None
    mean: Array | None = None
    directions: Array | None = None
    total: float | None = None
    fill: Array | None = None
    gaps: bool = False

    @property
    def is_identity(self) -> bool:
        """Whether there are no steps."""
        return (
            not self.log1p
            and self.total is None
            and self.scale is None
            and self.directions is None
            and self.fill is None
        )

    def __str__(self) -> str:
        parts = [] if self.fill is None else ["missing values filled in"]
        parts += [] if self.total is None else [f"rows scaled to a total of {self.total:,.6g}"]
        parts += ["log(1 + x)"] * self.log1p + ["standardised"] * (self.scale is not None)
        if self.directions is not None:
            parts.append(plural(self.directions.shape[1], "principal component"))
        return ", ".join(parts) or "unchanged"

    def __repr__(self) -> str:
        return f"<preparation: {self}>"

    def apply(self, dataset: Dataset) -> Dataset:
        """Return a preprocessed copy of a data set."""
        X, columns = dataset.X, dataset.columns
        if self.gaps or is_frame_of_columns(X):
            return dataset
        if self.fill is not None and len(self.fill) == X.shape[1]:
            X = np.where(np.isnan(X), self.fill, X)
        check_finite(X, "X", columns or None, power=2)
        for part in (self.fill, self.scale, self.mean):
            if part is not None and len(part) != X.shape[1]:
                raise ValueError(
                    f"{dataset.name} has {plural(X.shape[1], 'column')}, but the preparation was fitted to {len(part)};"
                    " pass the same columns"
                )
        self.check(X, columns)
        X = self._scaled(X)
        if self.directions is None or self.mean is None:
            return replace(dataset, X=X, columns=columns, image_shape=dataset.image_shape if self.is_identity else ())
        with one_blas_thread():  # same bytes for any number of threads
            X = np.asarray(X @ self.directions) - self.mean @ self.directions
        return replace(dataset, X=X, columns=tuple(f"PC{c + 1}" for c in range(X.shape[1])), image_shape=())

    def check(self, X: Matrix, columns: tuple[str, ...]) -> None:
        """Raise if X contains a negative value and a step needs counts."""
        for step in ["normalize_total"] * (self.total is not None) + ["log1p"] * self.log1p:
            _check_counts(X, columns, step)

    def _scaled(self, X: Matrix) -> Matrix:
        """Apply the steps before the principal components: totals, log(1 + X), shift and scale."""
        if self.total is not None:
            totals = _totals(X)
            factors = self.total / np.where(totals == 0, 1.0, totals)  # a row of zeros stays as it is
            X = sparse.csr_matrix(sparse.diags(factors) @ X) if sparse.issparse(X) else X * factors[:, None]
        if self.log1p:
            X = X.log1p() if sparse.issparse(X) else np.log1p(X, dtype=np.float64)
        if self.scale is None:
            return X
        if sparse.issparse(X):
            return sparse.csr_matrix(sparse.csr_matrix(X, dtype=np.float64) @ sparse.diags(1 / self.scale))
        Z = np.array(X, dtype=np.float64)  # a copy, so that the data set is not changed
        if self.shift is not None:
            Z -= self.shift
        Z /= self.scale
        return Z


def prepare(
    dataset: Dataset,
    standardize: bool = False,
    log1p: bool = False,
    pca: int | None = None,
    normalize_total: bool = False,
) -> Dataset:
    """Return a preprocessed copy of a data set; the order of steps is normalize_total, log1p, standardize, pca.

    Parameters
    ----------
    dataset : Dataset
    standardize : bool, default=False
        Shift and scale columns to mean 0 and standard deviation 1; constant columns become 0. A sparse table is only
        scaled, so that it stays sparse.
    log1p : bool, default=False
        Replace counts x by log(1 + x).
    pca : int, default=None
        Number of principal components to keep.
    normalize_total : bool, default=False
        Scale each row to the median of the rows' totals, without rows of zeros: counts of genes in cells become
        independent of how deeply a cell was sequenced.
    """
    return preparation(dataset, standardize, log1p, pca, normalize_total).apply(dataset)


def preparation(
    dataset: Dataset,
    standardize: bool = False,
    log1p: bool = False,
    pca: int | None = None,
    normalize_total: bool = False,
) -> Preparation:
    """Return the preprocessing that `prepare` applies to a data set, for use on other rows.

    Parameters are those of `prepare`.
    """
    if pca is not None and not (is_integer(pca) and 1 <= pca <= min(dataset.X.shape)):
        raise ValueError(
            f"pca={pca} is out of range for a table of shape {dataset.X.shape}; use an integer from 1 to"
            f" {min(dataset.X.shape)}"
        )
    for name, flag in (("standardize", standardize), ("log1p", log1p), ("normalize_total", normalize_total)):
        if not isinstance(flag, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {flag!r}")
    check_finite(dataset.X, "X", dataset.columns or None, power=2)
    steps = Preparation(bool(log1p), total=_median_total(dataset.X) if normalize_total else None)
    steps.check(dataset.X, dataset.columns)
    if standardize:
        shift, scale = _moments(steps._scaled(dataset.X))
        steps = replace(steps, shift=shift, scale=scale)
    if pca is not None:
        mean, directions = _components(steps._scaled(dataset.X), pca)
        steps = replace(steps, mean=mean, directions=directions)
    return steps


def _totals(X: Matrix) -> Array:
    """Return the sum of each row."""
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def _median_total(X: Matrix) -> float:
    """Return the median of the sums of the rows that are not all zero; 1 if all are."""
    totals = _totals(X)
    return float(np.median(totals[totals != 0])) if totals.any() else 1.0


def _check_counts(X: Matrix, columns: tuple[str, ...], step: str) -> None:
    """Raise if X contains a negative value."""
    values = X.data if sparse.issparse(X) else X.ravel()
    if values.size and values.min() < 0:
        i, j = entry_place(X, int(np.argmax(values < 0)))
        column = repr(columns[j]) if columns else j
        raise ValueError(
            f"{step} requires nonnegative values, but row {i}, column {column} is {X[i, j]:g}; omit {step}"
        )


def _moments(X: Matrix) -> tuple[Array | None, Array]:
    """Return the mean (None for a sparse table) and standard deviation of the columns."""
    if sparse.issparse(X):
        X = sparse.csr_matrix(X, dtype=np.float64)
        deviation = np.sqrt(mean_variance_axis(X, axis=0)[1])
        return None, _nonzero_deviation(deviation, abs(X).max(axis=0).toarray().ravel())
    mean = np.asarray(X).mean(axis=0, dtype=np.float64)
    return mean, _nonzero_deviation((X - mean).std(axis=0), np.abs(X).max(axis=0))


def _nonzero_deviation(deviation: Array, largest: Array) -> Array:
    """Return the standard deviations of columns, with 1 for columns that are constant up to rounding.

    Rounding is judged relative to `largest`, the largest absolute value of each column.
    """
    return np.where(deviation <= 1e-12 * largest, 1.0, deviation)


def _components(X: Matrix, pca: int) -> tuple[Array, Array]:
    """Return the mean row and the directions of largest variance (D, pca)."""
    with one_blas_thread():
        if sparse.issparse(X):
            principal = Directions(X, pca, centered=True)
            return principal.mean, principal.V
        from sklearn.decomposition import PCA  # slow to import

        dense = PCA(pca, random_state=0).fit(np.asarray(X, dtype=np.float64))
        return dense.mean_, np.ascontiguousarray(dense.components_.T)
