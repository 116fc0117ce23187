"""Toy shapes with known structure, which show how a map treats sizes, distances, noise and topology.

The shapes follow Wattenberg, Viégas & Johnson, "How to use t-SNE effectively", 2016, and Draganov & Dohn 2024, Fig. 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import check_random_state
from .dataset import Dataset

PARTS = 6  # classes along a line or a surface; chosen


def two_sizes(n: int = 200, random_state: Any = 0) -> Dataset:
    """Return two Gaussian clouds of n/2 points each, one ten times as wide as the other."""
    rng, sizes = check_random_state(random_state), _halves(n)
    X = _clouds(rng, sizes, centres=np.array([[0.0, 0.0], [50.0, 0.0]]), widths=(1.0, 10.0))
    return Dataset("two_sizes", X, _labels(sizes), ("narrow", "wide"))


def three_distances(n: int = 150, random_state: Any = 0) -> Dataset:
    """Return three equal Gaussian clouds in a row; the second is five times as far from the third as from the first."""
    rng, sizes = check_random_state(random_state), _shares(n, 3)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [60.0, 0.0]])
    return Dataset(
        "three_distances", _clouds(rng, sizes, centres, (1, 1, 1)), _labels(sizes), ("a", "b, near", "c, far")
    )


def noise(n: int = 500, D: int = 100, random_state: Any = 0) -> Dataset:
    """Return n points of one Gaussian in D dimensions, without structure or classes."""
    return Dataset("noise", check_random_state(random_state).standard_normal((n, D)), None, ())


def ellipsoid(n: int = 500, D: int = 50, random_state: Any = 0) -> Dataset:
    """Return n points of one Gaussian whose standard deviation along axis j is 1/j."""
    X = check_random_state(random_state).standard_normal((n, D)) / np.arange(1, D + 1)
    labels, classes = _parts(X[:, 0])
    return Dataset("ellipsoid", X, labels, classes)


def two_lines(n: int = 200, random_state: Any = 0) -> Dataset:
    """Return two parallel diagonal lines, one shifted upwards by a tenth of their length, with a little noise."""
    rng, sizes = check_random_state(random_state), _halves(n)
    along = np.concatenate([np.linspace(0, 100, size) for size in sizes])
    X = np.column_stack([along, along + 10 * np.sqrt(2) * _labels(sizes)]) / np.sqrt(2)
    return Dataset("two_lines", X + 0.3 * rng.standard_normal(X.shape), _labels(sizes), ("left", "right"))


def grid(side: int = 20) -> Dataset:
    """Return the side² points of a square grid."""
    X = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
    labels, classes = _parts(X[:, 0])
    return Dataset("grid", X, labels, classes)


def simplex(n: int = 100) -> Dataset:
    """Return n points at equal distances, the corners of a simplex; at most 3 such points fit in a plane."""
    return Dataset("simplex", np.eye(n), None, ())


def nested(n: int = 150, D: int = 50, random_state: Any = 0) -> Dataset:
    """Return two concentric Gaussian clouds in D dimensions, one fifty times as wide as the other."""
    rng, sizes = check_random_state(random_state), _halves(n)
    X = _clouds(rng, sizes, np.zeros((2, D)), (1.0, 50.0))
    return Dataset("nested", X, _labels(sizes), ("inside", "outside"))


def circle(n: int = 100) -> Dataset:
    """Return n evenly spaced points on a circle."""
    t = np.arange(n) / n
    labels, classes = _parts(t)
    return Dataset("circle", _ring(t), labels, classes)


def linked_rings(n: int = 200) -> Dataset:
    """Return two linked rings in 3-D, which cannot be separated without cutting one."""
    return _two_rings("linked_rings", n, separation=1.0)


def unlinked_rings(n: int = 200) -> Dataset:
    """Return two rings in 3-D, side by side."""
    return _two_rings("unlinked_rings", n, separation=3.0)


def trefoil(n: int = 200) -> Dataset:
    """Return n points along the trefoil, the simplest knot, which crosses itself in every plane projection."""
    t = np.arange(n) / n
    phi = 2 * np.pi * t
    X = np.column_stack([np.sin(phi) + 2 * np.sin(2 * phi), np.cos(phi) - 2 * np.cos(2 * phi), -np.sin(3 * phi)])
    labels, classes = _parts(t)
    return Dataset("trefoil", X, labels, classes)


def random_walk(n: int = 500, D: int = 100, random_state: Any = 0) -> Dataset:
    """Return n successive positions of a random walk in D dimensions, which many maps show as a smooth curve."""
    X = check_random_state(random_state).standard_normal((n, D)).cumsum(axis=0)
    labels, classes = _parts(np.arange(n))
    return Dataset("random_walk", X, labels, classes)


def swiss_roll(n: int = 1000, added: int = 0, random_state: Any = 0) -> Dataset:
    """Return n points of a rolled-up sheet in 3-D, then `added` more; the first n points do not depend on `added`."""
    rng = check_random_state(random_state)
    u, v = np.concatenate([rng.uniform(size=(n, 2)), rng.uniform(size=(added, 2))]).T
    t = 1.5 * np.pi * (1 + 2 * u)  # one and a half turns, height 21, as in scikit-learn
    labels, classes = _parts(u, u[:n])
    return Dataset("swiss_roll", np.column_stack([t * np.cos(t), 21 * v, t * np.sin(t)]), labels, classes)


def plane(n: int = 1000, random_state: Any = 0) -> Dataset:
    """Return n uniform points of a unit square in 3-D."""
    return _plane("plane", n, random_state, np.zeros(n))


def plane_and_line(n: int = 1000, line: int = 100, random_state: Any = 0) -> Dataset:
    """Return the n points of `plane`, and `line` points of a perpendicular line of length 4 through the centre."""
    flat = plane(n, random_state)
    upright = np.column_stack([np.full((line, 2), 0.5), np.linspace(-2, 2, line)])
    labels = np.concatenate([flat.labels, np.full(line, PARTS)])
    return Dataset("plane_and_line", np.concatenate([flat.X, upright]), labels, (*flat.classes, "line"))


def plane_with_tails(n: int = 1000, scale: float = 0.1, random_state: Any = 0) -> Dataset:
    """Return the n points of `plane` with heavy-tailed heights: P(height > z) = (1 + z/scale)^(−3/2)."""
    heights = scale * np.random.RandomState(check_random_state(random_state).randint(2**31 - 1)).pareto(1.5, n)
    return _plane("plane_with_tails", n, random_state, heights)


@dataclass(frozen=True)
class Toy:
    """A toy shape: the function that generates it, and a description of its points at the default size."""

    make: Callable[[], Dataset]
    description: str


TOYS = {
    "two_sizes": Toy(two_sizes, "200 points in 2 dimensions, 2 clouds, one ten times as wide as the other"),
    "three_distances": Toy(three_distances, "150 points in 2 dimensions, 3 clouds in a row with gaps 1 : 5"),
    "noise": Toy(noise, "500 points in 100 dimensions, one Gaussian without structure"),
    "ellipsoid": Toy(ellipsoid, "500 points in 50 dimensions, one elongated Gaussian"),
    "two_lines": Toy(two_lines, "200 points in 2 dimensions, 2 parallel lines"),
    "grid": Toy(grid, "400 points in 2 dimensions, a square grid"),
    "simplex": Toy(simplex, "100 points in 100 dimensions, at equal distances"),
    "nested": Toy(nested, "150 points in 50 dimensions, a cloud inside a cloud fifty times as wide"),
    "circle": Toy(circle, "100 points in 2 dimensions, a circle"),
    "linked_rings": Toy(linked_rings, "200 points in 3 dimensions, 2 linked rings"),
    "unlinked_rings": Toy(unlinked_rings, "200 points in 3 dimensions, 2 rings side by side"),
    "trefoil": Toy(trefoil, "200 points in 3 dimensions, a knot"),
    "random_walk": Toy(random_walk, "500 points in 100 dimensions, the positions of a random walk"),
    "swiss_roll": Toy(swiss_roll, "1,000 points in 3 dimensions, a rolled-up sheet"),
    "plane": Toy(plane, "1,000 points in 3 dimensions, a flat square"),
    "plane_and_line": Toy(plane_and_line, "1,100 points in 3 dimensions, a flat square and a perpendicular line"),
    "plane_with_tails": Toy(plane_with_tails, "1,000 points in 3 dimensions, a flat square with heavy-tailed noise"),
}


def _shares(n: int, count: int) -> list[int]:
    """Return the sizes of `count` parts of n points, as equal as possible."""
    return [len(part) for part in np.array_split(np.arange(n), count)]


def _halves(n: int) -> list[int]:
    return _shares(n, 2)


def _labels(sizes: list[int]) -> Array:
    """Return the class indices of consecutive classes of the given sizes."""
    return np.repeat(np.arange(len(sizes)), sizes)


def _clouds(rng: np.random.RandomState, sizes: list[int], centres: Array, widths: tuple[float, ...]) -> Array:
    """Return Gaussian clouds with the given sizes, centres (count, D) and standard deviations."""
    label = _labels(sizes)
    return centres[label] + np.asarray(widths)[label, None] * rng.standard_normal((len(label), centres.shape[1]))


def _parts(t: Array, span: Array | None = None) -> tuple[Array, tuple[str, ...]]:
    """Return the class indices of points with coordinates t (n,), and the names of the PARTS classes.

    The classes divide the range of `span`, which is t by default, into intervals of equal length. Values of t outside
    this range belong to the first or last class.
    """
    span = t if span is None else span
    label = np.clip((PARTS * (t - span.min()) / np.ptp(span)).astype(int), 0, PARTS - 1)
    return label, tuple(f"part {p + 1}" for p in range(PARTS))


def _ring(t: Array) -> Array:
    """Return points (n, 2) of the unit circle at fractions t of a turn."""
    return np.column_stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)])


def _two_rings(name: str, n: int, separation: float) -> Dataset:
    """Return a horizontal ring around 0 and a vertical ring around (separation, 0, 0)."""
    sizes = _halves(n)
    flat, upright = (_ring(np.arange(size) / size) for size in sizes)
    X = np.concatenate(
        [
            np.column_stack([flat, np.zeros(sizes[0])]),
            np.column_stack([separation + upright[:, 0], np.zeros(sizes[1]), upright[:, 1]]),
        ]
    )
    return Dataset(name, X, _labels(sizes), ("flat", "upright"))


def _plane(name: str, n: int, random_state: Any, heights: Array) -> Dataset:
    """Return n uniform points of the unit square at the given heights (n,)."""
    flat = check_random_state(random_state).uniform(size=(n, 2))
    labels, classes = _parts(flat[:, 0])
    return Dataset(name, np.column_stack([flat, heights]), labels, classes)
