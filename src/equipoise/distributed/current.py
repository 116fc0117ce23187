"""The group that this process belongs to."""

from __future__ import annotations

import os
import sys

from .environment import read_environment
from .group import DEFAULT_TIMEOUT, Group, SingleProcess, checked_timeout
from .torch_group import TorchGroup

_group: TorchGroup | None = None  # of this process


def current_group(
    group: Group | None = None, timeout: float = DEFAULT_TIMEOUT, backend: str | None = None, *, default: str = "gloo"
) -> Group:
    """Return the group of ranks that this process belongs to.

    Parameters
    ----------
    group : Group, optional
        Returned if given.
    timeout : float, default=300
        The time limit of a collective in seconds.
    backend : {"auto", "gloo", "nccl"}, optional
        How ranks communicate, see `TorchGroup`; by default, the environment variable EQUIPOISE_BACKEND, or `default`.
    default : {"auto", "gloo", "nccl"}, default="gloo"
        The backend if neither `backend` nor EQUIPOISE_BACKEND is set.

    Returns
    -------
    Group
        `group` if given; a `TorchGroup` if torch.distributed is initialised, or if RANK and WORLD_SIZE are set, as
        torchrun does, to more than one rank; a `SingleProcess` otherwise. Later calls in the same process return the
        same `TorchGroup` until it is closed.
    """
    global _group
    if group is not None:
        if not isinstance(group, Group):
            raise TypeError(f"group must be an equipoise.distributed.Group or None, got {type(group).__name__}")
        return group
    timeout = checked_timeout(timeout)
    rank, size = read_environment(os.environ)
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        if size > 1 and (rank, size) != (dist.get_rank(), dist.get_world_size()):
            raise RuntimeError(
                f"RANK={rank} and WORLD_SIZE={size} contradict torch.distributed, which was initialised as rank"
                f" {dist.get_rank()} of {dist.get_world_size()}"
            )
    elif size == 1:
        return SingleProcess(timeout)
    if _group is None or _group.closed:
        _group = TorchGroup(timeout, backend or os.environ.get("EQUIPOISE_BACKEND") or default)
    return _group
