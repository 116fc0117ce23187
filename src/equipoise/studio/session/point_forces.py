"""The forces on one point of a run."""

from __future__ import annotations

from typing import NamedTuple

from ..._types import Array
from .history import Frame
from .run import Run

PULLS = 30  # maximum number of neighbours shown; chosen


class Forces(NamedTuple):
    """Attraction and repulsion (d,) on the selected point, and its neighbours `near` with their affinities."""

    attraction: Array
    repulsion: Array
    near: Array
    affinities: Array

    @classmethod
    def of(cls, run: Run, frame: Frame, i: int) -> Forces:
        """Return the forces on point i of a frame of a run."""
        return cls(*run.forces(frame, i), *run.pulls(i, PULLS))
