"""Place the names of classes in a figure: near their points, covering little, without overlapping."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import KDTree

from .._types import Array
from .column import Classes
from .coverage import Coverage
from .style import Theme, shorten

REACH = 10  # maximum distance of a name from the centre of its class, in line heights; chosen
GAP = 4.0  # minimum gap between two names, in pixels; chosen
CORE = 0.6  # fraction of a class, the points nearest to its centre, to which its name stays close; chosen
SAMPLE = 5000  # maximum number of points used to find the one nearest to a position; chosen

# Cost of a position, in units of the covered fraction of the name's box. Chosen by looking at maps: an uncovered
# position is worth three line heights of distance from the class, or being closer to another class, but not both.
DISTANCE_COST = 0.3  # per line height between the name and the core of its class
OTHER_CLASS_COST = 0.8  # if the nearest point belongs to another class
HALO = 4.0  # width of the outline in the background colour around letters, in points of 1/72 inch; chosen

_ANGLES = np.linspace(0, 2 * np.pi, 24, endpoint=False)
RINGS = np.multiply.outer(np.arange(0, REACH, 0.35), np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])).reshape(-1, 2)


def class_centers(points: Array, classes: Classes, period: Array | None = None) -> Array:
    """Return the most central point of each of the c classes, (c, d); NaN for a class without points.

    This is the point with the smallest median distance to its class, among at most 500 points of the class. The mean is
    not used, because it can lie far from all points of a class that consists of several islands. With a `period` (d,),
    distances are those on a torus.
    """
    centers = np.full((len(classes.names), points.shape[1]), np.nan)
    order = np.argsort(classes.codes, kind="stable")
    bounds = np.searchsorted(classes.codes[order], np.arange(len(classes.names) + 1))
    for i in range(len(classes.names)):
        rows = order[bounds[i] : bounds[i + 1]]
        if not len(rows):
            continue
        sample = points[rows[np.linspace(0, len(rows) - 1, min(len(rows), 500)).astype(int)]]
        diff = sample[:, None] - sample[None]
        if period is not None:
            diff = diff - period * np.round(diff / period)
        d2 = (diff**2).sum(axis=2)
        centers[i] = sample[np.partition(d2, len(sample) // 2, axis=1)[:, len(sample) // 2].argmin()]
    return centers


def draw_names(axes: Any, centers: Array, points: Array, classes: Classes, theme: Theme, drawn: Array) -> int:
    """Write the names of the classes, largest class first, and return how many did not fit.

    A name away from its class is connected to it by a line.

    Parameters
    ----------
    axes : matplotlib Axes
    centers : ndarray of shape (c, 2)
        Class centres, in the coordinates of `axes.transData`.
    points : ndarray of shape (n, 2)
        Points, in the same coordinates.
    classes : Classes
    theme : Theme
    drawn : ndarray of shape (m, 4)
        Boxes in pixels that names should avoid: left, bottom, right, top.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    write = axes.text2D if axes.name == "3d" else axes.text
    halo = [withStroke(linewidth=HALO, foreground=theme.background)]
    sizes = np.bincount(classes.codes[classes.codes >= 0], minlength=len(classes.names))
    fontsize = 11 if len(classes.names) <= 10 else 9 if len(classes.names) <= 30 else 7.5
    to_data = axes.transData.inverted()
    placement = _Placement(axes.get_window_extent(), axes.transData.transform(points), classes.codes, drawn)
    left_out = 0
    for i in np.argsort(-sizes, kind="stable"):
        if not sizes[i]:
            continue
        text = write(
            0.5, 0.5, shorten(classes.names[i]), transform=axes.transData, ha="center", va="center", color=theme.text,
            fontsize=fontsize, fontweight="bold", path_effects=halo, parse_math=False, zorder=6,
        )  # fmt: skip
        box = text.get_window_extent()
        position = placement.place(int(i), axes.transData.transform(centers[i]), np.array([box.width, box.height]))
        if position is None:
            text.remove()
            left_out += 1
            continue
        center, anchor, distance = position
        text.set_position(to_data.transform(center))
        if distance > box.height:
            ends = to_data.transform(np.array([anchor, center]))
            line = Line2D(*ends.T, color=theme.text, linewidth=0.8, transform=axes.transData, zorder=5)
            line.set_path_effects([withStroke(linewidth=2.4, foreground=theme.background)])
            axes.add_artist(line)
    return left_out


class _Placement:
    """Finds positions for names one by one, avoiding points and earlier names; all coordinates are in pixels."""

    def __init__(self, frame: Any, pixels: Array, codes: Array, drawn: Array):
        self.frame, self.low, self.high = frame, np.array([frame.x0, frame.y0]), np.array([frame.x1, frame.y1])
        self.pixels, self.codes, self.drawn = pixels, codes, Coverage(drawn, frame)
        sample = np.random.RandomState(0).permutation(len(pixels))[:SAMPLE]
        self.tree, self.sample = KDTree(pixels[sample]), sample
        self.boxes = np.empty((0, 4))
        self.names = Coverage(self.boxes, frame)

    def place(self, i: int, center: Array, size: Array) -> tuple[Array, Array, float] | None:
        """Reserve the best box for the name of class i, given the centre of the class and the size of the box.

        Return the centre of the box, the nearest point in the core of the class, and the distance of that point from
        the box; None if no box is free. The core is the fraction CORE of the class that is nearest to its centre.
        """
        low, high = self.low + size / 2, self.high - size / 2
        if (low > high).any():
            return None
        candidates = np.clip(center + size[1] * RINGS, low, high)
        candidates = candidates[self.names.fraction(candidates, size + 2 * GAP) == 0]
        if not len(candidates):
            return None
        anchors, distance = self._nearest_core_points(i, center, candidates, size)
        other_class = self.codes[self.sample[self.tree.query(candidates)[1]]] != i
        cost = self.drawn.fraction(candidates, size) + DISTANCE_COST * distance / size[1]
        cost = cost + OTHER_CLASS_COST * other_class
        from_center = np.linalg.norm(candidates - center, axis=1) / size[1]
        best = int(np.lexsort([from_center, cost.round(3)])[0])  # ties: the one closest to the centre
        chosen = candidates[best]
        self.boxes = np.vstack([self.boxes, np.concatenate([chosen - size / 2, chosen + size / 2])])
        self.names = Coverage(self.boxes, self.frame)
        return chosen, anchors[best], float(distance[best])

    def _nearest_core_points(self, i: int, center: Array, candidates: Array, size: Array) -> tuple[Array, Array]:
        """Return for each candidate box the nearest point in the core of class i, and its distance from the box.

        The boxes have the centres `candidates` (m, 2) and the same `size` (2,). The core is the fraction CORE of the
        class that is nearest to its centre.
        """
        own = self.pixels[self.codes == i]
        own = own[np.linspace(0, len(own) - 1, min(len(own), 300)).astype(int)]
        own = own[np.argsort(((own - center) ** 2).sum(axis=1), kind="stable")[: max(1, int(CORE * len(own)))]]
        outside = np.maximum(np.abs(own[None] - candidates[:, None]) - size / 2, 0)
        distance = np.linalg.norm(outside, axis=2)
        nearest = distance.argmin(axis=1)
        return own[nearest], distance[np.arange(len(candidates)), nearest]
