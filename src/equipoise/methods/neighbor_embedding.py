"""What the SNE family shares: affinities of a perplexity, a kernel and a divergence between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._optional import import_optional
from .._types import Matrix
from ..affinities import perplexity as affinities
from ..affinities.builders import Gaussian, Given, Neighborhoods, Uniform, width
from ..arrays.memory_limits import physical_memory, require_room
from ..divergences import Alpha, Divergence
from ..engines import choose_device
from ..geometry import Flat, Geometry, Placed
from ..inputs import Input, make_input
from ..kernels import Kernel
from ..objectives import Objective, joint_objective, require_dense
from ..problems.autograd import CurvedProblem
from ..problems.forces import Problem
from ..saving.checkpoint import Checkpoint
from .embedding import Embedding


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
    h : metric tensor (D, D) on the data in place of a metric: d² = (x_i − x_j)ᵀ h (x_i − x_j); or a function of X
        (n, D) that returns one, or one at each point, (n, D, D), of which a pair takes the mean: all pairs are compared
    g : metric tensor (d, d) on the map: d2 = (y_i − y_j)ᵀ g (y_i − y_j); or a function of the map, a tensor of
        PyTorch (n, d) in float64, that returns one as a tensor, or one at each point, (n, d, d): it is differentiated
        by autograd over all pairs, in float64, on a GPU with engine="torch", and there is no transform
    """

    perplexity: Any = "auto"
    affinity: str = "gaussian"
    h: Any = None
    g: Any = None

    def _divergence(self) -> Divergence:
        return Alpha(-1.0)

    def _geometry(self) -> Geometry:
        return Placed() if callable(self.g) else Flat(self.g, self.n_components)

    def _input(self, X: Any) -> Input:
        return make_input(X, self.metric, self.h, self.affinity, device=self._device(X))

    def _all_pairs(self) -> bool:
        return callable(self.g) or self._divergence().s is None

    def _engine(self, asked: str, n: int) -> str:
        if asked == "torch" and callable(self.g):
            return asked  # all pairs are autograd's, on its device
        return super()._engine(asked, n)

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        return self._in_metric(joint_objective(affinities.joint(P, self._n_threads()), kernel, self._divergence()))

    def objective_on(self, P: Matrix) -> Objective:
        """Return the loss on affinities as a problem holds them: another kernel needs no new search of neighbours."""
        return self._in_metric(joint_objective(P, self._kernel(), self._divergence()))

    def _in_metric(self, flat: Objective) -> Objective:
        """Return a loss in the metric of the map; a constant one is the geometry's."""
        if not callable(self.g):
            return flat
        from ..objectives.autograd.curved import curved  # PyTorch is heavy, and an extra

        return curved(flat, self.g)

    def _kind(self) -> type[Problem]:
        return CurvedProblem if callable(self.g) else super()._kind()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.g):
            return self._check_constant()
        import_optional("torch", "gpu", "a function g(Y), which is differentiated,")
        if self.engine in ("grid", "sampled"):
            raise ValueError(
                f"a function g(Y) needs all pairs, which engine={self.engine!r} leaves out; use engine"
                ' "exact", or "torch" for a GPU'
            )
        if any(isinstance(callback, Checkpoint) for callback in self.callbacks):
            raise ValueError("a checkpoint cannot tell one function g from another; run without it")

    def _check_constant(self) -> None:
        try:
            np.asarray(self.g, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"g must be a metric tensor of numbers (d, d) or a function of the map, got {self.g!r}"
            ) from None

    def _given(self) -> Given:
        """Return the user's own affinities in place of the rows p_{j|i}."""
        return Given(affinities.of_total)

    def _neighbors(self, n: int) -> int:
        if self.affinity == "precomputed":
            return n - 1  # at most
        return width(affinities.resolve_perplexity(self.perplexity, n), n - 1)

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        if callable(self.g):
            self._require_room(data)
        if self._divergence().s is None:
            require_dense(data.sparse or self.affinity == "uniform", self._divergence())
        if self.affinity == "precomputed":
            return self._given()
        perplexities = affinities.resolve_perplexity(self.perplexity, data.n)
        kind = Uniform if self.affinity == "uniform" else Gaussian
        return kind(perplexities, self._n_threads())

    def _require_room(self, data: Input) -> None:
        """Raise unless P and P^s of all pairs, and the rows that P comes from, fit in memory."""
        n = data.n
        what = f"a function g(Y) compares all pairs of {n} points in float64, which"
        require_room(3 * 8.0 * n**2, what, physical_memory())
        table = getattr(data, "X", None)  # a tensor, if one was given
        if choose_device(self.engine, self.device, table)[1] == "cuda":
            import torch

            require_room(2 * 8.0 * n**2, f"on the GPU {what}", float(torch.cuda.mem_get_info()[0]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= self.affinity == "precomputed"
        return tags
