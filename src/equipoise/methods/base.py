"""What every neighbour embedding shares: parameters, the way from X to a problem, and fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from .. import affinities, initialize
from .._types import Array, Matrix
from ..data import check_distances, check_table
from ..divergences import Alpha, Divergence
from ..engines import make_engine
from ..geometry import Flat, Geometry, factor
from ..kernels import Kernel
from ..objectives import Objective, joint_objective, require_dense
from ..optimize import Callback, Momentum, Rule
from ..problem import Problem, Schedule, check_n_iter

# fmt: off
METRICS = (  # those of sklearn.metrics.pairwise_distances
    "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "dice", "euclidean", "hamming",
    "haversine", "jaccard", "l1", "l2", "mahalanobis", "manhattan", "minkowski", "nan_euclidean", "precomputed",
    "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath", "sqeuclidean", "yule",
)
# fmt: on


@dataclass(eq=False, repr=False)
class NeighborEmbedding(BaseEstimator):  # type: ignore[misc]
    """Embed data so that neighbours stay neighbours.

    Parameters
    ----------
    n_components : dimension d of the map
    perplexity : effective number of neighbours; several numbers average over scales; "auto" is 30, less on small data
    metric : a metric of scikit-learn, a callable, or "precomputed": X is then a distance matrix (n, n), or a sparse one
        whose stored entries are the neighbours
    h : constant metric tensor (D, D) on the data in place of a metric: d² = (x_i − x_j)ᵀ h (x_i − x_j)
    g : constant metric tensor (d, d) on the map: d2 = (y_i − y_j)ᵀ g (y_i − y_j)
    init : "pca", "random" (a disk) or an array (n, d)
    n_iter : iterations, at most; the first 250 (at most half) under early exaggeration
    learning_rate : a number, or "auto": n / exaggeration for t-SNE, scaled by stiffness and kernel length for others
    early_exaggeration, exaggeration : factor on the attraction in the early and in the late phase
    optimizer : how steps are taken and when to stop: `Momentum()` by default, or `GradientDescent()`
    engine : "auto", "reference" or "exact"
    random_state : seed; the same seed gives the same bytes, whatever the number of threads
    n_jobs : threads; all cores by default
    callbacks : called with (iteration, loss, Y) every `optimizer.every` iterations; returning True stops
    verbose : 1 prints the loss as it falls

    Attributes
    ----------
    embedding_ : the map, (n, d)
    loss_, loss_curve_ : final loss; (m, 2) array of iteration and loss
    n_iter_ : iterations done
    affinities_ : P, an ndarray or CSR
    """

    n_components: int = 2
    _: KW_ONLY
    perplexity: Any = "auto"
    metric: Any = "euclidean"
    h: Any = None
    g: Any = None
    init: Any = "pca"
    n_iter: int = 750
    learning_rate: Any = "auto"
    early_exaggeration: float = 12.0
    exaggeration: float = 1.0
    optimizer: Rule | None = None
    engine: str = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    callbacks: Sequence[Callback] = ()
    verbose: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__doc__ or "Parameters of every method" in cls.__doc__:
            return
        shared = (NeighborEmbedding.__doc__ or "").partition("    Parameters\n")
        cls.__doc__ = f"{cls.__doc__}\n    Parameters of every method\n    {'-' * 26}{shared[2][14:]}"

    # A method is these four choices.
    def _kernel(self) -> Kernel:
        raise TypeError(f"{type(self).__name__} must define _kernel()")

    def _divergence(self) -> Divergence:
        return Alpha(-1.0)

    def _geometry(self) -> Geometry:
        return Flat(self.g, self.n_components)

    def _objective(self, conditional: Matrix, kernel: Kernel, divergence: Divergence) -> Objective:
        return joint_objective(affinities.joint(conditional), kernel, divergence)

    def _map_dimension(self) -> int:
        """Return the dimension of the surface that the map covers."""
        return self.n_components

    def problem(self, X: Any) -> Problem:
        """Return the unsolved problem for X: affinities, loss, gradient, forces, and an initial map."""
        schedule, rule = self._schedule(), self._rule()
        kernel, divergence, geometry = self._kernel(), self._divergence(), self._geometry()
        engine = make_engine(self.engine, self._n_threads())
        X = self._check_input(X)
        if divergence.s is None:
            require_dense(X, divergence)
        perplexities = affinities.resolve_perplexity(self.perplexity, X.shape[0])
        rng = check_random_state(self.random_state)
        Y0 = self._initial(X, kernel, geometry, rng)
        # The edges run in the engine's precision; a divergence over all pairs divides by P and needs every digit.
        dtype = engine.dtype if divergence.s is not None else np.float64
        P = affinities.conditional(self._distances(X), perplexities, dtype, self._n_threads())
        return Problem(self._objective(P, kernel, divergence), geometry, engine, Y0, schedule, rule)

    def fit(self, X: Any, y: Any = None) -> NeighborEmbedding:
        """Embed X (n, D), or (n, n) distances if metric="precomputed"; y is ignored.

        Ctrl-C raises KeyboardInterrupt, with the last map in `embedding_`.
        """
        problem = self.problem(X)
        self.affinities_ = problem.affinities
        callbacks = [*self.callbacks, *([print_loss] if self.verbose else [])]
        try:
            problem.optimize(callbacks=callbacks)
        finally:
            self.embedding_ = problem.Y
            self.loss_curve_ = problem.loss_curve
            self.loss_ = float(self.loss_curve_[-1, 1]) if len(self.loss_curve_) else np.nan
            self.n_iter_ = problem.n_iter
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed X and return the map, (n, d)."""
        return self.fit(X).embedding_

    def pair_forces(self, r: Array, p: float = 1.0, Z: float = 1.0) -> tuple[Array, Array]:
        """Return the magnitudes of attraction and repulsion between two points at distance r of affinity p."""
        pair = np.array([[0.0, 1.0], [1.0, 0.0]])
        return self._objective(pair, self._kernel(), self._divergence()).pair_forces(np.asarray(r), p, Z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = self.metric == "precomputed"
        return tags

    def _check_input(self, X: Any) -> Matrix:
        if not callable(self.metric) and self.metric not in METRICS:
            raise ValueError(f"metric must be a callable or one of {', '.join(METRICS)}; got {self.metric!r}")
        precomputed = isinstance(self.metric, str) and self.metric == "precomputed"
        columns = getattr(X, "columns", None)
        table = X if precomputed or sparse.issparse(X) else check_table(X, columns)
        validate_data(self, X, skip_check_array=True)  # records n_features_in_ and feature_names_in_
        if sparse.issparse(X) and not precomputed:
            raise TypeError('sparse X is taken only with metric="precomputed"; make it dense with X.toarray()')
        X = check_distances(table) if precomputed else table
        limit, what = X.shape if precomputed else (min(X.shape[0], X.shape[1]), None)
        if self._map_dimension() > limit:
            what = f"n_samples={X.shape[0]}" if precomputed or X.shape[0] < X.shape[1] else f"n_features={X.shape[1]}"
            raise ValueError(f"n_components={self.n_components} is too large for {what}")
        if self.h is not None:
            if self.metric != "euclidean":
                raise ValueError(f"h replaces the Euclidean metric on columns of X; it excludes metric={self.metric!r}")
            X = np.ascontiguousarray(X @ factor(self.h, "h", X.shape[1]).T)
        return X

    def _distances(self, X: Matrix) -> affinities.Points | affinities.SquaredDistances:
        if isinstance(self.metric, str) and self.metric == "euclidean":
            return affinities.Points(_in_range(X))
        if isinstance(self.metric, str) and self.metric == "precomputed":
            return affinities.SquaredDistances(_square(X))
        name = getattr(self.metric, "__name__", self.metric)
        D = check_distances(pairwise_distances(X, metric=self.metric), f"the distances by metric={name}")
        return affinities.SquaredDistances(_square(D))

    def _initial(self, X: Matrix, kernel: Kernel, geometry: Geometry, rng: np.random.RandomState) -> Array:
        """Return the initial map: standard deviation `kernel.spread` lengths of the kernel, or the user's own."""
        n, d = X.shape[0], self.n_components
        if not isinstance(self.init, str):
            Y = initialize.check_init(self.init, n, d)
            try:
                geometry.work(Y)
            except ValueError as error:
                raise ValueError(f"init: {error}") from None
            return Y
        if self.init == "random":
            Y = initialize.random_ball(n, d, rng)
        elif self.init != "pca":
            raise ValueError(f'init must be "pca", "random" or an array (n, d), got {self.init!r}')
        elif sparse.issparse(X):
            raise ValueError('init="pca" needs coordinates or all distances; with a sparse graph use init="random"')
        elif isinstance(self.metric, str) and self.metric == "precomputed":
            Y = initialize.principal_coordinates(X**2, d, rng)
        else:
            Y = initialize.principal_components(X, d, rng)
        return geometry.map(Y * (kernel.spread * kernel.length))

    def _schedule(self) -> Schedule:
        if not (isinstance(self.n_components, int | np.integer) and self.n_components >= 1):
            raise ValueError(f"n_components must be a whole number of at least 1, got {self.n_components!r}")
        if self.learning_rate != "auto" and not _positive(self.learning_rate):
            raise ValueError(f'learning_rate must be a positive number or "auto", got {self.learning_rate!r}')
        for name in ("early_exaggeration", "exaggeration"):
            if not _positive(getattr(self, name)):
                raise ValueError(f"{name} must be a positive number, got {getattr(self, name)!r}")
        n_iter = check_n_iter(self.n_iter)
        return Schedule(n_iter, self.learning_rate, self.early_exaggeration, self.exaggeration)

    def _rule(self) -> Rule:
        if not (isinstance(self.callbacks, Sequence) and all(map(callable, self.callbacks))):
            raise ValueError(f"callbacks must be a list of functions (iteration, loss, Y), got {self.callbacks!r}")
        if self.optimizer is None:
            return Momentum()
        if not hasattr(self.optimizer, "step"):
            raise ValueError(f"optimizer must be Momentum(), GradientDescent() or None, got {self.optimizer!r}")
        return self.optimizer

    def _n_threads(self) -> int:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.n_jobs is None or self.n_jobs == -1:
            return available
        if not isinstance(self.n_jobs, int | np.integer) or self.n_jobs < 1:
            raise ValueError(f"n_jobs must be a number of threads, or -1 or None for all cores, got {self.n_jobs!r}")
        return int(self.n_jobs)


def _square(D: Matrix) -> Matrix:
    """Return D² entry by entry; zeros stored in a sparse D stay stored, they are neighbours."""
    if not sparse.issparse(D):
        return _in_range(D) ** 2
    return sparse.csr_matrix((_in_range(D.data) ** 2, D.indices, D.indptr), shape=D.shape)


def _in_range(X: Array) -> Array:
    """Return X, scaled by a power of two if its squares would overflow or vanish; affinities do not see the scale."""
    largest = np.abs(X).max(initial=0.0)
    if largest == 0 or 1e-100 < largest < 1e100:
        return X
    return np.ldexp(X, -int(np.frexp(largest)[1]))


def _positive(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(0 < value < np.inf)


def print_loss(iteration: int, loss: float, Y: Array) -> None:
    """Print one line of progress."""
    print(f"iteration {iteration:5d}   loss {loss:.6f}", flush=True)
