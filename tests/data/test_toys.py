"""Toy shapes match their descriptions."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from equipoise import data
from equipoise.data import toys

NAMES = list(toys.TOYS)


def groups(shape):
    return [shape.X[shape.labels == label] for label in range(len(shape.classes))]


def width(group):
    return np.sqrt(((group - group.mean(axis=0)) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("name", NAMES)
def test_every_shape_is_finite_reproducible_and_labelled(name):
    shape = data.load(name)
    assert shape.name == name and np.isfinite(shape.X).all()
    assert len(np.unique(shape.X, axis=0)) == len(shape.X)
    np.testing.assert_array_equal(shape.X, data.load(name).X)
    if shape.labels is not None:
        assert shape.labels.shape == (len(shape.X),)
        assert set(shape.labels) == set(range(len(shape.classes)))


def test_another_seed_gives_other_points():
    for make in (toys.two_sizes, toys.noise, toys.random_walk, toys.swiss_roll, toys.plane_with_tails):
        assert not np.array_equal(make().X, make(random_state=1).X)


def test_cluster_widths_and_distances():
    narrow, wide = groups(toys.two_sizes())
    assert len(narrow) == len(wide) and 8 < width(wide) / width(narrow) < 12
    inside, outside = groups(toys.nested())
    assert 45 < width(outside) / width(inside) < 55
    assert np.linalg.norm(inside.mean(axis=0) - outside.mean(axis=0)) < width(outside)
    a, b, c = (group.mean(axis=0) for group in groups(toys.three_distances()))
    np.testing.assert_allclose(np.linalg.norm(c - b) / np.linalg.norm(b - a), 5, rtol=0.05)
    left, right = groups(toys.two_lines())
    np.testing.assert_allclose(np.linalg.norm(right.mean(axis=0) - left.mean(axis=0)), 10, rtol=0.1)


def test_shapes_with_equal_distances():
    np.testing.assert_allclose(pdist(toys.simplex(20).X), np.sqrt(2))
    for shape in (toys.circle(50), toys.linked_rings(100), toys.unlinked_rings(100)):
        ring = shape.X[:50] if shape.name != "circle" else shape.X
        steps = np.linalg.norm(np.roll(ring, 1, axis=0) - ring, axis=1)
        np.testing.assert_allclose(steps, 2 * np.sin(np.pi / 50))
    np.testing.assert_array_equal(np.sort(pdist(toys.grid(5).X))[:40], 1)  # 2 · 5 · 4 sides of squares


def linking_number(a, b):
    """Return the linking number of two closed polygons by Gauss' integral over edge midpoints."""
    da, db = np.roll(a, -1, axis=0) - a, np.roll(b, -1, axis=0) - b
    r = (a + da / 2)[:, None] - (b + db / 2)[None]
    cross = np.cross(da[:, None], db[None])
    return float(((cross * r).sum(axis=2) / np.linalg.norm(r, axis=2) ** 3).sum() / (4 * np.pi))


def test_linking_number_of_rings():
    np.testing.assert_allclose(abs(linking_number(*groups(toys.linked_rings(200)))), 1, atol=0.01)
    np.testing.assert_allclose(linking_number(*groups(toys.unlinked_rings(200))), 0, atol=0.01)


def test_planes_and_rolls_share_their_points():
    flat, lined, tailed = toys.plane(), toys.plane_and_line(), toys.plane_with_tails()
    np.testing.assert_array_equal(flat.X, lined.X[:1000])
    np.testing.assert_array_equal(flat.X[:, :2], tailed.X[:, :2])
    assert (flat.X[:, 2] == 0).all() and lined.classes[-1] == "line"
    share = (tailed.X[:, 2] > 0.7).mean()
    np.testing.assert_allclose(share, 8**-1.5, atol=0.015)  # P(height > 7 scales)
    roll, more = toys.swiss_roll(), toys.swiss_roll(added=20)
    np.testing.assert_array_equal(roll.X, more.X[:1000])
    few, extended = toys.swiss_roll(5), toys.swiss_roll(5, added=500)
    np.testing.assert_array_equal(few.labels, extended.labels[:5])
    assert set(extended.labels) <= set(range(len(few.classes)))
    t = np.hypot(more.X[:, 0], more.X[:, 2])
    np.testing.assert_allclose(more.X[:, 0], t * np.cos(t), atol=1e-9)  # the added points are also on the roll


def test_unknown_name_raises():
    with pytest.raises(ValueError, match=r"unknown data set 'moebius'; choose from digits, .*, trefoil"):
        data.load("moebius")
