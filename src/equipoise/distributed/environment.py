"""The group that a launcher describes by environment variables."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from .group import DEFAULT_TIMEOUT, Group, SingleProcess, checked_timeout
from .torch_group import TorchGroup

_group: TorchGroup | None = None  # of this process


def current_group(group: Group | None = None, timeout: float = DEFAULT_TIMEOUT, backend: str = "gloo") -> Group:
    """Return the group of ranks that this process belongs to.

    Parameters
    ----------
    group : Group, optional
        Returned if given.
    timeout : float, default=300
        The time limit of a collective in seconds.
    backend : {"gloo", "nccl"}, default="gloo"
        How ranks communicate, see `TorchGroup`.

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
        _group = TorchGroup(timeout, backend)
    return _group


def read_environment(variables: Mapping[str, str]) -> tuple[int, int]:
    """Return rank and size as set by RANK and WORLD_SIZE, or (0, 1); raise if variables are missing or contradict."""
    if not ("RANK" in variables or "WORLD_SIZE" in variables):
        return 0, 1
    size = _integer(variables, "WORLD_SIZE", 1)
    rank = _integer(variables, "RANK", 0)
    if rank >= size:
        raise ValueError(f"RANK={rank} must be less than WORLD_SIZE={size}")
    if size > 1:
        if not variables.get("MASTER_ADDR"):
            raise ValueError(f"MASTER_ADDR is not set, but WORLD_SIZE={size}: set it to the host of rank 0")
        if _integer(variables, "MASTER_PORT", 1) > 65535:
            raise ValueError(f"MASTER_PORT={variables['MASTER_PORT']} is no port; use 1024 to 65535")
    if "LOCAL_RANK" in variables:
        local = _integer(variables, "LOCAL_RANK", 0)
        if local > rank:
            raise ValueError(f"LOCAL_RANK={local} must not be greater than RANK={rank}")
    return rank, size


def _integer(variables: Mapping[str, str], name: str, least: int) -> int:
    text = variables.get(name)
    if text is None:
        there = ", ".join(f"{n}={variables[n]}" for n in ("RANK", "WORLD_SIZE") if n in variables)
        raise ValueError(f"{name} is not set, but {there}: a launcher such as torchrun sets both")
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name}={text!r} must be an integer of at least {least}")
    return int(text)
