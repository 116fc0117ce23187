"""Checks of user-defined geometries on a few random pairs, before work starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array

PAIRS = 8  # random pairs that are compared; chosen
STEP = 1e-5  # of finite differences, relative to the coordinates: the cube root of float64's precision
SLACK = 1e-3  # allowed relative error of a direction; finite differences have about 1e-8
ASYMMETRY = 1e-6  # allowed relative difference of d(i, j) and d(j, i); chosen
# Largest distance of coincident points, relative to the others. Distances that are kept from 0, to be differentiable,
# such as the angle arccos(1 − 1e-7) = 4e-4, are accepted; chosen.
COINCIDENT = 0.01
JUMP = 0.1  # a step of finite differences that leads farther than this, relative to the coordinates, is not compared


def check_pairs(geometry: Any, Y: Array) -> None:
    """Raise ValueError unless the distances and directions of a `UserGeometry` are consistent.

    Distances must be finite, not negative, symmetric and 0 for coincident positions, and directions half the derivative
    of the squared distance.

    Parameters
    ----------
    geometry : UserGeometry
    Y : ndarray of shape (2 PAIRS, columns)
        Valid positions.
    """
    name, between = type(geometry.user).__name__, geometry.pairs.between
    pairs, same = _PairsOf(name, Y[:PAIRS], Y[PAIRS:]), _PairsOf(name, Y[:PAIRS], Y[:PAIRS])
    with np.errstate(all="ignore"):
        d, (d2, v) = geometry.pairs.raw(pairs.Yi, pairs.Yj), between(pairs.Yi, pairs.Yj)
        back, (d2_same, v_same) = between(pairs.Yj, pairs.Yi)[0], between(same.Yi, same.Yj)
        length, at_rest = np.linalg.norm(v, axis=1), np.linalg.norm(v_same, axis=1)
        roots, roots_back, roots_same = np.sqrt(d2), np.sqrt(back), np.sqrt(np.abs(d2_same))
    what = geometry.pairs.name
    pairs.require(np.isfinite(d2) & (d >= 0), f"{what}(Yi, Yj)", d, "it must be finite and not negative")
    if (scale := float(d2.max())) == 0:
        raise ValueError(
            f"in the geometry {name}, {what} is 0 for {PAIRS} random pairs; it must be positive for different"
            " positions, and start and retract must keep positions apart"
        )
    symmetric = np.abs(d2 - back) <= ASYMMETRY * scale
    pairs.require(symmetric, "the distance of Yi and Yj", roots, "it must be the same in both orders", roots_back)
    same.require(roots_same <= COINCIDENT * scale**0.5, "the distance of Y to itself", roots_same, "it must be 0")
    pairs.require(np.isfinite(length), "direction(Yi, Yj)", v, "it must be finite")
    same.require(at_rest <= COINCIDENT * length.max(), "direction(Y, Y)", v_same, "it must be 0")
    for seed in (1, 2):
        _check_directions(geometry, pairs, v, np.random.RandomState(seed))


def _check_directions(geometry: Any, pairs: _PairsOf, v: Array, rng: np.random.RandomState) -> None:
    """Compare the directions v with differences of d2 between valid positions on both sides of Yi."""
    size = float(np.abs(pairs.Yi).max())
    step = STEP * size * rng.standard_normal(v.shape)
    ahead, behind = geometry.project(pairs.Yi + step), geometry.project(pairs.Yi - step)
    with np.errstate(all="ignore"):
        change = geometry.pairs.between(ahead, pairs.Yj)[0] - geometry.pairs.between(behind, pairs.Yj)[0]
    path = ahead - behind
    moved = np.linalg.norm(path, axis=1)
    expected, largest = 2 * (v * path).sum(axis=1), 2 * moved * np.linalg.norm(v, axis=1)
    # Not compared if retract took one of them to the other side, as on a torus, or undid the step.
    skipped = (moved > JUMP * size) | (moved < STEP * np.linalg.norm(step, axis=1))
    if not (good := (np.abs(change - expected) <= SLACK * largest) | skipped).all():
        k = int(np.argmin(good))
        raise ValueError(
            f"direction(Yi, Yj) of the geometry {pairs.name} is not half the derivative of the squared distance by Yi:"
            f" for {pairs.describe(k)} the squared distance changes by {change[k] / moved[k]:.3g} per unit of length,"
            f" but the direction gives {expected[k] / moved[k]:.3g}; correct direction, or omit it to let PyTorch"
            " differentiate"
        )


class _PairsOf:
    """Pairs of positions, for messages."""

    def __init__(self, name: str, Yi: Array, Yj: Array):
        self.name, self.Yi, self.Yj = name, Yi, Yj

    def describe(self, k: int) -> str:
        """Return the positions of pair k in words."""
        first, second = (np.array2string(Y[k], precision=4, separator=", ") for Y in (self.Yi, self.Yj))
        return f"Y = {first}" if np.array_equal(self.Yi[k], self.Yj[k]) else f"Yi = {first} and Yj = {second}"

    def require(self, good: Array, what: str, values: Array, remedy: str, others: Array | None = None) -> None:
        """Raise ValueError at the first pair that is not good."""
        if not good.all():
            k = int(np.argmin(good))
            value = np.array2string(np.asarray(values[k]), precision=4, separator=", ")
            other = "" if others is None else f" and {others[k]:.4g} in the other order"
            raise ValueError(f"in the geometry {self.name}, {what} is {value}{other} for {self.describe(k)}; {remedy}")
