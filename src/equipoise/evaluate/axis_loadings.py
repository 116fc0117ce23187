"""Explain a map by the columns of the data that move a point along its axes (docs/math.md, section 19, eq. (L4))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array
from ..data import as_array
from ..inputs import Input
from ..linalg.pca import on_one_blas_thread
from .checks import check_pair, require_straight_lines, resolve_n_neighbors
from .local_isometry import check_tangent, jacobians, neighborhoods
from .order import Buffer, make_order
from .ranks import ROWS
from .sample import draw_points

MOST_ROWS = 2_000  # rows that are explained by default; a larger table is sampled; chosen
SHOWN = 5  # columns per axis in the printed summary; chosen


@dataclass(frozen=True, repr=False)
class AxisLoadings:
    """Which columns of the data move a point along the axes of the map; `print` shows the largest loadings.

    The loading of column j on map axis c at a point is s_j Σ_a J_ca t_aj: the Jacobian J of the map in the tangent
    space of the data with unit vectors t_a, times the standard deviation s_j of the column. It is the change of map
    coordinate c if the point moves in the tangent space by s_j in the direction of the column.

    Attributes
    ----------
    rows : ndarray of shape (m,)
        The points.
    names : tuple of str
        Names of the D columns.
    loadings : ndarray of shape (m, d, D)
        The loadings at each point; NaN if its neighbours span fewer dimensions than the tangent space.
    """

    rows: Array
    names: tuple[str, ...]
    loadings: Array

    @property
    def median(self) -> Array:
        """The median loadings over the points, (d, D); unlike the mean, it ignores points where the map is torn."""
        return np.asarray(np.nanmedian(self.loadings, axis=0))

    def top(self, axis: int, count: int = SHOWN) -> list[tuple[str, float]]:
        """Return the names and median loadings of the columns with the largest |median loading| on a map axis."""
        if not 0 <= axis < self.loadings.shape[1]:
            raise ValueError(f"axis must be from 0 to {self.loadings.shape[1] - 1}, got {axis!r}")
        median = self.median[axis]
        order = np.argsort(-np.abs(median), kind="stable")[:count]
        return [(self.names[j], float(median[j])) for j in order]

    def top_columns(self) -> Array:
        """Return the index of the column with the largest loading on each axis at each point, (m, d); −1 if unknown."""
        size = np.abs(self.loadings)
        known = np.isfinite(size).all(axis=2)
        return np.where(known, np.nan_to_num(size).argmax(axis=2), -1)

    def __str__(self) -> str:
        rows = plural(len(self.rows), "row")
        head = f"median over {rows}: change of a map coordinate per standard deviation of a column"
        lines = []
        for axis in range(self.loadings.shape[1]):
            shown = "   ".join(f"{name} {value:+.3g}" for name, value in self.top(axis))
            lines.append(f"axis {axis}   {shown}")
        return "\n".join([head, *lines])

    __repr__ = __str__


@on_one_blas_thread
def axis_loadings(
    X: Any, Y: Any, rows: Any = None, *, names: Sequence[str] | None = None, n_neighbors: Any = "auto"
) -> AxisLoadings:
    """Return which columns of X move a point along the axes of the map Y, at each of some points.

    Parameters
    ----------
    X : array-like of shape (n, D)
        The data, a dense table with Euclidean distances.
    Y : array-like of shape (n, d), or a fitted method
        The map, in flat space or on a sphere.
    rows : array of int or bool, optional
        The points to explain, such as one group of the map; by default all, or a random sample of 2,000.
    names : sequence of str, optional
        Names of the columns; by default those of a data frame X, or "column 0" and so on.
    n_neighbors : int or "auto", default="auto"
        Number of neighbours to which a Jacobian is fitted; "auto" is 15, or n − 1 for fewer points.

    Returns
    -------
    found : AxisLoadings

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import axis_loadings
    >>> X = np.random.default_rng(0).uniform(size=(300, 3)) * [2, 1, 0.01]
    >>> axis_loadings(X, X[:, [1, 0]], names=["length", "width", "noise"]).top(0, 1)[0][0]
    'width'
    """
    names = getattr(X, "columns", None) if names is None else names
    require_straight_lines(Y)
    data, embedding = check_pair(as_array(X), Y, "euclidean")
    if data.points is None:
        raise ValueError("axis_loadings needs a dense table X (n, D), because it explains a map by columns")
    D = data.points.shape[1]
    labels = tuple(map(str, names)) if names is not None else tuple(f"column {j}" for j in range(D))
    if len(labels) != D:
        raise ValueError(f"names has {len(labels)} entries, but X has {plural(D, 'column')}")
    k = resolve_n_neighbors(n_neighbors, data.n)
    q = check_tangent(None, data, embedding.X.shape[1], k)
    points = _check_rows(rows, data.n)
    near = _nearest(data, points, k)
    loadings = np.full((len(points), embedding.X.shape[1], D), np.nan)
    deviation = data.points.std(axis=0)
    for hood in neighborhoods(data, points, near, q):
        full = np.flatnonzero(np.isfinite(hood.variance).all(axis=1))
        tangent, variance = hood.tangent[full], hood.variance[full]
        V = embedding.X[hood.members[full]]
        J = jacobians(tangent, variance, V - V.mean(axis=1, keepdims=True))
        Z = data.points[hood.members[full]]
        Z = Z - Z.mean(axis=1, keepdims=True)
        directions = (tangent / variance[:, None, :]).transpose(0, 2, 1) @ Z  # t_a, (b, q, D)
        loadings[hood.rows.start + full] = J @ directions * deviation
    return AxisLoadings(points, labels, loadings)


def _nearest(data: Input, points: Array, k: int) -> Array:
    """Return the k nearest neighbours (m, k) of points in the data."""
    order, near = make_order(data), np.empty((len(points), k), np.int32)
    buffer = Buffer(ROWS, data.n)
    for start in range(0, len(points), ROWS):
        part = slice(start, start + ROWS)
        near[part] = order.nearest(points[part], k, buffer)
    return near


def _check_rows(rows: Any, n: int) -> Array:
    """Return row indices, from indices or a mask; all rows, or a sample of them, for None."""
    if rows is None:
        return draw_points(n, MOST_ROWS, 0)
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not rows.size or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"rows must be a mask of {n} rows, or indices from 0 to {n - 1}, at least one")
    return rows.astype(np.int64)
