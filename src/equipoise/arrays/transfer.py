"""Between the memory of the host and that of a device."""

from __future__ import annotations

import torch

from .._types import Array


def from_array(A: Array) -> torch.Tensor:
    """Return an array as a tensor, in the same memory where that may be written to: PyTorch knows no other."""
    return torch.from_numpy(A if A.flags.writeable else A.copy())


def again(device: str) -> torch.device:
    """Return where what was on a device goes in another process: there, or to the CPU where there is no GPU."""
    return torch.device(device if device != "cuda" or torch.cuda.is_available() else "cpu")
