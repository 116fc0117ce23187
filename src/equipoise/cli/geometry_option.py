"""The option --geometry: the space of a map, written as torus:24 or, as in Python, "Torus(24)"."""

from __future__ import annotations

import argparse
from typing import Any

from .._suggest import did_you_mean
from .option_values import number, object_parser

SIZES = {"sphere": "radius", "torus": "period", "hyperbolic": "radius"}
FORMS = 'plane, sphere, torus or hyperbolic, with a size as in torus:24, or an object as in "Torus(24)"'


def geometry(text: str) -> Any:
    """Parse the name of a space, a name with a size such as torus:24 or torus:24,48, or an object such as Torus(24).

    A name without a size is returned unchanged: a fit chooses the size. Used as an argparse type.
    """
    if "(" in text:
        return object_parser(_classes())(text)
    name, colon, size = text.partition(":")
    if name not in ("plane", *SIZES) or (colon and name == "plane"):
        raise argparse.ArgumentTypeError(
            f"unknown geometry {text!r}; {did_you_mean(name, ['plane', *SIZES], f'choose from {FORMS}')}"
        )
    if not colon:
        return name
    values = tuple(number(part) for part in size.split(","))
    try:
        return _classes()[name.capitalize()](values if len(values) > 1 else values[0])
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: {error}") from None


def geometry_of_map(text: str) -> Any:
    """Parse the space of an existing map, as `geometry` does; the period of a torus is required."""
    space = geometry(text)
    if isinstance(space, str) and space == "torus":
        raise argparse.ArgumentTypeError("a torus needs a period, as in torus:24")
    return space


def add_geometry(verb: argparse.ArgumentParser, maps: str, nargs: str | None = None) -> None:
    """Add the option --geometry for maps from files; `maps` says which maps it applies to."""
    verb.add_argument(
        "--geometry",
        metavar="SPACE",
        type=geometry_of_map,
        nargs=nargs,
        help=f"space of {maps}: plane, sphere, hyperbolic, or torus:PERIOD as printed by `embed` (default: that of a"
        " model, else plane)",
    )


def as_option(space: Any) -> str | None:
    """Return the text from which `geometry_of_map` makes a curved space; None for other spaces."""
    name = type(space).__name__.lower()
    if name == "directions":
        name = "sphere"
    size = getattr(space, SIZES.get(name, ""), None)
    if size is None:
        return None
    sizes = sorted(set(size)) if isinstance(size, tuple) else [size]
    return f"{name}:{','.join(f'{L:.7g}' for L in (sizes if len(sizes) == 1 else size))}"


def _classes() -> dict[str, Any]:
    from .. import geometry  # loads the curved spaces, which a fit in the plane does not need

    return {name: getattr(geometry, name) for name in ("Plane", "Sphere", "Directions", "Torus", "Hyperbolic")}
