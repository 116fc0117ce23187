"""Work in tiles that fit the memory of a device: smaller ones are tried before it is given up."""

from __future__ import annotations

from collections.abc import Callable

import torch

TILE = 2**24  # numbers of the largest array of a tile, 64 MB in float32; chosen


def in_tiles(n: int, width: int, act: Callable[[slice], None]) -> None:
    """Call act for slices of n rows that need `width` numbers each; where memory runs out, for halves of them."""
    step = max(1, min(n, TILE // max(1, width)))
    start = 0
    while start < n:
        try:
            act(slice(start, min(start + step, n)))
        except torch.cuda.OutOfMemoryError:
            if step == 1:
                raise MemoryError(
                    f"the GPU has no room for one row of {width} numbers ({4 * width / 1e9:.2g} GB);"
                    ' free some of it, or use engine="grid" on the CPU'
                ) from None
            torch.cuda.empty_cache()
            step = -(-step // 2)
            continue
        start += step
