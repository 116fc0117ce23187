"""The geometry that a method's parameter names."""

from __future__ import annotations

from typing import Any

from .._suggest import described
from .flat import Flat, Geometry
from .hyperbolic import Hyperbolic
from .sphere import Sphere
from .torus import Torus
from .user_geometry import UserGeometry, is_geometry

NAMES: dict[str, type[Geometry]] = {"plane": Flat, "sphere": Sphere, "torus": Torus, "hyperbolic": Hyperbolic}


def resolve(geometry: Any) -> Geometry:
    """Return the geometry for a name, an object of this package or a user-defined object.

    Sizes that are "auto" remain so; `Geometry.resolved` chooses them.

    Raises
    ------
    ValueError
        If the name is unknown, or the object has no method `distance` or `squared_distance`.
    """
    if isinstance(geometry, Geometry):
        return geometry
    if isinstance(geometry, str):
        if geometry not in NAMES:
            choices = f"choose from {', '.join(map(repr, NAMES))}, or pass an object with a method distance(Yi, Yj)"
            raise ValueError(f"unknown geometry {geometry!r}; {choices}")
        return NAMES[geometry]()
    if isinstance(geometry, type) or not is_geometry(geometry):
        raise ValueError(
            f"geometry must be {', '.join(map(repr, NAMES))} or an object with a method distance(Yi, Yj), got"
            f" {described(geometry)}"
        )
    return UserGeometry(geometry)
