"""`Vectors`, the rows that a neighbour search compares, and `Graph`, the result of the search.

| metric | searched as | distance |
|---|---|---|
| euclidean, l2, sqeuclidean | Euclidean | as named |
| cosine, correlation | Euclidean, on unit vectors x̂: ‖x̂ − ŷ‖² = 2 (1 − cos) | 1 − cos, 1 − correlation |
| inner_product | Euclidean, on augmented vectors | √(2 (m_i − x_i·x_j)), see `InnerProduct` |
| manhattan, cityblock, l1 | L1 | as named |
| chebyshev | L∞ | as named |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from .. import _core
from .._plural import plural
from .._types import Array, Matrix
from ..arrays.blocks import row_blocks
from ..arrays.csr import largest_magnitude, make_csr, run_on_threads
from ..arrays.namespace import LARGEST, check_finite
from ..linalg.pca import on_one_blas_thread
from ..mixed import Blocks, Mixed

EUCLIDEAN = ("euclidean", "l2")  # names of the Euclidean distance
# Differences of coordinates per call of the core, half a second on one thread; Ctrl-C is noticed between calls.
MEASURED = 5e8
LINEAR = ("manhattan", "cityblock", "l1", "chebyshev")  # metrics that do not square differences


@dataclass(frozen=True, repr=False)
class Graph:
    """The nearest neighbours of n points.

    Attributes
    ----------
    indices : array of int32, shape (n, k)
        The neighbours of each point, without the point itself.
    distances : array of float64, shape (n, k)
        Distances from each point to its neighbours.
    recall : float
        Fraction of the true neighbours that were found, estimated on a sample; 1.0 for exact searches.
    """

    indices: Array
    distances: Array
    recall: float = 1.0

    def __repr__(self) -> str:
        n, k = self.indices.shape
        return f"<{plural(k, 'neighbour')} of each of {plural(n, 'point')}, recall {self.recall:.3g}>"

    def into_squared(self, n: int, exponent: int | None = None) -> Matrix:
        """Return the squares of `distances` / 2^exponent as CSR (m, n), for m points with neighbours among n points.

        With exponent=None, each row whose squares would overflow or underflow is divided by its own power of two. This
        method overwrites `distances` to save memory.
        """
        m, k = self.indices.shape
        scaled = _rows_in_range(self.distances) if exponent is None else scale_down(self.distances, exponent)
        d2 = np.square(scaled, out=self.distances)
        return make_csr(d2.ravel(), self.indices.ravel(), np.arange(0, m * k + 1, k, dtype=np.int64), (m, n))


def is_euclidean(metric: Any) -> bool:
    """Return whether a metric is the Euclidean distance."""
    return isinstance(metric, str) and metric in EUCLIDEAN


def is_mixed(metric: Any) -> bool:
    """Return whether a metric is computed column by column: "mixed", "nan_euclidean", `Mixed` or `Blocks`."""
    return isinstance(metric, Mixed | Blocks) or (isinstance(metric, str) and metric in ("mixed", "nan_euclidean"))


def is_nan_euclidean(metric: Any) -> bool:
    """Return whether a metric is the Euclidean distance of numbers with missing values."""
    return isinstance(metric, str) and metric == "nan_euclidean"


def in_range(X: Array) -> Array:
    """Return X, scaled by a power of two if its squares would overflow or underflow.

    Affinities do not depend on the scale.
    """
    return scale_down(X, range_exponent(X))


def range_exponent(X: Matrix) -> int:
    """Return an exponent e, usually 0, such that the squares of X / 2^e do not overflow and do not all underflow."""
    largest = largest_magnitude(X.data if sparse.issparse(X) else X)
    return 0 if largest == 0 or 1e-100 < largest < 1e100 else int(np.frexp(largest)[1])


def scale_down(X: Matrix, exponent: int) -> Matrix:
    """Return X / 2^exponent; X itself if the exponent is 0."""
    if not exponent:
        return X
    if sparse.issparse(X):
        return make_csr(np.ldexp(X.data, -exponent), X.indices, X.indptr, X.shape)
    return np.ldexp(X, -exponent)


def _rows_in_range(d: Array) -> Array:
    """Scale each row of the distances d (m, k) as `in_range` does, in place, and return d."""
    largest = d.max(axis=1, initial=0.0)
    extreme = np.flatnonzero((largest > 0) & ~((largest > 1e-100) & (largest < 1e100)))
    if extreme.size:
        d[extreme] = np.ldexp(d[extreme], -np.frexp(largest[extreme])[1][:, None])
    return d


class ScaledDistances:
    """Base class that divides distances by a power of two before they are squared, if this prevents over- or underflow.

    Attributes
    ----------
    metric : str, callable or None
        The metric between the rows of a table; None if the data are not a table.
    exponent : int or None
        Distances are divided by 2^exponent. None until distances are first squared; the value chosen then is kept, also
        for new rows.
    """

    metric: Any = None
    exponent: int | None = None
    coordinates: Any  # the rows of a table

    def fix_exponent(self, d: Matrix) -> int:
        """Return `exponent`; if it is None, first choose it for the distances d."""
        if self.exponent is None:
            self.exponent = range_exponent(d)
        return self.exponent

    @cached_property
    def _row_exponent(self) -> int:
        """The exponent of the power of two by which rows are divided before their squares are summed."""
        return range_exponent(self.coordinates) if is_euclidean(self.metric) or self.metric == "inner_product" else 0

    def _in_range(self, rows: Matrix) -> Matrix:
        return scale_down(rows, self._row_exponent)

    def scaled(self, rows: Matrix) -> Matrix:
        """Return rows of a table, divided by the same power of two as their distances."""
        return scale_down(rows, self._row_exponent + (self.exponent or 0))

    def unscaled(self, d2: Array) -> Array:
        """Return distances, in the units of the data, from the squares of scaled distances."""
        return scale_down(np.sqrt(d2), -self._row_exponent - (self.exponent or 0))


def smallest(D: Array, k: int) -> Graph:
    """Return the k smallest entries of each row of D (m, n), sorted by column; ties go to the lower column."""
    keep = np.sort(np.argsort(D, axis=1, kind="stable")[:, :k], axis=1)
    return Graph(keep.astype(np.int32), np.take_along_axis(D, keep, axis=1))


@on_one_blas_thread
def metric_parameters(X: Array, metric: Any) -> dict[str, Array]:
    """Return the parameters that a scikit-learn metric estimates from X (n, D), such as variances; none for most.

    Distances to new rows then use the parameters of X.
    """
    if isinstance(metric, str) and metric == "seuclidean":
        return {"V": X.var(axis=0, ddof=1)}
    if isinstance(metric, str) and metric == "mahalanobis":
        covariance = np.atleast_2d(np.cov(X.T))
        _check_invertible(covariance, len(X))
        return {"VI": np.linalg.inv(covariance).T}
    return {}


def _check_invertible(covariance: Array, n: int) -> None:
    """Raise ValueError if the covariance (D, D) of n rows is singular up to rounding.

    The test is the rank of the correlation matrix, which does not depend on the units of the columns.
    """
    D, scale = len(covariance), np.sqrt(np.diag(covariance))
    if not scale.all():
        found, remedy = f"column {int(scale.argmin())} is constant", "remove this column"
    elif (rank := int(np.linalg.matrix_rank(covariance / scale[:, None] / scale, hermitian=True))) < D:
        found = f"the covariance of {plural(n, 'row')} of {plural(D, 'column')} has rank {rank}"
        remedy = f"pass more than {D} rows" if n <= D else "remove columns that are linear combinations of others"
    else:
        return
    raise ValueError(
        f'metric="mahalanobis" requires an invertible covariance matrix, but {found};'
        f" {remedy}, or reduce the columns by PCA first"
    )


class Vectors:
    """Converts the rows of a table (n, D) to the vectors that a search compares, and computes their distances.

    Attributes
    ----------
    base : array of float64
        The vectors among which neighbours are found.
    own : array of float64
        The rows of the table as query vectors.
    search : {"l2", "l1", "linf"}
        The distance that the search uses.
    """

    search = "l2"

    def __init__(self, X: Array, metric: str):
        self.metric = metric
        self.base = self.queries(X)
        self.own = self.base

    def queries(self, X: Array) -> Array:
        """Return rows (m, D) as query vectors, float64."""
        return np.ascontiguousarray(X, dtype=np.float64)

    def distances(self, Q: Array, found: Array, n_threads: int = 1) -> Array:
        """Return the distances (m, k) from each query to the rows with indices `found` (m, k).

        The result for a query does not depend on the other queries.
        """
        result = np.empty(found.shape)

        def write(rows: slice) -> None:
            result[rows] = self._pairs(Q[rows, None, :], self.base[found[rows]])

        run_on_threads(write, row_blocks(len(Q), 8 * found.shape[1] * self.base.shape[1]), n_threads)
        return self._finish(result)

    def own_distances(self, found: Array, n_threads: int, order: Array | None = None) -> Array:
        """Return the distances (n, k) from each row of the table to the rows with indices `found` (n, k).

        They are computed faster if `order` (n,) lists rows near each other one after the other.
        """
        return self.distances(self.own, found, n_threads)

    def _pairs(self, q: Array, x: Array) -> Array:
        """Return the values (m, k) from which `_finish` computes the distances from q (m, 1, D) to x (m, k, D)."""
        raise TypeError(f"{type(self).__name__} must define _pairs()")

    def _finish(self, result: Array) -> Array:
        """Return the distances for `result`, the values from `_pairs`; `result` is sometimes overwritten."""
        return result


class EuclideanVectors(Vectors):
    """Vectors for metrics that are Euclidean distances, or functions of Euclidean distances."""

    def queries(self, X: Array) -> Array:
        if self.metric in (*EUCLIDEAN, "sqeuclidean"):
            return np.ascontiguousarray(X, dtype=np.float64)
        V = X - X.mean(axis=1, keepdims=True) if self.metric == "correlation" else X
        norm = np.linalg.norm(V, axis=1, keepdims=True)
        if not norm.all():
            raise undefined_for_row(int(norm.argmin()), self.metric)
        return np.ascontiguousarray(V / norm)

    def own_distances(self, found: Array, n_threads: int, order: Array | None = None) -> Array:
        distances, euclidean = np.empty(found.shape), is_euclidean(self.metric)
        order = np.arange(len(found), dtype=np.int32) if order is None else order
        step = max(1, int(MEASURED // (found.shape[1] * self.base.shape[1])))
        for start in range(0, len(order), step):
            _core.pair_distances(self.base, found, order[start : start + step], distances, n_threads, not euclidean)
        return distances if euclidean else self._finish(distances)

    def _pairs(self, q: Array, x: Array) -> Array:
        return np.square(x - q).sum(axis=2)

    def _finish(self, result: Array) -> Array:
        if is_euclidean(self.metric):
            return np.sqrt(result, out=result)
        if self.metric != "sqeuclidean":
            result /= 2
        return result


class InnerProduct(Vectors):
    """Vectors for metric="inner_product": the nearest row is the one with the largest inner product.

    If M is the largest norm of a row, base vectors (x, √(M² − ‖x‖²)) and queries (q, 0) have d² = M² + ‖q‖² − 2 q·x
    (Bachrach et al. 2014), so a Euclidean search finds the largest products. The affinities exp(−d²/2σ²) of a row do
    not change if a constant is added to all its d². Here the constant is chosen so that no digits are lost: the
    distance is √(2 (m_i − x_i·x_j)), where m_i is the largest product found for row i. The distance to the nearest row
    is then 0, and distances can be compared within a row but not between rows.
    """

    def __init__(self, X: Array, metric: str):
        self.metric = metric
        X = np.asarray(X, dtype=np.float64)
        norm2 = np.square(X).sum(axis=1)
        self.base = np.column_stack([X, np.sqrt(norm2.max() - norm2)])
        self.own = self.queries(X)

    def queries(self, X: Array) -> Array:
        return np.column_stack([np.asarray(X, dtype=np.float64), np.zeros(len(X))])

    def _pairs(self, q: Array, x: Array) -> Array:
        return (x * q).sum(axis=2)

    def _finish(self, result: Array) -> Array:
        return product_distances(result)


class Manhattan(Vectors):
    """Vectors with the L1 distance, Σ |x − y|."""

    search = "l1"

    def _pairs(self, q: Array, x: Array) -> Array:
        return np.abs(x - q).sum(axis=2)


class Chebyshev(Vectors):
    """Vectors with the L∞ distance, max |x − y|."""

    search = "linf"

    def _pairs(self, q: Array, x: Array) -> Array:
        return np.abs(x - q).max(axis=2)


VECTORS: dict[str, type[Vectors]] = {
    **dict.fromkeys((*EUCLIDEAN, "sqeuclidean", "cosine", "correlation"), EuclideanVectors),
    **dict.fromkeys(("manhattan", "cityblock", "l1"), Manhattan),
    "chebyshev": Chebyshev,
    "inner_product": InnerProduct,
}


def check_metric(X: Matrix, metric: Any) -> None:
    """Raise ValueError for a function that does not return one number, and for "haversine" unless X has two columns.

    X (n, D), n ≥ 2, is dense or CSR. A function is called with the first two rows of X.
    """
    if callable(metric):
        value = metric(X[0], X[1])
        if np.ndim(value) or not isinstance(value, int | float | np.number | np.bool_) or np.iscomplexobj(value):
            name = getattr(metric, "__name__", type(metric).__name__)
            raise ValueError(
                f"the function passed as metric must return one number, the distance between two rows; {name} returned"
                f" {value!r}"
            )
    elif metric == "haversine" and X.shape[1] != 2:
        raise ValueError(
            'metric="haversine" requires two columns, latitude and longitude in radians; X has'
            f" {plural(X.shape[1], 'column')}"
        )


def check_metric_results(D: Array, metric: Any, start: int = 0, *, new: bool = False) -> None:
    """Raise ValueError if D (m, n), the distances from m rows to all n rows, has a negative, NaN or infinite entry.

    `start` is the index of the first of the m rows. `new` is True if the m rows are not among the n rows.
    """
    bad = np.argwhere(~(D >= 0) | np.isinf(D))
    if bad.size:
        i, j = bad[0]
        pair = f"new row {start + i} and row {j}" if new else f"rows {start + i} and {j}"
        name = getattr(metric, "__name__", repr(metric))
        raise ValueError(
            f"metric={name} gives the distance {D[i, j]} between {pair};"
            " distances must not be negative, NaN or infinite: correct these rows or use another metric"
        )


def check_range(X: Matrix, metric: Any) -> None:
    """Raise ValueError if X (n, D), dense or CSR, is not finite, or if its values would overflow in the metric."""
    power = 1 if callable(metric) or metric in LINEAR else 2
    if sparse.issparse(X) or not largest_magnitude(X) <= LARGEST ** (1 / power):  # so for NaN
        check_finite(X, "X", power=power)


def make_vectors(X: Array, metric: Any) -> Vectors | None:
    """Return the table X (n, D) as vectors, or None if there is no vector search for the metric."""
    return VECTORS[metric](X, metric) if isinstance(metric, str) and metric in VECTORS else None


def product_distances(S: Array) -> Array:
    """Return √(2 (m_i − S_ij)) for inner products S, where m_i is the largest entry of row i; S is overwritten."""
    np.subtract(S.max(axis=1, keepdims=True), S, out=S)
    S *= 2
    return np.sqrt(S, out=S)


def undefined_for_row(i: int, metric: str) -> ValueError:
    """Return the error for row i, which has no direction, so that its angles to other rows are not defined."""
    kind = "constant" if metric == "correlation" else "zero"
    return ValueError(f"row {i} is {kind}, so metric={metric!r} is not defined for it; remove the row")
