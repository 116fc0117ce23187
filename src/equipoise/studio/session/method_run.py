"""What all runs have: a table, a method with values of its parameters, and a history of maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from ..._types import Array
from ...evaluate import Measured, trustworthiness
from .history import Frame, History
from .metrics import METRICS, allowed_metrics, resolve_metric
from .parameters import METHODS, Method, Value, defaults
from .recipe import Recipe

NEIGHBORS = 15  # neighbours for the colouring by trust, as in `evaluate`


class MethodRun(ABC):
    """Base class of runs.

    Parameters
    ----------
    X : ndarray of shape (n, D), or Arrow table of columns of every kind
    recipe : Recipe
        Method, metric, values and seed.
    n_jobs : int, optional
        Number of threads; by default all cores, or OMP_NUM_THREADS if that is fewer.

    Attributes
    ----------
    iterates : bool
        Whether the map changes from iteration to iteration.
    metrics : tuple of str
        Metrics that the table and the method allow.
    values : dict
        Values of the parameters by name.
    curve : list of (int, float)
        Iteration and loss at each evaluation.
    energy : list of (int, float, float)
        Iteration, kinetic and potential energy; empty without mass.
    """

    iterates: ClassVar[bool]
    values: dict[str, Value]
    history: History
    curve: list[tuple[int, float]]
    energy: list[tuple[int, float, float]]

    def __init__(self, X: Array, recipe: Recipe, n_jobs: int | None):
        self.X, self.n_jobs, self.recipe = X, n_jobs, recipe
        has_metric = METHODS[recipe.method].has_metric
        self.metrics = allowed_metrics(X) if has_metric else ()
        self.metric = resolve_metric(recipe.metric, self.metrics) if has_metric else "euclidean"

    @property
    @abstractmethod
    def iteration(self) -> int:
        """The number of iterations so far; 0 if the method does not iterate."""

    @property
    @abstractmethod
    def frame(self) -> Frame:
        """The current map."""

    @abstractmethod
    def step(self, count: int = 1) -> Frame:
        """Take `count` iterations and return the resulting frame."""

    @abstractmethod
    def change(self, name: str, value: Any) -> None:
        """Set a parameter from the current iteration on."""

    @abstractmethod
    def apply_due_changes(self) -> None:
        """Apply the changes of the recipe that are due at this iteration."""

    @abstractmethod
    def rewind(self, iteration: int) -> Frame:
        """Go back to the last stored frame at or before an iteration, and return that frame."""

    @abstractmethod
    def reset(self) -> Frame:
        """Go back to the initial map, with the current values of the parameters as initial values."""

    def _values(self, recipe: Recipe) -> dict[str, Value]:
        return {**defaults(recipe.method, len(self.X)), **recipe.values()}

    def estimator(self) -> Method:
        """Return the unfitted method with the current values."""
        choice = METHODS[self.recipe.method]
        make: Any = choice.make
        metric = {"metric": METRICS[self.metric].value} if choice.has_metric else {}
        method: Method = make(**self.values, **metric, random_state=self.recipe.seed, n_jobs=self.n_jobs)
        return method

    def trust(self, frame: Frame) -> Measured:
        """Return the trustworthiness of a frame and its value at each point, or at a sample of points if n is large."""
        k, metric = min(NEIGHBORS, len(self.X) - 1), METRICS[self.metric].value
        return trustworthiness(self.X, frame.Y, k, metric=metric, n_jobs=self.n_jobs)
