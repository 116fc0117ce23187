"""The neighbours of a rank's rows among the cells near to theirs, in PyTorch, on a GPU or on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .._types import Array
from ..neighbors.gpu_scan import nearest
from .batch_search import Batch, BatchSearch


class TensorSearch(BatchSearch):
    """Compares the rows of each cell with those of the cells near to it, one cell after the other, on a device.

    The neighbours of a row do not depend on the other rows of its cell, which other ranks may own.
    """

    def __init__(self, *arguments: Any, device: str):
        super().__init__(*arguments)
        self.device = torch.device(device)

    def _nearest(self, batch: Batch, points: Array, rows: Array, queries: Array) -> Array:
        own, starts = self.own, self.own.starts
        X = torch.from_numpy(own.vectors.unit(rows, own.n_threads)).to(self.device)
        at = torch.from_numpy(queries).to(self.device)
        found = torch.empty((len(queries), self.k), dtype=torch.int32, device=self.device)
        cells = own.cell_of(points[queries])
        cuts = np.append(np.flatnonzero(np.diff(cells, prepend=-1)), len(cells)).tolist()
        for near, first, last in zip(batch.near, cuts[:-1], cuts[1:], strict=True):
            begin, end = (np.searchsorted(points, place) for place in (starts[near], starts[near + 1]))
            ranges = [np.arange(a, b) for a, b in zip(begin, end, strict=True)]
            candidates = torch.from_numpy(np.concatenate(ranges)).to(self.device)
            own_rows = at[first:last]
            among = nearest(
                X[own_rows], X[candidates], self.k, torch.searchsorted(candidates, own_rows), independent=True
            )
            found[first:last] = candidates[among.indices.long()].int()
        return found.cpu().numpy()
