"""Work in tiles that fit the memory of a device: smaller ones are tried before it is given up."""

from __future__ import annotations

from collections.abc import Callable

import torch

TILE = 2**24  # numbers of the largest array of a tile, 64 MB in float32; chosen


def in_tiles(n: int, width: int, act: Callable[[slice], None], tile: int = TILE) -> None:
    """Call act for slices of n rows that need `width` numbers each; where memory runs out, for halves of them."""
    step = max(1, min(n, tile // max(1, width)))
    start = 0
    while start < n:
        try:
            act(slice(start, min(start + step, n)))
        except torch.cuda.OutOfMemoryError:
            if step == 1:
                raise no_room(f"one row of {width} numbers,", 4 * width) from None
            torch.cuda.empty_cache()
            step = -(-step // 2)
            continue
        start += step


def no_room(what: str, size: float) -> MemoryError:
    """Return the error for what a GPU has no room for, with its size in bytes."""
    free = f", and has {torch.cuda.mem_get_info()[0] / 1e9:.2g} GB" if torch.cuda.is_available() else ""
    return MemoryError(
        f"the GPU has no room for {what} about {size / 1e9:.2g} GB{free}; free some of it, take fewer rows,"
        ' or leave it to the CPU with engine="auto"'
    )
