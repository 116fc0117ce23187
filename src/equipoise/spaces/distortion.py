"""What a map does to the metric: dilation and absolute distortion, pair by pair and in summary (docs/math.md, 18)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from .base import BLOCK, MetricSpace
from .simple import as_space

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def dilation(space: Any, Y: Any, i: Any = None, j: Any = None) -> Array:
    """Return d_Y/d_X (len(i), len(j)) for pairs of points i and j, all by default; 1 where nothing changes.

    X and Y are spaces of the same points in the same order; a table (n, d) stands for the Euclidean space of its rows.
    A pair that coincides in X and not in Y has dilation inf.
    """
    X, Y = _same_points(space, Y)
    return _ratio(X.distances(i, j), Y.distances(i, j))


def distortion(space: Any, Y: Any, i: Any = None, j: Any = None) -> Array:
    """Return |d_Y − d_X| (len(i), len(j)) for pairs of points i and j, all by default."""
    X, Y = _same_points(space, Y)
    return np.abs(Y.distances(i, j) - X.distances(i, j))


def is_isometry(space: Any, Y: Any, tol: float = 1e-8) -> bool:
    """Return whether d_Y = d_X for every pair, within `tol` of the largest distance of X."""
    worst = largest = 0.0
    for _, _, d_x, d_y in _pairs(*_same_points(space, Y)):
        worst = max(worst, float(np.abs(d_y - d_x).max(initial=0.0)))
        largest = max(largest, float(d_x.max(initial=0.0)))
    return worst <= tol * largest


@dataclass(frozen=True)
class Spread:
    """Mean and quantiles of a number over all pairs; quantiles to 6e-5 of themselves, everything else exact."""

    mean: float
    min: float
    max: float
    quantiles: dict[float, float]

    @property
    def median(self) -> float:
        return self.quantiles[0.5]


@dataclass(frozen=True)
class Distortion:
    """What a map does to the distances of n points, over all n (n − 1)/2 pairs."""

    pairs: int
    dilation: Spread  # d_Y/d_X
    absolute: Spread  # |d_Y − d_X|
    stress: float  # Σ_{i<j} (d_Y − d_X)²
    expansion: float  # the largest d_Y/d_X
    contraction: float  # the largest d_X/d_Y
    expanded: tuple[int, int]  # the pair with the largest dilation
    contracted: tuple[int, int]  # the pair with the smallest

    @property
    def distortion(self) -> float:
        """Expansion times contraction: 1 for an isometry, whatever the unit of length of the map."""
        return self.expansion * self.contraction

    def __str__(self) -> str:
        quantiles = self.dilation.quantiles
        return (
            f"dilation {self.dilation.min:.3g} to {self.dilation.max:.3g}, median {self.dilation.median:.3g},"
            f" 90 % of the pairs {quantiles[0.05]:.3g} to {quantiles[0.95]:.3g}; distortion {self.distortion:.3g};"
            f" absolute distortion {self.absolute.mean:.3g} on average, at most {self.absolute.max:.3g}"
        )


def summarize_distortion(space: Any, Y: Any) -> Distortion:
    """Return the dilation and the absolute distortion of all pairs in numbers, a block of rows at a time."""
    X, Y = _same_points(space, Y)
    ratios, gaps = _Tally(), _Tally()
    stress = 0.0
    most, least = (-np.inf, (0, 0)), (np.inf, (0, 0))
    for i, j, d_x, d_y in _pairs(X, Y):
        ratio, gap = _ratio(d_x, d_y), np.abs(d_y - d_x)
        ratios.add(ratio)
        gaps.add(gap)
        stress += float(np.square(gap).sum())
        high, low = int(ratio.argmax()), int(ratio.argmin())
        if ratio[high] > most[0]:
            most = float(ratio[high]), (int(i[high]), int(j[high]))
        if ratio[low] < least[0]:
            least = float(ratio[low]), (int(i[low]), int(j[low]))
    return Distortion(
        pairs=ratios.count,
        dilation=ratios.spread(),
        absolute=gaps.spread(),
        stress=stress,
        expansion=most[0],
        contraction=1 / least[0] if least[0] else np.inf,
        expanded=most[1],
        contracted=least[1],
    )


def _same_points(X: Any, Y: Any) -> tuple[MetricSpace, MetricSpace]:
    X, Y = as_space(X), as_space(Y)
    if X.n != Y.n:
        raise ValueError(f"the space has {X.n} points and the map {Y.n}; they must be the same points")
    return X, Y


def _pairs(X: MetricSpace, Y: MetricSpace) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield i, j and the distances of pairs i < j in both spaces, a bounded number of pairs at a time."""
    start = 0
    while start < X.n - 1:
        stop = min(start + max(1, BLOCK // (X.n - start)), X.n - 1)
        i, j = np.nonzero(np.arange(start, X.n) > np.arange(start, stop)[:, None])
        d_x, d_y = (space.distances(slice(start, stop), slice(start, None))[i, j] for space in (X, Y))
        yield start + i, start + j, d_x, d_y
        start = stop


def _ratio(d_x: Array, d_y: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(d_x == d_y, 1.0, d_y / d_x)


class _Tally:
    """Running mean and extremes, and a histogram fine enough for quantiles: one bin per float32 with 13 bits kept."""

    SHIFT = 10  # bits of float32 dropped: bins are 2⁻¹³ wide, relative to their value

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
