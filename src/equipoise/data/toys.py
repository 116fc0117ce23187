"""Toy shapes whose truth is known, to see what a map makes of sizes, distances, noise and topology.

After Wattenberg, Viégas & Johnson, "How to use t-SNE effectively", 2016, and Draganov & Dohn 2024, Fig. 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._types import Array
from .dataset import Dataset

PARTS = 6  # colours along a line or a surface; chosen


def two_sizes(n: int = 200, random_state: Any = 0) -> Dataset:
    """Return two round clouds of n/2 points each, one ten times as wide as the other."""
    rng, sizes = check_random_state(random_state), _halves(n)
    X = _clouds(rng, sizes, centres=np.array([[0.0, 0.0], [50.0, 0.0]]), widths=(1.0, 10.0))
    return Dataset("two_sizes", X, _numbers(sizes), ("narrow", "wide"))


def three_distances(n: int = 150, random_state: Any = 0) -> Dataset:
    """Return three round clouds of one size in a row, the third five times as far from the second as the first is."""
    rng, sizes = check_random_state(random_state), _shares(n, 3)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [60.0, 0.0]])
    return Dataset(
        "three_distances", _clouds(rng, sizes, centres, (1, 1, 1)), _numbers(sizes), ("a", "b, near", "c, far")
    )


def noise(n: int = 500, D: int = 100, random_state: Any = 0) -> Dataset:
    """Return n points of one Gaussian in D dimensions: nothing to find, and no classes."""
    return Dataset("noise", check_random_state(random_state).standard_normal((n, D)), None, ())


def ellipsoid(n: int = 500, D: int = 50, random_state: Any = 0) -> Dataset:
    """Return n points of one Gaussian whose width along axis j is 1/j: long, and of one piece."""
    X = check_random_state(random_state).standard_normal((n, D)) / np.arange(1, D + 1)
    labels, classes = _parts(X[:, 0])
    return Dataset("ellipsoid", X, labels, classes)


def two_lines(n: int = 200, random_state: Any = 0) -> Dataset:
    """Return two straight parallel lines, a tenth of their length apart, with a little noise."""
    rng, sizes = check_random_state(random_state), _halves(n)
    along = np.concatenate([np.linspace(0, 100, size) for size in sizes])
    X = np.column_stack([along, along + 10 * np.sqrt(2) * _numbers(sizes)]) / np.sqrt(2)
    return Dataset("two_lines", X + 0.3 * rng.standard_normal(X.shape), _numbers(sizes), ("left", "right"))


def grid(side: int = 20) -> Dataset:
    """Return the side² crossings of a square grid."""
    X = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), axis=-1).reshape(-1, 2).astype(float)
    labels, classes = _parts(X[:, 0])
    return Dataset("grid", X, labels, classes)


def simplex(n: int = 100) -> Dataset:
    """Return n points all equally far from one another, the corners of a simplex: no plane has room for more than 3."""
    return Dataset("simplex", np.eye(n), None, ())


def nested(n: int = 150, D: int = 50, random_state: Any = 0) -> Dataset:
    """Return two clouds about one centre in D dimensions, one fifty times as wide and so all around the other."""
    rng, sizes = check_random_state(random_state), _halves(n)
    X = _clouds(rng, sizes, np.zeros((2, D)), (1.0, 50.0))
    return Dataset("nested", X, _numbers(sizes), ("inside", "outside"))


def circle(n: int = 100) -> Dataset:
    """Return n points evenly on a circle: a line without ends."""
    t = np.arange(n) / n
    labels, classes = _parts(t)
    return Dataset("circle", _ring(t), labels, classes)


def linked_rings(n: int = 200) -> Dataset:
    """Return two rings in space, each through the other: they cannot be parted without a cut."""
    return _two_rings("linked_rings", n, apart=1.0)


def unlinked_rings(n: int = 200) -> Dataset:
    """Return two rings in space, side by side."""
    return _two_rings("unlinked_rings", n, apart=3.0)


def trefoil(n: int = 200) -> Dataset:
    """Return n points along the trefoil, the simplest knot: a circle whose strands cross in every flat picture."""
    t = np.arange(n) / n
    phi = 2 * np.pi * t
    X = np.column_stack([np.sin(phi) + 2 * np.sin(2 * phi), np.cos(phi) - 2 * np.cos(2 * phi), -np.sin(3 * phi)])
    labels, classes = _parts(t)
    return Dataset("trefoil", X, labels, classes)


def random_walk(n: int = 500, D: int = 100, random_state: Any = 0) -> Dataset:
    """Return n steps of a random walk in D dimensions: smooth curves in a map need no smooth cause."""
    X = check_random_state(random_state).standard_normal((n, D)).cumsum(axis=0)
    labels, classes = _parts(np.arange(n))
    return Dataset("random_walk", X, labels, classes)


def swiss_roll(n: int = 1000, added: int = 0, random_state: Any = 0) -> Dataset:
    """Return a rolled-up sheet in space; with one seed, `added` further points leave the first n as they are."""
    rng = check_random_state(random_state)
    u, v = np.concatenate([rng.uniform(size=(n, 2)), rng.uniform(size=(added, 2))]).T
    t = 1.5 * np.pi * (1 + 2 * u)  # one and a half turns, 21 long in the flat direction, as scikit-learn's
    labels, classes = _parts(u)
    return Dataset("swiss_roll", np.column_stack([t * np.cos(t), 21 * v, t * np.sin(t)]), labels, classes)


def plane(n: int = 1000, random_state: Any = 0) -> Dataset:
    """Return n points of a unit square in space."""
    return _plane("plane", n, random_state, np.zeros(n))


def plane_and_line(n: int = 1000, line: int = 100, random_state: Any = 0) -> Dataset:
    """Return the n points of `plane`, and a line through its middle, upright and four times as long as its side."""
    flat = plane(n, random_state)
    upright = np.column_stack([np.full((line, 2), 0.5), np.linspace(-2, 2, line)])
    labels = np.concatenate([flat.labels, np.full(line, PARTS)])
    return Dataset("plane_and_line", np.concatenate([flat.X, upright]), labels, (*flat.classes, "line"))


def plane_with_tails(n: int = 1000, scale: float = 0.1, random_state: Any = 0) -> Dataset:
    """Return the n points of `plane`, lifted by noise with a tail: P(height > z) = (1 + z/scale)^(−3/2)."""
    heights = scale * np.random.RandomState(check_random_state(random_state).randint(2**31 - 1)).pareto(1.5, n)
    return _plane("plane_with_tails", n, random_state, heights)


@dataclass(frozen=True)
class Toy:
    """How a toy shape is made, and one line on what is true of it at its usual size."""

    make: Callable[[], Dataset]
    description: str


TOYS = {
    "two_sizes": Toy(two_sizes, "200 points in 2 dimensions, 2 clouds, one ten times as wide as the other"),
    "three_distances": Toy(three_distances, "150 points in 2 dimensions, 3 clouds, one five times as far off"),
    "noise": Toy(noise, "500 points in 100 dimensions, one Gaussian: nothing to find"),
    "ellipsoid": Toy(ellipsoid, "500 points in 50 dimensions, one long Gaussian"),
    "two_lines": Toy(two_lines, "200 points in 2 dimensions, 2 parallel lines"),
    "grid": Toy(grid, "400 points in 2 dimensions, a square grid"),
    "simplex": Toy(simplex, "100 points in 100 dimensions, all equally far apart"),
    "nested": Toy(nested, "150 points in 50 dimensions, a cloud inside a cloud fifty times as wide"),
    "circle": Toy(circle, "100 points in 2 dimensions, a circle"),
    "linked_rings": Toy(linked_rings, "200 points in 3 dimensions, 2 rings, each through the other"),
    "unlinked_rings": Toy(unlinked_rings, "200 points in 3 dimensions, 2 rings side by side"),
    "trefoil": Toy(trefoil, "200 points in 3 dimensions, a knot"),
    "random_walk": Toy(random_walk, "500 points in 100 dimensions, the steps of a random walk"),
    "swiss_roll": Toy(swiss_roll, "1,000 points in 3 dimensions, a rolled-up sheet"),
    "plane": Toy(plane, "1,000 points in 3 dimensions, a flat square"),
    "plane_and_line": Toy(plane_and_line, "1,100 points in 3 dimensions, a flat square and an upright line"),
    "plane_with_tails": Toy(plane_with_tails, "1,000 points in 3 dimensions, a flat square with heavy-tailed noise"),
}


def _shares(n: int, count: int) -> list[int]:
    return [len(part) for part in np.array_split(np.arange(n), count)]


def _halves(n: int) -> list[int]:
    return _shares(n, 2)


def _numbers(sizes: list[int]) -> Array:
    return np.repeat(np.arange(len(sizes)), sizes)


def _clouds(rng: np.random.RandomState, sizes: list[int], centres: Array, widths: tuple[float, ...]) -> Array:
    """Return Gaussians of the given sizes, standard deviations along an axis, and centres (count, D)."""
    number = _numbers(sizes)
    return centres[number] + np.asarray(widths)[number, None] * rng.standard_normal((len(number), centres.shape[1]))


def _parts(t: Array) -> tuple[Array, tuple[str, ...]]:
    """Return PARTS equal stretches along t as classes, so that a map shows what became of the order."""
    number = np.minimum((PARTS * (t - t.min()) / np.ptp(t)).astype(int), PARTS - 1)
    return number, tuple(f"part {p + 1}" for p in range(PARTS))


def _ring(t: Array) -> Array:
    return np.column_stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)])


def _two_rings(name: str, n: int, apart: float) -> Dataset:
    """Return a ring lying flat about 0 and an upright one about (apart, 0, 0)."""
    sizes = _halves(n)
    flat, upright = (_ring(np.arange(size) / size) for size in sizes)
    X = np.concatenate(
        [
            np.column_stack([flat, np.zeros(sizes[0])]),
            np.column_stack([apart + upright[:, 0], np.zeros(sizes[1]), upright[:, 1]]),
        ]
    )
    return Dataset(name, X, _numbers(sizes), ("flat", "upright"))


def _plane(name: str, n: int, random_state: Any, heights: Array) -> Dataset:
    flat = check_random_state(random_state).uniform(size=(n, 2))
    labels, classes = _parts(flat[:, 0])
    return Dataset(name, np.column_stack([flat, heights]), labels, classes)
