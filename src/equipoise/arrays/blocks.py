"""Sizes of the blocks into which large computations are split.

The functions derive block sizes from the machine; use them where the block size cannot change the result. Elsewhere use
the constants `FIXED_...`, because the last digits of a sum or a matrix product depend on the shape of the block.
"""

from __future__ import annotations

import os
from functools import cache

from .memory_limits import physical_memory

SHARE = 1 / 512  # fraction of the machine's memory used for one block; chosen
# Bytes, 8 and 16 MB. Smaller blocks are slow. Arrays above 32 MB are returned to the system by the C library and mapped
# again for each block: the distances of `transform` took 0.24 s in one block of 42 MB, and 0.02 s in three blocks.
SMALLEST, LARGEST = 2**23, 2**24
CACHES = 2**18, 2**22  # bytes, 256 kB and 4 MB: the range of second-level caches
USUAL_CACHE = 2**20  # bytes; assumed if the system does not report the size

# The last digits of maps, losses or measures depend on these constants: do not change them.
FIXED_ENTRIES = 2**22  # distances or other values, 32 MB in float64
FIXED_PAIRS = 2**21  # pairs in the stress of a map
FIXED_RANKED = 2**18  # distances that are ranked, if they are not computed row by row
FIXED_SUM = 2**20  # terms of a sum over affinities
FIXED_AUTOGRAD_PAIRS = {"cpu": 2**17, "cuda": 2**22}  # pairs under a metric tensor; measured in autograd/pairs.py
FIXED_PCA_ROWS = 4096  # rows that are centred, multiplied and projected at once in PCA
FIXED_REFERENCE_ROWS = 256  # rows in the potential energy of the reference engine
FIXED_QUERY_ROWS = 65536  # queries per faiss search; faiss chooses its method by this number
FIXED_BRIDGE_ROWS = 1024  # points compared with all others to connect components
FIXED_ENCODED = 2**24  # values encoded by a network
FIXED_TILE = 2**24  # entries in the largest array of a tile on a device, 64 MB in float32; chosen
FIXED_SEARCH_TILE = 2**28  # the same in a search on a GPU, 1 GB; chosen
FIXED_SORTED = 2**26  # entries of a sparse matrix on a device that are sorted or moved at once, 4 GB; chosen


@cache
def block_bytes() -> int:
    """Return the size of a block in bytes: 1/512 of the machine's memory, but at least 8 and at most 16 MB."""
    return int(min(max(SHARE * physical_memory(), SMALLEST), LARGEST))


@cache
def cache_bytes() -> int:
    """Return the size in bytes of a block that fits the second-level cache: at least 256 kB and at most 4 MB."""
    try:
        size = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 0
    return min(max(size, CACHES[0]), CACHES[1]) if size > 0 else USUAL_CACHE


def rows_per_block(bytes_per_row: float) -> int:
    """Return how many rows of `bytes_per_row` bytes fit into a block of `block_bytes()`, at least 1.

    Use this function only where each row is computed independently, so that the block size cannot change the result.
    """
    return max(1, int(block_bytes() // max(1.0, bytes_per_row)))


def row_blocks(n: int, bytes_per_row: float) -> list[slice]:
    """Return slices of at most `rows_per_block(bytes_per_row)` rows that cover n rows."""
    step = rows_per_block(bytes_per_row)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]
