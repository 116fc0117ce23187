"""Computes the forces on one point of a map, which the page shows as arrows."""

from __future__ import annotations

from typing import NamedTuple

from ..._types import Array
from .history import Frame
from .method_run import MethodRun
from .run import Run

PULLS = 30  # maximum number of neighbours shown; chosen


class Forces(NamedTuple):
    """The attraction and repulsion (d,) on a point, and the points `near` with the largest `affinities` to it."""

    attraction: Array
    repulsion: Array
    near: Array
    affinities: Array

    @classmethod
    def of(cls, run: MethodRun, frame: Frame, i: int) -> Forces | None:
        """Return the forces on point i of a frame of a run; None if its method does not iterate."""
        if not isinstance(run, Run):
            return None
        return cls(*run.forces(frame, i), *run.pulls(i, PULLS))
