"""What every method by forces shares: parameters, the way from X to a problem, fit and transform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import progress
from .._types import Array, Callback, Matrix
from ..affinities.builders import Neighborhoods
from ..arrays.csr import is_sparse, on_host
from ..arrays.namespace import host, is_tensor, placed
from ..engines import choose_device, choose_engine, make_engine, sum_stored_pairs
from ..geometry import Flat, Geometry
from ..initialize.choose import Start
from ..inputs import Input, make_input
from ..kernels import Kernel
from ..memory import gpu_memory
from ..objectives import Objective
from ..optimize.placement import Placement
from ..optimize.rules import Momentum, Rule
from ..optimize.schedule import Schedule
from ..problems.forces import Problem, check_n_iter
from ..saving.checkpoint import Checkpoint
from ..saving.neighbors_cache import keeping_neighbors
from .estimator import Estimator, check_callbacks, check_n_components, is_positive


@dataclass(eq=False, repr=False)
class Embedding(Estimator):
    """Embed data by descending a loss of attraction and repulsion.

    Parameters
    ----------
    n_components : dimension d of the map
    metric : a metric of scikit-learn, "inner_product", a callable, or "precomputed": X is then a distance matrix
        (n, n), a sparse one whose stored entries are the neighbours, or the neighbours themselves, (indices, distances)
        of shape (n, k) each, as many as the method asks for. A sparse X under any other metric is a table (n, D)
    init : "pca", "spectral" (Laplacian eigenmaps of P), "random" (a disk) or an array (n, d); "auto" is "pca" where X
        gives coordinates or all distances, else "spectral"
    n_iter : iterations, at most; the first 100 (at most half) under early exaggeration
    learning_rate : a number, or "auto": n / exaggeration for t-SNE, scaled by stiffness and kernel length for others
    early_exaggeration, exaggeration : factor on the attraction in the early and in the late phase
    optimizer : how steps are taken and when to stop: `Momentum()` by default, or `GradientDescent()`
    engine : "reference" and "exact" sum over all pairs; "grid" and "sampled" are linear in n, over the nearest
        neighbours alone: "grid" for maps of up to 3 dimensions, "sampled" for any, with the repulsion of a random
        sample of pairs, so that the forces and the loss are estimates; "torch" as "grid", by PyTorch on a GPU or the
        CPU; "auto" chooses among those of the CPU
    device : where engine="torch" runs: "cuda", a GPU; "cpu"; or "auto", a GPU if there is one. "cuda" asks for that
        engine by itself, as does a tensor X of PyTorch on a GPU; the map of a tensor is then a tensor on its device
    deterministic : the same seed gives the same bytes every time, with engine="torch" on a GPU too; False lets a GPU
        add up in any order, which may be faster
    tol : relative error allowed in the repulsion by engine="grid" and engine="torch"
    random_state : seed; the same seed gives the same bytes, whatever the number of threads
    n_jobs : threads; all cores by default
    callbacks : called with (iteration, loss, Y) every `optimizer.every` iterations; returning True stops. A
        `Checkpoint` among them keeps the run on disk, to go on from after an interruption
    verbose : 1 prints the engine, and shows the progress of each stage with the falling loss: bars in a terminal or a
        notebook, lines of the loss elsewhere

    Attributes
    ----------
    embedding_ : the map, (n, d)
    loss_, loss_curve_ : final loss; (m, 2) array of iteration and loss; estimates with engine="sampled"
    n_iter_ : iterations done
    affinities_ : P, an ndarray or CSR
    knn_recall_ : share of the true neighbours that the search found, measured on a sample; 1.0 when it was exact
    engine_ : the engine that ran; "autograd" for a metric that is a function
    """

    n_components: int = 2
    _: KW_ONLY
    metric: Any = "euclidean"
    init: Any = "auto"
    n_iter: Any = 300
    learning_rate: Any = "auto"
    early_exaggeration: Any = 12.0
    exaggeration: float = 1.0
    optimizer: Rule | None = None
    engine: str = "auto"
    device: str = "auto"
    deterministic: bool = True
    tol: float = 0.01
    random_state: Any = None
    n_jobs: int | None = None
    callbacks: Sequence[Callback | Checkpoint] = ()
    verbose: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        parent = cls.__mro__[1]
        title = f"Parameters of every {parent.__name__}"
        if not cls.__doc__ or title in cls.__doc__:
            return
        shared = (parent.__doc__ or "").partition("    Parameters\n")
        cls.__doc__ = f"{cls.__doc__}\n    {title}\n    {'-' * len(title)}{shared[2][14:]}"

    # A method is these choices.
    def _kernel(self) -> Kernel:
        """Return the kernel of the map."""
        raise TypeError(f"{type(self).__name__} must define _kernel()")

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        """Return how data, with targets y if it uses them, becomes affinities; refuse what cannot."""
        raise TypeError(f"{type(self).__name__} must define _neighborhoods()")

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        """Return the loss for the rows of the neighbourhoods."""
        raise TypeError(f"{type(self).__name__} must define _objective()")

    def _geometry(self) -> Geometry:
        return Flat()

    def _input(self, X: Any) -> Input:
        return make_input(X, self.metric, None, device=self._device(X))

    def _device(self, X: Any) -> str | None:
        """Return where PyTorch has X, or None where it has no part in it."""
        engine, device = choose_device(self.engine, self.device, X)
        return device if engine == "torch" else None

    def _all_pairs(self) -> bool:
        """Return whether the loss needs the affinity of every pair."""
        return False

    def _engine(self, asked: str, n: int) -> str:
        """Return the engine for n points: the one asked for, unless that is "auto"."""
        return choose_engine(asked, n, self.n_components, self._all_pairs())

    def _iterations(self, n: int) -> int:
        """Return n_iter for n points."""
        return check_n_iter(self.n_iter)

    def _early(self) -> float:
        """Return early_exaggeration as a number."""
        return self.early_exaggeration

    def _symmetric(self, objective: Objective) -> Matrix:
        """Return the affinities as a symmetric matrix."""
        return objective.affinities

    def _map_dimension(self) -> int:
        """Return the dimension of the surface that the map covers."""
        return self.n_components

    def problem(self, X: Any, y: Any = None) -> Problem:
        """Return the unsolved problem for X: affinities, loss, gradient, forces, and an initial map."""
        with self._gpu_room(X):
            return self._build(X, y)[0]

    def _build(self, X: Any, y: Any = None, init: Any = None) -> tuple[Problem, Input, Neighborhoods]:
        """Return the problem, the checked input, and its neighbourhoods; `init` is a map to go on from."""
        self._check_parameters()
        kernel, geometry, rule = self._kernel(), self._geometry(), self._rule()
        data = self._input(X)
        self._record_features(X, data)
        if self._map_dimension() > data.limit:
            raise ValueError(f"n_components={self.n_components} is too large for {data.limited_by}")
        schedule = self._schedule(data.n)
        if init is not None:
            schedule = replace(schedule, early_exaggeration=schedule.exaggeration)
        neighborhoods, all_pairs = self._neighborhoods(data, y), self._all_pairs()
        asked, device = choose_device(self.engine, self.device, X)
        name = self._engine(asked, data.n)
        start = Start(self.init if init is None else init, data, self.n_components, kernel, geometry)
        rng = check_random_state(self.random_state)
        Y0 = start.from_data(rng)
        engine = make_engine(
            name, self._n_threads(), self.tol, rng.randint(2**31 - 1), device, deterministic=self.deterministic
        )
        # The edges run in the engine's precision; a divergence over all pairs divides by P and needs every digit.
        dtype = np.float64 if all_pairs else engine.dtype
        with keeping_neighbors(data, self.callbacks):
            P, recall = neighborhoods.rows(data, dtype, few=engine.needs_sparse_P and not all_pairs)
        objective = self._objective(P, kernel)
        sum_stored_pairs(engine, P, self.n_components)
        del P
        if Y0 is None:
            Y0 = start.from_affinities(self._symmetric(objective), rng)
        problem = self._kind()(objective, geometry, engine, Y0, schedule, rule, recall)
        problem.given_on = X.device if name == "torch" and is_tensor(X) else None
        return problem, data, neighborhoods

    def _neighbors(self, n: int) -> int:
        """Return how many neighbours of each of n points the method asks for."""
        raise TypeError(f"{type(self).__name__} must define _neighbors()")

    def _gpu_bytes(self, n: int, D: int) -> float:
        return gpu_memory(n, D, self._neighbors(n))

    def _kind(self) -> type[Problem]:
        """Return the class of the problem: how it descends."""
        return Problem

    def fit(self, X: Any, y: Any = None, *, init: Any = None) -> Embedding:
        """Embed X (n, D), or what metric="precomputed" or affinity="precomputed" makes of it.

        y holds targets for the methods that use them; the others ignore it.

        `init` is a map (n, d) to go on from, such as an earlier `embedding_`: it takes the place of the parameter for
        this run, and early exaggeration, which would undo it, is left out. Ctrl-C raises KeyboardInterrupt, with the
        last map in `embedding_`.
        """
        if isinstance(init, str):
            raise ValueError(f"fit takes a map (n, d) as init; give init={init!r} to {type(self).__name__}()")
        with progress.shown(self.verbose) as seen, self._gpu_room(X):
            problem, self._data, self._fitted = self._build(X, y, init)
            self._problem, self._affinities = problem, problem.objective.affinities
            self.knn_recall_ = problem.knn_recall
            self.engine_ = problem.engine.name
            if self.verbose:
                progress.end_stage()
                print(describe(problem), flush=True)
            callbacks = [*self.callbacks, *([print_loss] if self.verbose and not seen else [])]
            try:
                problem.optimize(callbacks=callbacks)
            finally:
                self._take(problem)
        return self

    @property
    def affinities_(self) -> Matrix:
        """P as it was built, fetched from the device it is on."""
        return on_host(self._affinities)

    def _take(self, problem: Problem) -> None:
        """Take over what an optimiser has reached."""
        self.embedding_ = problem.Y
        self.loss_curve_ = problem.loss_curve
        self.loss_ = float(self.loss_curve_[-1, 1]) if len(self.loss_curve_) else np.nan
        self.n_iter_ = problem.n_iter
        self._placement = Placement(
            problem.objective, problem.geometry, problem.engine, host(self.embedding_), problem.schedule.exaggeration
        )

    def fit_transform(self, X: Any, y: Any = None, *, init: Any = None) -> Array:
        """Embed X, from the map `init` if it is given, and return the map, (n, d)."""
        return self.fit(X, y, init=init).embedding_

    def transform(self, X: Any) -> Array:
        """Place new rows in the fitted map, (m, d): each by itself, so that its place does not depend on the others.

        X is (m, D). If metric="precomputed" it holds distances to the n fitted points: (m, n), dense or sparse, or
        neighbours among them as (indices, distances), (m, k) each. If affinity="precomputed" it holds affinities to
        them, (m, n). A row equal to a fitted one gets its place; any other starts at the place of the nearest
        and moves under the forces of the map.
        """
        check_is_fitted(self, "embedding_")
        with self._gpu_room(X):
            P, twins = self._fitted.new_rows(self._data, self._check_new(X))
            Y = self._placement.place(P)
        Y[twins >= 0] = self._placement.Y[twins[twins >= 0]]
        return placed(X, Y) if is_tensor(X) and self.engine_ == "torch" else Y

    def pair_forces(self, r: Array, p: float = 1.0, Z: float = 1.0) -> tuple[Array, Array]:
        """Return the magnitudes of attraction and repulsion between two points at distance r of affinity p."""
        pair = np.array([[0.0, 1.0], [1.0, 0.0]])
        return self._objective(pair, self._kernel()).pair_forces(np.asarray(r), p, Z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the map is in the engine's precision
        return tags

    def _check_parameters(self) -> None:
        check_n_components(self.n_components)
        if self.learning_rate != "auto" and not is_positive(self.learning_rate):
            raise ValueError(f'learning_rate must be a positive number or "auto", got {self.learning_rate!r}')
        for name, value in (("early_exaggeration", self._early()), ("exaggeration", self.exaggeration)):
            if not is_positive(value):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        if not isinstance(self.deterministic, bool | np.bool_):
            raise ValueError(f"deterministic must be True or False, got {self.deterministic!r}")
        if not (is_positive(self.tol) and self.tol < 1):
            raise ValueError(f"tol must be a number between 0 and 1, got {self.tol!r}")

    def _schedule(self, n: int) -> Schedule:
        return Schedule(self._iterations(n), self.learning_rate, self._early(), self.exaggeration)

    def _rule(self) -> Rule:
        check_callbacks(self.callbacks, self.random_state)
        if self.optimizer is None:
            return Momentum()
        if not hasattr(self.optimizer, "step"):
            raise ValueError(f"optimizer must be Momentum(), GradientDescent() or None, got {self.optimizer!r}")
        return self.optimizer


def describe(problem: Problem) -> str:
    """Return which engine runs, and on what, in one line."""
    P, (n, d) = problem.objective.affinities, problem.Y0.shape
    if not is_sparse(P):
        return f"engine {problem.engine.name}: {n} points in {d}-D, P on all pairs"
    pairs = f"sparse P of {P.nnz / n:.0f} entries a row"
    return f"engine {problem.engine.name}: {n} points in {d}-D, {pairs}, recall {problem.knn_recall:.2f}"


def print_loss(iteration: int, loss: float, Y: Array) -> None:
    """Print one line of progress."""
    print(f"iteration {iteration:5d}   loss {loss:.6f}", flush=True)
