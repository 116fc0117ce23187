"""Sums edges (see `Engine.edges`) over the stored entries (i, j) of a sparse matrix, on a device."""

from __future__ import annotations

from typing import Any

import torch

from ...arrays.device_csr import Rows
from ...arrays.namespace import total
from ...arrays.tiles import in_tiles
from .lookup import Lookup
from .partners import WIDEST


def stored_edges(Y: torch.Tensor, A: Rows, kernel: Lookup, *, potential: bool) -> tuple[Any, torch.Tensor]:
    """Return Ψ = Σ A_ij ψ(d2_ij), a float64 scalar, and E_i = Σ_j A_ij ψ'(d2_ij)(y_i − y_j), (n, d) float32.

    ψ and its slope ψ' are those of the table `kernel`. Ψ is NaN if `potential` is false. Each row is summed in a fixed
    order, so every run on one device gives identical results, bit for bit.
    """
    if Y.is_cuda and 3 < Y.shape[1] <= WIDEST:
        from . import wide_triton as wide

        return wide.edges(Y.contiguous(), A, kernel, potential)
    psi, force = row_edges(Y, A, kernel, potential=potential)
    return total(psi) if potential else torch.nan, force


def row_edges(Y: torch.Tensor, A: Rows, kernel: Lookup, *, potential: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the terms (m,) of Ψ of each row of A, none unless `potential` is true, and the forces (m, d) on points i.

    The m rows of A belong to the first m points of Y. The sums of a row do not depend on the other rows.
    """
    if Y.is_cuda and Y.shape[1] <= 3:
        from . import fused  # Triton comes only with PyTorch for GPUs

        return fused.row_edges(Y.contiguous(), A, kernel, potential)
    m, d = A.shape[0], Y.shape[1]
    psi = torch.empty(m if potential else 0, dtype=torch.float64, device=Y.device)
    force = torch.empty((m, d), device=Y.device)

    def rows(part: slice) -> None:
        offsets = A.indptr[part.start : part.stop + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        own = torch.repeat_interleave(Y[part], offsets.diff(), dim=0, output_size=last - first)
        diff = own - Y[A.indices[first:last]]
        d2 = diff.square().sum(dim=1)
        a, offsets = A.data[first:last], offsets - first
        if potential:
            value, slope = kernel.both(d2)
            psi[part] = torch.segment_reduce((a * value).double(), "sum", offsets=offsets, axis=0)
        else:
            slope = kernel.slope(d2)
        force[part] = torch.segment_reduce((a * slope)[:, None] * diff, "sum", offsets=offsets, axis=0)

    in_tiles(m, 2 * d * -(-A.nnz // max(1, m)), rows)
    return psi, force
