"""Arrays of NumPy on a device of PyTorch."""

from __future__ import annotations

from typing import Any

from .._types import Array
from ..room import require_room


def on_device(A: Array, device: str | None) -> Any:
    """Return A as a tensor on a device, in its own precision; A itself if there is none."""
    if device is None:
        return A
    import torch

    if device == "cuda":
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # PyTorch's own, and free
        require_room(2 * A.nbytes, f"a matrix {A.shape} with its copy on the GPU", torch.cuda.mem_get_info()[0] + kept)
    return torch.as_tensor(A, device=device)
