"""Parts of methods that share losses of pairs and UMAP's sampling: checks, objectives and problem classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy import sparse

from .._tags import tagged
from .._types import Array, Matrix
from ..arrays.csr import entries_where, is_on_device, on_host
from ..divergences import Alpha, Divergence
from ..geometry import Flat, Geometry, Placed
from ..kernels import DerivedKernel, Kernel
from ..objectives.pair_objective import PairObjective
from ..pair_losses import Contrastive, PairLoss
from ..problems.forces import ForceProblem
from ..problems.pair_problems import ContrastiveProblem, PairProblem, PairSamplingProblem
from .umap import MAX_NEGATIVES

NEGATIVES = 5  # random points per edge; umap-learn's negative_sample_rate


@tagged("methods.edge_sampling.FullExtent")
@dataclass(frozen=True)
class FullExtent(DerivedKernel):
    """A kernel whose initial map has about its final extent.

    A loss of pairs has no normaliser: in a tiny map, where all kernels are nearly 1, its forces have the wrong size.
    """

    kernel: Kernel

    spread = 5.0  # standard deviation of the initial map in units of length, as for UMAP

    @classmethod
    def of(cls, kernel: Kernel) -> Kernel:
        """Return the kernel with a spread of at least 1 length."""
        return kernel if kernel.spread >= 1 else cls(kernel)

    def value(self, d2: Array) -> Array:
        return self.kernel.value(d2)

    def slope(self, d2: Array) -> Array:
        return self.kernel.slope(d2)


def check_edge_sampling(method: Any, negatives: Any, geometry: Geometry) -> None:
    """Raise ValueError if a method cannot use engine="negative_sampling" with this number of negatives per edge."""
    if negatives != int(negatives):
        raise ValueError(f'negative_sample_rate must be an integer for engine="negative_sampling", got {negatives!r}')
    if negatives > MAX_NEGATIVES:
        raise ValueError(
            f'negative_sample_rate must be at most {MAX_NEGATIVES} for engine="negative_sampling", got {negatives!r};'
            " other engines have no limit"
        )
    if method.optimizer is not None:
        raise ValueError('engine="negative_sampling" has its own optimiser; use optimizer=None or another engine')
    if isinstance(geometry, Placed):
        raise ValueError('engine="negative_sampling" does not support a function g(Y); use another engine')
    if type(geometry) is not Flat:
        raise ValueError(
            f'engine="negative_sampling" needs a map in flat space, not geometry={method.geometry!r}; use another'
            " engine"
        )


def pair_objective(K: Matrix, kernel: Kernel, loss: PairLoss, negatives: float | None) -> PairObjective:
    """Return the objective of a loss of pairs; edges of affinity 0 are removed.

    A scale that is learned is at first that of a map in which every kernel is 1.
    """
    if isinstance(loss, Contrastive) and loss.is_learned:
        loss = Contrastive(float(negatives or 1))
    K = on_host(K) if is_on_device(K) else K
    if sparse.issparse(K) and not (K.data > 0).all():
        K = entries_where(K, K.data > 0)
    inner = kernel.kernel if isinstance(kernel, FullExtent) else kernel
    return PairObjective(K, inner, loss, None if negatives is None else float(negatives))


def contrastive_objective(P: Matrix, kernel: Kernel) -> PairObjective:
    """Return the noise-contrastive form of KL(P ‖ Q), Q = k/Z, for joint affinities P; the normaliser is learned."""
    return pair_objective(P, kernel, Contrastive("learned"), NEGATIVES)


def check_contrastive(method: Any, divergence: Divergence, geometry: Geometry, *, joint: bool) -> None:
    """Raise ValueError if a method of the SNE family cannot use engine="negative_sampling".

    `joint` says whether Q is normalised over all pairs.
    """
    check_edge_sampling(method, NEGATIVES, geometry)
    name = type(method).__name__
    if not joint:
        raise ValueError(
            f'engine="negative_sampling" learns one normaliser, but {name} does not normalise Q over all pairs; use'
            " TSNE or SymmetricSNE, or another engine"
        )
    if divergence != Alpha(-1.0):
        raise ValueError(
            f'engine="negative_sampling" minimises the KL divergence, but {name} has {divergence!r}; use alpha=-1,'
            " divergence=None or another engine"
        )


def pair_problem_class(*, sampled: bool, learned: bool) -> type[ForceProblem]:
    """Return the class of the problem: by gradient, by sampling, or by sampling with a learned scale."""
    if not sampled:
        return PairProblem
    return ContrastiveProblem if learned else PairSamplingProblem
