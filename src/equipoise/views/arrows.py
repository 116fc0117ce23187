"""Draw the attraction and repulsion on the points of a map as arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from .spacing import spaced_rows
from .style import Theme

if TYPE_CHECKING:
    from ..problems.forces import Problem

SPACING = 1 / 22  # minimum distance between two arrows, as a fraction of the larger side of the map; chosen
LONGEST = 2.0  # length of an arrow at the 98 % quantile, in units of that minimum distance; chosen


def draw_forces(axes: Any, Y: Array, problem: Problem, theme: Theme) -> None:
    """Draw the attraction and repulsion on points of a map Y (n, 2) as arrows, all on the same scale.

    Only points that are far enough apart get arrows. At equilibrium the two arrows of a point have the same length and
    opposite directions.
    """
    forces = {"attraction": problem.attraction(Y), "repulsion": problem.repulsion(Y)}
    spacing = SPACING * float(np.ptp(Y, axis=0).max())
    rows = spaced_rows(Y, spacing) if spacing > 0 else np.arange(1)
    lengths = np.concatenate([np.linalg.norm(force[rows], axis=1) for force in forces.values()])
    longest = float(np.quantile(lengths, 0.98))
    scale = longest / (LONGEST * spacing) if longest > 0 else 1.0
    for (name, force), color in zip(forces.items(), theme.colors, strict=False):
        arrows = axes.quiver(
            *Y[rows].T, *force[rows].T, color=color, angles="xy", scale_units="xy", scale=scale, width=0.004,
            label=name, zorder=4,
        )  # fmt: skip
        arrows.set_gid(name)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, labelcolor=theme.text)
