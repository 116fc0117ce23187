"""Arrays of NumPy on a device of PyTorch."""

from __future__ import annotations

from typing import Any

from .._types import Array
from ..arrays.memory_limits import require_room


def on_device(A: Array, device: str | None) -> Any:
    """Return A as a tensor on a device, in its own precision; A itself if there is none."""
    if device is None:
        return A
    import torch

    require_room_there(2 * A.nbytes, f"a matrix {A.shape} on the GPU, with what is made of it,", device)
    return torch.as_tensor(A, device=device)


def require_room_there(n_bytes: float, what: str, device: str) -> None:
    """Raise unless a GPU has so many bytes free."""
    if device == "cuda":
        import torch

        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # PyTorch's own, and free
        require_room(n_bytes, what, torch.cuda.mem_get_info()[0] + kept)
