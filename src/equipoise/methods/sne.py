"""The SNE family: methods that minimise a divergence between affinities P in the data and Q in the map.

P has a given perplexity, and Q is computed from the distances in the map by a kernel.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .. import kernels
from .._optional import import_optional
from .._suggest import described
from .._types import Matrix
from ..affinities import perplexity as affinities
from ..affinities.builders import Gaussian, Given, Neighborhoods, Uniform, width
from ..affinities.fixed_kernels import Affinity, OfDistance, check_affinity
from ..arrays.csr import is_sparse, symmetrized
from ..arrays.memory_limits import GPU_ADVICE, available_memory, require_memory
from ..divergences import Alpha, Divergence
from ..engines import choose_device
from ..engines.choose import engine_for_sampling, samples_edges
from ..geometry import Flat, Geometry, Placed
from ..inputs import Input, make_input
from ..inputs.make import check_affinity_name
from ..kernels import Kernel
from ..objectives import ConditionalKL, Objective, check_kernel, joint_objective, require_dense
from ..problems.autograd import CurvedProblem
from ..problems.forces import ForceProblem
from ..saving.checkpoint import Checkpoint
from .embedding import Embedding
from .estimator import check_callbacks, check_kernel_parameter
from .learned_metric import LearnedMetric


@dataclass(eq=False, repr=False, kw_only=True)
class NeighborEmbedding(Embedding):
    """Embed data so that neighbours stay neighbours, by minimising a divergence D(P ‖ Q).

    P contains the affinities of pairs of points in the data, and Q those in the map.

    Parameters
    ----------
    perplexity : float, sequence of float or "auto", default="auto"
        Effective number of neighbours. With several numbers, the affinities are averaged over them. "auto" is 30, or
        less for fewer than 91 points. The engines "grid", "sampled" and "torch" use 3 · perplexity neighbours; if
        neighbours are precomputed, each point needs at least as many as the perplexity.
    affinity : {"gaussian", "uniform", "precomputed"}, FixedWidth, Kernel or callable, default="gaussian"
        "gaussian": a Gaussian of the distance, with the given perplexity. "uniform": the same affinity for each of the
        nearest neighbours; the perplexity is their number. "precomputed": X is P itself (n, n), dense or sparse and
        nonnegative; P is symmetrised and scaled to a sum of 1, or for SNE scaled to row sums of 1. Metric and
        perplexity are then not used. Otherwise one function p(d) of the distance for all points, P_ij ∝ p(d_ij):
        `affinities.FixedWidth(sigma)` for p = exp(−d²/2σ²), a kernel of `kernels` for p = k(d²), or a function of an
        array of distances that does not increase. The engines "grid", "sampled" and "torch" then keep 3 · perplexity
        neighbours, with a warning if p is not negligible beyond them.
    engine : str, default="auto"
        One of the engines of every Embedding, or "negative_sampling": noise-contrastive estimation of KL(P ‖ Q) by
        UMAP's sampling, with 5 random points per edge and a normaliser that is learned with the map (Damrich et al.
        2023). Then `loss_` is the contrastive loss, not the divergence, and n_iter="auto" is the same as None, because
        the steps shrink to zero. SNE and SphericalSNE do not support it.
    h : ndarray of shape (D, D), callable or LearnedMetric, optional
        Metric tensor on the data instead of a metric: d² = (x_i − x_j)ᵀ h (x_i − x_j). A function h takes X (n, D) and
        returns such a tensor, or one per point (n, D, D). With one per point, the distance of a pair uses the mean of
        its two tensors, and all pairs are compared. `LearnedMetric()` learns a tensor from the labels y passed to
        `fit`, or together with the map; the attribute `metric_tensor_` is then the tensor.
    g : ndarray of shape (d, d) or callable, optional
        Metric tensor on the map: d2 = (y_i − y_j)ᵀ g (y_i − y_j). A function g takes the map, a float64 PyTorch tensor
        (n, d), and returns such a tensor, or one per point (n, d, d). With a function g, the loss is differentiated by
        autograd over all pairs in float64, on a GPU with engine="torch", and `transform` is not available.
    """

    perplexity: Any = "auto"
    affinity: Affinity = "gaussian"
    h: Any = None
    g: Any = None

    def _divergence(self) -> Divergence:
        return Alpha(-1.0)

    def _geometry(self) -> Geometry:
        if self.g is None:
            return super()._geometry()
        if not (isinstance(self.geometry, str) and self.geometry == "plane"):
            raise ValueError(f'g needs the plane, but geometry={self.geometry!r}; use g=None or geometry="plane"')
        return Placed() if callable(self.g) else Flat(self.g, self.n_components)

    def _build(self, X: Any, y: Any = None, init: Any = None) -> tuple[ForceProblem, Input, Neighborhoods]:
        self.__dict__.pop("metric_tensor_", None)  # of an earlier fit
        if isinstance(self.h, LearnedMetric):
            self.check_parameters()
            self.metric_tensor_ = self.h.learn(self, X, y)
        return super()._build(X, y, init)

    def _input(self, X: Any) -> Input:
        affinity = "gaussian" if self._own_affinity() else self.affinity
        h = getattr(self, "metric_tensor_", self.h)
        return make_input(X, self.metric, h, affinity, device=self._device(X))

    def _own_affinity(self) -> bool:
        """Return whether the affinities are given by one function of the distance."""
        return not isinstance(self.affinity, str)

    def _all_pairs(self) -> bool:
        return callable(self.g) or self._divergence().all_pairs

    def _engine(self, requested: str, n: int) -> str:
        if requested == "torch" and callable(self.g):
            return requested  # autograd compares all pairs on its own device
        return super()._engine(engine_for_sampling(requested), n)

    def _bytes_per_pair(self, data: Input, engine: str) -> float:
        # Measured as the peak of fits of 4,000 points: P alone for KL, three arrays of its size for other divergences.
        if data.sparse or self.affinity in ("uniform", "precomputed") or callable(self.g):
            return 0.0
        if not self._all_pairs() and engine not in ("exact", "reference"):
            return 0.0
        if self._own_affinity():
            return 32.0  # d², d, p and P, in float64
        double = self._all_pairs() or engine == "reference"
        copies = 3 if self._divergence() != Alpha(-1.0) else 2 if double else 1
        distances = 0 if data.points is not None else 24  # d, d² and a copy in float64, before P is stored
        return max((8 if double else 4) * copies, distances)

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        if samples_edges(self.engine):
            from .edge_sampling import contrastive_objective  # only this engine needs it

            return contrastive_objective(affinities.joint(P, self._n_threads()), kernel)
        return self._in_metric(joint_objective(affinities.joint(P, self._n_threads()), kernel, self._divergence()))

    def objective_on(self, P: Matrix) -> Objective:
        """Return the loss of this method for affinities P that are already computed."""
        return self._in_metric(joint_objective(P, self._kernel(), self._divergence()))

    def _in_metric(self, flat: Objective) -> Objective:
        """Return the loss `flat`, with distances measured by g(Y) if g is a function.

        If g is a matrix, `flat` is returned unchanged, because the geometry of the map applies g.
        """
        if not callable(self.g):
            return flat
        from ..objectives.autograd.curved import curved  # PyTorch is slow to import, and optional

        return curved(flat, self.g)

    def _problem_class(self) -> type[ForceProblem]:
        if samples_edges(self.engine):
            from ..problems.pair_problems import ContrastiveProblem

            return ContrastiveProblem
        return CurvedProblem if callable(self.g) else super()._problem_class()

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self._own_affinity():
            check_affinity_name(self.affinity)
        else:
            check_affinity(self.affinity)
            if isinstance(self.affinity, Kernel):
                check_kernel(self.affinity)
        if samples_edges(self.engine):
            from .edge_sampling import check_contrastive

            joint = type(self)._objective is NeighborEmbedding._objective  # a subclass may normalise Q in another way
            check_contrastive(self, self._divergence(), self._geometry(), joint=joint)
        if not callable(self.g):
            return self._check_constant()
        import_optional("torch", "gpu", "a function g(Y), which is differentiated,")
        self.objective_on(np.array([[0.0, 0.5], [0.5, 0.0]]))  # raises if the divergence does not support g(Y)
        if isinstance(self.engine, str) and self.engine in ("grid", "sampled"):
            raise ValueError(
                f"a function g(Y) needs exact sums over all pairs, which engine={self.engine!r} does not compute; use"
                ' engine="exact", or "torch" for a GPU'
            )
        check_callbacks(self.callbacks, self.random_state)
        if any(isinstance(callback, Checkpoint) for callback in self.callbacks):
            raise ValueError("Checkpoint does not support a function g; remove the Checkpoint from callbacks")

    def _check_constant(self) -> None:
        try:
            np.asarray(self.g, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"g must be a matrix of numbers (d, d) or a function of the map, got {self.g!r}") from None

    def _precomputed(self) -> Given:
        """Return the rule that scales precomputed affinities, and those of one function of the distance."""
        return Given(affinities.of_total)

    def _neighbors(self, n: int) -> int:
        if self.affinity == "precomputed":
            return n - 1  # at most
        return width(affinities.resolve_perplexity(self.perplexity, n), n - 1)

    def _kl(self) -> bool:
        return self._divergence() == Alpha(-1.0)

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        if callable(self.g):
            self._require_memory(data)
        if self._divergence().all_pairs:
            require_dense(data.sparse or self.affinity == "uniform", self._divergence())
        if self.affinity == "precomputed":
            return self._precomputed()
        perplexities = affinities.resolve_perplexity(self.perplexity, data.n)
        if self._own_affinity():
            k = width(perplexities, data.n - 1)
            return OfDistance(self.affinity, self._precomputed().scaled, k, self._n_threads())
        kind = Uniform if self.affinity == "uniform" else Gaussian
        return kind(perplexities, self._n_threads())

    def _require_memory(self, data: Input) -> None:
        """Raise MemoryError unless the matrices of all pairs that a function g(Y) needs fit in memory."""
        n = data.n
        what = f"a function g(Y) compares all pairs of {n:,} points in float64, which"
        require_memory(3 * 8.0 * n**2, what, available_memory())
        table = getattr(data, "X", None)  # a tensor, if X was one
        if choose_device(self.engine, self.device, table)[1] == "cuda":
            import torch

            require_memory(2 * 8.0 * n**2, f"on the GPU {what}", float(torch.cuda.mem_get_info()[0]), GPU_ADVICE)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= isinstance(self.affinity, str) and self.affinity == "precomputed"
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class SNE(NeighborEmbedding):
    """Original SNE: Σ_i KL(p_{·|i} ‖ q_{·|i}) with the Gaussian kernel (Hinton & Roweis 2002), or with any other.

    p_{·|i} and q_{·|i} are the affinities of point i to all other points, in the data and in the map; each sums to 1.

    Parameters
    ----------
    kernel : Kernel, optional
        A built-in or user-defined kernel; Gaussian by default. `StudentT()` gives t-SNE with normalised rows.
    """

    kernel: Kernel | None = None

    def _kernel(self) -> Kernel:
        return check_kernel_parameter(self.kernel) or kernels.Gaussian()

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        return self._in_metric(ConditionalKL(P, kernel))

    def objective_on(self, P: Matrix) -> Objective:
        return self._in_metric(ConditionalKL(P, self._kernel()))

    def _precomputed(self) -> Given:
        return Given(affinities.of_rows)

    def _symmetric(self, objective: Objective) -> Matrix:
        P = objective.affinities
        return symmetrized(P) if is_sparse(P) else P + P.T


@dataclass(eq=False, repr=False, kw_only=True)
class SymmetricSNE(NeighborEmbedding):
    """Symmetric SNE: D(P ‖ Q) over all pairs, Q = k/Σk, for any kernel k and divergence D; Gaussian and KL by default.

    Parameters
    ----------
    kernel : Kernel, optional
        A built-in or user-defined kernel; Gaussian by default.
    divergence : Divergence, optional
        A built-in or user-defined divergence; KL by default.
    """

    kernel: Kernel | None = None
    divergence: Divergence | None = None

    def _kernel(self) -> Kernel:
        return check_kernel_parameter(self.kernel) or kernels.Gaussian()

    def _divergence(self) -> Divergence:
        if not isinstance(self.divergence, Divergence | None):
            raise ValueError(
                f"divergence must be an equipoise.divergences.Divergence or None, got {described(self.divergence)}"
            )
        return Alpha(-1.0) if self.divergence is None else self.divergence


@dataclass(eq=False, repr=False, kw_only=True)
class TSNE(NeighborEmbedding):
    """t-SNE: KL(P ‖ Q) with the Student kernel k = (1 + d2/ν)^(−(ν+1)/2) (van der Maaten & Hinton 2008).

    d2 is the squared distance between two points in the map.

    Parameters
    ----------
    dof : float, default=1.0
        Degrees of freedom ν of the kernel.
    """

    dof: float = 1.0

    def _kernel(self) -> Kernel:
        return kernels.StudentT(self.dof)


@dataclass(eq=False, repr=False, kw_only=True)
class PowerSNE(NeighborEmbedding):
    """p-SNE: KL(P ‖ Q) with the power law k = max(r, r0)^(−β) of the distance r (Lin et al. 2024, eq. 4).

    Parameters
    ----------
    beta : float, default=2.0
        Exponent β.
    r0 : float, default=1.0
        Distance below which two points exert no force on each other. Changing r0 only rescales the map, because Q is
        unchanged when r0 and all distances are multiplied by the same factor.
    """

    early_exaggeration: float = (
        2.0  # measured: attraction that grows as 1/r contracts small maps irreversibly at 3 or more
    )
    beta: float = 2.0
    r0: float = 1.0

    def _kernel(self) -> Kernel:
        return kernels.PowerLaw(self.beta, self.r0)


@dataclass(eq=False, repr=False, kw_only=True)
class GSNE(NeighborEmbedding):
    """g-SNE: the α-divergence D_α(P ‖ Q) with k = 1/(η + r^β) of the distance r (Lin et al. 2024, eq. 13, 14, 21).

    With α = −1, β = 2 and η = 1 it is t-SNE.

    Parameters
    ----------
    alpha : float, default=-0.5
        Order α of the divergence; α ≥ 1 needs all pairs and O(n²) memory.
    beta : float, default=3.0
        Exponent β of the kernel.
    eta : float, default=0.1
        The constant η. Changing it only rescales the map: Y is proportional to η^(1/β).
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

    The map consists of unit vectors, and steps stay on the sphere.

    Parameters
    ----------
    n_components : int, default=3
        Dimension d of the space around the sphere; with d = 1 the sphere consists of two points.
    rho : float, default=0.95
        Parameter ρ of the kernel, in [0, 1); larger values sharpen the kernel.
    geometry : {"sphere"}, default="sphere"
        The unit sphere. Other methods have spheres of other sizes, on which `n_components` is the dimension of the
        surface: `GSNE(geometry="sphere")`.
    """

    n_components: int = 3
    _: KW_ONLY
    geometry: Any = "sphere"
    rho: float = 0.95

    def _kernel(self) -> Kernel:
        return kernels.SphericalExit(self.rho, self.n_components)

    def _geometry(self) -> Geometry:
        if self.g is not None:
            raise ValueError("SphericalSNE uses the metric of the sphere and does not support g; use g=None")
        if not (isinstance(self.geometry, str) and self.geometry == "sphere"):
            raise ValueError(f"SphericalSNE has no geometry={self.geometry!r}; use another method, such as TSNE")
        from ..geometry import Directions

        return Directions(1.0)

    @property
    def n_columns(self) -> int:
        return self.n_components

    def _map_dimension(self) -> int:
        return self.n_components - 1
