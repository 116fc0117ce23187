"""Are two finite metric spaces isometric, and by which bijection of their points?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import is_positive, require
from .simple import distance_matrix_of

BYTES_PER_PAIR = 130.0  # traced; a search among symmetric points adds one byte for each assignment


@dataclass(frozen=True)
class Isometry:
    """The answer of `is_isometric`; bool(result) is True if the spaces are isometric.

    Attributes
    ----------
    bijection : ndarray of int, shape (n,), or None
        Point i of the first space corresponds to point bijection[i] of the second; None if the spaces are not
        isometric.
    reason : str
        How it was decided.
    """

    bijection: Array | None
    reason: str

    def __bool__(self) -> bool:
        return self.bijection is not None

    def __str__(self) -> str:
        return f"{'isometric' if self else 'not isometric'}: {self.reason}"


def is_isometric(A: Any, B: Any, tol: float = 1e-8, *, time_limit: float = 60.0) -> Isometry:
    """Decide whether some bijection of the points of two spaces preserves all distances.

    Invariants come first: the number of points, the sorted distances, and the distances from each point, refined until
    nothing changes: two points can correspond only if they have the same distances to the same kinds of points
    (Weisfeiler & Leman 1968). Then a search assigns the points one by one, the one with the fewest candidates first,
    and backtracks where a point has none left. The answer is exact; the time can grow exponentially for highly
    symmetric spaces that are nearly isometric.

    Parameters
    ----------
    A, B : MetricSpace or array-like of shape (n, n) and (m, m)
        Two spaces, or two matrices of distances.
    tol : float, default=1e-8
        Two distances are equal if they differ by at most this fraction of the largest distance of both spaces.
    time_limit : float, default=60.0
        Seconds after which the search gives up.

    Returns
    -------
    Isometry

    Raises
    ------
    TimeoutError
        If the search was not finished in time: the question is undecided.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import spaces
    >>> X = np.random.default_rng(0).normal(size=(6, 2))
    >>> found = spaces.is_isometric(spaces.Euclidean(X), spaces.Euclidean(-X[[3, 0, 5, 1, 4, 2]] + 1))
    >>> bool(found), found.bijection.tolist()
    (True, [1, 3, 5, 0, 4, 2])
    """
    require(tol, "tol", ">= 0", lambda x: x >= 0)
    if not is_positive(time_limit):
        raise ValueError(f"time_limit must be a positive number of seconds, got {time_limit!r}")
    A, B = distance_matrix_of(A, "A"), distance_matrix_of(B, "B")
    n = len(A)
    if len(B) != n:
        return Isometry(None, f"{plural(n, 'point')} and {plural(len(B), 'point')}")
    require_memory(
        BYTES_PER_PAIR * n * n, f"comparing {n:,} points", available_memory(), "use spaces.Restriction to fewer points"
    )
    slack = tol * max(float(A.max()), float(B.max()))
    gaps = np.abs(np.sort(A, axis=None) - np.sort(B, axis=None))
    if gaps.max() > slack:
        return Isometry(None, f"sorted distances differ by up to {gaps.max():.6g}")
    kinds_a, kinds_b = _refine(*_label(A, B, slack))
    if not np.array_equal(np.sort(kinds_a), np.sort(kinds_b)):
        return Isometry(None, "no points of the second space have the distances of some points of the first")
    search = _Search(A, B, slack, monotonic() + time_limit)
    found = search.run(kinds_a[:, None] == kinds_b)
    if found is None:
        return Isometry(None, f"all candidates fail, after {plural(search.steps, 'assignment')}")
    return Isometry(found, f"a bijection preserves all distances up to {search.error(found):.3g}")


def _label(A: Array, B: Array, slack: float) -> tuple[Array, Array]:
    """Return labels for the distances of both spaces such that distances that differ by at most `slack` share one.

    Sorted distances get the next label where the gap to the one before exceeds `slack`.
    """
    values, positions = np.unique(np.concatenate([A.ravel(), B.ravel()]), return_inverse=True)
    labels = np.concatenate([[0], np.cumsum(np.diff(values) > slack)])[positions.ravel()]
    return labels[: A.size].reshape(A.shape), labels[A.size :].reshape(B.shape)


def _refine(labels_a: Array, labels_b: Array) -> tuple[Array, Array]:
    """Return the kinds (n,) of the points of both spaces; an isometry maps each point to one of the same kind.

    The kind of a point is given by the labels of its distances together with the kinds of the points they lead to.
    """
    n = len(labels_a)
    labels = np.vstack([labels_a, labels_b])
    kinds, count = np.zeros(2 * n, np.int64), 1
    while True:
        others = np.repeat([kinds[:n], kinds[n:]], n, axis=0)  # of the points in the columns
        rows = np.sort(labels * count + others, axis=1)
        rows = np.column_stack([kinds, rows])
        kinds = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        before, count = count, int(kinds.max()) + 1
        if count == before:
            return kinds[:n], kinds[n:]


class _Search:
    """Backtracking over bijections, with the candidates of every point that remain after each assignment."""

    def __init__(self, A: Array, B: Array, slack: float, deadline: float):
        self.A, self.B, self.slack, self.deadline = A, B, slack, deadline
        self.steps = 0

    def error(self, bijection: Array) -> float:
        """Return the largest difference between corresponding distances."""
        return float(np.abs(self.A - self.B[np.ix_(bijection, bijection)]).max())

    def run(self, candidates: Array) -> Array | None:
        """Return a bijection among the candidates (n, n) that preserves distances, or None if there is none."""
        n = len(candidates)
        if (candidates.sum(axis=1) == 1).all():  # nothing to choose; a search stores n² candidates for every point
            only = candidates.argmax(axis=1)
            return only if len(np.unique(only)) == n and self.error(only) <= self.slack else None
        bijection = np.full(n, -1)
        level = self._open(candidates, bijection)
        if level is None:
            return None
        stack = [level]
        while stack:
            candidates, i, options = stack[-1]
            bijection[i] = -1
            j = next(options, None)
            if j is None:
                stack.pop()
                continue
            self._count_step(n)
            bijection[i] = j
            if (bijection >= 0).all():
                return bijection
            level = self._open(self._restrict(candidates, i, j), bijection)
            if level is not None:
                stack.append(level)
        return None

    def _open(self, candidates: Array, bijection: Array) -> tuple[Array, int, Iterator[int]] | None:
        """Return the candidates with the open point that has the fewest, and an iterator over these.

        None if some open point has no candidate, or if a point of the second space is a candidate of none.
        """
        open_points = np.flatnonzero(bijection < 0)
        counts = candidates[open_points].sum(axis=1)
        if counts.min() == 0 or not candidates.any(axis=0).all():
            return None
        i = int(open_points[counts.argmin()])
        return candidates, i, iter(np.flatnonzero(candidates[i]).tolist())

    def _restrict(self, candidates: Array, i: int, j: int) -> Array:
        """Return the candidates that remain when i is assigned to j: k can go to l if d(k, i) = d(l, j)."""
        remaining = candidates & (np.abs(self.A[:, i][:, None] - self.B[:, j]) <= self.slack)
        remaining[i], remaining[:, j] = False, False
        remaining[i, j] = True
        return np.asarray(remaining)

    def _count_step(self, n: int) -> None:
        self.steps += 1
        if monotonic() > self.deadline:
            raise TimeoutError(
                f"undecided after {self.steps:,} assignments: the spaces of {n} points are too symmetric to find an"
                " isometry or to exclude one in time; raise time_limit, or compare them by gromov_wasserstein"
            )
