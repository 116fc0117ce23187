"""Embedding by any loss F(k_x, k_y) of an affinity in the data and a kernel in the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._suggest import described
from .._types import Matrix
from ..affinities import perplexity as affinities
from ..affinities.bandwidth import Bandwidth, check_bandwidth
from ..affinities.builders import Fuzzy, Gaussian, Neighborhoods, Radial, width
from ..affinities.pair_affinities import Unscaled, mean_of_both
from ..arrays.namespace import is_auto, is_integer, is_positive
from ..engines.choose import engine_for_sampling, samples_edges
from ..inputs import Input, make_input
from ..inputs.neighbor_graphs import check_n_neighbors, limit_neighbors
from ..kernels import Kernel, Membership
from ..objectives import Objective
from ..pair_losses import BinaryCrossEntropy, Contrastive, PairLoss, check_pair_loss
from ..problems.forces import ForceProblem
from .edge_sampling import (
    NEGATIVES,
    FullExtent,
    check_edge_sampling,
    pair_objective,
    pair_problem_class,
)
from .embedding import Embedding
from .estimator import check_kernel_parameter

# Number of points from which the mesh is used in up to 3 dimensions: "exact" evaluates F(0, k) in NumPy. Measured on
# digits, 100 iterations on one core: 0.3 s and 0.05 s for 200 points, 2.3 s and 0.07 s for 500.
CROSSOVER = 200
AFFINITIES = ("fuzzy", "gaussian", "perplexity", "precomputed")


@dataclass(eq=False, repr=False, kw_only=True)
class PairEmbedding(Embedding):
    """Embed data by any loss Σ_ij F(k_x, k_y) of affinities k_x in the data and k_y = k(d2) in the map.

    This is the general form of methods of attraction and repulsion (Draganov & Dohn 2024, eq. 3). d2 is the squared
    distance of a pair in the map. F is given by a `PairLoss`. Pairs that are not neighbours in the data have k_x = 0;
    their terms F(0, k_y) are summed as a field, so that every F takes linear time. `affinities_` contains k_x.

    Parameters
    ----------
    loss : PairLoss, optional
        F and its derivative: a loss of `equipoise.pair_losses`, or your own. The default is BinaryCrossEntropy(), the
        loss UMAP is meant to minimise.
    kernel : Kernel, optional
        The kernel k of the map; 1/(1 + d2) by default.
    affinity : {"fuzzy", "gaussian", "perplexity", "precomputed"}, default="fuzzy"
        k_x. "fuzzy": the memberships of UMAP. "gaussian": exp(−d²/2σ_iσ_j) of the distance d in the data.
        "perplexity": the affinities of t-SNE, (p_{j|i} + p_{i|j})/2. "precomputed": X is k_x itself (n, n), dense or
        sparse and nonnegative; it is replaced by (X + Xᵀ)/2.
    n_neighbors : int, default=15
        Number of neighbours for "fuzzy" (including the point itself) and "gaussian".
    bandwidth : {"local", "global"} or float, default="local"
        Width σ for "gaussian"; see `DKPCA`.
    perplexity : float, sequence of float or "auto", default="auto"
        Perplexity for "perplexity"; see `TSNE`.
    negative_sample_rate : float, optional
        Number m of random pairs per edge. If it is given, the terms F(0, k_y) have the weights (s_i + s_j) · m/2n
        instead of 1, with s_i = Σ_j k_x, as in the loss that UMAP minimises by sampling. engine="negative_sampling"
        requires an integer, and uses 5 by default.
    engine : str, default="auto"
        One of the engines of every Embedding, or "negative_sampling": edges and random points are sampled as in UMAP.
    n_iter : int, "auto" or None, default=500
        Maximum number of iterations, as for every Embedding. With engine="negative_sampling", whose steps shrink to
        zero, "auto" is the same as None.
    early_exaggeration : float or "auto", default="auto"
        "auto" is 1 if the engine is "negative_sampling" and 12 with other engines. On digits (n = 1797), the loss of
        BinaryCrossEntropy after 500 iterations was 30,300 with 12 and 33,600 with 1, that of SquaredDifference 2,100
        and 3,100.
    """

    loss: PairLoss | None = None
    kernel: Kernel | None = None
    affinity: str = "fuzzy"
    n_neighbors: int = 15
    bandwidth: Any = "local"
    perplexity: Any = "auto"
    negative_sample_rate: Any = None
    init: Any = "spectral"
    n_iter: Any = 500
    early_exaggeration: Any = "auto"

    def check_parameters(self) -> None:
        super().check_parameters()
        _check_loss_type(self.loss)
        if type(self.loss).__hash__ is None:
            raise ValueError(f"loss={self.loss!r} is not hashable; declare its class with @dataclass(frozen=True)")
        if not (isinstance(self.affinity, str) and self.affinity in AFFINITIES):
            raise ValueError(f"unknown affinity {self.affinity!r}; choose from {', '.join(map(repr, AFFINITIES))}")
        if not (is_integer(self.n_neighbors) and self.n_neighbors >= 2):
            raise ValueError(f"n_neighbors must be an integer >= 2, got {self.n_neighbors!r}")
        m = self.negative_sample_rate
        if m is not None and not is_positive(m):
            raise ValueError(f"negative_sample_rate must be a positive number or None, got {m!r}")
        if samples_edges(self.engine):
            check_edge_sampling(self, NEGATIVES if m is None else m, self._geometry())
        elif self._learns_scale():
            raise ValueError(
                'Contrastive(scale="learned") requires engine="negative_sampling"; use it, or a number as scale'
            )
        check_pair_loss(Contrastive() if self._learns_scale() else self._loss(), self._kernel())

    def _loss(self) -> PairLoss:
        return BinaryCrossEntropy() if self.loss is None else self.loss

    def _learns_scale(self) -> bool:
        return isinstance(self.loss, Contrastive) and self.loss.is_learned

    def _kernel(self) -> Kernel:
        return check_kernel_parameter(self.kernel) or Membership()

    def output_kernel(self) -> Kernel:
        """Return the kernel of the map; raise if it is user-defined and invalid. The initial map is not tiny."""
        return FullExtent.of(super().output_kernel())

    def _input(self, X: Any) -> Input:
        affinity = "precomputed" if self.affinity == "precomputed" else "gaussian"
        return make_input(X, self.metric, None, affinity)  # affinities are computed on the CPU

    def _engine(self, requested: str, n: int) -> str:
        if requested == "auto" and self.n_columns <= 3 and n >= CROSSOVER:
            pairs = self._geometry().resolved(n, self.n_components, 1.0).pairs
            requested = "grid" if pairs is None or pairs.native() is not None else "exact"
        return super()._engine(engine_for_sampling(requested), n)

    def _neighbors(self, n: int) -> int:
        if self.affinity == "precomputed":
            return n - 1  # at most
        if self.affinity == "perplexity":
            return width(affinities.resolve_perplexity(self.perplexity, n), n - 1)
        return min(int(self.n_neighbors), n - 1)

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        if self.affinity == "precomputed":
            return Unscaled()
        if self.affinity == "perplexity":
            return Gaussian(affinities.resolve_perplexity(self.perplexity, data.n), self._n_threads())
        if self.affinity == "fuzzy":
            return Fuzzy(limit_neighbors(int(self.n_neighbors), data.n, data.n), self._n_threads())
        if self.bandwidth == np.inf:
            raise ValueError("bandwidth=inf makes every affinity 1; use a finite bandwidth")
        bandwidth = Bandwidth(check_bandwidth(self.bandwidth), check_n_neighbors(self.n_neighbors, data.n))
        return Radial(bandwidth, self._n_threads())

    def _bytes_per_pair(self, data: Input, engine: str) -> float:
        dense = not data.sparse and engine in ("exact", "reference") and self.affinity in ("gaussian", "perplexity")
        return 24.0 if dense else 0.0  # d², the exponent or P, and k_x

    def resolve_early_exaggeration(self) -> float:
        if is_auto(self.early_exaggeration):
            return 1.0 if samples_edges(self.engine) else 12.0
        return super().resolve_early_exaggeration()

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        K = mean_of_both(P, self._n_threads()) if self.affinity in ("perplexity", "precomputed") else P
        sampled = samples_edges(self.engine)
        m = NEGATIVES if sampled and self.negative_sample_rate is None else self.negative_sample_rate
        return pair_objective(K, kernel, self._loss(), m)

    def _problem_class(self) -> type[ForceProblem]:
        return pair_problem_class(sampled=samples_edges(self.engine), learned=self._learns_scale())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= isinstance(self.affinity, str) and self.affinity == "precomputed"
        return tags


def _check_loss_type(loss: Any) -> None:
    """Raise ValueError unless `loss` is a PairLoss or None; for a function the message says how to make it one."""
    if isinstance(loss, PairLoss | None):
        return
    hint = ""
    if callable(loss) and not isinstance(loss, type):
        hint = "; for a function F pass PairLoss(F, dF), where dF is its derivative with respect to ky"
    raise ValueError(f"loss must be an equipoise.PairLoss or None, got {described(loss)}{hint}")
