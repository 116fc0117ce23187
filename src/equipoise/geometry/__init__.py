"""Spaces of maps: the plane, the sphere, the flat torus, the hyperbolic plane, and user-defined ones.

`geometry=` of a method takes a name or one of these objects:

>>> import equipoise as eq
>>> method = eq.TSNE(geometry=eq.geometry.Torus(period=50.0))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .flat import Flat, Geometry, Orthonormal, Pairs, Placed

if TYPE_CHECKING:
    from .hyperbolic import Hyperbolic, HyperbolicPairs
    from .named import resolve
    from .sphere import Directions, Sphere
    from .torus import Torus, TorusPairs
    from .user_geometry import UserGeometry

Plane = Flat

MODULES = {  # loaded when needed: a fit in the plane does not pass through them
    "Directions": "sphere",
    "Sphere": "sphere",
    "Torus": "torus",
    "TorusPairs": "torus",
    "Hyperbolic": "hyperbolic",
    "HyperbolicPairs": "hyperbolic",
    "UserGeometry": "user_geometry",
    "resolve": "named",
}

__all__ = [
    "Directions",
    "Flat",
    "Geometry",
    "Hyperbolic",
    "HyperbolicPairs",
    "Orthonormal",
    "Pairs",
    "Placed",
    "Plane",
    "Sphere",
    "Torus",
    "TorusPairs",
    "UserGeometry",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
