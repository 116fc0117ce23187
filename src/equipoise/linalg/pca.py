"""Where the points start: principal components, a random ball, or the user's array."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._types import Array
from .blas import one_blas_thread

JITTER = 0.01  # of the spread: enough to part duplicates, too little to move anything else


def principal_components(X: Array, d: int, rng: np.random.RandomState) -> Array:
    """Return the first d principal components of X, scaled so that the first has standard deviation 1, and jittered.

    Components beyond the rank of X hold jitter alone. One BLAS thread computes them: the same bytes whatever n_jobs.
    """
    X = X - X.mean(axis=0)
    X /= max(np.abs(X).max(), np.finfo(np.float64).tiny)
    with one_blas_thread():
        if X.shape[1] <= X.shape[0]:
            _, V = _top_eigenvectors(X.T @ X, d)
            scores = X @ V
        else:
            values, V = _top_eigenvectors(X @ X.T, d)
            scores = V * np.sqrt(np.maximum(values, 0))
    return finish(scores, d, rng)


def principal_coordinates(D2: Array, d: int, rng: np.random.RandomState) -> Array:
    """Return the same from squared distances alone (classical scaling): the top eigenvectors of −½ C D2 C."""
    scale = max(D2.max(), np.finfo(np.float64).tiny)
    G = D2 / (-2 * scale)
    G -= G.mean(axis=0)
    G -= G.mean(axis=1, keepdims=True)
    with one_blas_thread():
        values, V = _top_eigenvectors(G, d)
    return finish(V * np.sqrt(np.maximum(values, 0)), d, rng)


def _top_eigenvectors(G: Array, d: int) -> tuple[Array, Array]:
    n = len(G)
    values, V = linalg.eigh(G, subset_by_index=[max(n - d, 0), n - 1])
    V = V[:, ::-1] * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])])[::-1]
    return values[::-1], V


def finish(scores: Array, d: int, rng: np.random.RandomState) -> Array:
    """Return scores (n, ≤ d) as a map (n, d) whose first axis has standard deviation 1, and jitter."""
    Y = np.zeros((len(scores), d))
    spread = scores[:, 0].std()
    if spread > 0:
        Y[:, : scores.shape[1]] = scores / spread
    return Y + JITTER * rng.standard_normal(Y.shape)
