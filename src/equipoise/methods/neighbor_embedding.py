"""What the SNE family shares: affinities of a perplexity, a kernel and a divergence between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import affinities
from .._types import Matrix
from ..divergences import Alpha, Divergence
from ..geometry import Flat, Geometry
from ..inputs import Input, make_input
from ..kernels import Kernel
from ..objectives import Objective, joint_objective, require_dense
from .embedding import Embedding
from .neighborhoods import Gaussian, Given, Neighborhoods, Uniform


@dataclass(eq=False, repr=False, kw_only=True)
class NeighborEmbedding(Embedding):
    """Embed data so that neighbours stay neighbours: D(P ‖ Q) between affinities in the data and in the map.

    Parameters
    ----------
    perplexity : effective number of neighbours; several numbers average over scales; "auto" is 30, less on small data.
        The engines "grid" and "sampled" use 3 · perplexity neighbours; lists of precomputed ones need at least as many
        as the perplexity
    affinity : "gaussian" in the distance, of the given perplexity; "uniform" over that many nearest neighbours; or
        "precomputed": X is then P itself (n, n), dense or sparse, not negative. It is symmetrised and scaled to total
        1, for SNE row by row; metric and perplexity have no use
    h : constant metric tensor (D, D) on the data in place of a metric: d² = (x_i − x_j)ᵀ h (x_i − x_j)
    g : constant metric tensor (d, d) on the map: d2 = (y_i − y_j)ᵀ g (y_i − y_j)
    """

    perplexity: Any = "auto"
    affinity: str = "gaussian"
    h: Any = None
    g: Any = None

    def _divergence(self) -> Divergence:
        return Alpha(-1.0)

    def _geometry(self) -> Geometry:
        return Flat(self.g, self.n_components)

    def _input(self, X: Any) -> Input:
        return make_input(X, self.metric, self.h, self.affinity, device=self._device(X))

    def _all_pairs(self) -> bool:
        return self._divergence().s is None

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        return joint_objective(affinities.joint(P, self._n_threads()), kernel, self._divergence())

    def objective_on(self, P: Matrix) -> Objective:
        """Return the loss on affinities as a problem holds them: another kernel needs no new search of neighbours."""
        return joint_objective(P, self._kernel(), self._divergence())

    def _given(self) -> Given:
        """Return the user's own affinities in place of the rows p_{j|i}."""
        return Given(affinities.of_total)

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        if self._all_pairs():
            require_dense(data.sparse or self.affinity == "uniform", self._divergence())
        if self.affinity == "precomputed":
            return self._given()
        perplexities = affinities.resolve_perplexity(self.perplexity, data.n)
        kind = Uniform if self.affinity == "uniform" else Gaussian
        return kind(perplexities, self._n_threads())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= self.affinity == "precomputed"
        return tags
