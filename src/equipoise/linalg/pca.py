"""Compute principal components of tables or squared distances, fix the signs of eigenvectors, and control threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
from scipy import linalg
from threadpoolctl import ThreadpoolController

from .._types import Array
from ..arrays.blocks import FIXED_PCA_ROWS
from ..arrays.csr import current_threads, run_on_threads
from ..arrays.namespace import array_namespace, at_least, device_of, is_numpy, normal_like

_IMPORTED_IN = os.getpid()  # the process that imported the package
F = TypeVar("F", bound=Callable[..., Any])
Settings = list[tuple[Any, int]]  # libraries and their numbers of threads


class _SharedLimit:
    """Limits BLAS libraries to one thread if their number of threads is set for the whole process.

    `one_blas_thread` contexts in several threads can overlap: the first one to be entered sets the limit, and the last
    one to be left lifts it.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.contexts = 0
        self.before: Settings = []

    def enter(self, libraries: list[Any]) -> None:
        with self.lock:
            if self.contexts == 0:
                self.before = _limit(libraries)
            self.contexts += 1

    def leave(self) -> None:
        with self.lock:
            self.contexts -= 1
            if self.contexts == 0:
                _restore(self.before)

    def after_fork(self) -> None:
        """Lift the limit in a child process after a fork, where other threads and their contexts do not exist."""
        global _shared
        if self.contexts:
            _restore(self.before)
        _shared = _SharedLimit()  # contexts entered before the fork leave the old one, which the next line disarms
        self.before = []
        self.lock.release()


_shared = _SharedLimit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _shared.lock.acquire(),
        after_in_parent=lambda: _shared.lock.release(),
        after_in_child=lambda: _shared.after_fork(),
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread within the context, and restore its settings afterwards.

    Contexts of several threads can overlap; BLAS stays limited until the last of them ends.
    """
    shared, (of_process, of_thread) = _shared, _libraries()
    shared.enter(of_process)
    try:
        before = _limit(of_thread)
        try:
            yield
        finally:
            _restore(before)
    finally:
        shared.leave()


def on_one_blas_thread(function: F) -> F:
    """Decorate `function` so that it runs within `one_blas_thread`."""

    @wraps(function)  # a decorator of our own: contextlib's would be the frame to which `_warn` attributes warnings
    def wrapped(*args: Any, **settings: Any) -> Any:
        with one_blas_thread():
            return function(*args, **settings)

    return cast("F", wrapped)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Return the BLAS libraries whose number of threads is set for the whole process, and the other BLAS libraries.

    The others, such as OpenBLAS built with OpenMP, have a separate number for each thread that calls them. The result
    is cached, because finding the libraries takes 5 ms, as long as a small PCA.
    """
    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    own = [getattr(library, "threading_layer", "") == "openmp" for library in found]
    return (
        [library for library, of_thread in zip(found, own, strict=True) if not of_thread],
        [library for library, of_thread in zip(found, own, strict=True) if of_thread],
    )


def _set(library: Any, threads: int) -> None:
    """Set the number of threads of a library, even if another Python thread has set it before.

    For OpenBLAS, threadpoolctl 3.8 records the thread that sets the number, and ignores numbers set by other threads.
    Therefore this record is cleared before and after the number is set.
    """
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


def _limit(libraries: list[Any]) -> Settings:
    """Set the libraries to one thread and return their previous settings."""
    before = [(library, library.num_threads) for library in libraries]
    for library in libraries:
        _set(library, 1)
    return before


def _restore(settings: Settings) -> None:
    for library, threads in settings:
        _set(library, threads)


def openmp_threads(n_threads: int) -> int:
    """Return how many threads faiss and PyTorch are allowed to use: `n_threads`, or 1 in a child process.

    A child process is one that was forked after this package was imported. There, GNU's OpenMP would wait for threads
    that exist only in the parent.
    """
    return n_threads if os.getpid() == _IMPORTED_IN else 1


def _limit_torch_after_fork() -> None:
    """Set PyTorch, if it is imported, to one thread in a forked child, for code that does not call `openmp_threads`."""
    set_num_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
    if set_num_threads is not None:  # imported, and completely
        set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit_torch_after_fork)


JITTER = 0.01  # standard deviation of the noise, relative to the spread: just enough to separate duplicates


def principal_components(X: Array, d: int, rng: np.random.RandomState | None) -> Array:
    """Return the first d principal components of X, scaled so that the first has standard deviation 1, plus jitter.

    Jitter is random noise with standard deviation `JITTER`, which separates duplicates. Components beyond the rank of X
    are only jitter. BLAS runs on one thread, so that the result is the same to the last bit for every n_jobs.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    d : int
    rng : RandomState or None
        Draws the jitter; None for a map without jitter.

    Returns
    -------
    Y : ndarray of shape (n, d)
    """
    with one_blas_thread():
        if X.shape[1] <= X.shape[0]:
            return finish(_scores_by_blocks(X, d), d, rng)
        X = X - X.mean(axis=0)
        X /= max(np.abs(X).max(), np.finfo(np.float64).tiny)
        return finish(principal_scores(X, d), d, rng)


def _scores_by_blocks(X: Array, d: int) -> Array:
    """Return the coordinates (n, d) of the rows of X (n, D), D <= n, along their principal axes, up to a factor.

    Blocks of rows are centred and scaled on `current_threads()` threads, and their sums are added in order.
    """
    n, D = X.shape
    blocks = [slice(start, min(start + FIXED_PCA_ROWS, n)) for start in range(0, n, FIXED_PCA_ROWS)]
    sums, extremes = np.empty((len(blocks), D)), np.empty((len(blocks), 2, D))

    def measure(b: int) -> None:
        rows = X[blocks[b]]
        sums[b], extremes[b] = rows.sum(axis=0), (rows.min(axis=0), rows.max(axis=0))

    run_on_threads(measure, range(len(blocks)), current_threads())
    mean = sums.sum(axis=0) / n
    scale = max(float(np.abs(extremes - mean).max()), np.finfo(np.float64).tiny)
    products, scores = np.empty((len(blocks), D, D)), np.empty((n, min(d, D)))

    def multiply(b: int) -> None:
        rows = (X[blocks[b]] - mean) / scale
        products[b] = rows.T @ rows

    run_on_threads(multiply, range(len(blocks)), current_threads())
    axes = top_eigenvectors(products.sum(axis=0), d)[1]

    def project(rows: slice) -> None:
        scores[rows] = ((X[rows] - mean) / scale) @ axes

    run_on_threads(project, blocks, current_threads())
    return scores


def principal_coordinates(D2: Array, d: int, rng: np.random.RandomState | None) -> Array:
    """Return the same as `principal_components`, but computed from squared distances D2 (n, n) by classical scaling.

    The components are scaled eigenvectors of −½ C D2 C, where C = I − 11ᵀ/n subtracts the mean.
    """
    scale = max(D2.max(), np.finfo(np.float64).tiny)
    G = D2 / (-2 * scale)
    double_center(G)
    with one_blas_thread():
        values, V = top_eigenvectors(G, d)
    return finish(V * np.sqrt(np.maximum(values, 0)), d, rng)


def double_center(G: Any) -> Any:
    """Subtract from G (n, m), in place, the column means and then the row means; return the column means (m,).

    For a square G this is C G C, where C = I − 11ᵀ/n. G is an array of any library.
    """
    xp = array_namespace(G)
    means = xp.mean(G, axis=0)
    G -= means
    G -= xp.mean(G, axis=1, keepdims=True)
    return means


def principal_scores(X: Any, d: int) -> Any:
    """Return the coordinates (n, at most d) of centred rows X (n, D) along their first d principal axes.

    X is an array of any library; the result has the device and the precision of X. The axes are eigenvectors of XᵀX; if
    XXᵀ is smaller, the coordinates are computed from its eigenvectors.
    """
    xp = array_namespace(X)
    if X.shape[1] <= X.shape[0]:
        _, V = top_eigenvectors(X.T @ X, d)
        return X @ xp.astype(V, X.dtype, copy=False)
    values, V = top_eigenvectors(X @ X.T, d)
    return xp.astype(V * xp.sqrt(at_least(values, 0.0)), X.dtype, copy=False)


def top_eigenvectors(G: Any, d: int) -> tuple[Any, Any]:
    """Return the d largest eigenvalues, descending, of a symmetric G (n, n), and unit eigenvectors.

    NumPy arrays are decomposed in their own precision, those of other libraries in float64.
    """
    n = G.shape[0]
    if is_numpy(G):
        values, V = linalg.eigh(G, subset_by_index=[max(n - d, 0), n - 1])
        if len(values) < min(d, n):  # LAPACK's routine for a subset can miss eigenvalues of a cluster
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


def finish(scores: Any, d: int, rng: np.random.RandomState | None) -> Any:
    """Return scores (n, at most d) as a map (n, d) whose first axis has standard deviation 1, plus jitter.

    If the first column of the scores is constant, the map is only jitter. `scores` is an array of any library. `rng`
    draws the jitter; if `scores` is a tensor, `rng` seeds a generator on its device, which draws the jitter. With `rng`
    None there is no jitter.
    """
    xp = array_namespace(scores)
    Y = xp.zeros((scores.shape[0], d), dtype=scores.dtype, device=device_of(scores))
    spread = xp.std(scores[:, 0])
    if spread > 0:
        Y[:, : scores.shape[1]] = scores / spread
    return Y if rng is None else Y + JITTER * normal_like(Y, rng)
