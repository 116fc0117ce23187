"""Collects the GPU kernels in Triton: edges, field, planned steps, and the flag that stops replayed steps.

Triton comes only with PyTorch for GPUs, so import this module only where a GPU is used.
"""

from __future__ import annotations

from .flag_triton import accept_step, flag_extent
from .mesh_triton import bounding_box, gather, spread, transpose_padded
from .pairs_triton import direct, edges, row_edges
from .planned_triton import advance

__all__ = [
    "accept_step", "advance", "bounding_box", "direct", "edges", "flag_extent", "gather", "row_edges", "spread",
    "transpose_padded",
]  # fmt: skip
