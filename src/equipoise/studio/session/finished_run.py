"""A run of a method that is shown when it is finished, such as PCA: one map, without iterations to step through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..._types import Array
from ..._warn import collecting
from ...methods.quality import describe_quality
from .history import Frame, History
from .method_run import MethodRun
from .metrics import allowed_metrics
from .parameters import METHODS, check_value
from .recipe import Recipe


class FinishedRun(MethodRun):
    """The map of an estimator on a table X (n, D); it has the same bytes as that of the library.

    Parameters
    ----------
    X, recipe, n_jobs :
        As for `MethodRun`.

    Attributes
    ----------
    result : str
        How good the map is, such as "variance kept 28.5%".
    warnings : tuple of str
        What the method warned of.
    """

    iterates = False

    def __init__(self, X: Array, recipe: Recipe, n_jobs: int | None = None):
        super().__init__(X, recipe, n_jobs)
        choice = METHODS[recipe.method]
        if not choice.has_metric and allowed_metrics(X)[0] != "euclidean":
            raise ValueError(
                f"{choice.title} needs numbers without gaps; leave out the other columns, or choose classical MDS,"
                " which has the metric mixed"
            )
        self.energy = []
        self.curve = []
        self._fit(recipe)

    def _fit(self, recipe: Recipe) -> None:
        """Fit the method; the recipe changes only if the fit succeeds."""
        before = self.recipe, getattr(self, "values", {})
        self.recipe, self.values = recipe, self._values(recipe)
        try:
            method: Any = self.estimator()
            with collecting() as messages:
                method.fit(self.X)
        except Exception:
            self.recipe, self.values = before
            raise
        self.warnings = tuple(dict.fromkeys(messages))
        name, value = describe_quality(method)
        self.result = f"{name} {value}"
        Y = method.embedding_.view()
        Y.flags.writeable = False
        self.history = History(Frame(0, float(method.loss_), Y, 0))

    @property
    def iteration(self) -> int:
        return 0

    @property
    def frame(self) -> Frame:
        return self.history.frames[0]

    def step(self, count: int = 1) -> Frame:
        """Return the only frame."""
        return self.frame

    def change(self, name: str, value: Any) -> None:
        """Set a parameter and fit the method again."""
        value = check_value(self.recipe.method, name, value)
        if self.values[name] != value:
            self._fit(replace(self.recipe, first=tuple({**self.values, name: value}.items())))

    def rewind(self, iteration: int) -> Frame:
        """Return the only frame."""
        return self.frame

    def reset(self) -> Frame:
        """Return the only frame."""
        return self.frame

    def apply_due_changes(self) -> None:
        """Do nothing: there are no iterations at which a change could be due."""
