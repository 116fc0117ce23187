"""Where the points start: principal components, a random ball, or the user's array."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController

from ._types import Array
from .arrays import host

JITTER = 0.01  # of the spread: enough to part duplicates, too little to move anything else


def one_blas_thread() -> Any:
    """Return a context in which BLAS runs on one thread: the same bytes whatever the machine's number of them."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> Any:
    """The libraries of NumPy and SciPy, looked up once: looking takes as long as a small PCA, 5 ms."""
    return ThreadpoolController()


def random_ball(n: int, d: int, rng: np.random.RandomState) -> Array:
    """Return n points uniform in a ball (in 2-D, a disk), with standard deviation 1 along each axis."""
    direction = rng.standard_normal((n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    radius = rng.uniform(size=(n, 1)) ** (1 / d)
    return direction * radius * np.sqrt(d + 2)  # a unit ball has variance 1/(d+2) along each axis


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


def check_init(init: Any, n: int, d: int) -> Array:
    """Return a user's initial map as float64 (n, d)."""
    Y = np.array(host(init), dtype=np.float64)
    if Y.shape != (n, d):
        raise ValueError(f"init has shape {Y.shape}, but the map needs (n_samples, n_components) = ({n}, {d})")
    if not np.isfinite(Y).all():
        i, c = np.argwhere(~np.isfinite(Y))[0]
        raise ValueError(f"init contains NaN or inf at row {i}, column {c}")
    return Y
