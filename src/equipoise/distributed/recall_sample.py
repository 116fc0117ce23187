"""The true neighbours of a sample of rows, merged over ranks, on which the recall of a search is measured."""

from __future__ import annotations

import numpy as np

from .._types import Array
from .cell_reach import OwnCells
from .exact_scan import scan_own, smallest
from .group import Group


def true_neighbors(group: Group, own: OwnCells, sample: Array, positions: Array, k: int) -> tuple[Array, Array]:
    """Return the positions (m, k), int64, of the k nearest points of each row of a sample, and squared distances.

    Each rank compares the sample with all of its rows; the k nearest of all ranks are kept, ties by position.

    Parameters
    ----------
    group : Group
    own : OwnCells
    sample : array of shape (m, D)
        Rows, the same on all ranks.
    positions : array of int64, shape (m,)
        Their positions.
    k : int
    """
    d2, near = scan_own(own, sample, positions, k)
    everyone = group.all_gather(d2), group.all_gather(near)
    d2, near = smallest(np.hstack(everyone[0]), np.hstack(everyone[1]), k)
    return near, d2
