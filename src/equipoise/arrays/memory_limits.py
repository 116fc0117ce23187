"""Memory checks before large allocations, and the error raised when a GPU runs out of memory."""

from __future__ import annotations

import os


def physical_memory() -> float:
    """Return the main memory of the machine in bytes; infinity if the system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def require_memory(n_bytes: float, what: str, available: float) -> None:
    """Raise MemoryError if `what` needs more than the `available` bytes."""
    if n_bytes > available:
        raise MemoryError(f"{what} needs about {n_bytes / 1e9:.3g} GB, but only {available / 1e9:.3g} GB are available")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether PyTorch raised this error because GPU memory ran out; PyTorch is not imported."""
    return type(error).__name__ == "OutOfMemoryError"


def gpu_out_of_memory(what: str, n_bytes: float) -> MemoryError:
    """Return the error for a GPU that has too little memory for `what`, which needs `n_bytes`."""
    import torch

    free = f", {torch.cuda.mem_get_info()[0] / 1e9:.2g} GB are free" if torch.cuda.is_available() else ""
    return MemoryError(
        f"GPU out of memory: {what} needs about {n_bytes / 1e9:.2g} GB{free}."
        ' Use fewer rows, a smaller perplexity or n_neighbors, or device="cpu".'
    )
