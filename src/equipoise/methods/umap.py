"""UMAP, by its loss or by its sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array, Matrix
from ..affinities.builders import Fuzzy
from ..arrays.namespace import host
from ..inputs import Input, make_input
from ..kernels import Kernel, Membership, NonMembership
from ..objectives import CrossEntropy, EffectiveCrossEntropy, Objective
from ..problems.forces import ForceProblem
from ..problems.sampled import SampledProblem
from .embedding import Embedding
from .estimator import is_positive
from .neighbor_graphs import limited

LOSSES = ("effective", "intended")


@dataclass(eq=False, repr=False, kw_only=True)
class UMAP(Embedding):
    """UMAP: −Σ μ log k − Σ c log(1 − k) for memberships μ in the data and k = 1/(1 + a d2^b) in the map.

    The stated loss has c = 1 − μ (McInnes et al. 2018). What umap-learn's sampling descends has c = (d_i + d_j) m/2n,
    d_i = Σ_j μ_ij, with m negatives per edge (Damrich & Hamprecht 2021): this is the default, optimised without
    sampling. engine="sampled" samples as umap-learn does: an edge pulls as often as μ says, each time with m random
    points to be pushed from, and steps shrink to nothing; but here these points are pushed too, as the loss says.

    Parameters
    ----------
    n_neighbors : points in a neighbourhood, its centre included; at most n, with a warning if more
    min_dist, spread : a and b are fitted to a k of 1 up to min_dist that then falls as exp(−(r − min_dist)/spread)
    negative_sample_rate : m; the repulsion is proportional to it. A whole number for engine="sampled"
    loss : "effective", or "intended": c = 1 − μ
    target_weight : from 0 to 1, how much the labels y given to `fit` count: edges between classes are weakened by
        e^(−2.5/(1 − target_weight)), at 1 cut; −1 is no label
    affinity : "fuzzy", or "precomputed": X is then the weights of a graph (n, n), dense or sparse, not negative; the
        largest counts as 1 and μ is their fuzzy union
    n_iter : "auto" is 200 beyond 10,000 points; up to there 300, for engine="sampled" 500, as in umap-learn
    early_exaggeration : "auto" is 4, which finds lower losses than 1 (on MNIST, 70,000 points, 200 iterations, 3.07 n
        against 3.14 n), and 1 for engine="sampled", as in umap-learn
    tol : 0.05 is enough: the repulsion is summed over all points, and the errors with it
    """

    n_neighbors: int = 15
    min_dist: float = 0.1
    spread: float = 1.0
    negative_sample_rate: float = 5
    loss: str = "effective"
    target_weight: float = 0.5
    affinity: str = "fuzzy"
    init: Any = "spectral"
    n_iter: Any = "auto"
    early_exaggeration: Any = "auto"
    tol: float = 0.05

    def _check_parameters(self) -> None:
        super()._check_parameters()
        k, m = self.n_neighbors, self.negative_sample_rate
        if not (isinstance(k, int | np.integer) and k >= 2):
            raise ValueError(f"n_neighbors must be a whole number of at least 2, the point itself counted, got {k!r}")
        if not is_positive(self.spread):
            raise ValueError(f"spread must be a positive number, got {self.spread!r}")
        if not (self.min_dist == 0 or is_positive(self.min_dist)) or self.min_dist > self.spread:
            raise ValueError(f"min_dist must be from 0 to spread={self.spread:g}, got {self.min_dist!r}")
        if not is_positive(m) or (self.engine == "sampled" and m != int(m)):
            raise ValueError(f'negative_sample_rate must be positive, and whole for engine="sampled", got {m!r}')
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {self.loss!r}")
        if not 0 <= self.target_weight <= 1:
            raise ValueError(f"target_weight must be from 0 to 1, got {self.target_weight!r}")
        if self.affinity not in ("fuzzy", "precomputed"):
            raise ValueError(f"affinity must be 'fuzzy' or 'precomputed', got {self.affinity!r}")
        if self.engine == "sampled" and self.loss == "effective" and self.optimizer is not None:
            raise ValueError('engine="sampled" has its own steps; leave optimizer alone, or use another engine')

    def _input(self, X: Any) -> Input:
        affinity = "precomputed" if self.affinity == "precomputed" else "gaussian"
        return make_input(X, self.metric, None, affinity, device=self._device(X))

    def _kernel(self) -> Kernel:
        return Membership.fitted(self.min_dist, self.spread)

    def _neighbors(self, n: int) -> int:
        return min(int(self.n_neighbors), n) - 1

    def _neighborhoods(self, data: Input, y: Any) -> Fuzzy:
        k = int(self.n_neighbors)
        if self.affinity != "precomputed":
            k = limited(k, data.n, data.n)
        return Fuzzy(k, self._n_threads(), None if y is None else _check_labels(y, data.n), self.target_weight)

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        if not isinstance(kernel, Membership):
            raise TypeError(f"UMAP's kernel is a Membership, not {kernel!r}")
        apart = NonMembership(kernel.a, kernel.b, EPSILON)
        if self.loss == "intended":
            return CrossEntropy(P, kernel, apart)
        return EffectiveCrossEntropy(P, kernel, apart, float(self.negative_sample_rate))

    def objective_on(self, P: Matrix) -> Objective:
        """Return the loss on memberships as a problem holds them: another kernel needs no new search of neighbours."""
        return self._objective(P, self._kernel())

    def _iterations(self, n: int) -> int:
        if not isinstance(self.n_iter, str):
            return super()._iterations(n)
        if self.n_iter != "auto":
            raise ValueError(f'n_iter must be a whole number or "auto", got {self.n_iter!r}')
        return 200 if n > 10_000 else 500 if self.engine == "sampled" else 300

    def _early(self) -> float:
        if self.early_exaggeration == "auto":
            return 1.0 if self.engine == "sampled" else 4.0
        return super()._early()

    def _kind(self) -> type[ForceProblem]:
        # In many dimensions "auto" takes the engine that samples the field, but descends by its gradient.
        return SampledProblem if self.engine == "sampled" and self.loss == "effective" else ForceProblem

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= self.affinity == "precomputed"
        return tags


# Added to d2 where two points are charged for being near: coincident ones cost a finite amount, and a mesh of 640 nodes
# a side carries the field of 70,000 points. umap-learn has 1e-3 in its gradient; maps of MNIST with 0.01 and 0.04 were
# equally trustworthy (0.966, 0.965).
EPSILON = 0.01


def _check_labels(y: Any, n: int) -> Array:
    """Return class labels (n,) as whole numbers, −1 where a number given is −1."""
    labels = host(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, but X has n_samples={n} rows and needs a label for each")
    numeric = labels.dtype.kind in "iufb"
    if numeric and labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        i = int((labels != np.round(labels)).argmax())
        raise ValueError(f"y must hold class labels, but y[{i}] = {labels[i]:g} is no whole number; leave y out")
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return np.where(labels == -1, -1, codes) if numeric else codes
