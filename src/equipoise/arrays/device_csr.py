"""Defines `Rows`, a square CSR matrix whose arrays are PyTorch tensors on a device."""

from __future__ import annotations

from typing import Any

import torch

from .._tags import tagged
from .._types import Matrix
from .blocks import FIXED_SEARCH_TILE, FIXED_SORTED
from .csr import make_csr
from .to_device import as_tensor, available_device


@tagged("device.rows.Rows")
class Rows:
    """A CSR matrix (n, n) on a device, with SciPy's attributes: float `data`, int32 `indices`, int64 `indptr`."""

    is_device_csr = True  # recognised without importing PyTorch

    def __init__(self, data: torch.Tensor, indices: torch.Tensor, indptr: torch.Tensor):
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape = (len(indptr) - 1, len(indptr) - 1)
        self.nnz = len(data)

    @classmethod
    def of(cls, A: Matrix, device: torch.device, dtype: torch.dtype = torch.float32) -> Rows:
        """Return the SciPy CSR matrix A (n, n) as a matrix on a device, in float32 by default.

        On the CPU, arrays of A that already have the right type are shared, not copied.
        """
        return cls(
            as_tensor(A.data[: A.nnz]).to(device, dtype),
            as_tensor(A.indices[: A.nnz]).to(device, torch.int32),
            as_tensor(A.indptr).to(device, torch.int64),
        )

    @classmethod
    def of_neighbors(cls, values: torch.Tensor, indices: torch.Tensor) -> Rows:
        """Return the matrix (n, n) with k entries per row, given their values (n, k) and column indices (n, k)."""
        n, k = indices.shape
        indptr = torch.arange(0, n * k + 1, k, device=indices.device)
        return cls(values.flatten(), indices.flatten(), indptr)

    @property
    def device(self) -> torch.device:
        return self.data.device

    def host(self) -> Matrix:
        """Return the matrix as a SciPy CSR matrix."""
        data, indices, indptr = (part.cpu().numpy() for part in (self.data, self.indices, self.indptr))
        return make_csr(data, indices, indptr, self.shape)

    def counts(self) -> torch.Tensor:
        """Return the number of entries of each row, (n,)."""
        return self.indptr.diff()

    def entry_rows(self) -> torch.Tensor:
        """Return the row index of each stored entry, (nnz,) int32."""
        rows = torch.arange(self.shape[0], dtype=torch.int32, device=self.device)
        return rows.repeat_interleave(self.counts(), output_size=self.nnz)

    def row_sums(self) -> torch.Tensor:
        """Return the row sums (n,) in float64; the entries of a row are added in a fixed order."""
        return torch.segment_reduce(self.data.double(), "sum", offsets=self.indptr, axis=0)

    def __matmul__(self, U: torch.Tensor) -> torch.Tensor:
        """Return A U (n, b) for this matrix A and U (n, b); sums are added in a fixed order."""
        columns = [self.data * u[self.indices] for u in U.T]
        sums = [torch.segment_reduce(c, "sum", offsets=self.indptr, axis=0) for c in columns]
        return torch.stack(sums, dim=1)

    def with_data(self, data: torch.Tensor) -> Rows:
        """Return a matrix with the same sparsity pattern and the values `data` (nnz,)."""
        return Rows(data, self.indices, self.indptr)

    def where(self, keep: torch.Tensor) -> Rows:
        """Return the matrix with only the entries for which `keep` (nnz,) is true."""
        before = torch.zeros(self.nnz + 1, dtype=torch.int64, device=self.device)
        torch.cumsum(keep, 0, out=before[1:])
        return Rows(self.data[keep], self.indices[keep], before[self.indptr])

    def symmetrized(self) -> Rows:
        """Return A + Aᵀ with sorted columns, for this matrix A, which must not have duplicate entries.

        The entries are sorted in tiles of rows, so that little memory is needed besides that of the result.
        """
        entries = self.counts() + torch.bincount(self.indices, minlength=self.shape[0])  # of A and of Aᵀ, in each row
        parts = [self._both_ways(rows) for rows in row_tiles(entries, FIXED_SORTED)]
        counts, indices, data = (list(part) for part in zip(*parts, strict=True))
        del parts
        indptr = torch.zeros_like(self.indptr)
        torch.cumsum(torch.cat(counts), 0, out=indptr[1:])
        columns = torch.cat(indices)
        del indices
        return Rows(torch.cat(data), columns, indptr)

    def _both_ways(self, rows: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the number of entries in some rows of A + Aᵀ, and their column indices and values, row by row."""
        n, m = self.shape[0], rows.stop - rows.start
        first, last = int(self.indptr[rows.start]), int(self.indptr[rows.stop])
        other = self._entries_in_columns(rows)
        row = torch.searchsorted(self.indptr, other, right=True) - 1
        own = torch.arange(m, device=self.device).repeat_interleave(
            self.indptr[rows.start : rows.stop + 1].diff(), output_size=last - first
        )
        key = torch.cat([own * n + self.indices[first:last], (self.indices[other].long() - rows.start) * n + row])
        del own, row
        key, order = key.sort(stable=True)
        value = torch.cat([self.data[first:last], self.data[other]])[order]
        del order, other
        is_first = torch.ones(len(key), dtype=torch.bool, device=key.device)
        torch.ne(key[1:], key[:-1], out=is_first[1:])
        value[:-1] += value[1:].masked_fill(is_first[1:], 0.0)  # a pair occurs once or twice
        key, value = key[is_first], value[is_first]
        row = key // n
        ends = torch.searchsorted(row, torch.arange(m + 1, device=self.device))
        return ends.diff(), (key - row * n).int(), value

    def _entries_in_columns(self, columns: slice) -> torch.Tensor:
        """Return the positions of the stored entries whose column index is in a range, in ascending order."""
        parts = []
        for start in range(0, self.nnz, FIXED_SEARCH_TILE):
            indices = self.indices[start : start + FIXED_SEARCH_TILE]
            parts.append(((indices >= columns.start) & (indices < columns.stop)).nonzero()[:, 0] + start)
        return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64, device=self.device)

    def permuted(self, order: torch.Tensor) -> Rows:
        """Return A[order][:, order] for this matrix A; the entries of each row stay in their stored order."""
        position = torch.empty_like(order, dtype=torch.int32)
        position[order] = torch.arange(len(order), dtype=torch.int32, device=order.device)
        counts = self.counts()[order]
        indptr = torch.zeros_like(self.indptr)
        torch.cumsum(counts, 0, out=indptr[1:])
        shift = self.indptr[:-1][order] - indptr[:-1]
        data, indices = torch.empty_like(self.data), torch.empty_like(self.indices)
        for rows in row_tiles(counts, FIXED_SORTED):
            first, last = int(indptr[rows.start]), int(indptr[rows.stop])
            source = shift[rows].repeat_interleave(counts[rows], output_size=last - first)
            source += torch.arange(first, last, device=self.device)
            torch.index_select(self.data, 0, source, out=data[first:last])
            indices[first:last] = position[self.indices[source]]
        return Rows(data, indices, indptr)

    def __getstate__(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).cpu().numpy() for name in ("data", "indices", "indptr")}
        return {**arrays, "device": self.device.type}

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = (as_tensor(state[name]).to(available_device(state["device"])) for name in ("data", "indices", "indptr"))
        self.__init__(*parts)  # type: ignore[misc]


def row_tiles(counts: torch.Tensor, most: int) -> list[slice]:
    """Return slices of consecutive rows with at most `most` entries each, or one row; row i has `counts[i]` entries."""
    ends = counts.cumsum(0)
    tiles, start, used = [], 0, 0
    while start < len(counts):
        stop = int(torch.searchsorted(ends, used + most, right=True))
        stop = min(max(stop, start + 1), len(counts))
        tiles.append(slice(start, stop))
        start, used = stop, int(ends[stop - 1])
    return tiles
