"""The points of a frame in shades of trust."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._types import Array
from ...evaluate import Measured
from ..shading import UNMEASURED, Shading, by_trust
from .history import Frame


class TrustColors(NamedTuple):
    """A code for every point, −1 where it was not measured; the shades, the mean, and the iteration it holds for."""

    codes: Array
    shading: Shading
    mean: float
    iteration: int


def trust_colors(measured: Measured, n: int, frame: Frame) -> TrustColors:
    """Return the shades of the n points of a frame."""
    values = np.ones(len(measured.points)) if measured.values is None else measured.values
    shading = by_trust(values)
    codes = np.full(n, -1, np.int32)
    codes[measured.points] = shading.codes
    return TrustColors(codes, shading, float(measured), frame.iteration)


__all__ = ["UNMEASURED", "TrustColors", "trust_colors"]
