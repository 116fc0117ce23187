"""Negative sampling, as in UMAP, for any loss F(k_x, k_y) of pairs (docs/math.md, section 17).

An edge of affinity k_x attracts every k_max/k_x iterations with the force of [F(k_x, k) − F(0, k)]/k_x, and each time m
random points repel each of its ends with the force of F(0, k). The mean of such a step is a gradient step of the
effective loss. The forces are read from tables of d2. If the attraction is not proportional to k_x, there is a table
for each of up to 256 levels of k_x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._types import Array
from ..arrays.csr import entry_rows
from ..engines import Sampled
from ..engines.tables import Table, tabulate
from ..geometry import Geometry
from ..objectives.pair_objective import PairObjective
from ..pair_losses import Contrastive, PairLoss
from .descent import State
from .negative_sampling import CLIP, EdgeSamplingSteps, edge_degrees
from .rules import Phase, Rule

ENDS = 1e-4, 1e4  # first and last distance in a table, in units of the kernel's length; chosen
LEVELS = 256  # of k_x, if the attraction is not proportional to it
# Smallest level of k_x, relative to the largest: an edge below it acts less than once in 500 iterations.
SMALLEST = 1e-4
# Learning rate of the first iteration, relative to the one at which the largest attraction of an edge is that of UMAP.
# Measured on digits with six losses: after 500 iterations four of the losses are lower than at 1, and one is higher.
RATE = 0.5
PROBES = np.logspace(-2, 2, 9)  # squared distances, in units of length², at which attractions are compared
SAMPLE, PAIRS = 4096, 2**15  # edges and, at most, negatives in each estimate of the gradient of the scale; chosen


class PairSamplingSteps(EdgeSamplingSteps):
    """Takes steps that decrease the effective loss of a PairObjective by sampling edges and negatives.

    The parameters are those of `EdgeSamplingSteps`. Unless a learning rate is given, it is inversely proportional to
    the largest attraction of an edge, so that multiplying F by a constant changes nothing.
    """

    objective: PairObjective

    def __init__(self, objective: Any, engine: Sampled, geometry: Geometry, rule: Rule, phases: list[Phase]):
        if not (isinstance(objective, PairObjective) and objective.negatives is not None):
            raise TypeError(
                f"sampling pairs requires a PairObjective with negatives, got {type(objective).__name__}; use another"
                " engine"
            )
        super().__init__(objective, engine, geometry, rule, phases)
        kx, length = objective.affinities.data.astype(np.float64), objective.kernel.length
        self._negatives, self._degrees = int(objective.negatives), edge_degrees(objective.degrees)
        self.first_rate = RATE * length**2 * float(kx.sum()) / objective.mass
        self._longest = CLIP * length * RATE / self.first_rate  # as a force: at most CLIP · RATE lengths per move
        self._values, self._level = levels(objective, kx)
        self._laws = self._tabulate(objective.loss)

    def _tabulate(self, loss: PairLoss) -> tuple[Table, Table]:
        """Return the tables of the attraction, one below the other, and of the repulsion."""
        objective = self.objective if loss is self.objective.loss else self.objective.with_loss(loss)
        apart = objective.apart
        attractions = [_table(objective, lambda d2, kx=kx: attraction(objective, kx, d2)) for kx in self._values]
        segments = np.concatenate([table.segments for table in attractions])
        return attractions[0]._replace(segments=segments), _table(objective, lambda d2: -apart.slope(d2))

    def _step(self, state: State, Y: Array, out: Array, part: int, phase: Phase) -> None:
        assert state.due is not None
        pull, push = self._laws
        _core.sampled_pairs_step(
            self._graph,
            self._period,
            self._degrees,
            state.due,
            Y,
            out,
            pull=pull.segments,
            push=push.segments,
            first=push.first,
            scale=push.scale,
            level=self._level,
            clip=self._longest,
            count=self._negatives,
            **self._timing(state, part, phase),
        )


def attraction(objective: PairObjective, kx: float, d2: Array) -> Array:
    """Return the slope of [F(k_x, k) − F(0, k)]/k_x with respect to d2; it is positive if the pair attracts."""
    return objective.edge_slope(np.full_like(d2, kx), d2) / kx


def levels(objective: PairObjective, kx: Array) -> tuple[Array, Array]:
    """Return values of k_x for which attractions are tabulated, at most LEVELS, and the index of one for each edge.

    There is one value if the attraction is proportional to k_x. Otherwise edges get the nearest value on a logarithmic
    scale, within 2 %.
    """
    d2, largest = PROBES * objective.kernel.length**2, float(kx.max())
    laws = np.array([attraction(objective, value, d2) for value in (largest, 0.3 * largest, 0.01 * largest)])
    if np.ptp(laws, axis=0).max() <= 1e-6 * np.abs(laws).max():
        return np.array([largest]), np.zeros(len(kx), np.uint8)
    distinct = np.unique(kx)
    if len(distinct) <= LEVELS:
        return distinct, np.searchsorted(distinct, kx).astype(np.uint8)
    low = max(float(distinct[0]), SMALLEST * largest)
    values = np.geomspace(low, largest, LEVELS)
    position = (LEVELS - 1) * np.log(np.maximum(kx, low) / low) / np.log(largest / low)
    return values, np.rint(position).astype(np.uint8)


def _table(objective: PairObjective, law: Any) -> Table:
    """Return the table whose slope is `law`, a function of d2."""
    low, high = (end * objective.kernel.length for end in ENDS)
    return tabulate(np.zeros_like, law, low, high, objective.kernel.kink)


@dataclass
class LearnedState(State):
    """State of a run that also learns log s, the logarithm of the scale of a contrastive loss."""

    log_scale: float = np.nan


class ContrastiveSteps(PairSamplingSteps):
    """Takes steps of a PairObjective with a Contrastive loss whose scale is learned (Damrich et al. 2023).

    Each iteration estimates, from a random sample of edges and negatives at the current map, the derivative of the mean
    loss of an edge with respect to log s, (1 − q) − Σ q', where q and q' are the probabilities of the edge and of its m
    negatives. log s takes a step against it, at a rate that decreases linearly to zero.
    """

    def __init__(self, objective: Any, engine: Sampled, geometry: Geometry, rule: Rule, phases: list[Phase]):
        super().__init__(objective, engine, geometry, rule, phases)
        A = self.objective.affinities
        self._heads, self._tails = entry_rows(A), A.indices
        self._cumulative = np.cumsum(A.data, dtype=np.float64)

    def move(self, state: State) -> bool:
        assert isinstance(state, LearnedState)
        loss = Contrastive(float(np.exp(state.log_scale)))
        self._laws = self._tabulate(loss)
        iteration, Y = state.iteration, state.U
        log_scale = state.log_scale - (1 - iteration / self.ends[-1]) * self._scale_gradient(Y, loss, iteration)
        moved = super().move(state)
        state.log_scale = log_scale
        return moved

    def _scale_gradient(self, Y: Array, loss: Contrastive, iteration: int) -> float:
        rng = np.random.default_rng([self.sampled.seed, iteration])
        drawn = np.searchsorted(self._cumulative, rng.random(SAMPLE) * self._cumulative[-1], side="right")
        edges = np.minimum(drawn, len(self._cumulative) - 1)
        heads, m = self._heads[edges], self._negatives
        some = heads[: max(1, min(SAMPLE, PAIRS // max(m, 1))), None]
        others = rng.integers(0, len(Y), (len(some), min(m, PAIRS)))
        return 1 - self._mean(loss, Y, heads, self._tails[edges]) - m * self._mean(loss, Y, some, others)

    def _mean(self, loss: Contrastive, Y: Array, i: Array, j: Array) -> float:
        """Return the mean probability q of the pairs (i, j), which is 0 if i = j: a point does not repel itself."""
        d2 = ((Y[i].astype(np.float64) - Y[j]) ** 2).sum(axis=-1)
        return float((loss.probability(self.objective.kernel.value(d2)) * (i != j)).mean())

    def _loss(self, state: State) -> float:
        assert isinstance(state, LearnedState)
        scaled = self.objective.with_loss(Contrastive(float(np.exp(state.log_scale))))
        return scaled.balance(state.U, self.sampled, loss=True).loss
