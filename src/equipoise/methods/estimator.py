"""What every estimator of the package shares with scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from ..arrays.memory_limits import explained
from ..arrays.namespace import is_tensor
from ..data import check_rows, is_neighbors
from ..inputs import Distances, Input
from ..saving.checkpoint import Checkpoint


class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that maps n points to (n, n_components); `_data` is its checked input once it is fitted."""

    n_components: int
    n_jobs: int | None
    _data: Input
    embedding_: Any  # (n, n_components), once it is fitted: an array, or a tensor

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def _record_features(self, X: Any, data: Input) -> None:
        """Set n_features_in_, and feature_names_in_ where X has them."""
        if is_neighbors(X) or type(X) is np.ndarray:  # they have no names
            self.n_features_in_ = data.n if is_neighbors(X) else X.shape[1]  # as for distances between all of them
            self.__dict__.pop("feature_names_in_", None)
        else:
            validate_data(self, X, skip_check_array=True)

    def _check_new(self, X: Any) -> Any:
        if is_neighbors(X) and isinstance(self._data, Distances):
            return self._data.check_new(X)
        if is_tensor(X) and self._data.on_device:
            if X.ndim != 2 or X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has shape {tuple(X.shape)}, but the fit had {self.n_features_in_} columns")
            return self._data.check_new(X)
        return self._data.check_new(self._check_rows(X))

    def _check_rows(self, X: Any) -> Any:
        """Return new rows as numbers, with the columns of the fit."""
        rows = check_rows(X, least=1)
        validate_data(self, X, reset=False, skip_check_array=True)
        return rows

    def _gpu_bytes(self, n: int, D: int) -> float:
        """Return about how many bytes of a GPU it takes to fit n rows of D columns."""
        return 24.0 * n * D

    def _gpu_room(self, X: Any) -> AbstractContextManager[None]:
        """Return a context that says how much memory X takes where a GPU has not enough of it."""

        def what() -> tuple[str, float]:
            table = X[0] if is_neighbors(X) else X
            n, *others = getattr(table, "shape", None) or np.shape(table)
            D = int(np.prod(others))
            return f"fitting {n} rows of {D} columns", self._gpu_bytes(int(n), D)

        return explained(what)

    def _n_threads(self) -> int:
        return threads(self.n_jobs)


def threads(n_jobs: Any) -> int:
    """Return how many threads `n_jobs` asks for: None is all cores, or what OMP_NUM_THREADS says if that is fewer."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        return min(available, int(said)) if said.isdecimal() and int(said) > 0 else available
    if n_jobs == -1:
        return available
    if not isinstance(n_jobs, int | np.integer) or n_jobs < 1:
        raise ValueError(f"n_jobs must be a number of threads, or -1 or None for all cores, got {n_jobs!r}")
    return int(n_jobs)


def check_n_components(n_components: Any) -> None:
    """Raise unless the dimension of a map is a whole number of at least 1."""
    if not (isinstance(n_components, int | np.integer) and n_components >= 1):
        raise ValueError(f"n_components must be a whole number of at least 1, got {n_components!r}")


def check_callbacks(callbacks: Any, random_state: Any) -> None:
    """Raise unless callbacks are functions, or checkpoints of a run that can be repeated, in a list."""
    if not (isinstance(callbacks, Sequence) and all(callable(c) or isinstance(c, Checkpoint) for c in callbacks)):
        raise ValueError(f"callbacks must be a list of functions (iteration, loss, Y), got {callbacks!r}")
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            if not isinstance(random_state, int | np.integer):
                raise ValueError(
                    f"a run with random_state={random_state!r} cannot be repeated, so that a checkpoint of it leads"
                    " nowhere; set random_state to a number"
                )
            callback.check()


def is_positive(value: Any) -> bool:
    """Return whether a parameter is a number above 0 and below infinity."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(0 < value < np.inf)
