"""Steps of momentum on the points of one rank, in few passes over them, with sums over the points of all ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _core
from .._types import Array
from ..arrays.csr import is_sparse
from ..engines.base import PlannedStep, StepPlan
from .rank_mesh import RankSource, self_term, solve

if TYPE_CHECKING:
    from .rank_engine import RankGrid


class RankSteps:
    """A stepper that takes planned steps of momentum in the core, rank by rank.

    The positions of neighbours on other ranks are exchanged while the field is computed on the mesh. Maps have the
    same bytes as with single steps of the same engine. Where the tolerance must be checked, and where the
    map is not finite or too narrow, steps are left to the optimiser.
    """

    def __init__(self, engine: RankGrid):
        self._engine = engine

    def replay_steps(self, step: Callable[[Any], None], key: object, state: Any, count: int, min_extent: float) -> int:
        plan = step.plan(state, count) if isinstance(step, PlannedStep) else None
        if plan is None or plan.force.charges is not None:  # those of one process count its own points only
            return 0
        if not is_sparse(plan.force.A) or state.U.dtype != np.float32:
            return 0
        moving = {name: np.array(getattr(state, name), order="C") for name in ("U", "velocity", "gain")}
        taken = self._take(plan, moving, min_extent)
        self._engine.forget_halo()  # U was moved in place
        if taken:
            vars(state).update(**moving, age=state.age + taken, iteration=state.iteration + taken)
        return taken

    def free_buffers(self) -> None:
        """Do nothing: there are no buffers."""

    def _take(self, plan: StepPlan, moving: dict[str, Array], min_extent: float) -> int:
        """Move the points in place as far as the plan leads, and return the number of steps taken."""
        engine, force, shared = self._engine, plan.force, self._engine.shared
        native, U = engine.compiled_edges(force.kernel), moving["U"]
        blocks = -(-len(U) // _core.STEP_BLOCK)
        sums, boxes = np.empty((blocks, U.shape[1])), np.empty((blocks, 2, U.shape[1]), np.float32)
        source = RankSource(U, None, shared)
        for taken, momentum in enumerate(plan.momentum):
            if not float((source.high - source.low).max()) >= min_extent:
                return taken
            if (transform := engine.steady_source(force.apart, source)) is None:
                return taken
            finish = engine.start_halo(U)  # positions travel while the mesh is computed
            potential, half = solve(transform, source)(U)
            finish()
            edges, _ = engine.edge_sums(U, force.A, native, -1.0)
            Z = shared.total(potential[:, 0] - self_term(transform))
            if not Z > 0:
                return taken
            _core.move_rows(
                edges, half[:, 0], force.pull, force.push / Z, plan.rate, float(momentum), plan.gain_up, plan.gain_down,
                plan.turned, plan.min_gain, plan.max_step, U, moving["velocity"], moving["gain"], sums,
                shared.n_threads,
            )  # fmt: skip
            mean = (shared.add_blocks(sums) / shared.partition.n).astype(np.float32)
            _core.shift_rows(mean, U, boxes, shared.n_threads)
            source.move_to(boxes)
        return len(plan.momentum)
