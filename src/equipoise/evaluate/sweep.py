"""One method at several values of a parameter or two: the maps side by side, with scores and advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from .._types import Array
from ..methods import MDS, Embedding
from ..procrustes import disagreement
from .advice import advise
from .checks import check_data, check_k, check_labels
from .classes import knn_accuracy
from .ranks import Neighborhoods
from .structure import triplet_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AT_THE_START = ("early_exaggeration", "init")  # what a map that goes on from another leaves out
REFUSED = {
    "n_components": "maps of different dimensions do not lie side by side; evaluate each",
    "random_state": "stability() tells how much a map depends on it",
}


@dataclass(frozen=True, repr=False)
class Sweep:
    """Maps of one method at several settings, their scores, and what they say.

    Attributes
    ----------
    name : the method
    settings : the values of each map, such as {"perplexity": 30}, in the order in which they were run
    shape : how many values each parameter has
    maps : the map of each setting, (n, d)
    losses : the loss of each; values of different losses where the setting changes the loss
    scores : name of a score → one number for each setting; higher is better, 1 is best
    steps : how far each map is from the one of the value before, √(1 − R) of Procrustes (docs/math.md, section 20); NaN
        for the first
    """

    name: str
    settings: list[dict[str, Any]]
    shape: tuple[int, ...]
    maps: list[Array]
    losses: Array
    scores: dict[str, Array]
    steps: Array

    def best(self, score: str) -> dict[str, Any]:
        """Return the setting with the highest score."""
        if score not in self.scores:
            raise ValueError(f"no score is called {score!r}; there are: {', '.join(self.scores)}")
        return self.settings[int(np.argmax(self.scores[score]))]

    @property
    def sentences(self) -> list[str]:
        """Advice: what the scores say of the values, and what the parameters do."""
        return advise([label(setting) for setting in self.settings], list(self.settings[0]), self.scores, self.steps)

    def __str__(self) -> str:
        names = [label(setting) for setting in self.settings]
        width = max(map(len, names))
        columns = {**self.scores, "moved": self.steps}
        lines = [self.name, " ".join([" " * width, *(f"{name:>{max(len(name), 6)}s}" for name in columns)])]
        for i, name in enumerate(names):
            cells = (f"{values[i]:{max(len(column), 6)}.3f}" for column, values in columns.items())
            lines.append(" ".join([name.ljust(width), *cells]).replace("nan", "  –"))
        return "\n".join([*lines, *self.sentences])

    __repr__ = __str__

    def figure(self, labels: Any = None) -> Figure:
        """Return the maps side by side, each with its scores, and the scores over the values of a single parameter."""
        from .figures.sweep_figure import sweep_figure

        return sweep_figure(self, labels)


def sweep(
    method: Any,
    X: Any,
    values: Mapping[str, Sequence[Any]],
    labels: Any = None,
    *,
    k: int = 10,
    random_state: Any = 0,
) -> Sweep:
    """Run a method at every value of one parameter, or every pair of values of two, and score the maps.

    Each map starts from the one before it, without early exaggeration, so that what differs between two pictures is
    what the value changed and not where the islands happened to fall. The first starts as the method says; put the
    value first that keeps most of the large structure: the largest perplexity, the strongest exaggeration. Methods
    that cannot go on from a map (the classical ones, and those of other packages) start afresh at each value, and so do
    all where the value is one of the start, `early_exaggeration` or `init`.

    Parameters
    ----------
    method : an unfitted estimator with `fit_transform`; it is left as it is
    X : what the method takes, a table (n, D), or distances (n, n) where its metric is "precomputed"
    values : such as {"perplexity": [100, 30, 10]}, or two parameters
    labels : classes (n,), for one more score
    k : neighbours of the local scores
    random_state : seed of every run, and of the sampled scores
    """
    _check_values(method, values)
    names = list(values)
    if method.get_params().get("affinity") == "precomputed":
        raise ValueError("X holds affinities, with which no distance can be compared; sweep the method on the data")
    metric = method.get_params().get("metric", "euclidean")
    n = check_data(X, metric).n
    check_k(k, n)
    if labels is not None:
        check_labels(labels, n)
    maps: list[Array] = []
    losses: list[float] = []
    scores: list[dict[str, float]] = []
    settings = [dict(zip(names, chosen, strict=True)) for chosen in product(*values.values())]
    shape = tuple(len(values[name]) for name in names)
    before = list(_predecessors(shape))
    afresh = any(name in AT_THE_START for name in names)
    for setting, previous in zip(settings, before, strict=True):
        again = clone(method).set_params(**setting)
        if "random_state" in again.get_params():
            again.set_params(random_state=random_state)
        Y = _fit(again, X, None if afresh or previous is None else maps[previous])
        maps.append(Y)
        losses.append(float(getattr(again, "loss_", np.nan)))
        scores.append(score(X, Y, labels, k, metric, random_state))
    return Sweep(
        " ".join(str(method).split()),
        settings,
        shape,
        maps,
        np.array(losses),
        {name: np.array([row[name] for row in scores]) for name in scores[0]},
        np.array([np.nan if b is None else disagreement(Y, maps[b]) for Y, b in zip(maps, before, strict=True)]),
    )


def score(X: Any, Y: Array, labels: Any, k: int, metric: Any, random_state: Any) -> dict[str, float]:
    """Return the scores of a map: two of its neighbourhoods, its neighbours, its large distances, its classes."""
    hoods = Neighborhoods(X, Y, k, metric=metric, random_state=random_state)
    scores = {
        "trustworthiness": float(hoods.trustworthiness(k)),
        "continuity": float(hoods.continuity(k)),
        "neighbours": float(hoods.recall(k)),
        "triplets": float(triplet_accuracy(X, Y, metric=metric, random_state=random_state)),
    }
    if labels is not None:
        scores["classes"] = float(knn_accuracy(Y, labels, k))
    return scores


def label(setting: Mapping[str, Any]) -> str:
    """Return a setting in words: "perplexity 30, exaggeration 4"."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in setting.items()
    )


def _fit(method: Any, X: Any, start: Array | None) -> Array:
    """Return the map of a method, which goes on from `start` where it can."""
    if start is not None and isinstance(method, MDS):
        method.set_params(init=start)
    elif start is not None and isinstance(method, Embedding):
        return method.fit_transform(X, init=start)
    return np.asarray(method.fit_transform(X))


def _predecessors(shape: tuple[int, ...]) -> Iterator[int | None]:
    """Yield for each setting, the last parameter running fastest, which one it goes on from: that of one value less."""
    columns = shape[-1]
    for i in range(int(np.prod(shape))):
        yield i - 1 if i % columns else i - columns if i else None


def _check_values(method: Any, values: Mapping[str, Sequence[Any]]) -> None:
    if not isinstance(values, Mapping) or not 1 <= len(values) <= 2:
        raise ValueError(
            f'values must name one parameter or two, such as {{"perplexity": [50, 15, 5]}}, got {values!r}'
        )
    known = method.get_params()
    for name, given in values.items():
        if name not in known:
            raise ValueError(f"{type(method).__name__} has no parameter {name!r}; it has: {', '.join(known)}")
        if name in REFUSED:
            raise ValueError(f"{name} is not for a sweep: {REFUSED[name]}")
        if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or not len(given):
            raise ValueError(f"values[{name!r}] must be a list of values to try, got {given!r}")
