"""Points and charges on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...arrays import is_tensor

Solved = Callable[[Any], tuple[Any, Any]]  # targets (t, d) → potential (t, m) and gradient (t, m, d)


def as_given(given: Any, result: torch.Tensor) -> Any:
    """Return a result as what was given: a tensor, or an array of NumPy in float64."""
    return result if is_tensor(given) else result.double().cpu().numpy()


class DeviceSource:
    """Points (n, d) and their charges (n, m) on a device, and the box they lie in, which is known here."""

    def __init__(self, Y: torch.Tensor, charges: torch.Tensor | None):
        self.Y = Y.contiguous()
        c = torch.ones(len(Y), device=Y.device) if charges is None else charges
        self.charges = c.reshape(len(Y), -1)
        self.shape, self.charged = tuple(c.shape), charges is not None
        self.low, self.high = torch.stack(torch.aminmax(Y, dim=0)).cpu().numpy().astype(np.float64)
