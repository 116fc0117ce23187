"""The number of rows to process at once, from the memory of the machine."""

from __future__ import annotations

from functools import cache

from .memory_limits import physical_memory

SHARE = 1 / 512  # of the memory for one block; chosen
SMALLEST, LARGEST = 2**23, 2**26  # bytes of a block, 8 and 64 MB: smaller ones are slow, larger ones leave the cache


@cache
def block_bytes() -> int:
    """Return the size of a block in bytes: 1/512 of the memory of the machine, between 8 and 64 MB."""
    return int(min(max(SHARE * physical_memory(), SMALLEST), LARGEST))


def rows_per_block(bytes_per_row: float) -> int:
    """Return how many rows of this size fit into a block, at least 1.

    For computations in which every row is independent, so that the result does not depend on the block. Where it does,
    because a matrix product or a sum covers the block, the size is a constant instead.
    """
    return max(1, int(block_bytes() // max(1.0, bytes_per_row)))
