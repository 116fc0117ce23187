"""The SNE family."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from .. import geometry, kernels
from .._types import Matrix
from ..affinities import perplexity as affinities
from ..affinities.builders import Given
from ..arrays.csr import is_sparse, symmetrized
from ..divergences import Alpha, Divergence
from ..kernels import Kernel
from ..objectives import ConditionalKL, Objective
from .neighbor_embedding import NeighborEmbedding


@dataclass(eq=False, repr=False, kw_only=True)
class SNE(NeighborEmbedding):
    """Original stochastic neighbour embedding: Σ_i KL(p_{·|i} ‖ q_{·|i}), Gaussian kernel (Hinton & Roweis 2002)."""

    def _kernel(self) -> Kernel:
        return kernels.Gaussian()

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        return self._in_metric(ConditionalKL(P, kernel))

    def objective_on(self, P: Matrix) -> Objective:
        return self._in_metric(ConditionalKL(P, self._kernel()))

    def _given(self) -> Given:
        return Given(affinities.of_rows)

    def _symmetric(self, objective: Objective) -> Matrix:
        P = objective.affinities
        return symmetrized(P) if is_sparse(P) else P + P.T


@dataclass(eq=False, repr=False, kw_only=True)
class SymmetricSNE(NeighborEmbedding):
    """D(P ‖ Q) over all pairs, Q = k/Z, for any kernel k and divergence D; Gaussian and KL by default.

    Parameters
    ----------
    kernel : a `Kernel`, built in or your own; Gaussian by default
    divergence : a `Divergence`; KL by default
    """

    kernel: Kernel | None = None
    divergence: Divergence | None = None

    def _kernel(self) -> Kernel:
        if not isinstance(self.kernel, Kernel | None):
            raise ValueError(f"kernel must be an equipoise.kernels.Kernel, got {self.kernel!r}")
        if type(self.kernel).__hash__ is None:
            raise ValueError(f"{self.kernel!r} cannot be told from others: declare its class @dataclass(frozen=True)")
        return kernels.Gaussian() if self.kernel is None else self.kernel

    def _divergence(self) -> Divergence:
        if not isinstance(self.divergence, Divergence | None):
            raise ValueError(f"divergence must be an equipoise.divergences.Divergence, got {self.divergence!r}")
        return Alpha(-1.0) if self.divergence is None else self.divergence


@dataclass(eq=False, repr=False, kw_only=True)
class TSNE(NeighborEmbedding):
    """t-SNE: KL(P ‖ Q) with the Student kernel k = (1 + d2/ν)^(−(ν+1)/2) (van der Maaten & Hinton 2008).

    Parameters
    ----------
    dof : degrees of freedom ν of the kernel
    """

    dof: float = 1.0

    def _kernel(self) -> Kernel:
        return kernels.StudentT(self.dof)


@dataclass(eq=False, repr=False, kw_only=True)
class PowerSNE(NeighborEmbedding):
    """p-SNE: KL(P ‖ Q) with the power law k = max(r, r0)^(−β) (Lin et al. 2024, eq. 4).

    Parameters
    ----------
    beta : exponent β
    r0 : cut-off: nearer points exert no force. It only sets the unit of the map
    """

    early_exaggeration: float = 2.0  # a pull that grows as 1/r contracts small maps beyond recovery at 3 and more
    beta: float = 2.0
    r0: float = 1.0

    def _kernel(self) -> Kernel:
        return kernels.PowerLaw(self.beta, self.r0)


@dataclass(eq=False, repr=False, kw_only=True)
class GSNE(NeighborEmbedding):
    """g-SNE: the α-divergence D_α(P ‖ Q) with k = 1/(η + r^β) (Lin et al. 2024, eq. 13, 14, 21).

    α = −1, β = 2, η = 1 is t-SNE.

    Parameters
    ----------
    alpha : order α of the divergence; α ≥ 1 needs every pair and O(n²) memory
    beta : exponent β of the kernel
    eta : η, which only sets the unit of the map: Y scales with η^(1/β)
    """

    alpha: float = -0.5
    beta: float = 3.0
    eta: float = 0.1

    def _kernel(self) -> Kernel:
        return kernels.RegularizedPowerLaw(self.beta, self.eta)

    def _divergence(self) -> Divergence:
        return Alpha(self.alpha)


@dataclass(eq=False, repr=False)
class SphericalSNE(NeighborEmbedding):
    """s-SNE: KL(P ‖ Q) on the unit sphere in R^d with k = ‖y_j − ρ y_i‖^(−d) (Lin et al. 2024, eq. 5, 27, 28).

    The map is a set of unit vectors; steps follow the sphere.

    Parameters
    ----------
    n_components : d, the dimension of the space around the sphere; at 1 the sphere is two points
    rho : ρ in [0, 1): the kernel sharpens as it grows
    """

    n_components: int = 3
    _: KW_ONLY
    rho: float = 0.95

    def _kernel(self) -> Kernel:
        return kernels.SphericalExit(self.rho, self.n_components)

    def _geometry(self) -> geometry.Geometry:
        if self.g is not None:
            raise ValueError("g is a metric tensor on a flat map; SphericalSNE has the sphere's own metric")
        return geometry.Sphere()

    def _map_dimension(self) -> int:
        return self.n_components - 1
