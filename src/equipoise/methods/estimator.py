"""Base class of all estimators, with scikit-learn's conventions, and checks of the parameters they share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from .._plural import plural
from .._suggest import described
from .._warn import UnfinishedWarning, warn
from ..arrays.memory_limits import (
    RESOURCE_LIMITS,
    available_memory,
    gpu_out_of_memory,
    is_out_of_memory,
    require_memory,
)
from ..arrays.namespace import (
    array_namespace,
    from_cupy,
    is_auto,
    is_cupy,
    is_finite,
    is_integer,
    is_positive,
    is_tensor,
    main_array,
    to_cupy,
    to_numpy,
)
from ..data import check_rows, is_neighbors
from ..engines.choose import check_device_name, check_engine_name
from ..initialize.start import check_init_name
from ..inputs import Distances, FromSpace, Input, is_space
from ..inputs.make import check_metric_name
from ..kernels import Kernel
from ..memory import require_address_space, require_memory_for_pairs
from ..neighbors.search import MOST_THREADS
from ..optimize.descent import split_callbacks
from ..optimize.dynamics import Dynamics
from ..optimize.rules import GAP, Momentum, Rule
from ..problems.forces import ForceProblem, Problem
from ..saving.checkpoint import Checkpoint, locked
from ..saving.neighbors_cache import cache_neighbors
from .parameter_names import check_parameter_names

if RESOURCE_LIMITS:
    from resource import RLIM_INFINITY, getrlimit

# A fit of fewer than FEW entries is not compared with the available memory: at 80 bytes per neighbour (memory.py) it
# needs less than 200 MB, and reading the limits takes time. A row counts as at least WIDTH entries, for its neighbours.
FEW, WIDTH = 2.5e6, 400
# Fits of more points take more iterations by default, and warn if they stop early (benchmarks/results/convergence.md).
FEW_POINTS, MORE_ITERATIONS = 10_000, 500
# Remaining gain, as a fraction of the loss, above which they warn, for a given and for the default number of
# iterations; chosen. After the default 500, t-SNE of 70,000 images had 8 %, of 141,480 network connections 29 %.
LARGE_GAIN, LARGE_BY_DEFAULT = 0.05, 0.1
HIGHER = 0.5  # warn if the loss ends above that of the initial map by more than this fraction; chosen


def accepts_cupy(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method of an estimator so that it accepts CuPy arrays as X, or in a pair X = (indices, distances).

    CuPy arrays are converted to tensors that share their memory. A tensor that the method returns, the map of a fit
    (also after Ctrl-C) and the maps of a problem are converted back. If the system limits the address space of the
    process and a fit of X needs more, MemoryError is raised before any work.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **settings: Any) -> Any:
        self._require_address_space(X)
        if not is_cupy(main_array(X)):
            return method(self, X, *args, **settings)
        before = getattr(self, "embedding_", None)
        try:
            tensors = from_cupy(X) if is_cupy(X) else tuple(from_cupy(A) if is_cupy(A) else A for A in X)
            result = method(self, tensors, *args, **settings)
        finally:
            Y = getattr(self, "embedding_", None)
            if Y is not before and is_tensor(Y):
                self.embedding_ = to_cupy(Y)
        if isinstance(result, Problem):
            result.convert_tensor = to_cupy
        return to_cupy(result) if is_tensor(result) else result

    return wrapped


class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators, which map n points to an array (n, n_components)."""

    _GPU_PARAMETERS = "perplexity or n_neighbors"  # smaller ones save GPU memory
    n_components: int
    n_jobs: int | None
    _data: Input  # the checked input, after fit
    embedding_: Any  # (n, n_components), ndarray or Tensor, after fit

    def __new__(cls, *args: Any, **parameters: Any) -> Any:
        if not parameters.keys() <= getattr(cls, "__dataclass_fields__", {}).keys():
            check_parameter_names(cls, parameters)
        return super().__new__(cls)

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def _record_features(self, X: Any, data: Input) -> None:
        """Set n_features_in_, and feature_names_in_ if X has column names."""
        if is_neighbors(X) or is_space(X) or type(X) is np.ndarray:  # no column names
            self.n_features_in_ = X.shape[1] if type(X) is np.ndarray else data.n  # as for a distance matrix
            self.__dict__.pop("feature_names_in_", None)
        else:
            validate_data(self, X, skip_check_array=True)

    def _check_new(self, X: Any) -> Any:
        if isinstance(self._data, FromSpace) or (is_neighbors(X) and isinstance(self._data, Distances)):
            return self._data.check_new(X)
        if is_tensor(X) and self._data.on_device:
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has shape {tuple(X.shape)}, but the fitted data had {plural(self.n_features_in_, 'column')};"
                    f" pass an array (m, {self.n_features_in_})"
                )
            return self._data.check_new(X)
        return self._data.check_new(self._check_rows(X, self._data))

    def _check_rows(self, X: Any, data: Input) -> Any:
        """Return new rows as a numeric array, or unchanged if `data`, the fitted data, reads data frames.

        Raise if their columns differ from those of the fitted data.
        """
        rows = X if data.reads_frames else check_rows(X, min_rows=1)
        validate_data(self, X, reset=False, skip_check_array=True)
        return rows

    def _require_address_space(self, X: Any) -> None:
        """Raise MemoryError if a fit of X needs more address space than the limit of this process leaves."""
        if not any(getrlimit(kind)[0] != RLIM_INFINITY for kind, _ in RESOURCE_LIMITS):
            return
        if (n_bytes := self._estimate(X)) is not None:
            require_address_space(n_bytes, self._n_threads(), self._describe_fit(X))

    def _require_free_memory(self, X: Any) -> None:
        """Raise MemoryError if X is large and a fit of X needs more memory than is available."""
        if (n_bytes := self._estimate(X, FEW)) is not None:
            require_memory(n_bytes, self._describe_fit(X), available_memory())

    def _estimate(self, X: Any, few: float = 0) -> float | None:
        """Return `_cpu_bytes(X)`, or None if X has fewer than `few` entries. A row counts as at least WIDTH entries.

        The result is also None if X is invalid: later checks report the error.
        """
        try:
            n, D = self._shape_of(X)
            return self._cpu_bytes(X) if n * max(D, WIDTH) >= few else None
        except (TypeError, ValueError, OverflowError, IndexError):  # the last is SciPy's
            return None

    def _describe_fit(self, X: Any) -> str:
        n, D = self._shape_of(X)
        return f"{type(self).__name__} with {plural(n, 'row')} of {plural(D, 'column')}"

    def _cpu_bytes(self, X: Any) -> float:
        """Return an upper bound, in bytes, on the memory needed to fit X."""
        n, D = self._stored_shape(X)
        return 8.0 * n * (4 * D + 4 * min(n, 5000))

    def _stored_shape(self, X: Any) -> tuple[int, int]:
        """Return the number of rows of an input, and the memory of one row as a number of float64 values."""
        n, D = self._shape_of(X)
        if is_space(X):
            return n, 1  # distances are computed in blocks of rows
        return n, math.ceil(1.5 * X.nnz / max(n, 1)) if sparse.issparse(X) else D  # an index and a value per entry

    @staticmethod
    def _shared_bytes(X: Any) -> int:
        """Return the size of X in bytes if a fit uses it without a copy, or 0 if a fit converts it."""
        return X.nbytes if type(X) is np.ndarray and X.dtype == np.float64 and X.flags.c_contiguous else 0

    @staticmethod
    def _shape_of(X: Any) -> tuple[int, int]:
        """Return the number of rows of an input, and the number of values in a row."""
        table = X[0] if is_neighbors(X) else X
        n, *others = (X.n, X.n) if is_space(X) else getattr(table, "shape", None) or np.shape(table)
        return int(n), int(np.prod(others))

    def _gpu_bytes(self, n: int, D: int) -> float:
        """Return a rough estimate, in bytes, of the GPU memory needed to fit (n, D) data."""
        return 24.0 * n * D

    @contextmanager
    def _explain_out_of_memory(self, X: Any, n_fitted: int = 0) -> Iterator[None]:
        """Convert a GPU out-of-memory error within the context to a MemoryError that says how much memory X needs.

        X contains the rows to fit or, if `n_fitted` is not 0, new rows to place among that many fitted points.
        """
        try:
            yield
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            n, D = self._shape_of(X)
            what = self._describe_fit(X) + (f" to place among {n_fitted:,} fitted rows" if n_fitted else "")
            raise gpu_out_of_memory(what, self._gpu_bytes(n_fitted + n, D), self._GPU_PARAMETERS) from None

    def _set_curves(self, problem: Problem) -> None:
        """Set the fitted attributes that say how the optimisation went."""
        self.loss_curve_ = problem.loss_curve
        self.loss_ = float(self.loss_curve_[-1, 1]) if len(self.loss_curve_) else np.nan
        self.n_iter_, self.remaining_gain_ = problem.n_iter, problem.remaining_gain
        self.__dict__.pop("energy_curve_", None)  # of an earlier fit
        if isinstance(problem, ForceProblem) and len(problem.energy_curve):
            self.energy_curve_ = problem.energy_curve

    def _n_threads(self) -> int:
        return threads(self.n_jobs)


def check_placed(Y: Any, first: int = 0) -> Any:
    """Return the positions Y (m, d) of new rows from index `first` on; raise ValueError if one is not finite."""
    finite = array_namespace(Y).isfinite(Y).all(axis=1)
    if not bool(finite.all()):
        i = first + int(to_numpy(finite).argmin())
        raise ValueError(
            f"row {i} of X cannot be placed: its distances to the fitted rows are too large or too small for"
            " floating-point numbers; remove the row, or rescale the data"
        )
    return Y


def threads(n_jobs: Any) -> int:
    """Return the number of threads for `n_jobs`.

    -1 means all cores; None means all cores, or OMP_NUM_THREADS if that is fewer.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        return min(available, int(limit)) if limit.isdecimal() and int(limit) > 0 else available
    if not is_integer(n_jobs) or n_jobs < -1 or n_jobs == 0:
        raise ValueError(f"n_jobs must be a positive integer, -1 for all cores, or None, got {n_jobs!r}")
    if n_jobs > MOST_THREADS:
        raise ValueError(
            f"n_jobs must be at most {MOST_THREADS}, got {n_jobs}; use -1 for all available cores ({available})"
        )
    return available if n_jobs == -1 else int(n_jobs)


def check_verbose(verbose: Any) -> bool:
    """Return whether to report progress; raise unless `verbose` is a finite number or a bool."""
    if not (is_finite(verbose) or isinstance(verbose, bool | np.bool_)):
        raise ValueError(f"verbose must be an integer, got {verbose!r}")
    return bool(verbose)


def check_n_components(n_components: Any) -> None:
    """Raise unless n_components is a positive integer."""
    if not (is_integer(n_components) and n_components >= 1):
        raise ValueError(f"n_components must be an integer >= 1, got {n_components!r}")


def check_forces(method: Any) -> None:
    """Raise unless the parameters that all methods of attraction and repulsion share are valid."""
    check_n_components(method.n_components)
    check_metric_name(method.metric)
    check_init_name(method.init)
    check_engine_name(method.engine)
    check_device_name(method.device)
    if not is_auto(method.learning_rate) and not is_positive(method.learning_rate):
        raise ValueError(f'learning_rate must be a positive number or "auto", got {method.learning_rate!r}')
    early = method.resolve_early_exaggeration()
    for name, value in (("early_exaggeration", early), ("exaggeration", method.exaggeration)):
        if not is_positive(value):
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    if not isinstance(method.deterministic, bool | np.bool_):
        raise ValueError(f"deterministic must be True or False, got {method.deterministic!r}")
    if not (is_positive(method.tol) and method.tol < 1):
        raise ValueError(f"tol must be a number above 0 and below 1, got {method.tol!r}")


def check_kernel_parameter(kernel: Any) -> Kernel | None:
    """Return the parameter `kernel` of a method; raise ValueError unless it is a hashable kernel or None."""
    if not isinstance(kernel, Kernel | None):
        raise ValueError(f"kernel must be an equipoise.kernels.Kernel or None, got {described(kernel)}")
    if type(kernel).__hash__ is None:
        raise ValueError(f"kernel={kernel!r} is not hashable; declare its class with @dataclass(frozen=True)")
    return kernel


def check_optimizer(optimizer: Any, n_iter: Any) -> Rule:
    """Return the optimiser rule, `Momentum()` for None; raise if it is not a rule, or never ends for n_iter="auto"."""
    if optimizer is None:
        return Momentum()
    if isinstance(optimizer, type) or not hasattr(optimizer, "step"):
        raise ValueError(f"optimizer must be Momentum(), GradientDescent() or Dynamics(), got {described(optimizer)}")
    if is_auto(n_iter) and isinstance(optimizer, Dynamics) and optimizer.conserves_energy:
        raise ValueError(
            'n_iter="auto" needs friction, without which the points never rest; use a number of iterations, or'
            ' Dynamics(friction="auto")'
        )
    return optimizer


def check_callbacks(callbacks: Any, random_state: Any) -> None:
    """Raise unless callbacks is a sequence of functions and checkpoints; checkpoints need an integer random_state."""
    if not (isinstance(callbacks, Sequence) and all(callable(c) or isinstance(c, Checkpoint) for c in callbacks)):
        raise ValueError(
            f"callbacks must be a list of functions of (iteration, loss, Y) and Checkpoint objects, got {callbacks!r}"
        )
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            if not isinstance(random_state, int | np.integer):
                raise ValueError(f"Checkpoint requires an integer random_state, got {random_state!r}")
            callback.check()


def require_memory_for_method(method: Any, n: int, bytes_per_pair: float, all_pairs: bool) -> None:
    """Raise MemoryError if a method that stores `bytes_per_pair` for n² pairs needs more memory than is available."""
    others = 'engine="grid" or "sampled", which store neighbours only'
    if all_pairs:
        others = "an Alpha divergence with alpha < 1, which needs the affinities of neighbours only"
    if bytes_per_pair:
        require_memory_for_pairs(n, bytes_per_pair, type(method).__name__, f"use fewer rows, or {others}")


def neighbors_cache(data: Input, callbacks: Any) -> AbstractContextManager[None]:
    """Return a context that, if there is a checkpoint, saves the neighbours next to it and reuses saved ones."""
    _, checkpoints = split_callbacks(callbacks)
    return cache_neighbors(data, checkpoints) if checkpoints else nullcontext()


def lock_checkpoints(callbacks: Any) -> AbstractContextManager[None]:
    """Return a context that locks the checkpoints among `callbacks`; invalid callbacks are ignored here."""
    checkpoints = [c for c in callbacks if isinstance(c, Checkpoint)] if isinstance(callbacks, Sequence) else []
    return locked(checkpoints) if checkpoints else nullcontext()


def default_n_iter(n: int) -> int:
    """Return the number of iterations of a fit of n points for n_iter=None."""
    return 300 if n <= FEW_POINTS else MORE_ITERATIONS


def describe_remaining_gain(gain: float, n_iter: int) -> str:
    """Return a sentence about the remaining gain after `n_iter` iterations."""
    end = f"after {plural(n_iter, 'iteration')}"
    if gain == np.inf:
        return f'{end} it is too early to tell by how much further ones would lower the loss; use n_iter="auto" or 200'
    return (
        f"the loss was still decreasing {end}: further ones would lower it by up to about {gain:.0%}; use"
        ' n_iter="auto", or a larger n_iter'
    )


def warn_of_higher_loss(problem: Problem) -> None:
    """Warn if a descent with a given length of steps ended with a loss far above that of the initial map."""
    curve = problem.loss_curve
    if not isinstance(problem, ForceProblem) or len(curve) < 2:
        return
    given = {"learning_rate": problem.schedule.learning_rate, "time_step": getattr(problem.rule, "time_step", "auto")}
    name = next((name for name, value in given.items() if not is_auto(value)), None)
    if name is not None and curve[-1, 1] - curve[0, 1] > HIGHER * abs(curve[0, 1]):
        warn(
            f"the loss rose from {curve[0, 1]:.3g} at the initial map to {curve[-1, 1]:.3g}: {name}={given[name]:g} is"
            f' too large; use {name}="auto" or a smaller number'
        )


def report_remaining_gain(problem: Problem, n_iter: Any, verbose: Any) -> None:
    """Print or warn that a descent ended with a loss that was still decreasing, or higher than at the initial map.

    It is printed if `verbose` is true. Otherwise it is a warning, for large gains of more than FEW_POINTS points only,
    because a smaller map is quickly repeated. `n_iter` is the parameter of the method.
    """
    warn_of_higher_loss(problem)
    gain = problem.remaining_gain
    if problem.stopped != "n_iter" or not gain >= GAP:
        return
    if verbose:
        print(describe_remaining_gain(gain, problem.n_iter), flush=True)
    elif len(problem.Y0) > FEW_POINTS and gain > (LARGE_BY_DEFAULT if n_iter is None else LARGE_GAIN):
        warn(describe_remaining_gain(gain, problem.n_iter), UnfinishedWarning)
