"""Memory checks before large allocations, and the error raised when a GPU runs out of memory."""

from __future__ import annotations

import os
from pathlib import Path

CGROUPS = (  # files with the limit and the usage of a control group, versions 2 and 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
ADVICE = "use fewer rows"
GPU_ADVICE = 'use fewer rows or device="cpu"'  # engine="auto" would send a CUDA tensor back to the GPU


def physical_memory() -> float:
    """Return the main memory of the machine in bytes; infinity if the system does not report it."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def available_memory() -> float:
    """Return the bytes that this process can still allocate: the least that machine, control group and limits leave."""
    return min(_unused_memory(), _left_in_cgroup(), _left_of_address_space())


def require_memory(n_bytes: float, what: str, available: float, advice: str = ADVICE) -> None:
    """Raise MemoryError if `what` needs more than the `available` bytes; `advice` says what to change."""
    if n_bytes > available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 1e9:.3g} GB, but only {max(available, 0) / 1e9:.3g} GB are available;"
            f" {advice}"
        )


def _unused_memory() -> float:
    """Return the free memory of the machine with what the system can reclaim; all memory if it is not reported."""
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return physical_memory()


def _left_in_cgroup() -> float:
    """Return the bytes left below the limit of the control group, such as a container's."""
    for limit, usage in CGROUPS:
        values = [next(iter(_lines(path)), "") for path in (limit, usage)]
        if all(value.isdecimal() for value in values):  # "max" is no limit
            return float(values[0]) - float(values[1])
    return float("inf")


def _left_of_address_space() -> float:
    """Return the bytes left below RLIMIT_AS (`ulimit -v`)."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return float("inf")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return float("inf")
    pages = next(iter(_lines("/proc/self/statm")), "0").split()[0]
    return float(limit) - float(pages) * resource.getpagesize()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").split("\n")
    except OSError:
        return []


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
