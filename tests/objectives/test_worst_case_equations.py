"""Equations (S4) to (S6) of docs/math.md, section 14, written out in float64, agree with the code."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist, squareform

from equipoise.objectives.stress.worst_case import worst_case_bound
from equipoise.spaces import embeddability

FOUR = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0.0]])


def limits(delta, w, t, residual):
    if residual == "absolute":
        return np.maximum(delta - t / w, 0), delta + t / w
    return delta * np.exp(-t / w), delta * np.exp(t / w)


def negative_type(delta, w, d, residual):
    """Return whether (S4) holds, as a function of t."""
    n = len(delta)
    C, pairs = np.eye(n) - 1 / n, np.triu_indices(n, 1)
    values, vectors = np.linalg.eigh(-0.5 * C @ delta**2 @ C)
    v = vectors[:, 0] if values[0] < -1e-9 else np.zeros(n)
    u = -np.outer(v, v)[pairs]

    def holds(t):
        low, high = limits(delta[pairs], w[pairs], t, residual)
        return (u[u > 0] * high[u > 0] ** 2).sum() + (u[u < 0] * low[u < 0] ** 2).sum() >= 0

    return holds


def rank(delta, w, d, residual):
    """Return whether (S5) holds, as a function of t."""
    n = len(delta)
    C, pairs = np.eye(n) - 1 / n, np.triu_indices(n, 1)
    values = np.linalg.eigvalsh(-0.5 * C @ delta**2 @ C)[::-1]
    tau = np.square(values).sum() - np.square(np.maximum(values[:d], 0)).sum()

    def holds(t):
        low, high = limits(delta[pairs], w[pairs], t, residual)
        d2 = delta[pairs] ** 2
        return 0.5 * np.square(np.maximum(high**2 - d2, d2 - low**2)).sum() >= tau

    return holds


def packing(delta, w, d, residual):
    """Return whether (S6) holds for every k, as a function of t."""
    n, w0 = len(delta), w[np.triu_indices(len(delta), 1)].min()
    order = [int(delta.max(axis=1).argmax())]
    while len(order) < n:
        rest = np.setdiff1d(np.arange(n), order)
        order.append(int(rest[delta[np.ix_(rest, order)].min(axis=1).argmax()]))
    separations = [pdist_of(delta, order[:k]).min() for k in range(2, n + 1)]
    ratios = [max(k ** (1 / d) - 1, np.sqrt(1 + 2 / d) if k >= d + 2 else 0.0) for k in range(2, n + 1)]

    def holds(t):
        high = limits(delta.max(), w0, t, residual)[1]
        return all(high >= ratio * limits(s, w0, t, residual)[0] for s, ratio in zip(separations, ratios, strict=True))

    return holds


def pdist_of(delta, points):
    return delta[np.ix_(points, points)][np.triu_indices(len(points), 1)]


def threshold(holds):
    """Return the largest t at which an inequality fails; 0 if it always holds."""
    low, high = 0.0, 1.0
    while not holds(high):
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low


def spaces(rng):
    uneven = squareform(rng.uniform(0.5, 2.0, 190))
    yield "S4", FOUR, 2
    yield "S5", squareform(pdist(rng.normal(size=(30, 3)) * [4, 3, 2])), 2
    yield "S6", 1 - np.eye(20), 2
    yield None, squareform(rng.uniform(1, 2, 190)), 3
    yield None, uneven, 2


@pytest.mark.parametrize("residual", ["absolute", "logarithmic"])
def test_s4_to_s6_bounds_are_the_largest_t_at_which_an_inequality_fails(residual, rng):
    for binding, delta, d in spaces(rng):
        n = len(delta)
        for w in (np.ones((n, n)), 1 + squareform(rng.uniform(0, 0.2, n * (n - 1) // 2))):
            found = {
                name: threshold(make(delta, w, d, residual))
                for name, make in (("S4", negative_type), ("S5", rank), ("S6", packing))
            }
            largest = max(found.values())
            assert_allclose(worst_case_bound(delta, d, residual, w), largest, rtol=1e-6)
            if binding:
                assert found[binding] == largest > 0, (binding, found)


def test_unit_weights_also_use_the_bounds_on_stress_and_distortion(rng):
    delta = squareform(pdist(rng.normal(size=(25, 10))))
    found = embeddability(delta, 2)
    assert worst_case_bound(delta, 2) >= np.sqrt(found.stress[1] / 300) * (1 - 1e-6)
    assert worst_case_bound(delta, 2, "logarithmic") >= np.log(found.distortion[1]) / 2 * (1 - 1e-6)
