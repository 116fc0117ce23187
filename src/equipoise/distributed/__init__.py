"""Several processes and machines: ranks that communicate through torch.distributed."""

from __future__ import annotations

from .blocked_sums import blocked_sum
from .current import current_group
from .dask_ranks import run
from .group import Group, SingleProcess
from .launch import run_ranks
from .rank_error import RankError
from .rank_fit import fit
from .rank_map import RankMap
from .torch_group import TorchGroup

__all__ = [
    "Group",
    "RankError",
    "RankMap",
    "SingleProcess",
    "TorchGroup",
    "blocked_sum",
    "current_group",
    "fit",
    "run",
    "run_ranks",
]
