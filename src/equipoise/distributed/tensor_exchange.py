"""Collectives on tensors: between GPUs directly over NCCL, otherwise through copies in host memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .group import Group
from .torch_group import TorchGroup

INTEGERS = {4: torch.int32, 8: torch.int64}  # by the number of bytes of an element


class TensorExchange:
    """The collectives of a fit on tensors, all of which have results that do not depend on the number of ranks.

    Parameters
    ----------
    group : Group
        If it is a `TorchGroup` over NCCL, tensors on its device are sent directly, and those on the CPU as arrays.
    """

    def __init__(self, group: Group):
        self.group = group
        self._gpu_group = group if isinstance(group, TorchGroup) and group.device.type == "cuda" else None
        self._alone = group.size == 1 and self._gpu_group is None

    def _direct(self, x: torch.Tensor) -> TorchGroup | None:
        """Return the group if it sends x itself, which must be on its device, and None if x is sent as an array."""
        return self._gpu_group if self._gpu_group is not None and x.device == self._gpu_group.device else None

    def add(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum of integers x over all ranks; x may be overwritten."""
        if self._alone:
            return x
        if (group := self._direct(x)) is not None:
            x = x.contiguous()
            group.run("all_reduce", x)
            return x
        return torch.from_numpy(self.group.all_reduce(x.cpu().numpy())).to(x.device)

    def minimum(self, x: torch.Tensor) -> torch.Tensor:
        """Return the minimum of x over all ranks; x may be overwritten."""
        if self._alone:
            return x
        if (group := self._direct(x)) is not None:
            x = x.contiguous()
            group.run("all_reduce", x, op=torch.distributed.ReduceOp.MIN)
            return x
        return torch.from_numpy(self.group.all_reduce(x.cpu().numpy(), "min")).to(x.device)

    def gather_rows(self, x: torch.Tensor, first: int, count: int) -> torch.Tensor:
        """Return the rows (count, ...) of all ranks; those of this rank, x, begin at row `first`.

        Each row is zero on all ranks but one, so that the sums of its bits, taken as integers, are the bits themselves.
        """
        if self._alone:
            return x
        rows = torch.zeros((count, *x.shape[1:]), dtype=x.dtype, device=x.device)
        rows[first : first + len(x)] = x
        return self.add(rows.view(INTEGERS[x.element_size()])).view(x.dtype)

    def swap(self, rows: torch.Tensor, sent: list[int], received: list[int]) -> torch.Tensor:
        """Send rows (m, d) to the ranks, `sent[r]` of them to rank r, and return those received, in order of ranks."""
        if self._alone:
            return rows
        if (group := self._direct(rows)) is not None:
            result = rows.new_empty((sum(received), *rows.shape[1:]))
            group.run("all_to_all_single", result, rows.contiguous(), received, sent)
            return result
        parts: list[Any] = np.split(rows.cpu().numpy(), np.cumsum(sent)[:-1])
        return torch.from_numpy(np.concatenate(self.group.all_to_all(parts))).to(rows.device)
