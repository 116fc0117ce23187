"""Float sums that do not depend on the number of ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import Array
from .group import Group


def blocked_sum(group: Group, block_sums: Array, counts: Sequence[int] | None = None) -> Array:
    """Return the float64 sum over all blocks of all ranks, added in the order of blocks.

    The rows are divided into blocks of a size that does not depend on the number of ranks, each block belongs to one
    rank, and the order of ranks is the order of blocks. Then the sum has the same bytes for any number of ranks.

    Parameters
    ----------
    group : Group
        The ranks.
    block_sums : float64 array of shape (own_blocks, ...)
        The sum over each block of this rank.
    counts : sequence of int, optional
        The number of blocks of each rank; if given, other numbers are refused.

    Returns
    -------
    float64 array of shape (...)
        The total, the same on all ranks.
    """
    block_sums = np.asarray(block_sums)
    if block_sums.dtype != np.float64 or not block_sums.ndim:
        raise ValueError(
            "blocked_sum needs a float64 array of shape (own_blocks, ...), "
            f"got {block_sums.dtype} of shape {block_sums.shape}"
        )
    parts = group.all_gather(block_sums)
    found = [len(part) for part in parts]
    if counts is not None and list(counts) != found:
        raise ValueError(f"blocked_sum: the ranks have {found} blocks, but counts is {list(counts)}")
    total = np.zeros(block_sums.shape[1:])
    for part in parts:
        if part.ndim == 1 and len(part):  # accumulate adds one after the other; sum does not
            total = np.add.accumulate(np.concatenate([total[None], part]))[-1]
        else:
            for block in part:
                total = total + block
    return np.asarray(total)
