"""Which GPU a rank uses, and whether ranks with GPUs communicate through NCCL or gloo."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .._warn import warn
from .rank_error import name_ranks


def count_gpus() -> int:
    """Return the number of GPUs of this machine that PyTorch can use."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def own_gpu(rank: int) -> int | None:
    """Return the number of the GPU of a rank: LOCAL_RANK, by default its rank, or None if this machine has no GPU.

    If there are fewer GPUs, several ranks share one. A launcher may also show each rank a single GPU of its own.
    """
    count = count_gpus()
    return int(os.environ.get("LOCAL_RANK", rank)) % count if count else None


def use_own_gpu(rank: int) -> None:
    """Make the GPU of a rank the current one of PyTorch."""
    import torch

    if (number := own_gpu(rank)) is not None:
        torch.cuda.set_device(number)


def identify_gpu(rank: int, host: str) -> str | None:
    """Return a name of the GPU of a rank that no other GPU has, or None if there is no GPU."""
    import torch

    if (number := own_gpu(rank)) is None:
        return None
    return f"{host} {getattr(torch.cuda.get_device_properties(number), 'uuid', number)}"


def choose_backend(backend: str, gpus: Sequence[str | None], hosts: Sequence[str], has_nccl: bool) -> str:
    """Return "gloo" or "nccl".

    Parameters
    ----------
    backend : {"auto", "gloo", "nccl"}
        What the user asked for; "auto" is "nccl" if every rank has a GPU of its own.
    gpus : sequence of str or None
        The GPU of each rank.
    hosts : sequence of str
        The host of each rank.
    has_nccl : bool
        Whether PyTorch was built with NCCL.
    """
    without = [rank for rank, gpu in enumerate(gpus) if gpu is None]
    shared = [rank for rank, gpu in enumerate(gpus) if gpu is not None and gpus.count(gpu) > 1]
    if backend != "nccl":
        return "nccl" if backend == "auto" and has_nccl and not (without or shared) else "gloo"
    advice = 'use backend="gloo", or at most one rank for each GPU'
    if without:
        raise RuntimeError(f'backend="nccl" needs a GPU for each rank, but {name_ranks(without)} found none; {advice}')
    if shared:
        same = [rank for rank in shared if gpus[rank] == gpus[shared[0]]]
        raise RuntimeError(
            f'backend="nccl" needs a GPU for each rank, but {name_ranks(same)} share one on {hosts[same[0]]}; {advice}'
        )
    if not has_nccl:
        raise RuntimeError('this build of PyTorch has no NCCL; use backend="gloo"')
    return backend


def warn_of_shared_gpus(gpus: Sequence[str | None], counts: Sequence[int], hosts: Sequence[str]) -> None:
    """Warn if ranks share a GPU of a machine that has several, and only this keeps all ranks from using NCCL.

    Parameters
    ----------
    gpus : sequence of str or None
        The GPU of each rank.
    counts : sequence of int
        The number of GPUs of each rank's machine.
    hosts : sequence of str
        The host of each rank.
    """
    shared = [rank for rank, gpu in enumerate(gpus) if gpus.count(gpu) > 1 and counts[rank] > 1]
    if None in gpus or not shared:
        return
    same = [rank for rank in shared if gpus[rank] == gpus[shared[0]]]
    warn(
        f"{name_ranks(same)} share one GPU on {hosts[same[0]]}, so messages pass through gloo; set LOCAL_RANK, or start"
        " at most one rank for each GPU"
    )
