"""A metric tensor on the data that is learned, from classes or together with the map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import clone

from .. import progress
from .._plural import plural
from .._tags import tagged
from .._types import Array
from ..affinities.perplexity import conditional_of_points, resolve_perplexity
from ..arrays.namespace import is_finite, is_integer, to_numpy
from ..data import as_array, check_rows
from ..data.checks.missing_labels import first_missing_label
from ..geometry.flat import Geometry, squared_distances
from ..inputs import is_space
from ..kernels import Kernel
from ..linalg.landmark_choice import choose
from ..neighbors.vectors import is_euclidean

MIN_WEIGHT = 1e-4  # keeps the tensor positive definite, although a column may not count at all; chosen
FIRST, NEXT = 250, 100  # iterations of the first map and of each further one, which continues it; chosen
SETTLED = 1e-4  # the weights are final when a step lowers their loss by less than this fraction; chosen
SHORTEST = 1e-3  # and when no step with a longest change of log w of at least this lowers it; chosen
TINY = float(np.finfo(np.float64).tiny)


class Method(Protocol):
    """The parameters of a method that learning reads."""

    metric: Any
    affinity: str
    perplexity: Any
    g: Any

    def output_kernel(self) -> Kernel: ...


class Slope(NamedTuple):
    """A loss of the weights w, and its gradient (D,)."""

    loss: float
    gradient: Array


@tagged("methods.LearnedMetric")
@dataclass(frozen=True)
class LearnedMetric:
    """A diagonal metric tensor h = diag(w) on the data, learned by a method: d² = Σ_c w_c (x_ic − x_jc)².

    The weights w_c > 0, of mean 1, say how much attention each column gets (Lin et al. 2024, eq. 8). They start
    at 1, the Euclidean metric, so columns in different units should be standardised first. With classes y, passed to
    `fit`, the weights maximise the likelihood that a neighbour, drawn from the affinities p_{j|i}, has the same class
    (docs/math.md, eq. W1; Goldberger et al. 2005). Without classes they are trained with the map: a map is fitted, the
    weights minimise KL between the rows of P and of Q (eq. W2), and so on in turn.

    After the fit, `metric_tensor_` of the method is h, and `transform` uses it. For a metric tensor on the map there is
    nothing to learn: a constant g is a linear change of coordinates, which the map can make itself.

    Parameters
    ----------
    penalty : float, default=0.05
        Weight λ of Σ_c (w_c/D) log w_c, the divergence of the weights from equal ones, in both losses. Without it the
        weights of few columns grow at the cost of others that are as informative.
    n_steps : int, default=50
        Maximum number of steps of the weights; in every round, if they are trained with the map.
    rounds : int, default=5
        Number of maps with which the weights are trained in turn; not used with classes.
    max_points : int, default=1000
        The weights are learned from all pairs of at most this many rows, a random sample of X.

    Examples
    --------
    >>> method = eq.TSNE(h=eq.LearnedMetric(), random_state=0).fit(X, y)
    >>> weights = method.metric_tensor_.diagonal()
    """

    penalty: float = 0.05
    n_steps: int = 50
    rounds: int = 5
    max_points: int = 1000

    def __post_init__(self) -> None:
        if not (is_finite(self.penalty) and self.penalty >= 0):
            raise ValueError(f"penalty={self.penalty!r} is invalid; use a number >= 0")
        for name, least in (("n_steps", 1), ("rounds", 1), ("max_points", 10)):
            if not (is_integer(getattr(self, name)) and getattr(self, name) >= least):
                raise ValueError(f"{name}={getattr(self, name)!r} is invalid; use an integer >= {least}")

    def learn(self, method: Method, X: Any, y: Any = None) -> Array:
        """Return the metric tensor (D, D) for the data X (n, D) of a method, with classes y (n,) or without."""
        X = _check_table(method, X)
        if y is None and callable(method.g):
            raise ValueError(
                "LearnedMetric cannot be trained with a map whose metric tensor g is a function; pass classes y to fit,"
                " or a constant matrix g"
            )
        chosen = choose(len(X), min(self.max_points, len(X)), np.random.RandomState(0))
        rows = X[chosen]
        perplexities = resolve_perplexity(method.perplexity, len(rows))
        if len(perplexities) > 1:
            raise ValueError("LearnedMetric needs a single perplexity; pass one number")
        pairs = WeightedPairs(rows, perplexities)
        classes = None if y is None else _check_classes(y, len(X))[chosen]
        progress.stage("metric")
        if classes is not None:
            w = self._minimize(pairs, np.ones(X.shape[1]), partial(same_class, classes=classes))
        else:
            w = self._with_maps(method, pairs)
        return np.diag(w)

    def _with_maps(self, method: Any, pairs: WeightedPairs) -> Array:
        """Return the weights (D,) learned in turn with maps of the points of `pairs`."""
        quiet = clone(method).set_params(callbacks=(), verbose=0)
        w, Y = np.ones(pairs.X.shape[1]), None
        for _ in range(self.rounds):
            quiet.set_params(h=np.diag(w), n_iter=FIRST if Y is None else NEXT)
            Y = to_numpy(quiet.fit_transform(pairs.X, init=Y))
            log_q = log_neighbors(Y, method.output_kernel(), quiet.geometry_)
            w = self._minimize(pairs, w, partial(row_divergence, log_q=log_q))
        return w

    def _minimize(self, pairs: WeightedPairs, w: Array, compare: Callable[[Array], tuple[float, Array]]) -> Array:
        """Return the weights after exponentiated gradient steps (Kivinen & Warmuth 1997) that lower the loss."""

        def slope(w: Array) -> Slope:
            loss, gradient = pairs.slope(w, compare)
            return Slope(
                loss + self.penalty * float((w * np.log(w)).mean()), gradient + self.penalty * np.log(w) / len(w)
            )

        longest, now = 1.0, slope(w)  # the longest change of log w in a step
        for _ in range(self.n_steps):
            direction = now.gradient - (w * now.gradient).mean()  # the mean of w stays 1
            while True:
                moved = w * np.exp(-longest / max(np.abs(direction).max(), TINY) * direction)
                moved = np.maximum(moved / moved.mean(), MIN_WEIGHT)
                moved /= moved.mean()
                trial = slope(moved)
                if trial.loss < now.loss or longest < SHORTEST:
                    break
                longest /= 2
            if not trial.loss < now.loss * (1 - SETTLED):
                return moved if trial.loss < now.loss else w
            w, now, longest = moved, trial, min(1.5 * longest, 1.0)
        return w


class WeightedPairs:
    """All pairs of the rows of X (m, D), with affinities p_{j|i} of one perplexity under a diagonal metric tensor."""

    def __init__(self, X: Array, perplexities: Array):
        self.X, self.perplexities = X - X.mean(axis=0), perplexities

    def slope(self, w: Array, compare: Callable[[Array], tuple[float, Array]]) -> Slope:
        """Return a loss of P at the weights w, and its gradient.

        `compare` returns the loss for P (m, m), and its derivatives G_ij by p_{j|i}. The bandwidths follow the weights,
        so that the perplexity is constant: the gradient is eq. (W3) of docs/math.md.
        """
        Z = self.X * np.sqrt(w)
        P = conditional_of_points(Z, self.perplexities, np.float64, 1)
        loss, G = compare(P)
        squares = (Z**2).sum(axis=1)
        d2 = squares[:, None] + squares - 2 * Z @ Z.T
        d2 -= _mean(P, d2)
        variance = np.maximum(_mean(P, d2**2), TINY)
        beta = -_mean(P, np.log(np.maximum(P, TINY)) * d2) / variance  # log p = −β d² + a constant
        G = G - _mean(P, G)
        C = -beta * P * (G - _mean(P, G * d2) / variance * d2)
        X = self.X
        return Slope(loss, (C.sum(axis=0) + C.sum(axis=1)) @ X**2 - 2 * (X * (C @ X)).sum(axis=0))


def _mean(P: Array, A: Array) -> Array:
    """Return the mean (m, 1) of each row of A under the probabilities in the rows of P."""
    return (P * A).sum(axis=1, keepdims=True)


def same_class(P: Array, classes: Array) -> tuple[float, Array]:
    """Return −(1/m) Σ_i log Σ_{j in the class of i} p_{j|i}, and its derivatives by p_{j|i} (docs/math.md, eq. W1)."""
    same = classes[:, None] == classes
    share = np.maximum((P * same).sum(axis=1, keepdims=True), TINY)
    return -float(np.log(share).mean()), same / (-len(P) * share)


def row_divergence(P: Array, log_q: Array) -> tuple[float, Array]:
    """Return (1/m) Σ_i KL(p_{·|i} ‖ q_{·|i}), and its derivatives by p_{j|i} up to a constant (docs/math.md, W2)."""
    G = (np.log(np.maximum(P, TINY)) - log_q) / len(P)
    return float((P * G).sum()), G


def log_neighbors(Y: Array, kernel: Kernel, geometry: Geometry) -> Array:
    """Return log q_{j|i} (m, m), q = k/Σ_j k for the points of a map Y (m, columns); 0 on the diagonal."""
    U = geometry.work(np.asarray(Y, dtype=np.float64))
    log_k = np.asarray(kernel.log_value(squared_distances(geometry.pairs, U[:, None], U[None])))
    np.fill_diagonal(log_k, -np.inf)
    largest = log_k.max(axis=1, keepdims=True)
    log_q = log_k - largest - np.log(np.exp(log_k - largest).sum(axis=1, keepdims=True))
    np.fill_diagonal(log_q, 0.0)
    return log_q


def _check_table(method: Method, X: Any) -> Array:
    """Return X as float64; raise unless it is a dense table with Euclidean distances and Gaussian affinities."""
    X = as_array(X)
    if is_space(X) or sparse.issparse(X) or not is_euclidean(method.metric) or method.affinity != "gaussian":
        raise ValueError(
            'LearnedMetric needs a dense table (n, D), metric="euclidean" and affinity="gaussian"; pass a matrix h, or'
            " h=None"
        )
    return np.asarray(to_numpy(check_rows(X, min_rows=2)), dtype=np.float64)


def _check_classes(y: Any, n: int) -> Array:
    """Return the index (n,) of the class of each row."""
    labels = np.asarray(to_numpy(y)).ravel()
    if labels.shape != (n,):
        raise ValueError(f"y has {len(labels):,} labels, but X has {n:,} rows; pass one label per row")
    if (i := first_missing_label(labels)) is not None:
        raise ValueError(f"y[{i}] = {labels[i]} is not a class; leave out rows without a class, or omit y")
    names, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2 or counts.max() < 2:
        raise ValueError(
            f"y contains {plural(len(names), 'class', 'classes')} of at most {plural(int(counts.max()), 'row')};"
            " LearnedMetric needs two classes or more, one with several rows; omit y to learn without classes"
        )
    return classes
