"""Base class of methods of attraction and repulsion: parameters, the problem for X, fit and transform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .. import progress
from .._types import Array, Callback, Matrix
from ..affinities.builders import Neighborhoods
from ..arrays.csr import on_host, on_threads
from ..arrays.namespace import check_random_state, is_auto, is_tensor, main_array, on_device_of, to_numpy
from ..data.checks.table_input import check_dimension
from ..engines import choose_device, choose_engine, engine_state, make_engine, sum_stored_pairs
from ..geometry import Flat, Geometry
from ..initialize.start import Start
from ..inputs import Input, make_input
from ..kernels import Kernel
from ..linalg.pca import one_blas_thread
from ..memory import gpu_memory, host_memory
from ..objectives import Objective, check_kernel
from ..optimize.placement import FrozenMap
from ..optimize.rules import Rule, Schedule, make_schedule
from ..problems.forces import ForceProblem
from ..saving.checkpoint import Checkpoint
from . import gpu_kernels
from .estimator import (
    Estimator,
    accepts_cupy,
    check_callbacks,
    check_forces,
    check_optimizer,
    check_placed,
    check_verbose,
    default_n_iter,
    lock_checkpoints,
    neighbors_cache,
    report_remaining_gain,
    require_memory_for_method,
)
from .fit_plan import FitPlan
from .parameter_names import inherit_parameters
from .verbose import print_description, print_loss


@dataclass(eq=False, repr=False)
class Embedding(Estimator):
    """Embed data by minimising a loss of attraction and repulsion.

    Parameters
    ----------
    n_components : int, default=2
        Dimension d of the map; with geometry="sphere" that of the surface, and the map has d + 1 columns.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn, "inner_product", a function of two rows, "mixed", `Mixed` or `Blocks` for data frames
        of several kinds of columns, "nan_euclidean" for missing values, or "precomputed". With "precomputed", X is a
        distance matrix (n, n), a sparse one that stores only the distances to neighbours, or a pair (indices,
        distances) of arrays (n, k) with at least as many neighbours as the method needs. With any other metric, a
        sparse X is a table (n, D). X may also be a metric space (see `spaces`).
    init : {"auto", "pca", "spectral", "random"} or ndarray of shape (n, d), default="auto"
        "pca": principal components; "spectral": Laplacian eigenmaps of P; "random": uniform in a disk or ball; or a
        user-supplied map. "auto" is "pca" if X contains coordinates or all distances, else "spectral". The default of
        UMAP, DKLLE and DKPCA is "spectral".
    n_iter : int, "auto" or None, default=None
        Maximum number of iterations; None is 300, or 500 above 10,000 points. "auto" runs until `remaining_gain_` is
        below 1 %, for at most 5,000. Early exaggeration takes the first 100 of them, or half of all if that is fewer.
    learning_rate : float or "auto", default="auto"
        "auto" is n / exaggeration for t-SNE. For other methods it also depends on the strength of the attraction and
        the length scale of the kernel (see `Momentum`).
    early_exaggeration : float, default=12.0 (PowerSNE: 2.0, DKLLE: 4.0, DKPCA: 1.0)
        Factor on the attraction in the first iterations (see `n_iter`).
    exaggeration : float, default=1.0
        Factor on the attraction after early exaggeration.
    geometry : {"plane", "sphere", "torus", "hyperbolic"} or object, default="plane"
        The space of the map: flat; a sphere, with distances along chords; a flat torus, whose map is periodic; the
        hyperbolic plane, in the Poincaré disk; or an object of `equipoise.geometry`, which sets the size, or your own.
    optimizer : Momentum, GradientDescent or Dynamics, optional
        Determines the steps and when to stop; `Momentum()` by default. `Dynamics` moves points with mass and friction.
    engine : {"auto", "reference", "exact", "grid", "sampled", "torch"}, default="auto"
        "reference" and "exact" sum over all pairs. "grid" and "sampled" take time linear in n and use affinities of the
        nearest neighbours. "grid" needs n_components <= 3. "sampled" sums the repulsion of a random sample of pairs, so
        that forces and loss are estimates. "torch" runs "grid" (if n_components > 3, "sampled") with PyTorch, on a GPU
        or the CPU. "auto" chooses one of the CPU engines, unless `device` or X selects "torch".
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device for engine="torch"; "auto" is a GPU if one is available. With engine="auto", device="cuda" or a PyTorch
        tensor X on a GPU selects engine="torch". That engine maps a tensor X to a tensor on the device of X.
    deterministic : bool, default=True
        Make results byte-identical for the same seed, also with engine="torch" on a GPU. False lets a GPU sum in any
        order, which can be faster.
    tol : float, default=0.01
        Relative error allowed in the repulsion with engine="grid" and engine="torch".
    random_state : int, RandomState or None, default=None
        The same seed gives byte-identical results for any number of threads (on a GPU, see `deterministic`).
    n_jobs : int, optional
        Number of threads; by default all cores, or OMP_NUM_THREADS if that is fewer.
    callbacks : sequence of callable or Checkpoint, default=()
        Functions are called with (iteration, loss, Y) every `optimizer.every` iterations and stop the run by returning
        True. A `Checkpoint` saves the run to a file, to resume it after an interruption.
    verbose : int, default=0
        1 prints the engine and shows progress and loss: bars in a terminal or notebook, otherwise lines.

    Attributes
    ----------
    embedding_ : ndarray or Tensor of shape (n, d)
        The map.
    loss_ : float
        Final loss; an estimate if the engine sums a sample of the pairs.
    loss_curve_ : ndarray of shape (m, 2)
        Iteration and loss at each of m evaluations.
    n_iter_ : int
        Number of iterations that were run.
    remaining_gain_ : float
        Estimate of how much further iterations would lower the loss at most, as a fraction of the loss (docs/math.md,
        eq. (R1)); infinite after too few iterations to tell.
    energy_curve_ : ndarray of shape (m, 4)
        With optimizer=Dynamics() only: iteration, kinetic, potential and total energy at each of m evaluations.
    affinities_ : ndarray or csr_matrix of shape (n, n)
        The affinities P.
    knn_recall_ : float
        Fraction of the true neighbours that the search found, measured on a sample; 1.0 if it was exact.
    engine_ : str
        The engine that ran; "autograd" if the metric tensor `g` of the map is a function.
    geometry_ : Geometry
        The space of the map, with its sizes.
    """

    n_components: int = 2
    _: KW_ONLY
    metric: Any = "euclidean"
    init: Any = "auto"
    n_iter: Any = None
    learning_rate: Any = "auto"
    early_exaggeration: Any = 12.0
    exaggeration: float = 1.0
    geometry: Any = "plane"
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
        inherit_parameters(cls)

    def _kernel(self) -> Kernel:
        """Return the kernel of the map."""
        raise TypeError(f"{type(self).__name__} must define _kernel()")

    def _neighborhoods(self, data: Input, y: Any) -> Neighborhoods:
        """Return the object that computes the affinities of `data` with labels y; raise if the data are unsuitable."""
        raise TypeError(f"{type(self).__name__} must define _neighborhoods()")

    def _objective(self, P: Matrix, kernel: Kernel) -> Objective:
        """Return the loss for affinities P (n, n) as `_neighborhoods` builds them, before they are symmetrised."""
        raise TypeError(f"{type(self).__name__} must define _objective()")

    def output_kernel(self) -> Kernel:
        """Return the kernel of the map; raise if it is user-defined and invalid."""
        kernel = self._kernel()
        if type(kernel).__module__ != Kernel.__module__:  # tests compare the built-in ones with their closed forms
            check_kernel(kernel)
        return kernel

    def objective_from_rows(self, P: Matrix) -> Objective:
        """Return the loss for affinities P (n, n) that have not been symmetrised yet."""
        return self._objective(P, self.output_kernel())

    def _geometry(self) -> Geometry:
        if isinstance(self.geometry, str) and self.geometry == "plane":
            return Flat()
        from ..geometry import resolve  # a fit in the plane does not pass through it

        return resolve(self.geometry)

    @property
    def n_columns(self) -> int:
        """The number of columns of the map: n_components, or one more with geometry="sphere"."""
        return self._geometry().columns(self.n_components)

    @property
    def geometry_(self) -> Geometry:
        return self._placement.geometry

    @property
    def _n_features_out(self) -> int:
        return self.n_columns

    def _input(self, X: Any) -> Input:
        return make_input(X, self.metric, None, device=self._device(X))

    def _device(self, X: Any) -> str | None:
        """Return the PyTorch device for X; None if PyTorch is not used."""
        engine, device = choose_device(self.engine, self.device, X)
        return device if engine == "torch" else None

    def _all_pairs(self) -> bool:
        """Return whether the loss needs the affinity of every pair."""
        return False

    def _bytes_per_pair(self, data: Input, engine: str) -> float:
        """Return the peak memory of a fit, in bytes per pair of points; 0 if only neighbours are stored."""
        return 0.0

    def _engine(self, requested: str, n: int) -> str:
        """Return the name of the engine for n points; resolves "auto"."""
        pairs = self._geometry().resolved(n, self.n_components, 1.0).pairs
        return choose_engine(requested, n, self.n_columns, self._all_pairs(), pairs)

    def resolve_n_iter(self, n: int) -> Any:
        """Return the maximum number of iterations for n points, or "auto"."""
        shrinking = is_auto(self.n_iter) and isinstance(self.engine, str) and self.engine == "negative_sampling"
        return default_n_iter(n) if self.n_iter is None or shrinking else self.n_iter  # "auto" never ends such steps

    def resolve_early_exaggeration(self) -> float:
        return self.early_exaggeration

    def _symmetric(self, objective: Objective) -> Matrix:
        return objective.affinities  # from which the spectral initial map is computed

    def _map_dimension(self) -> int:
        """Return the dimension of the manifold that contains the map: n_components, or one less on a sphere."""
        return self.n_components

    @accepts_cupy
    def problem(self, X: Any, y: Any = None) -> ForceProblem:
        """Return the unsolved problem for X: affinities, loss, gradient, forces and an initial map."""
        with one_blas_thread(), on_threads(self._n_threads()), self._explain_out_of_memory(X):
            return self._build(X, y)[0]

    def _build(self, X: Any, y: Any = None, init: Any = None) -> tuple[ForceProblem, Input, Neighborhoods]:
        """Return the problem, the checked input and the builder of affinities; `init`, if given, is the initial map."""
        self.check_parameters()
        kernel, geometry, rule = self.output_kernel(), self._geometry(), self._rule()
        (requested, device), all_pairs = choose_device(self.engine, self.device, X), self._all_pairs()
        if device == "cuda":
            gpu_kernels.start()
        if requested not in ("exact", "reference") and not all_pairs:
            self._require_free_memory(X)
        data = self._input(X)
        self._record_features(X, data)
        check_dimension(data, self.n_components, self._map_dimension())
        geometry, schedule = geometry.sized(data.n, self.n_components, kernel.length), self._schedule(data.n)
        if init is not None:
            schedule = replace(schedule, early_exaggeration=schedule.exaggeration)
        neighborhoods = self._neighborhoods(data, y)
        name = self._engine(requested, data.n)
        if device == "cuda":
            gpu_kernels.prepare_fit(data, self._neighbors(data.n), self.n_columns)
        require_memory_for_method(self, data.n, self._bytes_per_pair(data, name), self._all_pairs())
        start = Start(self.init if init is None else init, data, self.n_columns, kernel, geometry)
        Y0 = start.from_data(rng := check_random_state(self.random_state))
        options: Any = {"deterministic": self.deterministic, "pairs": geometry.pairs}
        engine = make_engine(name, self._n_threads(), self.tol, rng.randint(2**31 - 1), device, **options)
        # Edges are summed in the engine's precision; a divergence over all pairs divides by P and needs every digit.
        dtype = np.float64 if all_pairs else engine.traits.dtype
        with neighbors_cache(data, self.callbacks):
            P, recall = neighborhoods.rows(data, dtype, few=engine.traits.needs_sparse_P and not all_pairs)
        objective = self._objective(P, kernel)
        sum_stored_pairs(engine, P, self.n_columns)
        del P
        if Y0 is None:
            Y0 = start.from_affinities(self._symmetric(objective), rng)
        problem = self._problem_class()(objective, geometry, engine, Y0, schedule, rule, recall)
        problem.output_device = X0.device if name == "torch" and is_tensor(X0 := main_array(X)) else None
        return problem, data, neighborhoods

    def fit_plan(self, n: int) -> FitPlan:
        """Return what a fit of n points consists of apart from the data; raise if a parameter is invalid."""
        self.check_parameters()
        kernel, k = self.output_kernel(), self._neighbors(n)
        geometry = self._geometry().sized(n, self.n_components, kernel.length)
        return FitPlan(kernel, geometry, self._schedule(n), self._rule(), k, self._n_threads())

    def _neighbors(self, n: int) -> int:
        """Return the number of neighbours per point that the method needs for n points."""
        raise TypeError(f"{type(self).__name__} must define _neighbors()")

    def _kl(self) -> bool:
        """Return whether the loss is KL of joint affinities, which needs less memory: one copy of P is stored."""
        return False

    def _cpu_bytes(self, X: Any) -> float:
        (n, D), (requested, device) = self._stored_shape(X), choose_device(self.engine, self.device, X)
        given = "precomputed" in (self.metric, getattr(self, "affinity", None))
        k = min(D, n - 1) if given and sparse.issparse(X) else self._neighbors(n)
        name = "cuda" if device == "cuda" else self._engine(requested, n)
        need = host_memory(n, max(D, 1), self.n_columns, k, name, self.metric, kl=self._kl())
        return need if given else need - self._shared_bytes(X)

    def _gpu_bytes(self, n: int, D: int) -> float:
        return gpu_memory(n, D, self._neighbors(n))

    def _problem_class(self) -> type[ForceProblem]:
        """Return the class of the object that `problem` returns."""
        return ForceProblem

    @accepts_cupy
    def fit(self, X: Any, y: Any = None, *, init: Any = None) -> Embedding:
        """Embed X; Ctrl-C raises KeyboardInterrupt, and `embedding_` is then the last map.

        Parameters
        ----------
        X : array-like of shape (n, D), or as described for metric="precomputed" or affinity="precomputed"
        y : array-like of shape (n,), optional
            Labels, for the methods that use them.
        init : ndarray of shape (n, d), optional
            A map to continue from, such as an earlier `embedding_`. It replaces the parameter `init` for this fit.
            Early exaggeration, which would undo the map, is skipped.

        Returns
        -------
        self : Embedding
        """
        if isinstance(init, str):
            raise ValueError(f"fit(init=...) requires a map (n, d); use {type(self).__name__}(init={init!r}) instead")
        show, jobs = progress.shown(check_verbose(self.verbose)), on_threads(self._n_threads())
        with one_blas_thread(), jobs, lock_checkpoints(self.callbacks), show as display, self._explain_out_of_memory(X):
            problem, self._data, self._fitted = self._build(X, y, init)
            self._problem, self._affinities = problem, problem.objective.affinities
            self.knn_recall_, self.engine_ = problem.knn_recall, problem.engine_name
            if self.verbose:
                print_description(problem)
            try:
                problem.optimize(callbacks=[*self.callbacks, *([print_loss] if self.verbose and not display else [])])
            finally:
                self._set_fitted(problem)
        report_remaining_gain(problem, self.n_iter, self.verbose)
        return self

    @property
    def affinities_(self) -> Matrix:
        """The affinities P, copied to the CPU if they are on a device."""
        return on_host(self._affinities)

    def _set_fitted(self, problem: ForceProblem) -> None:
        """Set the fitted attributes from a problem."""
        self.embedding_ = problem.Y
        self._set_curves(problem)
        Y, late, engine = to_numpy(self.embedding_), problem.schedule.exaggeration, problem.engine
        self._placement = FrozenMap(problem.objective, problem.geometry, engine, Y, late, engine_state(engine))

    def fit_transform(self, X: Any, y: Any = None, *, init: Any = None) -> Array:
        """Embed X and return the map (n, d); parameters as for `fit`."""
        return self.fit(X, y, init=init).embedding_

    @accepts_cupy
    def transform(self, X: Any) -> Array:
        """Place new rows in the fitted map; the position of a row does not depend on the other new rows.

        A row equal to a fitted row gets its position; any other moves from the nearest fitted point under the forces.

        Parameters
        ----------
        X : array-like of shape (m, D)
            With metric="precomputed": distances to the n fitted points, (m, n), dense or sparse; or neighbours among
            the fitted points as (indices, distances), each (m, k). With affinity="precomputed": affinities (m, n).

        Returns
        -------
        Y : ndarray or Tensor of shape (m, d)
        """
        check_is_fitted(self, "embedding_")
        with one_blas_thread(), self._explain_out_of_memory(X, self._data.n):
            P, twins = self._fitted.new_rows(self._data, self._check_new(X))
            Y = self._placement.place(P)
        Y[twins >= 0] = self._placement.Y[twins[twins >= 0]]
        Y, given = check_placed(Y), main_array(X)
        return on_device_of(given, Y) if is_tensor(given) and self.engine_ == "torch" else Y

    def pair_forces(self, r: Array, p: float = 1.0, Z: float = 1.0) -> tuple[Array, Array]:
        """Return attraction and repulsion between two points at each distance in r; p is their affinity, Z = Σ k."""
        return self.objective_from_rows(np.array([[0.0, 1.0], [1.0, 0.0]])).pair_forces(np.asarray(r), p, Z)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the map has the precision of the engine
        return tags

    def check_parameters(self) -> None:
        check_forces(self)

    def _schedule(self, n: int) -> Schedule:
        early, late = float(self.resolve_early_exaggeration()), float(self.exaggeration)
        return make_schedule(self.resolve_n_iter(n), self.learning_rate, early, late)

    def _rule(self) -> Rule:
        check_callbacks(self.callbacks, self.random_state)
        return check_optimizer(self.optimizer, self.n_iter)
