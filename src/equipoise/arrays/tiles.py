"""Process consecutive rows in tiles that fit in memory; the tiles are halved if a GPU runs out of memory."""

from __future__ import annotations

from collections.abc import Callable

from .blocks import FIXED_TILE
from .memory_limits import gpu_out_of_memory, is_out_of_memory


def in_tiles(n: int, width: int, act: Callable[[slice], None], tile: int = FIXED_TILE) -> None:
    """Call `act` with slices that together cover n rows, each slice with at most `tile` / `width` rows.

    `width` is the number of array entries that `act` needs per row. If GPU memory runs out, the slices are halved.
    """
    step = max(1, min(n, tile // max(1, width)))
    start = 0
    while start < n:
        try:
            act(slice(start, min(start + step, n)))
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if step == 1:
                raise gpu_out_of_memory(f"one row of {width} numbers", 4 * width) from None
            import torch

            torch.cuda.empty_cache()
            step = -(-step // 2)
            continue
        start += step
