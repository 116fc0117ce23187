"""Move the points of a map to the cells of a grid, so that images drawn at them do not overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array
from ..arrays.namespace import is_integer
from ..data.checks.maps import check_map

MAX_EXACT = 3000  # points for which the movement is minimised as a whole; chosen
BLOCK = 1000  # points in each part of larger maps; chosen


def grid_layout(Y: Any, shape: tuple[int, int] | None = None) -> Array:
    """Move the points of a 2-D map to different cells of a grid, with the least sum of squared movements.

    The map is first scaled to the size of the grid, along each axis. Above 3,000 points the sum is not minimised as a
    whole: the grid is halved along its longer side, and the points in proportion by their coordinate along that side,
    until a part has at most 1,000 points; the sum is minimised in each part. Apart from equal points, the cell of a
    point does not depend on the order of the rows.

    Parameters
    ----------
    Y : array-like of shape (n, 2) or fitted method
        The map.
    shape : (int, int), optional
        Number of rows and columns of the grid, with at least n cells; by default close to the proportions of the map,
        with few empty cells.

    Returns
    -------
    cells : ndarray of int, shape (n, 2)
        Column and row of each point, counted from 0 at the lower left. `plot` draws `images` at all of them.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.grid_layout([[0.0, 0.0], [0.2, 0.1], [0.1, 1.0], [1.0, 0.8]]).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    Y = np.asarray(check_map(Y), dtype=np.float64)
    n = len(Y)
    if Y.shape[1] != 2:
        raise ValueError(f"grid_layout needs a 2-D map, but Y is {Y.shape[1]}-D; make a map with n_components=2")
    low, extent = Y.min(axis=0), np.ptp(Y, axis=0)
    rows, columns = _default_shape(n, extent) if shape is None else _check_shape(shape, n)
    points = (Y - low) / np.where(extent > 0, extent, 1.0) * [columns - 1, rows - 1]
    points[:, extent == 0] = (np.array([columns - 1, rows - 1]) / 2)[extent == 0]
    order = np.lexsort(points.T)
    cells = np.empty((n, 2), dtype=np.int64)
    every = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2)
    largest = MAX_EXACT if n <= MAX_EXACT else BLOCK
    parts = [(order, every)]
    while parts:
        members, free = parts.pop()
        if len(members) <= largest:
            cells[members] = _nearest_cells(points[members], free)
        else:
            parts += _halves(points, members, free)
    return cells


def fills_grid(points: Array) -> bool:
    """Return whether points (n, 2) are different cells of a grid, as from `grid_layout`, at least a quarter full."""
    if len(points) < 2 or not (points == np.round(points)).all():
        return False
    width, height = np.ptp(points, axis=0) + 1
    return bool(width * height <= 4 * len(points)) and len(np.unique(points, axis=0)) == len(points)


def _nearest_cells(points: Array, free: Array) -> Array:
    """Return a different one of the cells `free` for each point, with the least sum of squared distances."""
    from scipy.optimize import linear_sum_assignment

    # ‖y − c‖² without ‖y‖², which all cells of a point share
    cost = (free**2).sum(axis=1) - 2 * points @ free.T
    return np.asarray(free[linear_sum_assignment(cost)[1]])


def _halves(points: Array, members: Array, free: Array) -> list[tuple[Array, Array]]:
    """Divide cells along their longer side, and points in proportion by their coordinate along it."""
    axis = int(np.argmax(np.ptp(free, axis=0)))
    middle = (free[:, axis].min() + free[:, axis].max()) / 2
    is_first = free[:, axis] <= middle
    first, second = free[is_first], free[~is_first]
    count = round(len(members) * len(first) / len(free))
    count = min(max(count, len(members) - len(second)), len(first))
    members = members[np.argsort(points[members, axis], kind="stable")]
    return [(members[:count], first), (members[count:], second)]


def _default_shape(n: int, extent: Array) -> tuple[int, int]:
    """Return the rows and columns of a grid of at least n cells whose proportions are closest to `extent`."""
    rows = np.arange(1, n + 1)
    columns = -(-n // rows)
    tiny = 1e-3  # keeps the proportions of a single row or column finite
    width, height = extent / (extent.max() or 1.0)
    wanted = np.log((width + tiny) / (height + tiny)) if extent.max() > 0 else 0.0
    largest = np.maximum(rows, columns)
    found = np.log(((columns - 1) / largest + tiny) / ((rows - 1) / largest + tiny))
    best = int(np.argmin(np.abs(found - wanted)))
    return int(rows[best]), int(columns[best])


def _check_shape(shape: Any, n: int) -> tuple[int, int]:
    if not (isinstance(shape, tuple | list) and len(shape) == 2 and all(is_integer(k) and k > 0 for k in shape)):
        raise ValueError(f"shape must be the number of rows and of columns, such as (10, 20), got {shape!r}")
    rows, columns = map(int, shape)
    if rows * columns < n:
        raise ValueError(f"shape={rows, columns} has {rows * columns:,} cells for {n:,} points; use a larger grid")
    return rows, columns
