"""Estimates losses from batches of points and edges; PyTorch differentiates the estimates to train an encoder.

Each loss is a function of two sums: an attractive one, S₁, over the stored edges and a repulsive one, S₂, over all
pairs. For a batch of B of the n points, drawn without replacement, and one edge from each of them, the estimates are

    Σ_ij A_ij f(d2_ij) ≈ (n/B) Σ_i a_i f(d2_iJ),   J drawn with probability A_iJ/a_i,  a_i = Σ_j A_ij              (a)
    Σ_{i≠j} u(d2_ij) ≈ n(n−1)/(B(B−1)) Σ_{i≠j} u(d2_ij),   over the pairs within the batch                         (b)

and both are unbiased. UMAP's losses are linear in the two sums. The losses of the SNE family contain log Z, and the
logarithm of an estimate is biased downwards by half the relative variance of the estimate. Therefore the loss is
linearised at running averages Ŝ of the sums: the descent follows

    (∂E/∂S₁)(Ŝ) ∇S₁ + (∂E/∂S₂)(Ŝ) ∇S₂,

where the two factors ∂E/∂S hardly depend on the batch. For KL this is −Σ P ∇log k + ∇Z/Ẑ. If the batch contains all
points and all edges, and Ŝ equals the sums, this is the exact gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..._types import Matrix
from ...divergences import antiderivative
from ...kernels import TINY
from ..base import Objective
from ..conditional import ConditionalKL
from ..cross_entropy import CrossEntropy, EffectiveCrossEntropy
from ..joint import JointDivergence, RenyiDivergence

DECAY = 0.9  # weight of the past in running averages, about ten batches; chosen


class Batch(NamedTuple):
    """A batch of B of the n points, and a sample of the edges that start at these points."""

    n: int
    heads: Tensor  # (B,): indices of the points
    U: Tensor  # (B, d): their coordinates
    d2: Tensor  # (m,): squared lengths of the edges, from `squared`
    weights: Tensor  # (m,): Σ weights f(d2) estimates Σ_ij A_ij f(d2_ij)

    def over_edges(self, values: Any) -> Tensor:
        """Return the estimate of Σ_ij A_ij f(d2_ij), from the values f(d2) of the edges of the batch."""
        return (self.weights * values).double().sum()

    def over_partners(self, u: Any, charges: Tensor | None = None) -> Tensor:
        """Return estimates (B,) of Σ_{j≠i} c_j u(d2_ij) over all n points; the charges c are 1 by default."""
        d2 = squared(self.U[:, None] - self.U[None])
        values = u.value(d2)
        values = values if charges is None else values * charges[self.heads]
        values = values.masked_fill(torch.eye(len(d2), dtype=torch.bool, device=d2.device), 0.0)
        return values.double().sum(dim=1) * ((self.n - 1) / (len(d2) - 1))

    def over_points(self, values: Tensor) -> Tensor:
        """Return the estimate of a sum over all points from the values (B,) of the points in the batch."""
        return values.double().sum() * (self.n / len(self.heads))


def squared(differences: Tensor) -> Tensor:
    """Return the squared norms (…) of differences (…, d), at least TINY: at 0, a power can have an infinite slope."""
    return differences.square().sum(dim=-1).clamp_min(TINY)


class Average:
    """Keeps running averages of estimates, corrected for the bias towards their initial value 0."""

    def __init__(self, shape: tuple[int, ...], device: torch.device):
        self.total = torch.zeros(shape, dtype=torch.float64, device=device)
        self.weight = torch.zeros_like(self.total)

    def include(self, values: Tensor, at: Any = slice(None)) -> Tensor:
        """Add new estimates for the entries `at`, and return the averages of these entries."""
        self.total[at] = DECAY * self.total[at] + (1 - DECAY) * values
        self.weight[at] = DECAY * self.weight[at] + (1 - DECAY)
        return self.total[at] / self.weight[at]


class Stochastic:
    """A loss, estimated from batches, that is a function of a sum S₁ over edges and a sum S₂ over pairs.

    By default, the loss is S₁ + S₂.
    """

    objective: Any  # its kernels accept tensors
    A: Matrix  # the weights of the edges
    exponent = 1.0  # exaggeration multiplies P, and A = P^exponent

    def __init__(self, objective: Any, n: int, device: torch.device):
        self.objective = objective
        self.A = objective.affinities
        self.sums = Average((2,), device)
        self._batch_sums = torch.zeros(3, dtype=torch.float64, device=device)  # S₁, S₂ and 1, summed over batches

    def estimate(self, batch: Batch) -> Tensor:
        """Return the estimates of S₁ and S₂, (2,)."""
        raise TypeError(f"{type(self).__name__} must define estimate(batch)")

    def loss(self, sums: Tensor) -> Tensor:
        """Return the loss for given values (2,) of S₁ and S₂."""
        return sums.sum()

    def linearized(self, batch: Batch, exaggeration: float = 1.0) -> Tensor:
        """Return a scalar whose gradient estimates the gradient of the loss, and record the sums of this batch."""
        sums = self.estimate(batch)
        self._batch_sums += torch.cat([sums.detach(), sums.new_ones(1)])
        at = self.sums.include(sums.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(self.loss(at), at)
        return slope[0] * exaggeration**self.exponent * sums[0] + slope[1] * sums[1]

    def loss_so_far(self) -> float:
        """Return the loss for the means of S₁ and S₂ over all batches since the last call."""
        loss = float(self.loss(self._batch_sums[:2] / self._batch_sums[2]))
        self._batch_sums.zero_()
        return loss

    def state(self) -> dict[str, Tensor]:
        """Return the tensors on which the next step depends; call it only directly after `loss_so_far`."""
        return {"total": self.sums.total, "weight": self.sums.weight}


class StochasticDivergence(Stochastic):
    """The α- and Rényi divergences of the joint family: S₁ = Ψ = Σ P^s ψ(k), S₂ = Z.      docs/math.md, eq. (2')

    s, ψ and Z are those of `JointDivergence.divergence_and_overlap`.
    """

    def __init__(self, objective: JointDivergence, n: int, device: torch.device):
        super().__init__(objective, n, device)
        self.A, self.exponent = objective.weights, objective.s

    def estimate(self, batch: Batch) -> Tensor:
        kernel, unit = self.objective.kernel, self.objective.unit
        psi = batch.over_edges(antiderivative(kernel.log_value(batch.d2), self.objective.e)) * unit
        return torch.stack([psi, batch.over_points(batch.over_partners(kernel))])

    def loss(self, sums: Tensor) -> Tensor:
        return self.objective.divergence_and_overlap(sums[0], sums[1])[0]


class StochasticConditional(Stochastic):
    """Original SNE: S₁ = Σ p_{j|i} log(p_{j|i}/k), S₂ = Σ_i log Z_i.                        docs/math.md, eq. (5)

    Z_i = Σ_{j≠i} k is different for each point i. Each batch that contains the point gives an estimate, and the loss
    uses a running average of these estimates. An average below TINY, where the kernel underflows for every partner of
    the point, is replaced by TINY.
    """

    def __init__(self, objective: ConditionalKL, n: int, device: torch.device):
        super().__init__(objective, n, device)
        self.Z = Average((n,), device)

    def estimate(self, batch: Batch) -> Tensor:
        kernel = self.objective.kernel
        Z = batch.over_partners(kernel)
        average = self.Z.include(Z.detach(), batch.heads).clamp_min(TINY)
        log_Z = average.log() + (Z - Z.detach()) / average  # value from the average, gradient from Z
        attraction = self.objective.negative_entropy - batch.over_edges(kernel.log_value(batch.d2))
        return torch.stack([attraction, batch.over_points(log_Z)])

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "Z total": self.Z.total, "Z weight": self.Z.weight}


class StochasticCrossEntropy(Stochastic):
    """UMAP's loss as published: S₁ = −Σ μ (log k + u), S₂ = Σ u, u = −log(1 − k).       docs/math.md, eq. (16)"""

    def estimate(self, batch: Batch) -> Tensor:
        kernel, apart = self.objective.kernel, self.objective.apart
        attraction = -batch.over_edges(kernel.log_value(batch.d2) + apart.value(batch.d2))
        return torch.stack([attraction, batch.over_points(batch.over_partners(apart))])


class StochasticEffective(Stochastic):
    """UMAP's loss as sampled: S₁ = −Σ μ log k, S₂ = (m/n) Σ_ij d_j u.                 docs/math.md, eq. (17)

    There are m negatives per edge, d_j = Σ_i μ_ij is the degree of a point, and u = −log(1 − k).
    """

    def __init__(self, objective: EffectiveCrossEntropy, n: int, device: torch.device):
        super().__init__(objective, n, device)
        self.degrees = torch.as_tensor(objective.degrees, dtype=torch.float32, device=device)

    def estimate(self, batch: Batch) -> Tensor:
        attraction = -batch.over_edges(self.objective.kernel.log_value(batch.d2))
        around = batch.over_partners(self.objective.apart, self.degrees)
        return torch.stack([attraction, self.objective.negatives / batch.n * batch.over_points(around)])


KINDS: dict[type[Any], Callable[[Any, int, torch.device], Stochastic]] = {
    JointDivergence: StochasticDivergence,
    RenyiDivergence: StochasticDivergence,
    ConditionalKL: StochasticConditional,
    CrossEntropy: StochasticCrossEntropy,
    EffectiveCrossEntropy: StochasticEffective,
}


def check_objective(objective: Any, name: str) -> None:
    """Raise ValueError unless the loss of the method `name` can be estimated from batches in PyTorch."""
    if type(objective) not in KINDS:
        raise ValueError(
            f"the loss of {name} cannot be estimated from batches, so it cannot train an encoder; use UMAP, or a method"
            " of the SNE family with an Alpha divergence of alpha < 1 (such as KL) and without a function as metric g"
        )
    try:
        objective.kernel.log_value(torch.ones(2, requires_grad=True))
    except (TypeError, RuntimeError) as error:
        raise ValueError(
            f"{objective.kernel!r} does not accept PyTorch tensors ({error}); write it with operators (+, *, **) and"
            " the functions of array_api_compat.array_namespace(d2) instead of NumPy's"
        ) from None


def stochastic(objective: Objective, n: int, device: torch.device) -> Stochastic:
    """Return the objective of n points as a loss that is estimated from batches."""
    return KINDS[type(objective)](objective, n, device)
