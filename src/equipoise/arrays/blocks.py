"""Block sizes: how many rows to process at once, given the machine's memory."""

from __future__ import annotations

from functools import cache

from .memory_limits import physical_memory

SHARE = 1 / 512  # fraction of the machine's memory used for one block; chosen
SMALLEST, LARGEST = 2**23, 2**26  # bytes, 8 and 64 MB: smaller blocks are slow, larger ones exceed the cache


@cache
def block_bytes() -> int:
    """Return the size of a block in bytes: 1/512 of the machine's memory, between 8 and 64 MB."""
    return int(min(max(SHARE * physical_memory(), SMALLEST), LARGEST))


def rows_per_block(bytes_per_row: float) -> int:
    """Return how many rows of this size fit into a block, at least 1.

    Use it only where each row is computed independently, so that the block size cannot change the result. Matrix
    products and sums over a block depend on its size in the last digits, and use a constant size instead.
    """
    return max(1, int(block_bytes() // max(1.0, bytes_per_row)))
