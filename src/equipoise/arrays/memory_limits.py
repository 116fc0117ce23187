"""Memory checks before large allocations, and the error raised when a GPU runs out of memory."""

from __future__ import annotations

import os
from pathlib import Path

try:
    from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, getrlimit
except ImportError:  # Windows has no resource limits
    RESOURCE_LIMITS: tuple[int, ...] = ()
else:
    RESOURCE_LIMITS = (RLIMIT_AS, RLIMIT_DATA)

CGROUPS = Path("/sys/fs/cgroup")
NO_LIMIT = 2.0**60  # bytes; control groups of version 1 without a limit report nearly 2**63
GROUP_FILES = "memory.max", "memory.limit_in_bytes"  # of control groups, versions 2 and 1
GROUP_USAGE = (  # files with the limit and the usage of a control group, versions 2 and 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
ADVICE = "use fewer rows"
GPU_ADVICE = 'use fewer rows or device="cpu"'  # engine="auto" would send a CUDA tensor back to the GPU


def physical_memory() -> float:
    """Return the main memory that this process may use, in bytes; infinity if the system does not report it.

    It is the memory of the machine, or less if the control group or a resource limit of the process allows less.
    """
    try:
        machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        machine = float("inf")
    return min(machine, _group_limit(), address_limit())


def address_limit() -> float:
    """Return the smaller of the limits `ulimit -v` and `ulimit -d` of this process in bytes; infinity without any."""
    limits = [getrlimit(kind)[0] for kind in RESOURCE_LIMITS]
    return min((float(limit) for limit in limits if limit != RLIM_INFINITY), default=float("inf"))


def address_space_left() -> float:
    """Return how many bytes the address space may still grow; infinity without a resource limit."""
    limit = address_limit()
    if limit == float("inf"):
        return limit
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return limit
    return max(0.0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _group_limit() -> float:
    """Return the lowest memory limit, in bytes, of the control group of this process and the groups around it."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("inf")
    limit = float("inf")
    for line in lines:  # number:controllers:path
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        group = CGROUPS / controllers / path.lstrip("/")
        for folder in (group, *group.parents):
            limit = min(limit, *(_bytes_in(folder / name) for name in GROUP_FILES))
            if folder == CGROUPS:
                break
    return limit


def _bytes_in(path: Path) -> float:
    """Return the limit in a file, in bytes; infinity if there is no file or no limit."""
    try:
        value = float(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max" is no limit
        return float("inf")
    return value if value < NO_LIMIT else float("inf")


def available_memory() -> float:
    """Return how many bytes this process can still allocate, within the machine, the control group and the limits."""
    return min(_unused_memory(), _left_in_cgroup(), address_space_left())


def require_memory(n_bytes: float, what: str, available: float, advice: str = ADVICE) -> None:
    """Raise MemoryError if n_bytes exceed the `available` bytes.

    The message is "`what` needs about … GB, but only … GB are available; `advice`".
    """
    if n_bytes > available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 1e9:.3g} GB, but only {max(available, 0) / 1e9:.3g} GB are available;"
            f" {advice}"
        )


def _unused_memory() -> float:
    """Return the free and reclaimable memory of the machine in bytes; all of its memory if that is not reported."""
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return physical_memory()


def _left_in_cgroup() -> float:
    """Return the bytes left below the limit of the control group, such as a container; infinity without a limit."""
    for limit, usage in GROUP_USAGE:
        values = [next(iter(_lines(path)), "") for path in (limit, usage)]
        if all(value.isdecimal() for value in values):  # "max" is no limit
            return float(values[0]) - float(values[1])
    return float("inf")


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
