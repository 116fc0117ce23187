"""Maps on grids: the least movement of points to different cells, and images in all cells."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import equipoise as eq
from equipoise.views.grid import fills_grid


def movement(points, cells):
    return ((points - cells) ** 2).sum()


def test_optimal_cells_of_six_points_match_all_permutations(rng):
    points = rng.uniform(size=(6, 2))
    points = (points - points.min(axis=0)) / np.ptp(points, axis=0) * [2, 1]
    free = np.array([[x, y] for y in range(2) for x in range(3)])
    cells = eq.grid_layout(points, shape=(2, 3))
    best = min(permutations(range(6)), key=lambda order: movement(points, free[list(order)]))
    np.testing.assert_array_equal(cells, free[list(best)])


def test_crowded_points_by_hand():
    """Of two points near the cell 0 of a row of three, the nearer one gets it, and the other moves to cell 1."""
    Y = np.array([[0.0, 0.0], [0.4, 0.0], [2.0, 0.0]])
    assert eq.grid_layout(Y).tolist() == [[0, 0], [1, 0], [2, 0]]
    assert eq.grid_layout(Y[::-1]).tolist() == [[2, 0], [1, 0], [0, 0]]


@pytest.mark.parametrize("shape", [(4, 5), (1, 7), (6, 1), (12, 12), (60, 70)])
def test_points_on_a_grid_stay(shape, rng):
    rows, columns = shape
    cells = rng.permutation(np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2))
    np.testing.assert_array_equal(eq.grid_layout(3.5 * cells - 7), cells)


@pytest.mark.parametrize("n", [1, 2, 17, 400, 3500])
def test_no_cell_is_used_twice_and_the_order_of_rows_is_irrelevant(n, rng):
    Y = rng.normal(size=(n, 2)) * [2, 1]
    cells, order = eq.grid_layout(Y), rng.permutation(n)
    assert len(np.unique(cells, axis=0)) == n and cells.min() == 0
    assert np.prod(cells.max(axis=0) + 1) < n + max(cells.max(axis=0)) + 1 or n == 1
    np.testing.assert_array_equal(eq.grid_layout(Y[order]), cells[order])


def test_equal_points_get_different_cells():
    assert len(np.unique(eq.grid_layout(np.zeros((9, 2))), axis=0)) == 9


def test_errors():
    with pytest.raises(ValueError, match=r"shape=\(2, 2\) has 4 cells for 5 points; use a larger grid"):
        eq.grid_layout(np.eye(5, 2), shape=(2, 2))
    with pytest.raises(ValueError, match="shape must be the number of rows and of columns"):
        eq.grid_layout(np.eye(5, 2), shape=9)
    with pytest.raises(ValueError, match="grid_layout needs a 2-D map, but Y is 3-D"):
        eq.grid_layout(np.eye(5, 3))


def test_plot_draws_every_image_inside_the_axes(rng):
    images = rng.integers(0, 256, size=(40, 4, 4), dtype=np.uint8)
    cells = eq.grid_layout(rng.normal(size=(40, 2)))
    assert fills_grid(cells) and not fills_grid(cells * 10) and not fills_grid(cells / 2)
    axes = eq.plot(cells, images=images).axes[0]
    assert len(axes.images) == 40
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    for image in axes.images:
        left, right, bottom, top = image.get_extent()
        assert x0 <= left and right <= x1 and y0 <= bottom and top <= y1 and right - left == pytest.approx(0.92)
