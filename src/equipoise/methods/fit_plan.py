"""What a fit consists of apart from the data, for programs that build the problem themselves."""

from __future__ import annotations

from typing import NamedTuple

from ..geometry import Geometry
from ..inputs import Input
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


def sized_geometry(geometry: Geometry, n: int, d: int, kernel: Kernel) -> Geometry:
    """Return a geometry with its sizes for n points in d dimensions; raise ValueError if it cannot hold such a map."""
    geometry = geometry.resolved(n, d, kernel.length)
    geometry.check(d, kernel.length)
    return geometry


def check_dimension(n_components: int, needed: int, data: Input) -> None:
    """Raise ValueError if a map that needs `needed` dimensions has more than the data can fill."""
    if (excess := needed - data.limit) > 0:
        raise ValueError(
            f"n_components={n_components} is too large for {data.limited_by}; use at most {n_components - excess}"
        )
