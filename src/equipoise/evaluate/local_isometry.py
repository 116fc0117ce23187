"""Estimate the Jacobian of a map at each point: how much, and in which directions, it stretches the data locally.

See docs/math.md, section 19, eq. (L1) to (L3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._plural import plural
from .._types import Array
from ..arrays.blocks import FIXED_ENTRIES
from ..arrays.namespace import is_integer
from ..geometry import Geometry
from ..inputs import Input
from ..linalg.pca import on_one_blas_thread
from .checks import check_pair, read_data, require_straight_lines, resolve_metric, resolve_n_neighbors
from .curved_map import sphere_geometry
from .ranks import Neighborhoods

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANK = 1e-10  # smallest variance of a tangent direction, relative to the largest; smaller ones are rounding errors
STORED = 3_000  # points up to which all distances of a space are computed at once, 72 MB; chosen


@dataclass(frozen=True, repr=False)
class LocalIsometry:
    """How a map stretches the data around each of m points; `print` shows a summary, and `plot` draws Tissot ellipses.

    The Jacobian J_i (d, q) of the map at point i is fitted by least squares to its k nearest neighbours in the data, in
    the coordinates of their first q principal components, the tangent space. It takes a unit circle around the point in
    the data to an ellipse in the map, whose half axes are the singular values of J_i.

    Attributes
    ----------
    Y : ndarray of shape (n, d)
        The map.
    points : ndarray of shape (m,)
        The rows that were measured.
    k : int
        Number of neighbours.
    stretch : ndarray of shape (m, q)
        The singular values of J_i, descending: all 1 for a local isometry. NaN if the neighbours span fewer than q
        dimensions.
    axes : ndarray of shape (m, d, q)
        The directions in the map that belong to these singular values, as columns; on a sphere, tangent vectors.
    expansion, contraction : ndarray of shape (m,)
        The largest and the smallest d_Y/d_X from a point to its neighbours, for distances d_X > 0 in the data and d_Y
        in the map: local bi-Lipschitz constants.
    linearity : ndarray of shape (m,)
        Fraction of the variance of the neighbours' positions in the map that J_i explains; low where the map tears or
        folds the data.
    tangent_share : ndarray of shape (m,)
        Fraction of the variance of the neighbours in the data that lies in the tangent space.
    """

    Y: Array
    points: Array
    k: int
    stretch: Array
    axes: Array
    expansion: Array
    contraction: Array
    linearity: Array
    tangent_share: Array

    @property
    def area(self) -> Array:
        """The area factor of each point, the product of its singular values (the length or volume factor if q ≠ 2)."""
        return np.asarray(self.stretch.prod(axis=1))

    @property
    def scale(self) -> Array:
        """The local scale of each point, the geometric mean of its singular values."""
        return np.asarray(self.area ** (1 / self.stretch.shape[1]))

    @property
    def anisotropy(self) -> Array:
        """The largest singular value of each point divided by the smallest: 1 if the map is conformal there."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.stretch[:, 0] / self.stretch[:, -1])

    def extremes(self) -> tuple[int, int]:
        """Return the rows at which the local scale is smallest and largest."""
        return int(self.points[np.nanargmin(self.scale)]), int(self.points[np.nanargmax(self.scale)])

    def __str__(self) -> str:
        low, high = self.extremes()
        q = self.stretch.shape[1]
        return "\n".join(
            [
                f"{plural(len(self.points), 'point')} with {self.k} neighbours each, whose first"
                f" {plural(q, 'principal component')} hold {np.nanmean(self.tangent_share):.0%} of their variance",
                f"local scale     {_describe(self.scale)}; smallest near row {low}, largest near row {high}",
                f"anisotropy      {_describe(self.anisotropy)}",
                f"d_Y/d_X         at most {_describe(self.expansion)}; at least {_describe(self.contraction)}",
                f"linear part     {np.nanmedian(self.linearity):.0%} of the variance at the median point",
            ]
        )

    __repr__ = __str__

    def plot(self, color: str = "area", title: str | None = None) -> Figure:
        """Return a matplotlib figure of the map with Tissot ellipses, the images of equal circles in the data.

        Parameters
        ----------
        color : {"area", "anisotropy"}, default="area"
            What the colours of points and ellipses show: the area factor relative to its median, or the anisotropy.
        title : str, optional
            Title of the figure.
        """
        from .figures.tissot_figure import tissot_figure

        if not (isinstance(color, str) and color in ("area", "anisotropy")):
            raise ValueError(f"unknown color {color!r}; choose from 'area', 'anisotropy'")
        return tissot_figure(self, color, title)


def _describe(values: Array) -> str:
    """Return the median and the 5 % and 95 % quantiles of the finite values, in words."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "unknown"
    low, median, high = np.quantile(finite, (0.05, 0.5, 0.95))
    return f"{median:.3g} ({low:.3g} to {high:.3g} for 90% of the points)"


def local_isometry(
    X: Any,
    Y: Any,
    n_neighbors: Any = "auto",
    *,
    tangent_dimension: int | None = None,
    metric: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> LocalIsometry:
    """Measure how a map stretches the data around each point: Jacobian, Tissot ellipse, bi-Lipschitz constants.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data. If it is not a dense table with Euclidean distances, the tangent coordinates of a point and its
        neighbours come from classical scaling of the distances between them.
    Y : array-like of shape (n, d), or a fitted method
        The map, in flat space or on a sphere. On the sphere of a fitted method, the neighbours of a point are projected
        to its tangent plane, at their distances along chords; bare coordinates are measured in flat space.
    n_neighbors : int or "auto", default="auto"
        Number of neighbours to which a Jacobian is fitted; "auto" is 15, or n − 1 for fewer points. Fewer neighbours
        give a more local estimate, more neighbours a less noisy one.
    tangent_dimension : int, optional
        Dimension q of the tangent spaces; by default the dimension of the map, or the number of columns if that is
        smaller.
    metric : str or callable, optional
        Metric of the data, "precomputed" if X is a distance matrix; by default that of a fitted method Y, else
        "euclidean".
    n_jobs : int, optional
        Number of threads of the neighbour search.
    random_state : int or RandomState, default=0
        Seed of the sample of points that is measured above 20,000 points.

    Returns
    -------
    found : LocalIsometry

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import local_isometry
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> found = local_isometry(X, X * [3, 1])  # stretched along one axis
    >>> float(np.median(found.area).round(6)), float(np.median(found.anisotropy).round(6))
    (3.0, 3.0)
    """
    require_straight_lines(Y)
    metric = resolve_metric(metric, Y, X)
    X = read_data(X, metric)
    data, embedding = check_pair(X, Y, metric)
    k = resolve_n_neighbors(n_neighbors, data.n)
    sphere = sphere_geometry(Y)
    q = check_tangent(tangent_dimension, data, map_dimension(embedding.X, sphere), k)
    source = X if data.points is None else data.points
    hoods = Neighborhoods(source, embedding.X, k, metric=metric, n_jobs=n_jobs, random_state=random_state)
    return measure_local(data, embedding.X, hoods.points, hoods.near_x, q, sphere)


def check_tangent(q: Any, data: Input, d: int, k: int) -> int:
    """Return the dimension of the tangent spaces; by default that of the map or of the table, whichever is smaller."""
    most = d if data.points is None else min(d, data.points.shape[1])
    if most < 1:
        raise ValueError("the map lies on a sphere of dimension 0, two points, where nothing is stretched")
    if q is None:
        q = most
    elif not (is_integer(q) and 1 <= q <= most):
        raise ValueError(f"tangent_dimension must be an integer from 1 to {most}, the dimension of the map, got {q!r}")
    if k <= q:
        raise ValueError(
            f"n_neighbors={k} is too small for tangent spaces of {plural(int(q), 'dimension')}; use at least {q + 1}"
        )
    return int(q)


class Neighborhood(NamedTuple):
    """Points of the data and their k neighbours in tangent coordinates."""

    rows: slice  # of the measured points
    members: Array  # (b, k + 1) rows of the data: the point, then its neighbours
    tangent: Array  # (b, k + 1, q) centred coordinates along the principal components
    variance: Array  # (b, q) sums of squares of the coordinates, descending; NaN if the neighbours span too little
    total: Array  # (b,) sum of squares over all principal components
    d_x: Array  # (b, k) distances from the point to its neighbours


def neighborhoods(data: Input, points: Array, near: Array, q: int) -> Iterator[Neighborhood]:
    """Yield neighbourhoods of `points` (m,), some at a time; `near` (m, k) contains the neighbours of each point."""
    m, k = near.shape
    width = 1 if data.points is None else data.points.shape[1]
    height = max(1, FIXED_ENTRIES // ((k + 1) * (k + 1 + width)))
    D = data.block(np.arange(data.n)) if data.points is None and data.n <= STORED else None
    for start in range(0, m, height):
        rows = slice(start, min(start + height, m))
        members = np.concatenate([points[rows, None], near[rows]], axis=1)
        if data.points is not None:
            Z = data.points[members]
            d_x = np.sqrt(np.square(Z[:, 1:] - Z[:, :1]).sum(axis=2))
            Z = Z - Z.mean(axis=1, keepdims=True)
            gram = Z @ Z.transpose(0, 2, 1)
        else:
            blocks = [data.block(group, group) if D is None else D[np.ix_(group, group)] for group in members]
            d_x = np.stack(blocks)[:, 0, 1:]
            gram = -0.5 * np.square(np.stack(blocks))
            gram -= gram.mean(axis=1, keepdims=True)
            gram -= gram.mean(axis=2, keepdims=True)
        values, vectors = np.linalg.eigh(gram)
        values, vectors = values[:, ::-1], vectors[:, :, ::-1]
        variance = np.where(values > RANK * values[:, :1], values, np.nan)[:, :q]
        tangent = vectors[:, :, :q] * np.sqrt(variance)[:, None, :]
        yield Neighborhood(rows, members, tangent, variance, np.maximum(values, 0).sum(axis=1), d_x)


def map_dimension(Y: Array, sphere: Geometry | None) -> int:
    """Return the dimension of a map Y (n, columns), on a sphere one less than its columns."""
    return int(Y.shape[1]) - (sphere is not None)


def tangent_frames(U: Array) -> Array:
    """Return orthonormal bases (b, c, c − 1), as columns, of the tangent planes of a sphere at U (b, c)."""
    pole = np.eye(U.shape[1])[-1]
    u = U / np.linalg.norm(U, axis=1, keepdims=True)
    w = u + np.where(u[:, -1:] < 0, -1.0, 1.0) * pole  # the Householder reflection along w takes the pole to ±u
    H = np.eye(U.shape[1]) - 2 * w[:, :, None] * w[:, None, :] / np.square(w).sum(axis=1)[:, None, None]
    return np.asarray(H[:, :, :-1])


def azimuthal(V: Array) -> tuple[Array, Array]:
    """Return points of a sphere V (b, k + 1, c) in the tangent plane at the first, (b, k + 1, c − 1), and its basis.

    This is Lambert's azimuthal equal-area projection: directions are kept, and distances are those of chords.
    """
    frames = tangent_frames(V[:, 0])
    chords = V - V[:, :1]
    flat = chords @ frames
    length, chord = (np.linalg.norm(X, axis=2, keepdims=True) for X in (flat, chords))
    return flat * (chord / np.where(length > 0, length, 1.0)), frames


@on_one_blas_thread
def measure_local(
    data: Input, Y: Array, points: Array, near: Array, q: int, sphere: Geometry | None = None
) -> LocalIsometry:
    """Return the local measures at `points` (m,), whose nearest neighbours in the data are `near` (m, k).

    `sphere` is the geometry of a map on a sphere; None in flat space.
    """
    m, d = len(points), Y.shape[1]
    stretch, axes = np.full((m, q), np.nan), np.full((m, d, q), np.nan)
    expansion, contraction, linearity, share = np.full((4, m), np.nan)
    for hood in neighborhoods(data, points, near, q):
        V = Y[hood.members]
        d_y = np.sqrt(np.square(V[:, 1:] - V[:, :1]).sum(axis=2))
        ratio = np.divide(d_y, hood.d_x, out=np.full_like(d_y, np.nan), where=hood.d_x > 0)
        some = np.flatnonzero(np.isfinite(ratio).any(axis=1))
        expansion[hood.rows.start + some] = np.nanmax(ratio[some], axis=1)
        contraction[hood.rows.start + some] = np.nanmin(ratio[some], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share[hood.rows] = hood.variance.sum(axis=1) / hood.total
        full = np.flatnonzero(np.isfinite(hood.variance).all(axis=1))
        V, frames = (V[full], None) if sphere is None else azimuthal(V[full])
        V = V - V.mean(axis=1, keepdims=True)
        J = jacobians(hood.tangent[full], hood.variance[full], V)
        U, sigma, _ = np.linalg.svd(J, full_matrices=False)
        at = hood.rows.start + full
        stretch[at], axes[at] = sigma, U if frames is None else frames @ U
        left = V - hood.tangent[full] @ J.transpose(0, 2, 1)
        moved = np.square(V).sum(axis=(1, 2))
        explained = 1 - np.divide(np.square(left).sum(axis=(1, 2)), moved, out=np.zeros_like(moved), where=moved > 0)
        linearity[at] = explained
    return LocalIsometry(Y, points, near.shape[1], stretch, axes, expansion, contraction, linearity, share)


def jacobians(tangent: Array, variance: Array, V: Array) -> Array:
    """Return the matrices J (b, d, q) that minimise Σ_j ‖v_j − J a_j‖²    docs/math.md, eq. (L1)

    The tangent coordinates a (b, k + 1, q) are principal components, whose products sum to the diagonal matrix
    `variance` (b, q); V (b, k + 1, d) are the positions in the map. Both are centred.
    """
    return np.asarray(V.transpose(0, 2, 1) @ (tangent / variance[:, None, :]))
