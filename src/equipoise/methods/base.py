"""What every neighbour embedding shares: parameters, the way from X to a problem, and fit."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import affinities, initialize
from .._types import Array, Matrix
from ..divergences import Alpha, Divergence
from ..engines import Sampled, choose_engine, make_engine
from ..geometry import Flat, Geometry
from ..kernels import Kernel
from ..objectives import Objective, joint_objective, require_dense
from ..optimize import Callback, Momentum, Rule
from ..placement import Placement
from ..problem import Problem, Schedule, check_n_iter
from .input import Input, check_new, make_input


@dataclass(eq=False, repr=False)
class NeighborEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
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
    n_iter : iterations, at most; the first 100 (at most half) under early exaggeration
    learning_rate : a number, or "auto": n / exaggeration for t-SNE, scaled by stiffness and kernel length for others
    early_exaggeration, exaggeration : factor on the attraction in the early and in the late phase
    optimizer : how steps are taken and when to stop: `Momentum()` by default, or `GradientDescent()`
    engine : "reference" and "exact" sum over all pairs; "grid" and "sampled" are linear in n, over 3 · perplexity
        neighbours: "grid" for maps of up to 3 dimensions, "sampled" for any, with the repulsion of a random sample of
        pairs, so that the forces and the loss are estimates; "auto" chooses
    tol : relative error allowed in the repulsion by engine="grid"
    random_state : seed; the same seed gives the same bytes, whatever the number of threads
    n_jobs : threads; all cores by default
    callbacks : called with (iteration, loss, Y) every `optimizer.every` iterations; returning True stops
    verbose : 1 prints the loss as it falls

    Attributes
    ----------
    embedding_ : the map, (n, d)
    loss_, loss_curve_ : final loss; (m, 2) array of iteration and loss; estimates with engine="sampled"
    n_iter_ : iterations done
    affinities_ : P, an ndarray or CSR
    knn_recall_ : share of the true neighbours that the search found, measured on a sample; 1.0 when it was exact
    engine_ : the engine that ran
    """

    n_components: int = 2
    _: KW_ONLY
    perplexity: Any = "auto"
    metric: Any = "euclidean"
    h: Any = None
    g: Any = None
    init: Any = "pca"
    n_iter: int = 500
    learning_rate: Any = "auto"
    early_exaggeration: float = 12.0
    exaggeration: float = 1.0
    optimizer: Rule | None = None
    engine: str = "auto"
    tol: float = 0.01
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

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def _map_dimension(self) -> int:
        """Return the dimension of the surface that the map covers."""
        return self.n_components

    def problem(self, X: Any) -> Problem:
        """Return the unsolved problem for X: affinities, loss, gradient, forces, and an initial map."""
        return self._build(X)[0]

    def _build(self, X: Any) -> tuple[Problem, Input, Array]:
        """Return the problem, the checked input, and the perplexities."""
        schedule, rule = self._schedule(), self._rule()
        kernel, divergence, geometry = self._kernel(), self._divergence(), self._geometry()
        data = make_input(X, self.metric, self.h)
        validate_data(self, X, skip_check_array=True)  # records n_features_in_ and feature_names_in_
        if self._map_dimension() > data.limit:
            raise ValueError(f"n_components={self.n_components} is too large for {data.limited_by}")
        all_pairs, n_threads = divergence.s is None, self._n_threads()
        if all_pairs:
            require_dense(data.sparse, divergence)
        name = choose_engine(self.engine, data.n, self.n_components, all_pairs)
        perplexities = affinities.resolve_perplexity(self.perplexity, data.n)
        rng = check_random_state(self.random_state)
        Y0 = self._initial(data, kernel, geometry, rng)
        engine = make_engine(name, n_threads, self.tol, seed=rng.randint(2**31 - 1))
        distances: affinities.Points | affinities.SquaredDistances
        if engine.sparse and not all_pairs:
            # Beyond 3 · perplexity neighbours p_{j|i} is negligible (van der Maaten 2014).
            k = min(data.n - 1, int(np.ceil(3 * perplexities.max())))
            distances, recall = data.neighbors(k, n_threads)
        else:
            distances, recall = data.distances(), 1.0
        # The edges run in the engine's precision; a divergence over all pairs divides by P and needs every digit.
        P = affinities.conditional(distances, perplexities, np.float64 if all_pairs else engine.dtype, n_threads)
        objective = self._objective(P, kernel, divergence)
        if isinstance(engine, Sampled):
            engine.include(P)
        return Problem(objective, geometry, engine, Y0, schedule, rule, recall), data, perplexities

    def fit(self, X: Any, y: Any = None) -> NeighborEmbedding:
        """Embed X (n, D), or (n, n) distances if metric="precomputed"; y is ignored.

        Ctrl-C raises KeyboardInterrupt, with the last map in `embedding_`.
        """
        problem, self._data, self._perplexities = self._build(X)
        self._frozen: dict[str, Placement] = {}  # filled by the first transform
        self._problem = problem
        self.affinities_, self.knn_recall_, self.engine_ = problem.affinities, problem.knn_recall, problem.engine.name
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

    def transform(self, X: Any) -> Array:
        """Place new rows in the fitted map, (m, d): each by itself, so that its place does not depend on the others.

        X is (m, D), or (m, n) distances to the n fitted points if metric="precomputed". A row equal to a fitted one
        gets its place; any other starts at the mean of its neighbours' places and moves under the forces of the map.
        """
        check_is_fitted(self, "embedding_")
        X = check_new(validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False))
        k = min(self._data.n, int(np.ceil(3 * self._perplexities.max())))
        graph = self._data.nearest(X, k, self._n_threads())
        distances = affinities.SquaredDistances(graph.squared(self._data.n))
        with warnings.catch_warnings():  # a row among many duplicates is no news here
            warnings.simplefilter("ignore", UserWarning)
            P = affinities.conditional(distances, self._perplexities, np.float64, self._n_threads())
        if "map" not in self._frozen:
            built = self._problem
            self._frozen["map"] = Placement(built.objective, built.geometry, built.engine, self.embedding_)
        Y = self._frozen["map"].place(P)
        known = graph.distances.min(axis=1) == 0
        Y[known] = self.embedding_[graph.indices[known, graph.distances[known].argmin(axis=1)]]
        return Y

    def __getstate__(self) -> dict[str, Any]:
        state = {**super().__getstate__()}
        if "_frozen" in state:
            state["_frozen"] = {}  # computed again when needed
        return state

    def pair_forces(self, r: Array, p: float = 1.0, Z: float = 1.0) -> tuple[Array, Array]:
        """Return the magnitudes of attraction and repulsion between two points at distance r of affinity p."""
        pair = np.array([[0.0, 1.0], [1.0, 0.0]])
        return self._objective(pair, self._kernel(), self._divergence()).pair_forces(np.asarray(r), p, Z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = self.metric == "precomputed"
        tags.transformer_tags.preserves_dtype = []  # the map is in the engine's precision
        return tags

    def _initial(self, data: Input, kernel: Kernel, geometry: Geometry, rng: np.random.RandomState) -> Array:
        """Return the initial map: standard deviation `kernel.spread` lengths of the kernel, or the user's own."""
        n, d = data.n, self.n_components
        if not isinstance(self.init, str):
            Y = initialize.check_init(self.init, n, d)
            try:
                geometry.work(Y)
            except ValueError as error:
                raise ValueError(f"init: {error}") from None
            return Y
        if self.init not in ("pca", "random"):
            raise ValueError(f'init must be "pca", "random" or an array (n, d), got {self.init!r}')
        Y = initialize.random_ball(n, d, rng) if self.init == "random" else data.principal(d, rng)
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


def _positive(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(0 < value < np.inf)


def print_loss(iteration: int, loss: float, Y: Array) -> None:
    """Print one line of progress."""
    print(f"iteration {iteration:5d}   loss {loss:.6f}", flush=True)
