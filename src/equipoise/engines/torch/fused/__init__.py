"""The primitives as single kernels of a GPU, in Triton, which comes with PyTorch for GPUs alone."""

from __future__ import annotations

from .flag import take, watch
from .mesh import box, gather, spread, turned
from .pairs import direct, edges

__all__ = ["box", "direct", "edges", "gather", "spread", "take", "turned", "watch"]
