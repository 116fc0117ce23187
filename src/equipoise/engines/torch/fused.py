"""The primitives as single kernels of a GPU, in Triton, which comes with PyTorch for GPUs alone."""

from __future__ import annotations

from .flag_triton import take, watch
from .mesh_triton import box, gather, spread, turned
from .pairs_triton import direct, edges

__all__ = ["box", "direct", "edges", "gather", "spread", "take", "turned", "watch"]
