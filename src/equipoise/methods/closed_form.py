"""Base class of methods whose loss has a closed-form minimum; gradient descent can reach the same minimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .._types import Array, Callback
from .._warn import warn
from ..arrays.namespace import check_random_state, is_device_array, is_positive, on_device_of
from ..engines import Reference, choose_device
from ..engines.choose import check_device_name, check_engine_name
from ..geometry import Geometry
from ..inputs import Input
from ..inputs.make import check_metric_name
from ..linalg.pca import fix_signs, one_blas_thread
from ..memory import require_memory_for_new_rows
from ..objectives import ClosedForm
from ..optimize.rules import Accelerated, Steady, check_n_iter
from ..problems.forces import ForceProblem
from ..progress import stage
from ..saving.checkpoint import Checkpoint
from .estimator import Estimator, accepts_cupy, check_callbacks, check_n_components, check_placed, lock_checkpoints

SOLVERS = ("eigen", "flow")
ENGINES = ("auto", "torch")


@dataclass(frozen=True)
class Model:
    """What a method computes from the data before it solves for the map.

    The attributes are the checked data, the loss, the geometry of the map, and the recall: the fraction of the true
    neighbours that the neighbour search found.
    """

    data: Input
    objective: ClosedForm
    geometry: Geometry
    recall: float = 1.0


@dataclass(eq=False, repr=False)
class ClassicalEmbedding(Estimator):
    """Embed data by a loss whose minimum has a closed form.

    Parameters
    ----------
    n_components : int, default=2
        Dimension d of the map.
    solver : {"eigen", "flow"}, default="eigen"
        "eigen" computes the minimum from eigenvectors. "flow" reaches the same minimum by gradient descent from a
        random map; the forces are attraction and repulsion (Draganov & Dohn 2024).
    n_iter : int, default=10000
        Maximum number of steps with solver="flow".
    tol : float, default=1e-6 (LLE, LaplacianEigenmaps: 1e-9)
        With solver="flow", stop when the norm of the gradient is below `tol` times the norm that is typical of a map
        unrelated to the data.
    engine : {"auto", "torch"}, default="auto"
        "torch" computes the parts named in the description of the method with PyTorch in float64, on a GPU or the CPU;
        "auto" uses NumPy, unless `device` or X selects "torch". With solver="flow", the steps are computed on the
        CPU, except that PCA, ClassicalMDS and Isomap multiply by the Gram matrix of the data on the device.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device for engine="torch"; "auto" is a GPU if one is available. With engine="auto", device="cuda" or a PyTorch
        tensor X on a GPU selects engine="torch". That engine maps a tensor X to a tensor on the device of X.
    random_state : int, RandomState or None, default=None
        Seed of the random initial map with solver="flow", and of the choice of landmarks.
    n_jobs : int, optional
        Number of threads of the neighbour search and, for Isomap, of the shortest paths; by default all cores, or
        OMP_NUM_THREADS if that is fewer.
    callbacks : sequence of callable or Checkpoint, default=()
        Used only with solver="flow". Functions are called with (iteration, loss, Y) every 10 steps and stop the
        descent by returning True. A `Checkpoint` saves the descent to a file, to resume it after an interruption.

    Attributes
    ----------
    embedding_ : ndarray or Tensor of shape (n, d)
        The map. Its axes are ordered by eigenvalue, and the entry of largest magnitude on each axis is positive.
    eigenvalues_ : ndarray of shape (d,)
        The eigenvalue of each axis.
    loss_ : float
        The loss of the map.
    loss_curve_ : ndarray of shape (m, 2)
        Iteration and loss at each of m evaluations; empty with solver="eigen".
    n_iter_ : int
        Number of steps with solver="flow"; 0 with solver="eigen".
    affinities_ : ndarray or csr_matrix of shape (n, n), or None
        The matrix that defines the loss, as described for each method; None if that matrix is not formed.
    knn_recall_ : float
        Fraction of the true neighbours that the search found, measured on a sample; 1.0 if it was exact.
    engine_ : str
        The engine that ran: "torch" or "numpy".
    """

    n_components: int = 2
    _: KW_ONLY
    solver: str = "eigen"
    n_iter: int = 10_000
    tol: float = 1e-6
    engine: str = "auto"
    device: str = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    callbacks: Sequence[Callback | Checkpoint] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__doc__ or cls.__doc__.startswith(cls.__name__ + "(") or "Parameters of every" in cls.__doc__:
            return
        shared = (ClassicalEmbedding.__doc__ or "").partition("    Parameters\n")
        cls.__doc__ = f"{cls.__doc__}\n    Parameters of every classical method\n    {'-' * 36}{shared[2][14:]}"

    # Defined by each method.
    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        raise TypeError(f"{type(self).__name__} must define _model()")

    def _prepare_transform(self, model: Model) -> None:
        """Store what `_place` needs; called after the map is computed."""
        raise TypeError(f"{type(self).__name__} must define _prepare_transform()")

    def _place(self, X: Any) -> Array:
        """Return the positions (m, d) of new rows X, which have been checked."""
        raise TypeError(f"{type(self).__name__} must define _place()")

    def _observers(self, model: Model) -> list[Callback]:
        """Return callbacks with which the method follows its own gradient descent."""
        return []

    def _bytes_per_new_row(self) -> float:
        """Return the bytes that `_place` needs per new row; 0 if they do not depend on the number of fitted points."""
        return 0.0

    @accepts_cupy
    def problem(self, X: Any) -> ForceProblem:
        """Return the unsolved problem for X: loss, gradient, forces and a random initial map."""
        with one_blas_thread(), self._explain_out_of_memory(X):
            return clone(self)._problem(X)[0]

    def _problem(self, X: Any) -> tuple[ForceProblem, Model]:
        model, rng = self._build_model(X)
        Y0 = model.geometry.map(model.objective.start(self.n_components, rng))
        rule = Accelerated(min_grad_norm=self.tol)
        schedule = Steady(check_n_iter(self.n_iter))
        return ForceProblem(model.objective, model.geometry, Reference(), Y0, schedule, rule, model.recall), model

    def _build_model(self, X: Any) -> tuple[Model, np.random.RandomState]:
        self.check_parameters()
        rng = check_random_state(self.random_state)
        model = self._model(X, rng)
        return model, rng

    def check_parameters(self) -> None:
        check_n_components(self.n_components)
        check_metric_name(getattr(self, "metric", "euclidean"))
        check_engine_name(self.engine, ENGINES)
        check_device_name(self.device)
        check_callbacks(self.callbacks, self.random_state)
        check_n_iter(self.n_iter)
        self._n_threads()
        if not (isinstance(self.solver, str) and self.solver in SOLVERS):
            raise ValueError(f'solver must be "eigen" or "flow", got {self.solver!r}')
        if not is_positive(self.tol):
            raise ValueError(f"tol must be a positive number, got {self.tol!r}")

    def _device(self, X: Any) -> str | None:
        """Return the PyTorch device for X; None if PyTorch is not used."""
        engine, device = choose_device(self.engine, self.device, X)
        return device if engine == "torch" else None

    def _require_on_device(self, X: Any, data: Input) -> None:
        """Raise if PyTorch was requested for an input that it does not support."""
        if self._device(X) is not None and not data.on_device:
            raise ValueError(
                f'{type(self).__name__} supports engine="torch" only for dense tables (n, D) with the Euclidean or'
                ' cosine metric; use engine="auto" with device="cpu"'
            )

    def _check_dimension(self, limit: int, limited_by: str) -> None:
        if self.n_components > limit:
            raise ValueError(f"n_components={self.n_components} is too large for {limited_by}; use at most {limit}")

    @accepts_cupy
    def fit(self, X: Any, y: Any = None) -> ClassicalEmbedding:
        """Embed X.

        Ctrl-C with solver="flow" raises KeyboardInterrupt; `embedding_` is then the last map.

        Parameters
        ----------
        X : array-like of shape (n, D), or as described for metric="precomputed"
        y : ignored

        Returns
        -------
        self : ClassicalEmbedding
        """
        with one_blas_thread(), self._explain_out_of_memory(X):  # same bytes on any machine
            if isinstance(self.solver, str) and self.solver == "eigen":
                self._solve(X)
            else:
                with lock_checkpoints(self.callbacks):
                    self._flow(X)
        return self

    def _solve(self, X: Any) -> None:
        model, _ = self._build_model(X)
        stage("eigenvectors")
        self.eigenvalues_, U = model.objective.solve(self.n_components)
        self.embedding_ = fix_signs(model.geometry.map(U))
        self.loss_ = model.objective.minimum_loss(self.eigenvalues_)
        self.loss_curve_, self.n_iter_ = np.empty((0, 2)), 0
        self._take_model(model, X)

    def _flow(self, X: Any) -> None:
        problem, model = self._problem(X)
        try:
            problem.optimize(callbacks=[*self.callbacks, *self._observers(model)])
        finally:
            if np.isfinite(problem.Y).all():  # a map that has diverged has no axes
                self._take_flow(problem, model)
                self._take_model(model, X)
        if problem.stopped == "n_iter":
            mass = model.objective.mass or 1.0  # it underflows for tiny values
            gradient = float(np.linalg.norm(problem.gradient(problem.Y))) / mass
            warn(
                f'{type(self).__name__}(solver="flow") did not converge in n_iter={self.n_iter} steps: the relative'
                f" norm of the gradient is {gradient:.1e}, above tol={self.tol:g}; increase n_iter or tol, or use"
                ' solver="eigen"',
                ConvergenceWarning,
            )

    def _take_flow(self, problem: ForceProblem, model: Model) -> None:
        """Set the fitted attributes from the map at which the gradient descent stopped."""
        self.eigenvalues_, U = model.objective.aligned(model.geometry.work(problem.Y))
        self.embedding_ = fix_signs(model.geometry.map(U))
        self.loss_ = model.objective.loss(model.geometry.work(self.embedding_))
        self.loss_curve_, self.n_iter_ = problem.loss_curve, problem.n_iter

    def _take_model(self, model: Model, X: Any) -> None:
        """Set the fitted attributes from the model, and with engine="torch" move the map to the device of X."""
        self._data, self._objective = model.data, model.objective
        self.affinities_, self.knn_recall_ = model.objective.affinities, model.recall
        self._prepare_transform(model)
        self.engine_ = "numpy" if self._device(X) is None else "torch"
        self.embedding_ = on_device_of(X if self.engine_ == "torch" else None, self.embedding_)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Embed X and return the map (n, d)."""
        return self.fit(X).embedding_

    @accepts_cupy
    def transform(self, X: Any) -> Array:
        """Return the positions (m, d) of new rows X in the fitted map; each row is placed independently."""
        check_is_fitted(self, "embedding_")
        with one_blas_thread(), self._explain_out_of_memory(X, self._data.n):
            rows = self._check_new(X)
            require_memory_for_new_rows(rows.shape[0], self._bytes_per_new_row(), self._data.n, type(self).__name__)
            Y = check_placed(self._place(rows))
            return on_device_of(X if is_device_array(self.embedding_) else None, Y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        metric = getattr(self, "metric", None)
        tags.input_tags.pairwise = isinstance(metric, str) and metric == "precomputed"
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # eigenvectors are computed in float64
        return tags
