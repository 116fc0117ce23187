"""Check maps (embeddings) before they are measured, plotted or used as initial maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._types import Array
from ...arrays.namespace import check_finite, is_auto, to_numpy
from ...geometry import Geometry
from .table_input import as_array

ROUNDING = 1e-5  # of the period: coordinates in files have fewer digits, and float32 has seven; chosen
UNEVEN = 1e-3  # relative difference of the norms of points on a sphere; chosen


def check_map(Y: Any, name: str = "Y", shape: tuple[int, int] | None = None, *, keep_float32: bool = False) -> Array:
    """Return a map as a floating-point array (n, d).

    Parameters
    ----------
    Y : array-like or tensor of shape (n, d), or fitted method
        For a fitted method, its `embedding_` is used.
    name : str, default="Y"
        Name of the argument, for error messages.
    shape : tuple of int, default=None
        Required shape (n_samples, n_components); by default any shape (n, d).
    keep_float32 : bool, default=False
        Keep the dtype of a float32 map. By default every map is converted to float64.

    Raises
    ------
    ValueError
        If Y is a method that is not fitted, is not numeric, has the wrong shape or no points, or contains NaN or inf.
    """
    if hasattr(Y, "fit") and not hasattr(Y, "embedding_"):
        raise ValueError(f"{name} is the method {type(Y).__name__}, which is not fitted; call fit(X) first")
    try:
        Y = np.asarray(as_array(to_numpy(getattr(Y, "embedding_", Y))))
        Y = Y if keep_float32 and Y.dtype == np.float32 else Y.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a numeric map of shape (n, d): {error}") from None
    if shape is not None and Y.shape != shape:
        raise ValueError(f"{name} has shape {Y.shape}; expected (n_samples, n_components) = {shape}")
    if Y.ndim != 2 or 0 in Y.shape:
        hint = f"; for a map in one dimension use {name}[:, None]" if Y.ndim == 1 else ""
        raise ValueError(f"{name} must be a map of shape (n, d) with one row per point, got shape {Y.shape}{hint}")
    check_finite(Y, name, power=2)
    return Y


def curved_geometry(Y: Any) -> Geometry | None:
    """Return the geometry of a fitted method if its distances are not those of its coordinates, else None."""
    geometry = getattr(Y, "geometry_", None)
    return None if geometry is None or geometry.pairs is None else geometry


def check_space(Y: Array, geometry: Geometry) -> Geometry:
    """Return a geometry with the sizes that fit a map Y (n, columns); raise ValueError, with the row, if none do.

    The points of a torus lie in [0, period), those of the Poincaré disk have norms below 1, and those of a sphere have
    equal norms, its radius. The radius of curvature is 1 if it is not known. Other geometries are returned unchecked.
    """
    from ...geometry import Hyperbolic, Sphere, Torus

    if isinstance(geometry, Torus):
        return _check_torus(Y, geometry)
    if isinstance(geometry, Hyperbolic):
        if Y.shape[1] != 2:
            raise ValueError(f"a map in the hyperbolic plane has 2 columns, but Y has {Y.shape[1]}; pass its geometry")
        Hyperbolic(1.0).work(Y)  # raises for points outside the disk
        return Hyperbolic(1.0) if is_auto(geometry.radius) else geometry
    if isinstance(geometry, Sphere):
        norm = np.linalg.norm(Y, axis=1)
        low, high = int(np.argmin(norm)), int(np.argmax(norm))
        if norm[high] - norm[low] > UNEVEN * norm[high]:
            raise ValueError(
                f"the points of a sphere have equal norms, but row {low} of the map has norm {norm[low]:.4g} and row"
                f" {high} has {norm[high]:.4g}; a map on the surface of a ball has 3 columns, this one has"
                f" {Y.shape[1]}"
            )
        return replace(geometry, radius=float(norm[0]))
    return geometry


def _check_torus(Y: Array, geometry: Any) -> Geometry:
    """Return a torus with one period per axis."""
    if isinstance(geometry.period, str):
        raise ValueError(
            'geometry="torus" does not contain the period of the map; pass the fitted method instead of Y, or'
            " geometry=eq.geometry.Torus(period)"
        )
    torus: Any = geometry.resolved(len(Y), Y.shape[1], 1.0)
    period = np.array(torus.period)
    excess = np.maximum(-Y, Y - period) / period
    row, column = np.unravel_index(np.argmax(excess), Y.shape)
    if excess[row, column] > ROUNDING:
        raise ValueError(
            f"column {column} of row {row} of the map is {Y[row, column]:.6g}, outside [0, {period[column]:.6g}) of a"
            " torus with this period; pass the period of the map"
        )
    return torus
