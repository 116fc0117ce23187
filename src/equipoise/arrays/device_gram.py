"""The product (I − W)ᵀ(I − W) of sparse matrices on a device, with sums in a fixed order."""

from __future__ import annotations

import torch

from .device_csr import Rows


def minus_identity_gram(W: Rows) -> Rows:
    """Return (I − W)ᵀ(I − W) with sorted columns, in float64, for W (n, n) with equally many entries in every row.

    The diagonal of W must not be stored. Every row of I − W contributes its products of two entries a ≤ b. Products of
    the same entries are adjacent after a stable sort, and are added in the order of the rows.
    """
    n, device = W.shape[0], W.device
    own = torch.arange(n, device=device)
    columns = torch.cat([own[:, None], W.indices.reshape(n, -1).long()], dim=1)
    values = torch.cat([torch.ones((n, 1), dtype=torch.float64, device=device), -W.data.double().reshape(n, -1)], dim=1)
    columns, order = columns.sort(dim=1)
    values = values.gather(1, order)
    a, b = torch.triu_indices(*2 * columns.shape[1:], device=device)
    key, order = (columns[:, a] * n + columns[:, b]).flatten().sort(stable=True)
    terms = (values[:, a] * values[:, b]).flatten()[order]
    del order, values
    key, counts = torch.unique_consecutive(key, return_counts=True)
    sums = torch.segment_reduce(terms, "sum", lengths=counts, axis=0)
    row, column = key // n, key % n
    off = row != column
    key, order = torch.cat([key, column[off] * n + row[off]]).sort()  # no two keys are equal
    indptr = torch.searchsorted(key, torch.arange(0, n * n + 1, n, device=device))
    return Rows(torch.cat([sums, sums[off]])[order], (key % n).int(), indptr)
