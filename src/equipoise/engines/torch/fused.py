"""The primitives as single kernels of a GPU, in Triton, which comes with PyTorch for GPUs alone."""

from __future__ import annotations

from .flag_triton import accept_step, flag_extent
from .mesh_triton import box, gather, spread, turned
from .pairs_triton import direct, edges

__all__ = ["accept_step", "box", "direct", "edges", "flag_extent", "gather", "spread", "turned"]
