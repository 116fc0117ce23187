"""The phases of a default t-SNE fit: seconds of each, without those inside it, and how many of them are serial."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

# What is timed: title, module, and the name of a function or method in it.
PARTS = [
    ("input checks", "equipoise.methods.sne", "make_input"),
    ("initial map (PCA)", "equipoise.initialize.start", "Start.from_data"),
    ("neighbours: rest", "equipoise.inputs.table", "Table.neighbors"),
    ("neighbours: to float32", "equipoise.neighbors.search", "UnitScale"),
    ("neighbours: k-means", "equipoise.neighbors.cells", "Centres"),
    ("neighbours: assignment to cells", "equipoise.neighbors.centres", "Centres.nearest"),
    ("neighbours: points by cell", "equipoise.neighbors.cells", "Panels"),
    ("neighbours: true neighbours of a sample", "equipoise.neighbors.cells", "Cells._true_neighbors"),
    ("neighbours: cells within reach", "equipoise.neighbors.cells", "Cells.reach"),
    ("neighbours: products and selection", "equipoise.neighbors.cells", "Cells.search"),
    ("neighbours: float64 distances", "equipoise.neighbors.vectors", "EuclideanVectors.own_distances"),
    ("neighbours: squares", "equipoise.neighbors.vectors", "Graph.into_squared"),
    ("perplexity", "equipoise.affinities.perplexity", "conditional"),
    ("symmetric P", "equipoise.affinities.perplexity", "joint"),
    ("loss from P", "equipoise.methods.sne", "joint_objective"),
    ("points sorted for the late phase", "equipoise.optimize.gradient_steps", "EngineForces.sort"),
    ("iterations in the core", "equipoise.engines.cpu", "FusedSteps.replay_steps"),
    ("reports and single iterations: forces", "equipoise.optimize.gradient_steps", "EngineForces.at"),
    ("tolerance: checks", "equipoise.engines.mesh.mesh_engine", "Grid._meet_tolerance"),
    ("meshes: kernel transforms", "equipoise.engines.mesh.mesh_engine", "Transform"),
    ("meshes: widths", "equipoise.engines.mesh.plan", "cheapest"),
]


class Phases:
    """Seconds of nested calls, by title: each call counts without the timed calls inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.serial: dict[str, float] = {}  # outside parallel loops of the core
        self._open: list[list[float]] = []

    @contextmanager
    def timed(self, title: str) -> Iterator[None]:
        """Add the seconds of a `with` block to a phase, without those of timed calls inside it."""
        from equipoise import _core

        start, loops = time.perf_counter(), _core.loop_seconds()
        self._open.append([0.0, 0.0])
        try:
            yield
        finally:
            took, in_loops = time.perf_counter() - start, _core.loop_seconds() - loops
            inside, loops_inside = self._open.pop()
            own, own_loops = took - inside, in_loops - loops_inside
            self.seconds[title] = self.seconds.get(title, 0.0) + own
            self.serial[title] = self.serial.get(title, 0.0) + own - own_loops
            if self._open:
                self._open[-1][0] += took
                self._open[-1][1] += in_loops

    def plain(self) -> dict[str, dict[str, float]]:
        """Return the seconds of the phases, all and serial ones."""
        return {"seconds": self.seconds, "serial": self.serial}

    def wrapped(self, title: str, function: Any) -> Any:
        """Return a function whose calls are timed."""

        def call(*arguments: Any, **named: Any) -> Any:
            with self.timed(title):
                return function(*arguments, **named)

        return call


@contextmanager
def timed_phases() -> Iterator[Phases]:
    """Time the phases of the fits inside a `with` block."""
    phases = Phases()
    with ExitStack() as patches:
        for title, module, path in PARTS:
            owner = importlib.import_module(module)
            *outer, name = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            patches.enter_context(patch.object(owner, name, phases.wrapped(title, getattr(owner, name))))
        yield phases
