"""Memory checks before large allocations, and the error raised when a GPU runs out of memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

try:
    from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, getrlimit
except ImportError:  # Windows has no resource limits
    RESOURCE_LIMITS: tuple[tuple[int, int], ...] = ()
else:
    RESOURCE_LIMITS = ((RLIMIT_AS, 0), (RLIMIT_DATA, 5))  # each with the field of /proc/self/statm that it limits

STATM = Path("/proc/self/statm")
OWN_GROUPS = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")
NO_LIMIT = 2.0**60  # bytes; control groups of version 1 without a limit report nearly 2**63
GROUP_FILES = (  # the limit and the usage of a control group, versions 2 and 1
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)
ADVICE = "use fewer rows"
GPU_ADVICE = 'use fewer rows or device="cpu"'  # engine="auto" would send a CUDA tensor back to the GPU


def physical_memory() -> float:
    """Return the main memory that this process is allowed to use, in bytes; infinity if the system does not report it.

    This is the memory of the machine, or less if the control group or a resource limit of the process allows less.
    """
    try:
        machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        machine = float("inf")
    return min(machine, _group_limit(), address_limit())


def address_limit() -> float:
    """Return the smaller of this process's limits `ulimit -v` and `ulimit -d` in bytes; infinity if neither is set."""
    return min((limit for limit, _ in _resource_limits()), default=float("inf"))


def address_space_left() -> float:
    """Return by how many bytes the address space of this process can grow; infinity if no resource limit is set."""
    limits = _resource_limits()
    if not limits:
        return float("inf")
    try:
        pages = [int(field) for field in STATM.read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return address_limit()
    page = os.sysconf("SC_PAGE_SIZE")
    return max(0.0, min(limit - pages[field] * page for limit, field in limits))


def _resource_limits() -> list[tuple[float, int]]:
    """Return (limit, field) for each resource limit that is set.

    `limit` is in bytes. `field` is the index of the limited size in the file `STATM`.
    """
    limits = [(getrlimit(kind)[0], field) for kind, field in RESOURCE_LIMITS]
    return [(float(limit), field) for limit, field in limits if limit != RLIM_INFINITY]


def _groups() -> Iterator[Path]:
    """Yield the folders of the control groups of this process, and of their parent groups."""
    for line in _lines(OWN_GROUPS):  # number:controllers:path
        _, _, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if not separator or controllers not in ("", "memory"):
            continue
        group = CGROUPS / controllers / path.lstrip("/")
        for folder in (group, *group.parents):
            yield folder
            if folder == CGROUPS:
                break


def _group_limit() -> float:
    """Return the lowest memory limit, in bytes, of the control groups of this process and their parent groups."""
    return min((_bytes_in(group / name) for group in _groups() for name, _ in GROUP_FILES), default=float("inf"))


def _left_in_groups() -> float:
    """Return how many more bytes this process can use before one of its control groups reaches its limit.

    Memory of cached files can be freed, so it counts as unused.
    """
    left = float("inf")
    for group in _groups():
        for limit, usage in GROUP_FILES:
            if (most := _bytes_in(group / limit)) < float("inf"):
                used = _bytes_in(group / usage)
                used = 0.0 if used == float("inf") else max(0.0, used - _file_cache(group))
                left = min(left, max(0.0, most - used))
    return left


def _file_cache(group: Path) -> float:
    """Return the bytes of cached files that count as used by a control group and the groups inside it."""
    fields = dict(line.split(" ", 1) for line in _lines(group / "memory.stat") if " " in line)
    names = ("inactive_file", "active_file")  # version 1 counts the groups inside under "total_" only
    return sum(float(fields.get(f"total_{name}", fields.get(name, 0))) for name in names)


def _bytes_in(path: Path) -> float:
    """Read a number of bytes from a file of a control group; return infinity if there is no file or no limit."""
    try:
        value = float(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # "max" is no limit
        return float("inf")
    return value if value < NO_LIMIT else float("inf")


def available_memory() -> float:
    """Return how many bytes this process can still allocate, given the machine, control groups and resource limits."""
    return min(_unused_memory(), _left_in_groups(), address_space_left())


def require_memory(n_bytes: float, what: str, available: float, advice: str = ADVICE) -> None:
    """Raise MemoryError if `n_bytes` is greater than `available`, both in bytes.

    The message is "`what` needs about … GB, but only … GB are available; `advice`".
    """
    if n_bytes > available:
        raise MemoryError(
            f"{what} needs about {n_bytes / 1e9:.3g} GB, but only {max(available, 0) / 1e9:.3g} GB are available;"
            f" {advice}"
        )


def _unused_memory() -> float:
    """Return the free and reclaimable memory of the machine in bytes; `physical_memory()` if it is not reported."""
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return physical_memory()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
    except OSError:
        return []


def is_out_of_memory(error: Exception) -> bool:
    """Return whether PyTorch raised this error because GPU memory ran out; PyTorch is not imported."""
    return type(error).__name__ == "OutOfMemoryError"


def gpu_out_of_memory(what: str, n_bytes: float, smaller: str = "perplexity or n_neighbors") -> MemoryError:
    """Return the error for a GPU that has too little memory for `what`, which needs `n_bytes`.

    `smaller` names the parameters that the message recommends to reduce.
    """
    import torch

    free = f", {torch.cuda.mem_get_info()[0] / 1e9:.2g} GB are free" if torch.cuda.is_available() else ""
    return MemoryError(
        f"GPU out of memory: {what} needs about {n_bytes / 1e9:.2g} GB{free}."
        f' Use fewer rows, a smaller {smaller}, or device="cpu".'
    )
