"""Moves between NumPy arrays and devices of PyTorch."""

from __future__ import annotations

import torch

from .._types import Array


def from_array(A: Array) -> torch.Tensor:
    """Return a NumPy array as a tensor that shares its memory; read-only memory, which PyTorch rejects, is copied."""
    return torch.from_numpy(A if A.flags.writeable else A.copy())


def again(device: str) -> torch.device:
    """Return the device of this name to restore tensors to; the CPU if there is no GPU."""
    return torch.device(device if device != "cuda" or torch.cuda.is_available() else "cpu")
