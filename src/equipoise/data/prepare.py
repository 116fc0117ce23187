"""What is done to a table before it is embedded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.utils.sparsefuncs import mean_variance_axis
from threadpoolctl import threadpool_limits

from .._types import Array, Matrix
from ..csr import entry_place
from ..low_rank import Directions
from .dataset import Dataset


def prepare(dataset: Dataset, standardize: bool = False, log1p: bool = False, pca: int | None = None) -> Dataset:
    """Return the data set with log(1 + x) of its values, columns of mean 0 and deviation 1, and its first components.

    In this order, each if asked for; the data set itself stays as it is. A constant column becomes 0. A sparse table
    stays sparse, so its columns are scaled and not shifted; its components are those of the centred table.
    """
    X, columns = dataset.X, dataset.columns
    if pca is not None and not 1 <= pca <= min(X.shape):
        raise ValueError(f"pca={pca} of a table of shape {X.shape}; it must be from 1 to {min(X.shape)}")
    if log1p:
        _check_counts(X, columns)
        X = X.log1p() if sparse.issparse(X) else np.log1p(X, dtype=np.float64)
    if standardize:
        X = _scaled(X) if sparse.issparse(X) else _standardized(X)
    if pca is not None:
        X, columns = _components(X, pca), tuple(f"PC{c + 1}" for c in range(pca))
    return replace(dataset, X=X, columns=columns)


def _check_counts(X: Matrix, columns: tuple[str, ...]) -> None:
    values = X.data if sparse.issparse(X) else X.ravel()
    if values.size and values.min() < 0:
        i, j = entry_place(X, int(np.argmax(values < 0)))
        column = repr(columns[j]) if columns else j
        raise ValueError(f"log1p is for counts, but row {i}, column {column} holds {X[i, j]:g}; leave log1p out")


def _standardized(X: Array) -> Array:
    Z = np.array(X, dtype=np.float64)  # a copy: the data set keeps its own
    Z -= Z.mean(axis=0)
    Z /= _at_least_something(Z.std(axis=0), np.abs(X).max(axis=0))
    return Z


def _scaled(X: Matrix) -> Matrix:
    X = sparse.csr_matrix(X, dtype=np.float64)
    deviation = np.sqrt(mean_variance_axis(X, axis=0)[1])
    deviation = _at_least_something(deviation, abs(X).max(axis=0).toarray().ravel())
    return sparse.csr_matrix(X @ sparse.diags(1 / deviation))


def _at_least_something(deviation: Array, largest: Array) -> Array:
    """Return the deviations, 1 for a column that is constant up to rounding."""
    return np.where(deviation <= 1e-12 * largest, 1.0, deviation)


def _components(X: Matrix, pca: int) -> Array:
    with threadpool_limits(1, user_api="blas"):  # the same bytes whatever the number of threads
        if sparse.issparse(X):
            return Directions(X, pca, centered=True).scores(X)
        return np.asarray(PCA(pca, random_state=0).fit_transform(np.asarray(X, dtype=np.float64)))
