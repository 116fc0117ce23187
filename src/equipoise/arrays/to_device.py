"""Copies NumPy arrays to PyTorch devices, after a check of the free memory."""

from __future__ import annotations

from typing import Any

from .._types import Array
from .memory_limits import GPU_ADVICE, require_memory


def to_device(A: Array, device: str | None) -> Any:
    """Return A as a tensor of the same precision on a device; A itself if device is None."""
    if device is None:
        return A
    import torch

    require_gpu_memory(2 * A.nbytes, f"a matrix of shape {A.shape}, with its derived arrays, on the GPU", device)
    return torch.as_tensor(A, device=device)


def as_tensor(A: Array) -> Any:
    """Return a NumPy array as a tensor that shares its memory; a read-only array is copied.

    PyTorch has no read-only tensors: it would warn, and writing to the tensor would change the read-only array.
    """
    import torch

    return torch.from_numpy(A if A.flags.writeable else A.copy())


def available_device(name: str) -> Any:
    """Return the PyTorch device for saved tensors: `name`, or the CPU if `name` is "cuda" and there is no GPU."""
    import torch

    return torch.device(name if name != "cuda" or torch.cuda.is_available() else "cpu")


def require_gpu_memory(n_bytes: float, what: str, device: str) -> None:
    """Raise MemoryError if device is "cuda" and the GPU has less than n_bytes free; the message begins with `what`."""
    if device == "cuda":
        import torch

        cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # reserved by PyTorch but unused
        require_memory(n_bytes, what, torch.cuda.mem_get_info()[0] + cached, GPU_ADVICE)
