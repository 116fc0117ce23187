"""Lay out maps of curved spaces for a drawing: the flat torus as a square, the hyperbolic plane as a disk, spheres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from .._plural import plural
from .._types import Array
from ..data.checks.maps import check_space
from ..geometry import Geometry
from .plane import in_plane, on_sphere

STRIP = 0.06  # width of the repeated strip around the square of a torus, as a fraction of the period; chosen
ARROW = 0.022  # size of the arrowheads that mark edges which meet, as a fraction of the period; chosen
GRATICULE = 30  # degrees between two meridians, and between two parallels, of a sphere; chosen
PATCH = 0.5  # norm of the mean of unit vectors above which they are a patch; derived: that of an even hemisphere
BINS = 360  # of the histogram that finds the emptiest cut; chosen
SMOOTHING = 0.04  # standard deviation of the Gaussian that smooths it, as a fraction of the period; chosen


@dataclass(frozen=True)
class Chart:
    """The points of a map as they are drawn.

    Attributes
    ----------
    points : ndarray of shape (n, 2) or (n, 3)
        Positions in the drawing.
    note : str
        What the drawing shows; empty for a flat map in two or three dimensions.
    projection : {"mollweide", "3d"} or None
        Projection of the matplotlib axes.
    geometry : Geometry or None
        The curved space of the map; None if the map is drawn like a flat one.
    period : ndarray of shape (2,) or None
        Sides of the square of a torus, whose lower left corner is 0.
    cut : ndarray of shape (2,) or None
        The position on the torus that is drawn at the lower left corner.
    rotation : ndarray of shape (3, 3) or None
        The rotation of a sphere before it is drawn; None if it is not rotated.
    disk : bool
        Whether the map is drawn in the unit disk.
    ellipse : bool
        Whether the map is a sphere, drawn in the plane by the projection of Mollweide.
    """

    points: Array
    note: str = ""
    projection: str | None = None
    geometry: Geometry | None = None
    period: Array | None = None
    cut: Array | None = None
    rotation: Array | None = None
    disk: bool = False
    ellipse: bool = False

    @property
    def extent(self) -> Array:
        """Positions (m, 2) or (m, 3) whose bounding box must be visible."""
        if self.period is not None:
            return np.array([-STRIP * self.period, (1 + STRIP) * self.period])
        if self.disk:
            return np.array([[-1.0, -1.0], [1.0, 1.0]])
        return np.vstack(self.outline()) if self.ellipse else self.points

    def outline(self) -> list[Array]:
        """Return closed lines (m, 2) around the space: the square of a torus, the rim of the disk, or an ellipse."""
        if self.period is not None:
            return [self.period * np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])]
        angle = np.linspace(0, 2 * np.pi, 241)
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        if self.ellipse:
            return [np.sqrt(2) * circle * np.array([2, 1])]
        return [circle] if self.disk else []

    def graticule(self) -> list[Array]:
        """Return the meridians and parallels (m, 2) of a sphere; none for other spaces."""
        if not self.ellipse:
            return []
        t, steps = np.linspace(-1, 1, 61), np.radians(np.arange(-180 + GRATICULE, 180, GRATICULE))
        meridians = [np.column_stack([np.full(61, step), np.pi / 2 * t]) for step in steps]
        parallels = [np.column_stack([np.pi * t, np.full(61, step)]) for step in steps if abs(step) < 1.5]
        return [mollweide(line) for line in meridians + parallels]

    def arrowheads(self) -> list[Array]:
        """Return triangles (3, 2) that mark the edges of a torus which meet, as in a gluing diagram."""
        if self.period is None:
            return []
        width, height = self.period
        size = ARROW * float(max(width, height))
        head = size * np.array([[-0.5, -0.6], [0.5, 0.0], [-0.5, 0.6]])
        single = [head + np.array([width / 2, y]) for y in (0.0, height)]
        double = [
            head[:, ::-1] + np.array([x, height / 2 + shift * size]) for x in (0.0, width) for shift in (-0.9, 0.9)
        ]
        return single + double

    def place(self, Y: Array) -> Array:
        """Return the positions in the drawing of points Y (m, columns) of the curved space."""
        if self.period is not None and self.cut is not None:
            return wrapped(Y[:, :2] - self.cut, self.period)
        if self.projection != "mollweide":
            return Y
        return _longitude_latitude(Y if self.rotation is None else Y @ self.rotation.T)

    def copies(self) -> tuple[Array, Array]:
        """Return the rows (m,) and positions (m, 2) of points in the strip around the square of a torus."""
        if self.period is None:
            return np.empty(0, np.int64), np.empty((0, 2))
        rows, positions = [], []
        for step in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)):
            moved = self.points + self.period * step
            near = ((moved >= -STRIP * self.period) & (moved <= (1 + STRIP) * self.period)).all(axis=1)
            rows.append(np.flatnonzero(near))
            positions.append(moved[near])
        return np.concatenate(rows), np.concatenate(positions)


def find_geometry(geometry: Any, *maps: Any) -> Geometry | None:
    """Return the geometry that a parameter names or, if it is None, that of the first fitted method among `maps`.

    Return None for a flat map and for a map without a known geometry.
    """
    from ..geometry import Flat, UserGeometry, resolve

    if geometry is None:
        fitted = (getattr(item, "geometry_", None) for item in maps)
        geometry = next((found for found in fitted if found is not None), None)
    found = None if geometry is None else resolve(geometry)
    return None if isinstance(found, Flat | UserGeometry) else found


def make_chart(Y: Array, geometry: Geometry | None) -> Chart:
    """Return how a map Y (n, columns) is drawn; `geometry` is a result of `find_geometry`.

    Raises
    ------
    ValueError
        If Y is not a map in this geometry, or the period of a torus is not known.
    """
    from ..geometry import Hyperbolic, Sphere, Torus

    if geometry is not None:
        geometry = check_space(Y, geometry)
    if isinstance(geometry, Torus):
        return _torus(Y, geometry)
    if isinstance(geometry, Hyperbolic):
        return Chart(Y, "the hyperbolic plane, as the Poincaré disk", geometry=geometry, disk=True)
    if isinstance(geometry, Sphere) and Y.shape[1] == 3:
        return _sphere(Sphere(1.0).work(Y))
    if isinstance(geometry, Sphere) and Y.shape[1] == 2:
        return Chart(Y, "a sphere in one dimension, a circle")
    if on_sphere(Y):
        return _sphere(Y)
    if Y.shape[1] == 3:
        return Chart(Y, "", "3d")
    return Chart(*in_plane(Y))


def make_flat_chart(Y: Array, geometry: Geometry | None) -> Chart:
    """Return how a map Y (n, columns) is drawn in the plane, also if it is a map in three dimensions or on a sphere."""
    chart = make_chart(Y, geometry)
    if chart.projection is None:
        return chart
    if chart.projection == "mollweide":
        return Chart(mollweide(chart.points), "a sphere, in the equal-area projection of Mollweide", ellipse=True)
    return Chart(*in_plane(Y))


def mollweide(points: Array) -> Array:
    """Return longitudes and latitudes (n, 2) in the projection of Mollweide, with |x| ≤ 2√2 and |y| ≤ √2."""
    from matplotlib.projections.geo import MollweideAxes

    return np.asarray(MollweideAxes.MollweideTransform(1).transform(points))


def sphere_points(Y: Array, geometry: Geometry | None) -> Array | None:
    """Return the points of a map on a sphere as unit vectors (n, 3); None for a map in another space."""
    if make_chart(Y, geometry).projection != "mollweide":
        return None
    return np.asarray(Y / np.linalg.norm(Y, axis=1, keepdims=True))


def is_solid(Y: Array, geometry: Geometry | None) -> bool:
    """Return whether a map is one of three flat dimensions, drawn in perspective."""
    chart = make_chart(Y, geometry)
    return chart.projection == "3d" and chart.geometry is None and chart.period is None


def wrapped(points: Array, period: Array) -> Array:
    """Return points with every coordinate in [0, period)."""
    from ..geometry import Torus

    return Torus(tuple(period)).wrap(points)


def emptiest_cut(values: Array, period: float) -> float:
    """Return the position in [0, period) near which there are the fewest of the values on a circle."""
    counts = np.histogram(values, BINS, (0.0, period))[0].astype(np.float64)
    # The Gaussian reaches around the circle, so that the middle of an empty arc has the smallest sum.
    smooth = gaussian_filter1d(counts, SMOOTHING * BINS, mode="wrap", truncate=0.5 / SMOOTHING)
    return (int(np.argmin(smooth)) + 0.5) * period / BINS


def _torus(Y: Array, geometry: Any) -> Chart:
    """Return the chart of a torus: a circle in one dimension, else a square cut where there are the fewest points."""
    d, period, Y = Y.shape[1], np.array(geometry.period), geometry.wrap(Y)
    if d == 1:
        angle = 2 * np.pi * Y[:, 0] / period[0]
        radius = 1 + 0.06 * np.random.RandomState(0).uniform(-1, 1, len(Y))
        ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        return Chart(ring, "a torus in one dimension, a circle; distances from its centre are random")
    period = period[:2]
    cut = np.array([emptiest_cut(Y[:, c], period[c]) for c in (0, 1)])
    note = "a torus: opposite edges meet"
    if d > 2:
        note = f"the first two of {plural(d, 'coordinate')} on a torus; opposite edges meet"
    return Chart(wrapped(Y[:, :2] - cut, period), note, geometry=geometry, period=period, cut=cut)


def _sphere(Y: Array) -> Chart:
    """Return the chart of points (n, 3) on the unit sphere; a patch is turned to the centre, where it is not torn."""
    from ..geometry import Sphere

    rotation = facing(Y)
    points = _longitude_latitude(Y if rotation is None else Y @ rotation.T)
    return Chart(points, "", "mollweide", Sphere(1.0), rotation=rotation)


def facing(Y: Array) -> Array | None:
    """Return the rotation (3, 3) that moves the mean of points (n, 3) on the unit sphere to longitude and latitude 0.

    It keeps the third axis upright. Return None for points that are not a patch, but spread over the sphere.
    """
    mean = Y.mean(axis=0)
    if not (length := float(np.linalg.norm(mean))) > PATCH:
        return None
    front = mean / length
    flat = float(np.hypot(front[0], front[1]))
    right = np.array([-front[1] / flat, front[0] / flat, 0.0]) if flat > 1e-6 else np.array([0.0, 1.0, 0.0])
    return np.array([front, right, np.cross(front, right)])


def _longitude_latitude(Y: Array) -> Array:
    """Return the longitudes and latitudes (n, 2) of points (n, 3) on the unit sphere."""
    return np.column_stack([np.arctan2(Y[:, 1], Y[:, 0]), np.arcsin(np.clip(Y[:, 2], -1, 1))])
