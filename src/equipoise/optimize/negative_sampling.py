"""Stochastic steps that sample edges and negatives (random points), as in umap-learn.

An edge of weight μ attracts its ends every μ_max/μ iterations, where μ_max is the largest weight. Each time, each end
and m random points repel each other. Steps are clipped, and the learning rate decreases linearly to zero (docs/math.md,
section 16). The map is byte-identical for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from .._types import Array, Matrix
from ..arrays.csr import compiled_pattern, entry_rows
from ..engines import Sampled
from ..geometry import Geometry
from ..kernels import Membership
from ..objectives import EffectiveCrossEntropy, Objective
from .descent import State
from .gradient_steps import EngineForces, GradientSteps
from .rules import Phase, Rule

CLIP = 4.0  # longest move along an axis before multiplication by the rate; copied from umap-learn's clip()
SOFTENED = 1e-3  # added to d2 in the repulsion; copied from umap-learn's layouts.py, without a derivation
RATE = 1.0  # learning rate of the first iteration; copied from umap-learn's learning_rate
# Substeps per iteration, after each of which positions are updated. Trustworthiness measured on MNIST, 70,000 points:
# 0.959 with 1, 0.964 with 2, 0.962 with umap-learn, one run each.
PARTS = 2


class EdgeSamplingSteps(GradientSteps):
    """Base class of steps that sample edges and negatives; a subclass defines `_step`.

    The loss is evaluated at the end and, if there are callbacks, every `rule.every` iterations.

    Parameters
    ----------
    objective : Objective
        Its affinities, CSR, are the weights μ of the edges.
    engine : Sampled
        Provides the seed and the number of threads, and evaluates the loss.
    geometry : Geometry
    rule : Rule
        Only `rule.every` is used.
    phases : list of Phase
    """

    reports_without_callbacks = False
    first_rate = RATE  # of the first iteration

    def __init__(self, objective: Objective, engine: Sampled, geometry: Geometry, rule: Rule, phases: list[Phase]):
        super().__init__(EngineForces(objective, engine), geometry, rule, phases)
        self.objective, self.sampled = objective, engine
        mu = objective.affinities
        self._graph = compiled_pattern(mu)
        self._period = (mu.data.max(initial=0.0) / mu.data).astype(np.float32)
        self._spare: Array | None = None  # the other of two buffers between which the steps alternate

    def _step(self, state: State, Y: Array, out: Array, part: int, phase: Phase) -> None:
        """Take the substep number `part`, from 1 to PARTS, of an iteration: from the map Y to the map `out`."""
        raise TypeError(f"{type(self).__name__} must define _step()")

    def _timing(self, state: State, part: int, phase: Phase) -> dict[str, Any]:
        """Return the arguments of a substep in the core that all losses share."""
        rate = self.first_rate if phase.rate is None else phase.rate
        return {
            "rate": rate * (1 - state.iteration / self.ends[-1]),
            "exaggeration": phase.exaggeration,
            "until": state.iteration + part / PARTS,
            "seed": self.sampled.seed,
            "step": PARTS * state.iteration + part,
            "threads": self.sampled.n_threads,
        }

    def prepare(self, state: State) -> None:
        """Allocate the buffers and choose the iteration at which each edge first attracts, if not done before."""
        if state.due is None:
            state.due = self._period * edge_offsets(self.objective.affinities, self.sampled.seed)
        if self._spare is None:
            state.U = np.array(state.U, dtype=np.float32, order="C")  # written in place
            self._spare = np.empty_like(state.U)

    def evaluate(self, state: State, loss: bool) -> float:
        return self._loss(state) if loss else np.nan

    def _loss(self, state: State) -> float:
        return self.objective.balance(state.U, self.sampled, loss=True).loss

    def stop_reason(self, state: State) -> str | None:
        return None

    def move(self, state: State) -> bool:
        phase = self.phases[self.phase_at(state.iteration)]
        assert state.due is not None and self._spare is not None
        Y, spare = state.U, self._spare
        for part in range(1, PARTS + 1):
            self._step(state, Y, spare, part, phase)
            Y, spare = spare, Y
        state.U, self._spare, state.iteration = Y, spare, state.iteration + 1
        return True

    def skip_ahead(self, state: State, last: int) -> None:
        """Do nothing: these steps cannot be replayed on a GPU."""

    def final_loss(self, state: State) -> float | None:
        state.U = self.geometry.retract(state.U)
        return self._loss(state)

    def current_map(self, state: State) -> Array:
        """Return a copy of the map, because later steps overwrite the array `state.U`."""
        Y = self.geometry.map(state.U.copy())
        Y.flags.writeable = False
        return Y

    def forget(self) -> None:
        self._spare = None  # the map of another state must be copied before it is written


class NegativeSamplingSteps(EdgeSamplingSteps):
    """Takes steps that decrease the effective cross-entropy of UMAP by sampling edges and negatives.

    The parameters are those of `EdgeSamplingSteps`; the objective is an EffectiveCrossEntropy.
    """

    def __init__(self, objective: Objective, engine: Sampled, geometry: Geometry, rule: Rule, phases: list[Phase]):
        if not (isinstance(objective, EffectiveCrossEntropy) and isinstance(objective.kernel, Membership)):
            raise TypeError(
                "negative sampling requires an EffectiveCrossEntropy with a Membership kernel, got"
                f" {type(objective).__name__} with {type(objective.kernel).__name__}; use another engine"
            )
        super().__init__(objective, engine, geometry, rule, phases)
        self.kernel, self._negatives = objective.kernel, int(objective.negatives)
        self._degrees = edge_degrees(objective.degrees)

    def _step(self, state: State, Y: Array, out: Array, part: int, phase: Phase) -> None:
        assert state.due is not None
        _core.negatives_step(
            self._graph,
            self._period,
            self._degrees,
            state.due,
            Y,
            out,
            a=self.kernel.a,
            b=self.kernel.b,
            epsilon=SOFTENED,
            clip=CLIP,
            count=self._negatives,
            **self._timing(state, part, phase),
        )


def edge_degrees(degrees: Array) -> Array:
    """Return the sums of the weights of each point's edges in float32, at least the smallest positive number."""
    return np.maximum(degrees, np.finfo(np.float32).tiny).astype(np.float32)


def edge_offsets(mu: Matrix, seed: int) -> Array:
    """Return a pseudorandom fraction in [0, 1) for each edge, the same for (i, j) and (j, i).

    An edge first attracts after this fraction of its period, so that not all edges attract in the same iteration.
    """
    i, j = entry_rows(mu).astype(np.uint64), mu.indices.astype(np.uint64)
    low, high = np.minimum(i, j), np.maximum(i, j)
    z = (low << np.uint64(32)) + high + np.array([seed], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # splitmix64, as in negatives.hpp
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
