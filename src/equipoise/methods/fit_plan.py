"""What a fit consists of apart from the data, for programs that build the problem themselves."""

from __future__ import annotations

from typing import NamedTuple

from ..geometry import Geometry
from ..kernels import Kernel
from ..optimize.rules import Rule, Schedule


class FitPlan(NamedTuple):
    """What a fit of a given number of points consists of, apart from the data."""

    kernel: Kernel
    geometry: Geometry
    schedule: Schedule
    rule: Rule
    n_neighbors: int  # neighbours per point in the data
    n_threads: int
