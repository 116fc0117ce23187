"""Sums edges (see `Engine.edges`) over the stored entries (i, j) of a sparse matrix, on a device."""

from __future__ import annotations

from typing import Any

import torch

from ...arrays.device_csr import Rows
from ...arrays.tiles import in_tiles
from .lookup import Lookup
from .partners import WIDEST


def stored_edges(Y: torch.Tensor, A: Rows, kernel: Lookup, *, potential: bool) -> tuple[Any, torch.Tensor]:
    """Return Ψ = Σ A_ij ψ(d2_ij), a float64 scalar, and E_i = Σ_j A_ij ψ'(d2_ij)(y_i − y_j), (n, d) float32.

    ψ and its slope ψ' are those of the table `kernel`. Ψ is NaN if `potential` is false. Each row is summed in a fixed
    order, so every run on one device gives identical results, bit for bit.
    """
    n, d = Y.shape
    if Y.is_cuda and d <= 3:
        from . import fused  # Triton comes only with PyTorch for GPUs

        return fused.edges(Y.contiguous(), A, kernel, potential)
    if Y.is_cuda and d <= WIDEST:
        from . import wide_triton as wide

        return wide.edges(Y.contiguous(), A, kernel, potential)
    psi = torch.zeros((), dtype=torch.float64, device=Y.device)
    force = torch.empty_like(Y)

    def rows(part: slice) -> None:
        offsets = A.indptr[part.start : part.stop + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        own = torch.repeat_interleave(Y[part], offsets.diff(), dim=0, output_size=last - first)
        diff = own - Y[A.indices[first:last]]
        d2 = diff.square().sum(dim=1)
        a = A.data[first:last]
        if potential:
            value, slope = kernel.both(d2)
            psi.add_((a * value).sum(dtype=torch.float64))
        else:
            slope = kernel.slope(d2)
        force[part] = torch.segment_reduce((a * slope)[:, None] * diff, "sum", offsets=offsets - first, axis=0)

    in_tiles(n, 2 * d * -(-A.nnz // max(1, n)), rows)
    return psi if potential else torch.nan, force
