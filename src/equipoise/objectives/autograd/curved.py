"""Losses of a map with a metric g(y) that varies from place to place.

E depends on Y only through the squared distances d2_kl, measured with g, so

    ∂E/∂y_i = Σ_kl (∂E/∂d2_kl) ∂d2_kl/∂y_i                                                   docs/math.md, eq. (G1)

Each loss gives the attractive and the repulsive weights ∂E/∂d2 in closed form; autograd differentiates d2, including g.
The sums run over all pairs, in float64. With g = I these are the losses of joint.py, dense.py and conditional.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ..._types import Array, Matrix
from ...arrays.csr import dense, on_host
from ...divergences import antiderivative
from ...engines import Engine, Placement
from ...kernels import Kernel
from ..base import Balance, FrozenForce, Objective, require_positive
from ..conditional import ConditionalKL
from ..dense import DenseDivergence
from ..joint import JointDivergence, RenyiDivergence
from ..stored_divergence import ZERO, StoredDivergence
from .pairs import Pairs, on_tensor

Metric = Callable[[torch.Tensor], torch.Tensor]  # Y (n, d) → (d, d) or (n, d, d)


class Curved:
    """The loss `flat` with distances measured by the metric g; PyTorch computes it on `device`, without an engine."""

    def __init__(self, flat: Any, g: Metric, device: str = "cpu"):
        self.flat, self.g, self.device = flat, g, device

    def on(self, device: str) -> Curved:
        """Return the same loss on another device."""
        return type(self)(self.flat, self.g, device)

    def check(self, Y: Array) -> None:
        """Raise TypeError or ValueError unless g returns valid metric tensors at Y."""
        Pairs(Y, self.g, self.device)

    @property
    def affinities(self) -> Matrix:
        return self.flat.affinities

    @property
    def kernel(self) -> Kernel:
        return self.flat.kernel

    @property
    def mass(self) -> float:
        return self.flat.mass

    @cached_property
    def P(self) -> torch.Tensor:
        """The dense affinities (n, n) in float64 on the device.

        On the CPU, a dense float64 array is not copied if it is writable and in C order.
        """
        P = dense(on_host(self.affinities))
        return torch.from_numpy(np.require(P, np.float64, ["C", "W"])).to(self.device)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("P", "A")}

    def balance(self, Y: Array, engine: Engine, *, loss: bool, exaggeration: float = 1.0) -> Balance:
        pairs = Pairs(Y, self.g, self.device)
        attraction, repulsion, value, stiffness = self._balance(pairs, loss, exaggeration)
        stiffness = float(stiffness) * pairs.stretch
        return Balance(attraction.cpu().numpy(), repulsion.cpu().numpy(), float(value), stiffness)

    def _balance(self, pairs: Pairs, loss: bool, exaggeration: float) -> tuple[torch.Tensor, torch.Tensor, Any, Any]:
        """Return attraction, repulsion, loss and stiffness; the caller multiplies the stiffness by `Pairs.stretch`."""
        raise TypeError(f"{type(self).__name__} must define _balance()")

    def to(self, placement: Placement) -> Objective:
        """Return the loss itself: it runs on its own device, whatever the engine."""
        return self

    def permuted(self, order: Array) -> Objective:
        raise TypeError(
            "the order of the points cannot change, because a metric g(Y) may depend on their index; keep the order of"
            " the input"
        )

    def freeze(self, Y: Array, engine: Engine, exaggeration: float = 1.0) -> FrozenForce:
        raise ValueError(
            "transform is not available if g is a function, because g(Y) defines the metric only at the fitted points;"
            " pass g as a constant matrix"
        )

    def pair_forces(self, r: Array, p: float, Z: float) -> tuple[Array, Array]:
        raise TypeError(
            "under a metric g(Y), forces depend on the positions of two points, not on their distance alone; use"
            " attraction(Y) and repulsion(Y) of the problem"
        )


class CurvedJoint(Curved):
    """D_α(P ‖ Q), α < 1: ∂E/∂d2 = −(1/s) [Z^{−e} P^s k^{−s} k' − (T/Z) k'], from eq. (2').

    s, e and T are those of `JointDivergence`. For the Rényi divergence, T takes the place of the divisor s.
    """

    flat: JointDivergence

    @cached_property
    def A(self) -> torch.Tensor:
        return self.P if self.flat.s == 1 else self.P**self.flat.s

    def _balance(self, pairs: Pairs, loss: bool, exaggeration: float) -> tuple[torch.Tensor, torch.Tensor, Any, Any]:
        s, e, kernel = self.flat.s, self.flat.e, self.kernel
        pull, push, psi, Z = pairs.force_sum(), pairs.force_sum(), 0.0, 0.0
        for rows, d2, own in pairs:
            A, log_k = self.A[rows], on_tensor(kernel.log_value, d2)
            Z += float(on_tensor(kernel.value, d2).masked_fill(own, 0.0).sum())
            psi += float(_weighted(A, antiderivative(log_k, e)).sum()) if loss or e != 0 else 0.0
            pull.add(d2, _weighted(A, (e * log_k).exp() * on_tensor(kernel.log_slope, d2)))
            push.add(d2, on_tensor(kernel.slope, d2).masked_fill(own, 0.0))
        require_positive(Z, loss)
        value, T = self.flat.divergence_and_overlap(psi, Z) if loss or e != 0 else (np.nan, 1.0)
        divisor = self.flat.divisor(T)
        attraction = Z**-e * exaggeration**s / divisor * pull.result()
        return attraction, -T / (divisor * Z) * push.result(), value, exaggeration**s * T / divisor


class CurvedDense(Curved):
    """Any divergence E = Σ P f(Q/P): ∂E/∂d2 = (G − ⟨G⟩) k'/Z for G = f'(Q/P) and ⟨G⟩ = Σ Q G, as in eq. (4)."""

    flat: DenseDivergence

    def _balance(self, pairs: Pairs, loss: bool, exaggeration: float) -> tuple[torch.Tensor, torch.Tensor, Any, Any]:
        divergence, kernel, P = self.flat.divergence, self.kernel, self.P
        Z = sum(float(on_tensor(kernel.value, d2).masked_fill(own, 0.0).sum()) for _, d2, own in pairs)
        pull, push, mean, value = pairs.force_sum(), pairs.force_sum(), 0.0, 0.0
        load = torch.zeros((), dtype=torch.float64)

        def compared(rows: slice, d2: torch.Tensor, own: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            """Return Q, with 0 on the diagonal, and Q/P, with 1 on the diagonal."""
            Q = on_tensor(kernel.value, d2).masked_fill(own, 0.0) / Z
            return Q, (Q / P[rows]).masked_fill(own, 1.0)

        for rows, d2, own in pairs:
            Q, t = compared(rows, d2, own)
            mean += float((Q * on_tensor(divergence.slope, t)).sum())
            value += float((P[rows] * on_tensor(divergence.value, t)).sum()) if loss else np.nan
        for rows, d2, own in pairs:
            Q, t = compared(rows, d2, own)
            G = (on_tensor(divergence.slope, t / exaggeration) - mean).masked_fill(own, 0.0)
            slope = on_tensor(kernel.slope, d2) / Z
            pull.add(d2, G.clamp(max=0.0) * slope)
            push.add(d2, G.clamp(min=0.0) * slope)
            load = torch.maximum(load, (G.abs() * Q).sum(dim=1).max().cpu())
        return -pull.result(), -push.result(), value, max(1.0, len(P) * float(load))


class CurvedStored(CurvedDense):
    """A divergence for which P may be 0, because f' has a limit at infinity: such an affinity is replaced by ZERO."""

    @cached_property
    def P(self) -> torch.Tensor:
        return super().P.clamp_min(ZERO)


class CurvedConditional(Curved):
    """Σ_i KL(p_{·|i} ‖ q_{·|i}): ∂E/∂d2_ij = (q_{j|i} − p_{j|i}) k'/k for ordered pairs, as in eq. (5)."""

    flat: ConditionalKL

    def _balance(self, pairs: Pairs, loss: bool, exaggeration: float) -> tuple[torch.Tensor, torch.Tensor, Any, Any]:
        pull, push = pairs.force_sum(), pairs.force_sum()
        value = float(torch.xlogy(self.P, self.P).sum()) if loss else np.nan
        for rows, d2, own in pairs:
            log_k, log_slope = on_tensor(self.kernel.log_value, d2), on_tensor(self.kernel.log_slope, d2)
            masked = log_k.masked_fill(own, -torch.inf)
            log_Z = masked.logsumexp(dim=1, keepdim=True)
            value += float(log_Z.sum() - (self.P[rows] * log_k).sum())
            pull.add(d2, self.P[rows] * log_slope)
            push.add(d2, (masked - log_Z).exp() * log_slope)
        return exaggeration * pull.result(), -push.result(), value, self.mass * exaggeration


def _weighted(A: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the elementwise product of A and x; where A is 0, it is 0 even if x is infinite."""
    return torch.where(A > 0, A * x, 0.0)


CURVED: dict[type[Any], type[Curved]] = {
    JointDivergence: CurvedJoint,
    RenyiDivergence: CurvedJoint,
    DenseDivergence: CurvedDense,
    StoredDivergence: CurvedStored,
    ConditionalKL: CurvedConditional,
}


def curved(flat: Objective, g: Metric) -> Curved:
    """Return the loss `flat` in a map with the metric g(Y); raise ValueError if this loss does not support one."""
    if type(flat) not in CURVED:
        raise ValueError(
            "a function g(Y) does not support the divergences Beta, Gamma, NeRV and SymmetricKL; use an f-divergence,"
            " such as Alpha or JensenShannon, or a constant matrix g"
        )
    return CURVED[type(flat)](flat, g)
