"""UMAP, optimised by its gradient or by negative sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array, Matrix
from .._warn import warn
from ..affinities.builders import Fuzzy
from ..arrays.namespace import is_auto, is_finite, is_integer, is_positive, to_numpy
from ..data.checks.missing_labels import first_missing_label
from ..engines import check_engine_name
from ..engines.choose import NEGATIVE_SAMPLING, engine_for_sampling, samples_edges
from ..inputs import Input, make_input
from ..inputs.neighbor_graphs import limit_neighbors
from ..kernels import Kernel, Membership, NonMembership
from ..objectives import CrossEntropy, EffectiveCrossEntropy, Objective
from ..problems.forces import ForceProblem
from ..problems.negative_sampling_problem import NegativeSamplingProblem
from .embedding import Embedding

LOSSES = ("effective", "intended")
SAMPLING = ("sampled", NEGATIVE_SAMPLING)  # engines with 500 iterations and no early exaggeration by default
MAX_NEGATIVES = 65_536  # per edge and step; a limit of the core


@dataclass(eq=False, repr=False, kw_only=True)
class UMAP(Embedding):
    """UMAP: −Σ μ log k − Σ c log(1 − k) for memberships μ in the data and k = 1/(1 + a d2^b) in the map.

    The sums are over pairs of points, and d2 is the squared distance of a pair in the map. There are two losses, which
    differ in c. The loss intended by UMAP has c = 1 − μ (McInnes et al. 2018). The effective loss, which the sampling
    of umap-learn minimises, has c_ij = (s_i + s_j) · m/(2n). Here s_i = Σ_j μ_ij (written d_i in docs/math.md), and m
    is the number of negatives (random points) per edge (Damrich & Hamprecht 2021).

    The effective loss is the default. All engines but one minimise it by its gradient. engine="negative_sampling"
    samples as umap-learn does: an edge attracts its ends at a frequency proportional to μ; each time, m random points
    repel each end; and the steps shrink to zero. Unlike in umap-learn, the random points are repelled too, as in the
    loss.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of points in a neighbourhood, including its centre; reduced to n, with a warning, if larger.
    min_dist, spread : float, default=0.1 and 1.0
        The constants a and b are fitted to a curve of the distance r that is 1 up to min_dist and then decreases as
        exp(−(r − min_dist)/spread).
    a, b : float, optional
        The constants of the kernel; give both or neither. They take precedence over min_dist and spread, which are
        then not used. a = b = 1 is the Cauchy kernel of t-SNE (Draganov & Dohn 2024, section 2.2).
    negative_sample_rate : float, default=5
        Number m of negatives per edge; the repulsion is proportional to it. engine="negative_sampling" requires an
        integer.
    loss : {"effective", "intended"}, default="effective"
        "effective" has c_ij = (s_i + s_j) · m/(2n), "intended" has c = 1 − μ.
    target_weight : float, default=0.5
        Weight in [0, 1] of the labels y passed to `fit`. The weights of edges between points with different
        labels are multiplied by e^(−2.5/(1 − target_weight)); these edges are removed if target_weight is 1. The label
        −1 means unknown; the weights of the edges of a point with an unknown label are multiplied by 1/e.
    affinity : {"fuzzy", "precomputed"}, default="fuzzy"
        "fuzzy": memberships from the distances to neighbours. "precomputed": X contains the weights of a graph (n, n),
        dense or sparse and nonnegative; they are scaled so that the largest is 1, and μ is their fuzzy union.
    engine : str, default="auto"
        One of the engines of every Embedding, or "negative_sampling". With loss="effective", "sampled" is a deprecated
        name of "negative_sampling".
    n_iter : int, "auto" or None, default=None
        None is 200 above 10,000 points. For fewer points it is 500 if the engine is "negative_sampling" or "sampled",
        as in umap-learn, and 300 with other engines. "auto" runs until the remaining gain is below 1 % of the loss, as
        for every Embedding. With engine="negative_sampling", whose steps shrink to zero, "auto" is the same as None.
    early_exaggeration : float or "auto", default="auto"
        "auto" is 1 if the engine is "negative_sampling" or "sampled", as in umap-learn, and 4 with other engines. On
        MNIST (n = 70,000), the loss after 200 iterations, divided by n, was 3.07 with early_exaggeration=4 and 3.14
        with early_exaggeration=1.
    tol : float, default=0.05
        Relative error allowed in the repulsion with engine="grid" and engine="torch"; the default of t-SNE is 0.01.
    """

    n_neighbors: int = 15
    min_dist: float = 0.1
    spread: float = 1.0
    negative_sample_rate: float = 5
    loss: str = "effective"
    target_weight: float = 0.5
    affinity: str = "fuzzy"
    init: Any = "spectral"
    early_exaggeration: Any = "auto"
    tol: float = 0.05
    a: float | None = None
    b: float | None = None

    def check_parameters(self) -> None:
        check_engine_name(self.engine)
        super().check_parameters()
        k, m = self.n_neighbors, self.negative_sample_rate
        if not (is_integer(k) and k >= 2):
            raise ValueError(f"n_neighbors must be an integer >= 2 (it counts the point itself), got {k!r}")
        if not is_positive(self.spread):
            raise ValueError(f"spread must be a positive number, got {self.spread!r}")
        if not (is_finite(self.min_dist) and 0 <= self.min_dist <= self.spread):
            raise ValueError(f"min_dist must be between 0 and spread={self.spread:g}, got {self.min_dist!r}")
        self._check_curve()
        if not is_positive(m):
            raise ValueError(f"negative_sample_rate must be a positive number, got {m!r}")
        if not (isinstance(self.loss, str) and self.loss in LOSSES):
            raise ValueError(f"unknown loss {self.loss!r}; choose from {', '.join(map(repr, LOSSES))}")
        if not (is_finite(self.target_weight) and 0 <= self.target_weight <= 1):
            raise ValueError(f"target_weight must be between 0 and 1, got {self.target_weight!r}")
        if not (isinstance(self.affinity, str) and self.affinity in ("fuzzy", "precomputed")):
            raise ValueError(f"unknown affinity {self.affinity!r}; choose from 'fuzzy', 'precomputed'")
        if self._samples_negatives():
            self._check_negative_sampling()

    def _check_curve(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if value is not None and not is_positive(value):
                raise ValueError(f"{name} must be a positive number or None, got {value!r}")
        if (self.a is None) != (self.b is None):
            given, missing = ("a", "b") if self.b is None else ("b", "a")
            raise ValueError(f"{given} was given without {missing}; give both, or use None for both to fit them")

    def _samples_negatives(self) -> bool:
        """Return whether the engine is "negative_sampling" or, if loss="effective", its deprecated name "sampled"."""
        return samples_edges(self.engine) or (self.engine == "sampled" and self.loss == "effective")

    def _check_negative_sampling(self) -> None:
        if self.engine == "sampled":
            warn(
                'UMAP(engine="sampled") is now called engine="negative_sampling"; the old name will be removed',
                FutureWarning,
            )
        m = self.negative_sample_rate
        if m != int(m):
            raise ValueError(f'negative_sample_rate must be an integer for engine="negative_sampling", got {m!r}')
        if m > MAX_NEGATIVES:
            raise ValueError(
                f'negative_sample_rate must be at most {MAX_NEGATIVES} for engine="negative_sampling", got {m!r};'
                " other engines have no limit"
            )
        if self.loss != "effective":
            raise ValueError(
                f'engine="negative_sampling" optimises loss="effective", not {self.loss!r}; change engine or loss'
            )
        if self.optimizer is not None:
            raise ValueError('engine="negative_sampling" has its own optimiser; use optimizer=None or another engine')

    def _input(self, X: Any) -> Input:
        affinity = "precomputed" if self.affinity == "precomputed" else "gaussian"
        return make_input(X, self.metric, None, affinity, device=self._device(X))

    def _engine(self, requested: str, n: int) -> str:
        if samples_edges(requested) and self._geometry().resolved(n, self.n_components, 1.0).pairs is not None:
            raise ValueError(
                'engine="negative_sampling" works in flat space and on the sphere, not with'
                f' geometry={self.geometry!r}; use engine="auto"'
            )
        return super()._engine(engine_for_sampling(requested), n)

    def _kernel(self) -> Kernel:
        if self.a is None or self.b is None:
            return Membership.fitted(self.min_dist, self.spread)
        return Membership(self.a, self.b)

    def _neighbors(self, n: int) -> int:
        return min(int(self.n_neighbors), n) - 1

    def _neighborhoods(self, data: Input, y: Any) -> Fuzzy:
        k = int(self.n_neighbors)
        if self.affinity != "precomputed":
            k = limit_neighbors(k, data.n, data.n)
        return Fuzzy(k, self._n_threads(), None if y is None else _check_labels(y, data.n), self.target_weight)

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        if not isinstance(kernel, Membership):
            raise TypeError(f"the kernel of UMAP must be an equipoise.kernels.Membership, got {kernel!r}")
        repulsive = NonMembership(kernel.a, kernel.b, EPSILON)
        if self.loss == "intended":
            return CrossEntropy(P, kernel, repulsive)
        return EffectiveCrossEntropy(P, kernel, repulsive, float(self.negative_sample_rate))

    def objective_on(self, P: Matrix) -> Objective:
        """Return the loss of this method for memberships P that are already computed."""
        return self._objective(P, self._kernel())

    def resolve_n_iter(self, n: int) -> Any:
        if self.n_iter is None or (is_auto(self.n_iter) and self._samples_negatives()):
            return 200 if n > 10_000 else 500 if self.engine in SAMPLING else 300
        return self.n_iter

    def resolve_early_exaggeration(self) -> float:
        if is_auto(self.early_exaggeration):
            return 1.0 if self.engine in SAMPLING else 4.0
        return super().resolve_early_exaggeration()

    def _problem_class(self) -> type[ForceProblem]:
        return NegativeSamplingProblem if self._samples_negatives() else ForceProblem

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise |= isinstance(self.affinity, str) and self.affinity == "precomputed"
        return tags


# Added to d2 in the repulsion: coincident points have a finite loss, and a mesh of 640 nodes a side resolves the field
# of 70,000 points. umap-learn has 1e-3 in its gradient; maps of MNIST with 0.01 and 0.04 were equally trustworthy
# (0.966, 0.965).
EPSILON = 0.01


def _check_labels(y: Any, n: int) -> Array:
    """Return class labels (n,) as integers; −1, for unknown, stays −1."""
    labels = to_numpy(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape}, but X has {n} rows; pass one label per row")
    numeric = labels.dtype.kind in "iufb"
    if numeric and labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        i = int((labels != np.round(labels)).argmax())
        raise ValueError(
            f"y must contain class labels, but y[{i}] = {labels[i]:g} is not an integer; pass integers or strings, -1"
            " for an unknown class, or omit y"
        )
    if (missing := first_missing_label(labels)) is not None:
        raise ValueError(
            f"y[{missing}] = {labels[missing]} is not a class; number the classes and use -1 for an unknown one, or"
            " omit y"
        )
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return np.where(labels == -1, -1, codes) if numeric else codes
