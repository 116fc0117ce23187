"""Whether something large fits in the memory of this machine, asked before it is begun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def physical_memory() -> float:
    """Return the bytes of memory that the machine has; infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def require_room(n_bytes: float, what: str, there: float) -> None:
    """Raise unless `there`, the bytes of a memory, are enough for what takes `n_bytes`."""
    if n_bytes > there:
        raise MemoryError(f"{what} takes about {n_bytes / 1e9:.3g} GB, and there are {there / 1e9:.3g} GB")


@contextmanager
def explained(what: Callable[[], tuple[str, float]]) -> Iterator[None]:
    """Say what a GPU has no room for, and how many bytes that takes, where its memory runs out within."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":  # PyTorch's, which need not be there
            raise
        from .tiles import no_room

        raise no_room(*what()) from None
