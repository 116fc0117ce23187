"""Principal components of tables and of squared distances, the sign convention of eigenvectors, and BLAS threads."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController

from .._types import Array
from ..arrays.namespace import array_namespace, at_least, device_of, is_numpy, normal_like


def one_blas_thread() -> Any:
    """Return a context in which BLAS uses one thread, so that results do not depend on the number of cores."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    """Return the BLAS libraries of NumPy and SciPy, found once: finding them takes 5 ms, as long as a small PCA."""
    return ThreadpoolController()


JITTER = 0.01  # standard deviation of the noise, relative to the spread: just enough to separate duplicates


def principal_components(X: Array, d: int, rng: np.random.RandomState) -> Array:
    """Return the first d principal components of X, scaled so that the first has unit standard deviation, with jitter.

    Components beyond the rank of X are only jitter. BLAS runs on one thread, for the same bytes with every n_jobs.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    d : int
    rng : RandomState
        Draws the jitter.

    Returns
    -------
    Y : ndarray of shape (n, d)
    """
    X = X - X.mean(axis=0)
    X /= max(np.abs(X).max(), np.finfo(np.float64).tiny)
    with one_blas_thread():
        scores = principal_scores(X, d)
    return finish(scores, d, rng)


def principal_coordinates(D2: Array, d: int, rng: np.random.RandomState) -> Array:
    """Return the same components from squared distances D2 (n, n), by classical scaling: eigenvectors of −½ C D2 C."""
    scale = max(D2.max(), np.finfo(np.float64).tiny)
    G = D2 / (-2 * scale)
    double_center(G)
    with one_blas_thread():
        values, V = top_eigenvectors(G, d)
    return finish(V * np.sqrt(np.maximum(values, 0)), d, rng)


def double_center(G: Any) -> Any:
    """Replace G (n, m), an array of any library, by C G C, C = I − 11ᵀ/n; return the column means of G (m,)."""
    xp = array_namespace(G)
    means = xp.mean(G, axis=0)
    G -= means
    G -= xp.mean(G, axis=1, keepdims=True)
    return means


def principal_scores(X: Any, d: int) -> Any:
    """Return the coordinates (n, ≤ d) of centred rows X (n, D) along their first d principal axes.

    X is an array of any library; the result has its device and its precision. Eigenvectors are computed in float64, of
    the smaller of XᵀX and XXᵀ.
    """
    xp = array_namespace(X)
    if X.shape[1] <= X.shape[0]:
        _, V = top_eigenvectors(X.T @ X, d)
        return X @ xp.astype(V, X.dtype, copy=False)
    values, V = top_eigenvectors(X @ X.T, d)
    return xp.astype(V * xp.sqrt(at_least(values, 0.0)), X.dtype, copy=False)


def top_eigenvectors(G: Any, d: int) -> tuple[Any, Any]:
    """Return the d largest eigenvalues, descending, of a symmetric G (n, n), and unit eigenvectors, in float64."""
    n = G.shape[0]
    if is_numpy(G):
        values, V = linalg.eigh(G, subset_by_index=[max(n - d, 0), n - 1])
        if len(values) < min(d, n):  # LAPACK's driver for some eigenvalues can miss those of a cluster
            values, V = (part[..., max(n - d, 0) :] for part in linalg.eigh(G))
        return values[::-1], fix_signs(V[:, ::-1])
    xp = array_namespace(G)
    values, V = xp.linalg.eigh(xp.astype(G, xp.float64))
    return xp.flip(values)[:d], fix_signs(xp.flip(V, axis=1)[:, :d])


def fix_signs(V: Any) -> Any:
    """Return V (n, d) with signs such that the entry of largest magnitude in each column is positive."""
    xp = array_namespace(V)
    largest = V[xp.argmax(xp.abs(V), axis=0), xp.arange(V.shape[1], device=device_of(V))]
    return V * (1 - 2 * xp.astype(largest < 0, V.dtype))


def finish(scores: Any, d: int, rng: np.random.RandomState) -> Any:
    """Return scores (n, ≤ d), an array of any library, as a map (n, d) with unit spread along the first axis, jittered.

    The unit is one standard deviation. `rng` draws the jitter, or for a tensor the seed of a generator on its device.
    """
    xp = array_namespace(scores)
    Y = xp.zeros((scores.shape[0], d), dtype=scores.dtype, device=device_of(scores))
    spread = xp.std(scores[:, 0])
    if spread > 0:
        Y[:, : scores.shape[1]] = scores / spread
    return Y + JITTER * normal_like(Y, rng)
