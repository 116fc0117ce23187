"""Engines compute two sums over pairs of points, called edges and field (docs/math.md, section 0), for any kernel."""

from __future__ import annotations

from .base import Engine, Field, Placement
from .choose import (
    DEVICES,
    ENGINES,
    check_engine_name,
    choose_device,
    choose_engine,
    engine_settings,
    engine_state,
    make_engine,
    restore_engine,
    sum_stored_pairs,
)
from .cpu import HOST
from .exact import Exact
from .mesh.mesh_engine import Grid
from .reference import Reference
from .sampled import Sampled

__all__ = [
    "DEVICES",
    "ENGINES",
    "HOST",
    "Engine",
    "Exact",
    "Field",
    "Grid",
    "Placement",
    "Reference",
    "Sampled",
    "check_engine_name",
    "choose_device",
    "choose_engine",
    "engine_settings",
    "engine_state",
    "make_engine",
    "restore_engine",
    "sum_stored_pairs",
]
