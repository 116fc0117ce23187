"""The two forces on the points of a map, as arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from .spacing import thin
from .style import Theme

if TYPE_CHECKING:
    from ..problems.forces import Problem

APART = 1 / 22  # distance of two points with arrows, as a part of the broader side of the map; chosen
LONGEST = 2.0  # length of the longest arrow but for one in fifty, in units of that distance; chosen


def draw_forces(axes: Any, Y: Array, problem: Problem, theme: Theme) -> None:
    """Draw attraction and repulsion at some points of a map Y (n, 2), to one scale: what cancels is in balance."""
    forces = {"attraction": problem.attraction(Y), "repulsion": problem.repulsion(Y)}
    apart = APART * float(np.ptp(Y, axis=0).max())
    rows = thin(Y, apart) if apart > 0 else np.arange(1)
    lengths = np.concatenate([np.linalg.norm(force[rows], axis=1) for force in forces.values()])
    longest = float(np.quantile(lengths, 0.98))
    scale = longest / (LONGEST * apart) if longest > 0 else 1.0
    for (name, force), color in zip(forces.items(), theme.colors, strict=False):
        arrows = axes.quiver(
            *Y[rows].T, *force[rows].T, color=color, angles="xy", scale_units="xy", scale=scale, width=0.004,
            label=name, zorder=4,
        )  # fmt: skip
        arrows.set_gid(name)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, labelcolor=theme.ink)
