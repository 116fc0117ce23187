"""Draw the attraction and repulsion on the points of a map as arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Array
from .charts import Chart
from .spacing import spaced_rows
from .style import Theme, add_legend

if TYPE_CHECKING:
    from ..problems.forces import Problem

SPACING = 1 / 22  # minimum distance between two arrows, as a fraction of the larger side of the map; chosen
LONGEST = 2.0  # length of an arrow at the 98 % quantile, in units of that minimum distance; chosen
INSIDE = 0.95  # largest length of an arrow in the disk, in units of the radius of curvature: 1 reaches the rim; chosen


def draw_forces(axes: Any, chart: Chart, Y: Array, problem: Problem, theme: Theme) -> None:
    """Draw the attraction and repulsion on points of a map as arrows, all on the same scale.

    Only points that are far enough apart get arrows. At equilibrium the two arrows of a point have the same length and
    opposite directions. In the Poincaré disk the arrows are tangent vectors with lengths of the hyperbolic metric:
    equal forces have shorter arrows towards the rim.

    Parameters
    ----------
    axes : matplotlib Axes
    chart : Chart
        How the points of Y are drawn.
    Y : ndarray of shape (n, 2)
        The map.
    problem : Problem
    theme : Theme
    """
    forces = {"attraction": problem.attraction(Y), "repulsion": problem.repulsion(Y)}
    extent = chart.extent if chart.disk else chart.points
    spacing = SPACING * float(np.ptp(extent, axis=0).max())
    rows = spaced_rows(chart.points, spacing) if spacing > 0 else np.arange(1)
    # A metric length ℓ is drawn with the length ℓ/λ, and the vector of a force F, the negative derivative of the loss
    # by y, is F/λ² with the length ‖F‖/λ in the metric: λ = 2/(1 − ‖y‖²) in the disk, in units of R, and 1 elsewhere.
    squared = (Y[rows] ** 2).sum(axis=1, keepdims=True) if chart.disk else np.ones((len(rows), 1))
    lengthening = 2 / (1 - squared) if chart.disk else squared
    arrows = {name: force[rows] / lengthening for name, force in forces.items()}
    lengths = np.concatenate([np.linalg.norm(arrow, axis=1) for arrow in arrows.values()])
    quantile = float(np.quantile(lengths, 0.98))
    scale = quantile / (LONGEST * spacing * (2 if chart.disk else 1)) if quantile > 0 else 1.0
    if chart.disk:
        scale = max(scale, float(lengths.max()) / INSIDE)
    for (name, arrow), color in zip(arrows.items(), theme.colors, strict=False):
        quiver = axes.quiver(
            *chart.points[rows].T, *(arrow / lengthening).T, color=color, angles="xy", scale_units="xy", scale=scale,
            width=0.004, label=name, zorder=4,
        )  # fmt: skip
        quiver.set_gid(name)
    add_legend(axes, ncols=2, labelcolor=theme.text)
