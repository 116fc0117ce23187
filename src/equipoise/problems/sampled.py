"""Stochastic descent by sampled edges and negatives, as in umap-learn, with the same bytes for any number of threads.

An edge of weight μ pulls its ends together every max μ / μ iterations, and each time either end is pushed from m points
drawn at random, and they from it. Steps are clipped, and shrink linearly to nothing (docs/math.md, section 16).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _core
from .._types import Array, Callback, Matrix
from ..arrays.csr import compiled_pattern, entry_rows
from ..engines import Sampled
from ..kernels import Membership
from ..objectives import EffectiveCrossEntropy
from ..optimize.descent import record
from ..optimize.state import State
from ..saving.checkpoint import Keeping
from .forces import Problem

CLIP = 4.0  # longest move along an axis, before the rate; as umap-learn's clip()
SOFTENED = 1e-3  # added to d2 in the push; as umap-learn's layouts.py, where no derivation is given
RATE = 1.0  # of the first iteration; as umap-learn's learning_rate
# Steps of an iteration, between which points see one another's moves. Trustworthiness on MNIST, 70,000 points, with 1
# and 2: 0.959, 0.964; umap-learn's 0.962, each once.
PARTS = 2


class SampledProblem(Problem):
    """The effective cross-entropy, descended by sampling its edges and negatives instead of by its gradient.

    The loss is evaluated for callbacks, every `rule.every` iterations, and at the end.
    """

    def _descend(self, n_iter: int, keeping: Keeping) -> None:
        objective, engine, state = self.objective, self.engine, self._state
        if not (isinstance(objective, EffectiveCrossEntropy) and isinstance(objective.kernel, Membership)):
            raise TypeError(f"edges are sampled for the effective cross-entropy, not for {type(objective).__name__}")
        if not isinstance(engine, Sampled):
            raise TypeError(f"edges are sampled by the engine that samples, not by {engine.name}")
        told = self._told(keeping.callbacks)
        mu, kernel = objective.affinities, objective.kernel
        graph = compiled_pattern(mu)
        period = (mu.data.max(initial=0.0) / mu.data).astype(np.float32)
        due = state.due = period * phases(mu, engine.seed) if state.due is None else state.due
        degrees = np.maximum(objective.degrees, np.finfo(np.float32).tiny).astype(np.float32)
        Y = np.array(state.U, dtype=np.float32, order="C")
        spare = np.empty_like(Y)
        end = 0
        for phase in self.schedule.phases(n_iter):
            end += phase.n_iter
            while state.iteration < end:
                if told and state.iteration % self.rule.every == 0 and self._tell(state, Y, told):
                    state.stopped = "callback"
                    return
                rate = (RATE if phase.rate is None else phase.rate) * (1 - state.iteration / n_iter)
                for part in range(1, PARTS + 1):
                    _core.negatives_step(
                        graph,
                        period,
                        degrees,
                        due,
                        Y,
                        spare,
                        a=kernel.a,
                        b=kernel.b,
                        epsilon=SOFTENED,
                        clip=CLIP,
                        rate=rate,
                        exaggeration=phase.exaggeration,
                        until=state.iteration + part / PARTS,
                        count=int(objective.negatives),
                        seed=engine.seed,
                        step=PARTS * state.iteration + part,
                        threads=engine.n_threads,
                    )
                    Y, spare = spare, Y
                state.U, state.iteration = Y, state.iteration + 1
                keeping.keep(state.iteration)
        state.U = self.geometry.retract(Y)
        record(state, self._loss_at(state.U), told)

    def _tell(self, state: State, Y: Array, told: Sequence[Callback]) -> bool:
        """Record the loss of a map that callbacks may keep: its memory is written again. True stops."""
        state.U = Y.copy()
        return record(state, self._loss_at(Y), told)

    def _loss_at(self, U: Array) -> float:
        return self.objective.balance(U, self.engine, loss=True).loss


def phases(mu: Matrix, seed: int) -> Array:
    """Return a number from 0 to 1 for every edge, the same from both its ends: edges must not pull all at once."""
    i, j = entry_rows(mu).astype(np.uint64), mu.indices.astype(np.uint64)
    low, high = np.minimum(i, j), np.maximum(i, j)
    z = (low << np.uint64(32)) + high + np.array([seed], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # splitmix64, as in negatives.hpp
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).astype(np.float32) / np.float32(2**24)
