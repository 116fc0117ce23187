"""Maps whose space is given by the argument `geometry`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._types import Array
from ..data.checks.maps import check_map, check_space
from ..geometry import Geometry
from .checks import metric_of


@dataclass(frozen=True)
class GivenMap:
    """A map with its space, named like the attributes of a fitted method, from which measures read them.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, columns)
    geometry_ : Geometry
    remaining_gain_ : float or None
        That of the fitted method, if the map is one.
    metric : str, callable or None
        That of the fitted method, if the map is one.
    """

    embedding_: Array
    geometry_: Geometry
    remaining_gain_: float | None = None
    metric: Any = None


def in_geometry(Y: Any, geometry: Any) -> Any:
    """Return the map Y with the space that `geometry` names; Y itself if `geometry` is None.

    Raises
    ------
    ValueError
        If the points of Y do not lie in the space, or the period of a torus is not known.
    """
    if geometry is None:
        return Y
    from ..geometry import resolve

    points = check_map(Y)
    return GivenMap(points, check_space(points, resolve(geometry)), getattr(Y, "remaining_gain_", None), metric_of(Y))


def in_geometries(maps: Mapping[str, Any], geometry: Any) -> dict[str, Any]:
    """Return maps with their spaces: those of a mapping by name, or one space for all maps that are bare coordinates.

    Raises
    ------
    ValueError
        As `in_geometry`, with the name of the map; or if a mapping contains a name that no map has.
    """
    if isinstance(geometry, Mapping):
        spaces = dict(geometry)
        if unknown := [name for name in spaces if name not in maps]:
            raise ValueError(f"geometry has the key {unknown[0]!r}, but the maps are {', '.join(map(repr, maps))}")
    else:
        spaces = {name: geometry for name, Y in maps.items() if getattr(Y, "geometry_", None) is None}
    found = {}
    for name, Y in maps.items():
        try:
            found[name] = in_geometry(Y, spaces.get(name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return found
