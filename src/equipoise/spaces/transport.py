"""Optimal transport between two sets of points with equal weights: on a line, or for any costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .._types import Array

REGULARIZATION = 0.01  # entropic, in units of the spread of costs; chosen
ITERATIONS = 20  # of Sinkhorn; chosen
CHEAPEST = 5  # entries of each row and column with which a linear programme begins and grows; chosen
OPTIMAL = 1e-9  # in units of the spread of costs: entries are added while they reduce the cost by more; chosen


@dataclass(frozen=True)
class Transport:
    """A coupling of n points with m points, and a lower bound on the cost of every coupling.

    Attributes
    ----------
    coupling : ndarray of shape (n, m)
        Nonnegative, with row sums 1/n and column sums 1/m.
    lower_bound : float
        No coupling has a smaller Σ_ij cost_ij coupling_ij.
    """

    coupling: Array
    lower_bound: float


def transport(cost: Array) -> Transport:
    """Return the coupling of lowest cost for a cost matrix (n, m): an assignment if n = m, else a linear programme."""
    n, m = cost.shape
    if n != m:
        return _linear_program(cost)
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost)
    coupling = np.zeros((n, m))
    coupling[rows, columns] = 1 / n
    return Transport(coupling, float(cost[rows, columns].mean()))


def quantile_pieces(n: int, m: int) -> tuple[Array, Array, Array]:
    """Return the pieces on which the quantile functions of n and of m equally likely numbers are both constant.

    Returns
    -------
    i, j : ndarray of int, shape (pieces,)
        The ranks of the quantiles, from 0 to n − 1 and from 0 to m − 1.
    lengths : ndarray of shape (pieces,)
        The lengths of the pieces, which add up to 1.
    """
    ends = np.union1d(np.arange(1, n + 1) * m, np.arange(1, m + 1) * n)  # in units of 1/(n m)
    lengths = np.diff(ends, prepend=0)
    starts = ends - lengths
    return starts // m, starts // n, lengths / (n * m)


def squared_wasserstein(a: Array, b: Array) -> float:
    """Return the squared 2-Wasserstein distance of two sets of equally likely numbers, (n,) and (m,)."""
    i, j, lengths = quantile_pieces(len(a), len(b))
    return float(lengths @ np.square(np.sort(a)[i] - np.sort(b)[j]))


def monotone_coupling(a: Array, b: Array) -> Array:
    """Return the coupling (n, m) that transports the numbers a (n,) to b (m,) in their order."""
    i, j, lengths = quantile_pieces(len(a), len(b))
    coupling = np.zeros((len(a), len(b)))
    np.add.at(coupling, (np.argsort(a, kind="stable")[i], np.argsort(b, kind="stable")[j]), lengths)
    return coupling


def _linear_program(cost: Array) -> Transport:
    """Return the best coupling (n, m): a linear programme over few entries, to which better ones are added.

    The dual prices f and g of the rows and columns show when the coupling is optimal among all: no entry has a cost
    below f_i + g_j. The first entries are those near the prices of a coarse entropic regularisation (Cuturi 2013).
    """
    from scipy.optimize import linprog

    n, m = cost.shape
    spread = float(np.ptp(cost)) or 1.0
    f, g = _entropic_prices(cost, REGULARIZATION * spread)
    i, j, _ = quantile_pieces(n, m)  # some coupling, so that there is one
    used = _cheapest(cost - f[:, None] - g)
    used[i, j] = True
    sums = np.repeat([1 / n, 1 / m], [n, m])
    while True:
        i, j = np.nonzero(used)
        where = (np.concatenate([i, n + j]), np.tile(np.arange(len(i)), 2))
        marginals = sparse.csr_matrix((np.ones(2 * len(i)), where), shape=(n + m, len(i)))
        found = linprog(cost[i, j], A_eq=marginals, b_eq=sums, method="highs-ds")
        f, g = np.split(found.eqlin.marginals, [n])
        reduced = cost - f[:, None] - g
        better = _cheapest(reduced) & (reduced < -OPTIMAL * spread) & ~used
        if not better.any():
            break
        used |= better
    coupling = np.zeros((n, m))
    coupling[i, j] = np.maximum(found.x, 0.0)
    return Transport(coupling, float(f.mean() + g.mean() + min(0.0, reduced.min())))


def _cheapest(cost: Array) -> Array:
    """Return which entries (n, m) are among the cheapest of their row or column."""
    k = min(CHEAPEST, *cost.shape) - 1
    rows = cost <= np.partition(cost, k, axis=1)[:, k : k + 1]
    return np.asarray(rows | (cost <= np.partition(cost, k, axis=0)[k]))


def _entropic_prices(cost: Array, epsilon: float) -> tuple[Array, Array]:
    """Return the dual prices of the rows and columns of the entropic regularisation, by Sinkhorn's iteration."""
    f, g = np.zeros(len(cost)), np.zeros(cost.shape[1])
    for _ in range(ITERATIONS):
        g = _soft_minimum(cost - f[:, None], epsilon, 0)
        f = _soft_minimum(cost - g, epsilon, 1)
    return f, g


def _soft_minimum(values: Array, epsilon: float, axis: int) -> Array:
    """Return −ε log of the mean of exp(−values/ε) along an axis."""
    low = values.min(axis=axis, keepdims=True)
    result: Array = np.squeeze(low, axis) - epsilon * np.log(np.exp((low - values) / epsilon).mean(axis=axis))
    return result
