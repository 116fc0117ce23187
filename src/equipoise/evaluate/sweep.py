"""Run a method at several values of one or two parameters, with scores and advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from .._types import Array
from ..methods import MDS, Embedding
from ..methods.parameter_names import suggest_parameter
from ..procrustes import disagreement
from .advice import advise, describe_setting
from .checks import check_data, check_k, precomputed_input
from .classes import check_folds, knn_accuracy
from .curved_map import require_flat
from .ranks import Neighborhoods
from .structure import triplet_accuracy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

START_PARAMETERS = ("early_exaggeration", "init")  # without effect if a map starts from the previous one
NOT_SWEPT = {
    "n_components": "maps of different dimensions cannot be compared side by side; call evaluate() for each map",
    "random_state": "use stability() to see how much a map depends on it",
}


@dataclass(frozen=True, repr=False)
class Sweep:
    """Maps of one method at several settings, with their scores.

    Attributes
    ----------
    name : str
        The method and its parameters.
    settings : list of dict
        The varied parameters of each of the m maps, such as {"perplexity": 30}, in the order of the runs.
    shape : tuple of int
        Number of values of each parameter.
    maps : list of ndarray of shape (n, d)
    losses : ndarray of shape (m,)
        Final loss of each map, NaN for methods without a loss. Losses are not comparable between settings that change
        the loss function.
    scores : dict of str to ndarray of shape (m,)
        Scores of each map: "trustworthiness", "continuity", "neighbours" (the recall), "triplets" and, with labels,
        "classes". Higher is better, 1 is best.
    steps : ndarray of shape (m,)
        Procrustes disagreement of each map with its predecessor, from 0 for the same shape to about 1 for unrelated
        maps (docs/math.md, section 20); NaN for the first map. If one parameter varies, the predecessor is the map at
        its previous value. If two vary, the predecessor is the map at the previous value of the second parameter; for
        a map at the first value of the second parameter, it is the map at the previous value of the first parameter.
    """

    name: str
    settings: list[dict[str, Any]]
    shape: tuple[int, ...]
    maps: list[Array]
    losses: Array
    scores: dict[str, Array]
    steps: Array

    def best(self, score: str) -> dict[str, Any]:
        """Return the setting of the map with the highest `score`.

        Parameters
        ----------
        score : str
            A key of `scores`.
        """
        if score not in self.scores:
            raise ValueError(f"unknown score {score!r}; choose from {', '.join(self.scores)}")
        return self.settings[int(np.argmax(self.scores[score]))]

    @property
    def sentences(self) -> list[str]:
        """Sentences of advice: which values to choose, and how the varied parameters change the map."""
        return advise(self.settings, self.scores, self.steps)

    def __str__(self) -> str:
        names = [describe_setting(setting) for setting in self.settings]
        width = max(map(len, names))
        columns = {**self.scores, "moved": self.steps}
        lines = [self.name, " ".join([" " * width, *(f"{name:>{max(len(name), 6)}s}" for name in columns)])]
        for i, name in enumerate(names):
            cells = (f"{values[i]:{max(len(column), 6)}.3f}" for column, values in columns.items())
            lines.append(" ".join([name.ljust(width), *cells]).replace("nan", "  –"))
        return "\n".join([*lines, *self.sentences])

    __repr__ = __str__

    def figure(self, labels: Any = None) -> Figure:
        """Return a figure of all maps with their scores, and a plot of the scores if only one parameter varies.

        Parameters
        ----------
        labels : array-like of shape (n,), optional
            The class of each point, shown by colour. By default the colour of a point shows its first coordinate in the
            first map.
        """
        from .figures.sweep_figure import sweep_figure

        return sweep_figure(self.maps, self.settings, self.shape, self.scores, labels)


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

    Each map starts from the previous one, without early exaggeration, so that two maps differ only by the effect of the
    parameter and not by where clusters happen to land. The first map starts as usual: list first the value that
    preserves the most large-scale structure, such as the largest perplexity or exaggeration. Methods that cannot
    continue from a map (the classical ones, `Parametric`, and those of other packages) start from scratch at each
    value. All methods do so if a varied parameter is `early_exaggeration` or `init`.

    Parameters
    ----------
    method : estimator
        An unfitted estimator with `fit_transform`; it is not modified.
    X : array-like or sparse matrix of shape (n, D), distance matrix (n, n) or MetricSpace
        The data, as for `method.fit`, but not as neighbour lists or affinities.
    values : mapping of str to sequence
        The values of one or two parameters, such as {"perplexity": [100, 30, 10]}.
    labels : array-like of shape (n,), optional
        The class of each point; adds the score "classes", the accuracy of a k-nearest-neighbour classifier.
    k : int, default=10
        Number of neighbours, both for the scores of neighbourhoods and for the classifier.
    random_state : int or RandomState, default=0
        Seed of each run, and of the samples in the scores.

    Returns
    -------
    sweep : Sweep
    """
    _check_values(method, values)
    names = list(values)
    if (found := precomputed_input(method)) is not None:
        name, content = found
        raise ValueError(
            f'sweep needs a table or distances to score the maps, but X contains {content}; omit {name}="precomputed"'
            " and pass the data"
        )
    metric = method.get_params().get("metric", "euclidean")
    n = check_data(X, metric).n
    check_k(k, n)
    if labels is not None:
        check_folds(labels, n, k)
    require_flat(method, "sweep")
    maps: list[Array] = []
    losses: list[float] = []
    scores: list[dict[str, float]] = []
    settings = [dict(zip(names, chosen, strict=True)) for chosen in product(*values.values())]
    shape = tuple(len(values[name]) for name in names)
    predecessors = list(_predecessors(shape))
    from_scratch = any(name in START_PARAMETERS for name in names)
    for setting, previous in zip(settings, predecessors, strict=True):
        estimator = clone(method).set_params(**setting)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=random_state)
        Y = _fit(estimator, X, None if from_scratch or previous is None else maps[previous])
        maps.append(Y)
        losses.append(float(getattr(estimator, "loss_", np.nan)))
        scores.append(score(X, Y, labels, k, metric, random_state))
    return Sweep(
        " ".join(str(method).split()),
        settings,
        shape,
        maps,
        np.array(losses),
        {name: np.array([row[name] for row in scores]) for name in scores[0]},
        np.array([np.nan if p is None else disagreement(Y, maps[p]) for Y, p in zip(maps, predecessors, strict=True)]),
    )


def score(X: Any, Y: Array, labels: Any, k: int, metric: Any, random_state: Any) -> dict[str, float]:
    """Return the scores of a map as a dictionary from the name of each score to its value."""
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


def _fit(method: Any, X: Any, start: Array | None) -> Array:
    """Fit the method and return its map; the fit starts from the map `start` if the method can start from a map."""
    if start is not None and isinstance(method, MDS):
        method.set_params(init=start)
    elif start is not None and isinstance(method, Embedding):
        return method.fit_transform(X, init=start)
    return np.asarray(method.fit_transform(X))


def _predecessors(shape: tuple[int, ...]) -> Iterator[int | None]:
    """Yield for each setting the index of its predecessor, or None for the first setting.

    The docstring of `Sweep` explains, under `steps`, which setting the predecessor is.
    """
    columns = shape[-1]
    for i in range(int(np.prod(shape))):
        yield i - 1 if i % columns else i - columns if i else None


def _check_values(method: Any, values: Mapping[str, Sequence[Any]]) -> None:
    if not isinstance(values, Mapping) or not 1 <= len(values) <= 2:
        raise ValueError(
            f'`values` must map one or two parameters to lists, such as {{"perplexity": [50, 15, 5]}}, got {values!r}'
        )
    known = method.get_params()
    for name, choices in values.items():
        if name not in known:
            suggestion = suggest_parameter(name, known, f"choose from {', '.join(known)}")
            raise ValueError(f"{type(method).__name__} has no parameter {name!r}; {suggestion}")
        if name in NOT_SWEPT:
            raise ValueError(f"{name} cannot be swept: {NOT_SWEPT[name]}")
        if isinstance(choices, str) or not isinstance(choices, Sequence | np.ndarray) or not len(choices):
            raise ValueError(f"values[{name!r}] must be a list of at least one value, got {choices!r}")
