"""Measure how a map distorts distances: dilation and absolute distortion of pairs, and a summary of both.

See docs/math.md, section 18.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._plural import plural
from .._types import Array
from ..arrays.blocks import FIXED_ENTRIES
from ..data.checks.maps import check_map, curved_geometry
from ..geometry import Geometry
from .base import MetricSpace
from .simple import as_space

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def dilation(space: Any, Y: Any, i: Any = None, j: Any = None) -> Array:
    """Return d_Y/d_X, the distance in the map divided by that in the data, for pairs of points.

    Parameters
    ----------
    space, Y : MetricSpace or array-like
        The data and the map, with the same points in the same order; a table (n, d) is treated as the Euclidean space
        of its rows. Y can be a fitted method, whose map has the distances of its geometry.
    i, j : array of int, slice or None, default=None
        Indices of the points; all points by default.

    Returns
    -------
    array of float64, shape (len(i), len(j))
        1 where the two distances are equal, also if both are 0; inf for points that coincide in the data but not in the
        map.
    """
    X, Y = _same_points(space, Y)
    return _ratio(X.distances(i, j), Y.distances(i, j))


def distortion(space: Any, Y: Any, i: Any = None, j: Any = None) -> Array:
    """Return |d_Y − d_X|, for distances d_X in the data and d_Y in the map, as an array (len(i), len(j)).

    The parameters are those of `dilation`.
    """
    X, Y = _same_points(space, Y)
    return np.abs(Y.distances(i, j) - X.distances(i, j))


def is_isometry(space: Any, Y: Any, tol: float = 1e-8) -> bool:
    """Return whether all distances in the map Y equal those in the data.

    Differences of up to `tol` times the largest distance in the data are ignored.
    """
    worst = largest = 0.0
    for _, _, d_x, d_y in _pairs(*_same_points(space, Y)):
        worst = max(worst, float(np.abs(d_y - d_x).max(initial=0.0)))
        largest = max(largest, float(d_x.max(initial=0.0)))
    return worst <= tol * largest


@dataclass(frozen=True)
class Spread:
    """Mean, extremes and quantiles of a number over all pairs; the quantiles have a relative error of up to 6e-5."""

    mean: float
    min: float
    max: float
    quantiles: dict[float, float]

    @property
    def median(self) -> float:
        return self.quantiles[0.5]


@dataclass(frozen=True)
class Distortion:
    """Distortion of the distances between n points by a map, over all n (n − 1)/2 pairs.

    d_X and d_Y are the distances of a pair of points in the data and in the map.

    Attributes
    ----------
    pairs : int
        Number of pairs.
    dilation : Spread
        Spread of d_Y/d_X.
    absolute : Spread
        Spread of |d_Y − d_X|.
    stress : float
        Σ_{i<j} (d_Y − d_X)².
    expansion, contraction : float
        The largest d_Y/d_X and the largest d_X/d_Y.
    expanded, contracted : tuple of int
        The pair of points with the largest d_Y/d_X, and the pair with the smallest.
    """

    pairs: int
    dilation: Spread
    absolute: Spread
    stress: float
    expansion: float
    contraction: float
    expanded: tuple[int, int]
    contracted: tuple[int, int]

    @property
    def distortion(self) -> float:
        """Expansion times contraction; 1 if the map multiplies all distances by the same factor."""
        return self.expansion * self.contraction

    def __str__(self) -> str:
        quantiles = self.dilation.quantiles
        return (
            f"dilation {self.dilation.min:.3g} to {self.dilation.max:.3g}, median {self.dilation.median:.3g}, for 90 %"
            f" of the pairs {quantiles[0.05]:.3g} to {quantiles[0.95]:.3g}; distortion {self.distortion:.3g};"
            f" absolute distortion {self.absolute.mean:.3g} on average, at most {self.absolute.max:.3g}"
        )


def summarize_distortion(space: Any, Y: Any) -> Distortion:
    """Return a summary of dilation and absolute distortion over all pairs; the parameters are those of `dilation`."""
    X, Y = _same_points(space, Y)
    if X.n < 2:
        raise ValueError(f"space has {plural(X.n, 'point')}; at least 2 are needed to compare distances")
    ratios, gaps = _Tally(), _Tally()
    stress = 0.0
    largest, smallest = (-np.inf, (0, 0)), (np.inf, (0, 0))
    for i, j, d_x, d_y in _pairs(X, Y):
        ratio, gap = _ratio(d_x, d_y), np.abs(d_y - d_x)
        ratios.add(ratio)
        gaps.add(gap)
        stress += float(np.square(gap).sum())
        high, low = int(ratio.argmax()), int(ratio.argmin())
        if ratio[high] > largest[0]:
            largest = float(ratio[high]), (int(i[high]), int(j[high]))
        if ratio[low] < smallest[0]:
            smallest = float(ratio[low]), (int(i[low]), int(j[low]))
    return Distortion(
        pairs=ratios.count,
        dilation=ratios.spread(),
        absolute=gaps.spread(),
        stress=stress,
        expansion=largest[0],
        contraction=1 / smallest[0] if smallest[0] else np.inf,
        expanded=largest[1],
        contracted=smallest[1],
    )


class _MapSpace(MetricSpace):
    """The points of a map Y (n, columns) with the distances of a geometry."""

    def __init__(self, Y: Array, geometry: Geometry):
        self.Y, self.geometry, self.n = Y, geometry, len(Y)

    def _block(self, i: Array, j: Array) -> Array:
        return np.asarray(self.geometry.distance(self.Y[i, None], self.Y[None, j]))


def _map_space(Y: Any) -> MetricSpace:
    """Return a space unchanged, and a map or a fitted method as the space of its points."""
    if not (hasattr(Y, "fit") or hasattr(Y, "embedding_")):
        return as_space(Y)
    geometry, Y = curved_geometry(Y), check_map(Y)
    return as_space(Y) if geometry is None else _MapSpace(Y, geometry)


def _same_points(X: Any, Y: Any) -> tuple[MetricSpace, MetricSpace]:
    X, Y = as_space(X), _map_space(Y)
    if X.n != Y.n:
        raise ValueError(f"space has {plural(X.n, 'point')}, but Y has {Y.n}; pass the same points in the same order")
    return X, Y


def _pairs(X: MetricSpace, Y: MetricSpace) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield the indices i, j and the distances in both spaces of all pairs i < j, one block of pairs after another."""
    start = 0
    while start < X.n - 1:
        stop = min(start + max(1, FIXED_ENTRIES // (X.n - start)), X.n - 1)
        i, j = np.nonzero(np.arange(start, X.n) > np.arange(start, stop)[:, None])
        d_x, d_y = (space.distances(slice(start, stop), slice(start, None))[i, j] for space in (X, Y))
        yield start + i, start + j, d_x, d_y
        start = stop


def _ratio(d_x: Array, d_y: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(d_x == d_y, 1.0, d_y / d_x)


class _Tally:
    """Accumulates the mean, the extremes and a histogram of numbers; `spread` computes the quantiles from the latter.

    A bin of the histogram counts the numbers whose float32 values agree in the exponent and the first 13 mantissa bits.
    """

    SHIFT = 10  # truncated bits of float32: the relative width of a bin is 2⁻¹³

    def __init__(self) -> None:
        self.count, self.total, self.min, self.max = 0, 0.0, np.inf, 0.0
        self.bins = np.zeros(2**31 >> self.SHIFT, np.int64)

    def add(self, values: Array) -> None:
        self.count += len(values)
        self.total += float(values.sum())
        self.min, self.max = min(self.min, float(values.min())), max(self.max, float(values.max()))
        self.bins += np.bincount(values.astype(np.float32).view(np.uint32) >> self.SHIFT, minlength=len(self.bins))

    def spread(self) -> Spread:
        below = np.cumsum(self.bins)
        ranks = np.ceil(np.array(QUANTILES) * self.count).astype(np.int64)
        numbers = np.searchsorted(below, np.maximum(ranks, 1)).astype(np.uint32)
        low, half = numbers << np.uint32(self.SHIFT), np.uint32(1 << (self.SHIFT - 1))
        middle = np.where(np.isinf(low.view(np.float32)), low, low | half).view(np.float32)
        values = np.clip(middle.astype(np.float64), self.min, self.max)
        return Spread(self.total / self.count, self.min, self.max, dict(zip(QUANTILES, values.tolist(), strict=True)))
