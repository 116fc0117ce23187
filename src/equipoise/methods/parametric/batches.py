"""Draws batches from a neighbour graph: points in random order, each with one random edge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ..._types import Array, Matrix
from ...arrays.blocks import FIXED_ENTRIES
from ...arrays.csr import on_host

MAX_FRACTION = 0.5  # of the free GPU memory that a table may use; larger ones stay on the host; chosen


def as_csr(A: Any) -> Matrix:
    """Return edge weights (n, n), sparse or dense, on any device, as a SciPy CSR matrix without explicit zeros."""
    A = sparse.csr_matrix(on_host(A))
    if (A.data == 0).any():
        A = A.copy()
        A.eliminate_zeros()
    return A


class TrainingRows:
    """A float32 table (n, D), stored on the device if it fits; otherwise rows are copied there when they are needed."""

    def __init__(self, X: Tensor, device: torch.device):
        self.device = device
        fits = device.type == "cpu" or X.numel() * X.element_size() < MAX_FRACTION * torch.cuda.mem_get_info(device)[0]
        self.X = X.to(device) if fits else X

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the rows `index` on the device."""
        rows = self.X[index.to(self.X.device)]
        if rows.device.type != self.device.type:
            rows = rows.pin_memory()  # for asynchronous copies to a GPU
        return rows.to(self.device, non_blocking=True)

    def sample(self, count: int) -> Tensor:
        """Return `count` rows spread evenly over the table, or all rows if there are fewer."""
        n = len(self.X)
        return self.X[torch.arange(min(count, n), device=self.X.device) * n // min(count, n)]

    def mean_and_scale(self) -> tuple[Array, float]:
        """Return the mean row (D,) and the root mean square of all entries minus the mean row, or 1 if that is 0."""
        blocks = in_blocks(self.X, FIXED_ENTRIES // self.X.shape[1])
        mean = torch.stack([block.double().sum(dim=0) for block in blocks]).sum(dim=0) / len(self.X)
        squares = sum(float((block.double() - mean).square().sum()) for block in blocks)
        return mean.cpu().numpy(), float(np.sqrt(squares / self.X.numel())) or 1.0


class Edges:
    """Draws random edges from a sparse weight matrix A.

    An edge that starts at point i ends at point j with probability A_ij/a_i, where a_i = Σ_j A_ij.
    """

    def __init__(self, A: Matrix, device: torch.device):
        self.n = A.shape[0]
        ends = np.concatenate([[0.0], np.cumsum(A.data, dtype=np.float64)])
        self._ends = torch.as_tensor(ends, device=device)  # ends of the interval of each edge
        self._first = torch.as_tensor(A.indptr.astype(np.int64), device=device)
        self._tails = torch.as_tensor(A.indices.astype(np.int64), device=device)

    def sample(self, heads: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the tail j of one random edge (i, j) for each head i, and the row sums a_i of the weights.

        For a head i without edges, j = i and a_i = 0.
        """
        first, last = self._first[heads], self._first[heads + 1] - 1
        low, high = self._ends[first], self._ends[last + 1]
        at = torch.rand(len(heads), dtype=torch.float64, device=heads.device, generator=generator)
        edge = torch.searchsorted(self._ends, low + at * (high - low), right=True) - 1
        edge = torch.minimum(torch.maximum(edge, first), last)  # rounding may select an edge of an adjacent row
        tails = torch.where(last >= first, self._tails[edge.clamp_min(0)], heads)
        return tails, high - low

    def batches(self, size: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Split all points, in random order, into batches. For each, yield its points and what `sample` returns."""
        order = torch.randperm(self.n, device=generator.device, generator=generator)
        for heads in order.tensor_split(n_batches(self.n, size)):
            yield heads, *self.sample(heads, generator)


def n_batches(n: int, size: int) -> int:
    """Return the number of batches into which n points are split.

    Each batch has at least 2 and at most `size` points, except that one has 3 if size = 2 and n is odd.
    """
    return max(1, min(-(-n // size), n // 2))


def in_blocks(X: Tensor, size: int) -> list[Tensor]:
    """Return X as a list of views of at most `size` rows each; a size below 1 counts as 1."""
    size = max(1, size)
    return [X[start : start + size] for start in range(0, len(X), size)]
