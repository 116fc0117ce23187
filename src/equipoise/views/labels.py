"""The names of classes, each at its points, where it covers few of them, and none over another."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import KDTree

from .._types import Array
from .column import Classes
from .coverage import Ink
from .style import Theme

LONGEST = 28  # characters of a name that are shown; chosen
REACH = 10  # heights of a line that a name may lie away from the heart of its class; chosen
GAP = 4.0  # pixels between two names, at least; chosen
CORE = 0.6  # share of a class, around its heart, that a name keeps near to; chosen: the rest may be strays
SAMPLE = 5000  # points that decide to which class a place belongs; chosen

# What a place costs, in shares of the name's box that cover what is drawn. Chosen by looking at maps: an empty place is
# worth three heights of a line away from the class, or lying nearer to another one, but not both.
AWAY = 0.3  # for each height of a line between the name and the core of its class
ALIEN = 0.8  # if the nearest point is of another class
HALO = 4.0  # width of the paper drawn behind the letters, in points of 1/72 inch; chosen

_ANGLES = np.linspace(0, 2 * np.pi, 24, endpoint=False)
RINGS = np.multiply.outer(np.arange(0, REACH, 0.35), np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])).reshape(-1, 2)


def hearts(points: Array, classes: Classes) -> Array:
    """Return for each class the point with the most of its class around it, (c, 2), NaN for a class without points.

    Not the mean, which may fall between two islands.
    """
    found = np.full((len(classes.names), points.shape[1]), np.nan)
    order = np.argsort(classes.codes, kind="stable")
    bounds = np.searchsorted(classes.codes[order], np.arange(len(classes.names) + 1))
    for i in range(len(classes.names)):
        rows = order[bounds[i] : bounds[i + 1]]
        if not len(rows):
            continue
        sample = points[rows[np.linspace(0, len(rows) - 1, min(len(rows), 500)).astype(int)]]
        d2 = ((sample[:, None] - sample[None]) ** 2).sum(axis=2)
        found[i] = sample[np.partition(d2, len(sample) // 2, axis=1)[:, len(sample) // 2].argmin()]
    return found


def draw_names(axes: Any, places: Array, points: Array, classes: Classes, theme: Theme, drawn: Array) -> int:
    """Write the names of classes near their hearts (c, 2), the largest class first; return how many found no room.

    Hearts and points (n, 2) are in the coordinates of `axes.transData`; `drawn` (m, 4) are boxes in pixels that names
    rather do not cover. A name that lies apart from its class has a line to it.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patheffects import withStroke

    write = axes.text2D if axes.name == "3d" else axes.text
    halo = [withStroke(linewidth=HALO, foreground=theme.paper)]
    sizes = np.bincount(classes.codes[classes.codes >= 0], minlength=len(classes.names))
    fontsize = 11 if len(classes.names) <= 10 else 9 if len(classes.names) <= 30 else 7.5
    inverse = axes.transData.inverted()
    room = _Room(axes.get_window_extent(), axes.transData.transform(points), classes.codes, drawn)
    left_out = 0
    for i in np.argsort(-sizes, kind="stable"):
        if not sizes[i]:
            continue
        text = write(
            0.5, 0.5, _shortened(classes.names[i]), transform=axes.transData, ha="center", va="center", color=theme.ink,
            fontsize=fontsize, fontweight="bold", path_effects=halo, parse_math=False, zorder=6,
        )  # fmt: skip
        box = text.get_window_extent()
        found = room.take(int(i), axes.transData.transform(places[i]), np.array([box.width, box.height]))
        if found is None:
            text.remove()
            left_out += 1
            continue
        at, end, away = found
        text.set_position(inverse.transform(at))
        if away > box.height:
            ends = inverse.transform(np.array([end, at]))
            line = Line2D(*ends.T, color=theme.ink, linewidth=0.8, transform=axes.transData, zorder=5)
            line.set_path_effects([withStroke(linewidth=2.4, foreground=theme.paper)])
            axes.add_artist(line)
    return left_out


def _shortened(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


class _Room:
    """The places of a frame that names may take; in pixels."""

    def __init__(self, frame: Any, pixels: Array, codes: Array, drawn: Array):
        self.frame, self.low, self.high = frame, np.array([frame.x0, frame.y0]), np.array([frame.x1, frame.y1])
        self.pixels, self.codes, self.ink = pixels, codes, Ink(drawn, frame)
        some = np.random.RandomState(0).permutation(len(pixels))[:SAMPLE]
        self.tree, self.some = KDTree(pixels[some]), some
        self.taken = np.empty((0, 4))
        self.names = Ink(self.taken, frame)

    def take(self, i: int, heart: Array, size: Array) -> tuple[Array, Array, float] | None:
        """Return the middle of the best box for the name of class i, the nearest point of the class's core and how far
        it is from the box, and take that place; nothing if there is none."""
        low, high = self.low + size / 2, self.high - size / 2
        if (low > high).any():
            return None
        tries = np.clip(heart + size[1] * RINGS, low, high)
        tries = tries[self.names.share(tries, size + 2 * GAP) == 0]
        if not len(tries):
            return None
        ends, away = self._core(i, heart, tries, size)
        alien = self.codes[self.some[self.tree.query(tries)[1]]] != i
        cost = self.ink.share(tries, size) + AWAY * away / size[1] + ALIEN * alien
        middle = np.linalg.norm(tries - heart, axis=1) / size[1]
        best = int(np.lexsort([middle, cost.round(3)])[0])  # of equal ones the one nearest to the heart
        at = tries[best]
        self.taken = np.vstack([self.taken, np.concatenate([at - size / 2, at + size / 2])])
        self.names = Ink(self.taken, self.frame)
        return at, ends[best], float(away[best])

    def _core(self, i: int, heart: Array, tries: Array, size: Array) -> tuple[Array, Array]:
        """Return for each box the nearest point of the core of class i, and how far it lies outside the box."""
        own = self.pixels[self.codes == i]
        own = own[np.linspace(0, len(own) - 1, min(len(own), 300)).astype(int)]
        own = own[np.argsort(((own - heart) ** 2).sum(axis=1), kind="stable")[: max(1, int(CORE * len(own)))]]
        outside = np.maximum(np.abs(own[None] - tries[:, None]) - size / 2, 0)
        distance = np.linalg.norm(outside, axis=2)
        nearest = distance.argmin(axis=1)
        return own[nearest], distance[np.arange(len(tries)), nearest]
