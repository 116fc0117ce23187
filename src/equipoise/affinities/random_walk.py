"""Affinities of landmarks by random walks on the neighbour graph of all points (docs/math.md, section 3).

A walk that starts at landmark i ends at the first other landmark it meets; p_{j|i} is the probability that this is j
(van der Maaten & Hinton 2008, section 5 and appendix B). So a map of a few landmarks also uses the points in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .._plural import plural
from .._types import Array, Matrix
from ..arrays.blocks import FIXED_ENTRIES
from ..arrays.csr import entry_rows, make_csr
from ..arrays.memory_limits import available_memory, require_memory
from ..arrays.namespace import check_random_state, is_integer
from ..inputs import make_input
from ..inputs.neighbor_graphs import check_n_neighbors, neighbor_graph
from ..linalg.definite import solver
from ..linalg.landmark_choice import choose
from ..linalg.pca import one_blas_thread
from ..neighbors.search import check_n_threads
from ..spaces.base import check_points
from .bandwidth import Bandwidth, check_bandwidth
from .perplexity import of_rows

MAX_EXPONENT = 14.0  # of the weight of an edge: weights of at least 8e-7 leave 10 digits to the probabilities; chosen
SMALL = 1e-7  # smaller probabilities are left out: at most 0.1 % of a row for 10,000 landmarks; chosen


@dataclass(frozen=True, eq=False, repr=False)
class RandomWalk:
    """Probabilities that random walks on a neighbour graph end at the landmarks, from `random_walk`.

    Attributes
    ----------
    landmarks : ndarray of int64, shape (m,)
        Indices of the landmarks, ascending.
    among : csr_matrix of shape (m, m)
        p_{j|i}: the probability that a walk from landmark i meets landmark j before any other. Rows sum to 1.
    others : ndarray of int64, shape (n − m,)
        Indices of all other points, ascending.
    from_others : csr_matrix of shape (n − m, m)
        The probability that a walk from another point meets landmark j first. Rows sum to 1.
    """

    landmarks: Array
    among: Matrix
    others: Array
    from_others: Matrix

    def embed(self, method: Any) -> Array:
        """Fit a method to the landmarks, place all other points by its `transform`, and return the map (n, d).

        Parameters
        ----------
        method : estimator
            A method with affinity="precomputed", such as `TSNE(affinity="precomputed")`; it is fitted to `among`.
        """
        if not (isinstance(affinity := getattr(method, "affinity", None), str) and affinity == "precomputed"):
            raise ValueError(
                f'embed requires a method with affinity="precomputed", but {type(method).__name__} has'
                f" affinity={affinity!r}"
            )
        Y = np.asarray(method.fit(self.among).embedding_)
        result = np.empty((len(self.landmarks) + len(self.others), Y.shape[1]), Y.dtype)
        result[self.landmarks] = Y
        if len(self.others):
            result[self.others] = method.transform(self.from_others)
        return result

    def __repr__(self) -> str:
        n, m = len(self.others) + len(self.landmarks), len(self.landmarks)
        return f"<random walks of {plural(n, 'point')} between {plural(m, 'landmark')}>"


def random_walk(
    X: Any,
    landmarks: Any,
    n_neighbors: int = 20,
    *,
    metric: Any = "euclidean",
    bandwidth: Any = "local",
    random_state: Any = 0,
    n_threads: int = 1,
) -> RandomWalk:
    """Return the probabilities that random walks on the neighbour graph of X end at the landmarks.

    A walk goes from a point to a neighbour with a probability proportional to the weight exp(−d²/2σ_iσ_j) of the edge.
    The probabilities are computed exactly, by sparse linear systems (van der Maaten & Hinton 2008, appendix B).

    Parameters
    ----------
    X : array-like of shape (n, D), distances if metric="precomputed", or a metric space
    landmarks : int or array of int
        Number of landmarks, which are then drawn at random, or their indices.
    n_neighbors : int, default=20
        Number of neighbours of each point. If the graph is not connected, its components are joined by the shortest
        bridges, with a warning.
    metric : str or callable, default="euclidean"
    bandwidth : {"local", "global"} or float, default="local"
        Widths σ: "local" is, for each point, the root mean square distance to its neighbours; "global" the root mean
        square of the local widths; a number σ itself (van der Maaten & Hinton use exp(−d²), which is √½). Weights
        below 8e-7 are raised to this value, so that a walk can use every edge.
    random_state : int, RandomState or None, default=0
        Seed of the choice of landmarks.
    n_threads : int, default=1
        Number of threads of the neighbour search.

    Returns
    -------
    walk : RandomWalk
    """
    check_n_threads(n_threads)
    bandwidth = check_bandwidth(bandwidth)
    data = make_input(X, metric)
    chosen = _landmarks(landmarks, data.n, random_state)
    k = check_n_neighbors(n_neighbors, data.n)
    graph, _ = neighbor_graph(data, k, n_threads)
    _require_two_landmarks(graph, chosen)
    W = _weights(graph, Bandwidth(bandwidth, k))
    others = np.setdiff1d(np.arange(data.n), chosen)
    with one_blas_thread():
        among, from_others = hitting_probabilities(W, chosen, others)
    return RandomWalk(chosen, among, others, from_others)


def hitting_probabilities(W: Matrix, landmarks: Array, others: Array) -> tuple[Matrix, Matrix]:
    """Return the probabilities that a walk from a landmark, or from another point, first meets each other landmark.

    With the Laplacian L = D − W of the graph, split into landmarks m and others u, the probabilities from the others
    are H = L_uu⁻¹ W_um. A walk from landmark i makes one step first: D_m⁻¹ (W_mm + W_mu H). If it returns to i, it
    starts again, so that the diagonal is set to 0 and rows are divided by their sums.

    Parameters
    ----------
    W : CSR matrix of shape (n, n)
        Symmetric weights of a connected graph.
    landmarks, others : ndarray of shape (m,) and (n − m,)
        Indices that together contain every point once.

    Returns
    -------
    among : CSR matrix of shape (m, m)
    from_others : CSR matrix of shape (n − m, m)
    """
    degree, m = np.asarray(W.sum(axis=1)).ravel(), len(landmarks)
    require_memory(16.0 * m * m, f"storing the probabilities between {m:,} landmarks", available_memory())
    L_uu = sparse.csr_matrix(sparse.diags(degree[others]) - W[others][:, others])
    W_um, W_mu, W_mm = W[others][:, landmarks].tocsc(), W[landmarks][:, others], W[landmarks][:, landmarks]
    solve = solver(L_uu) if len(others) else None
    among, hits = [], []
    step = max(1, FIXED_ENTRIES // max(1, len(others)))
    for start in range(0, m, step):
        columns = slice(start, min(start + step, m))
        H = np.zeros((len(others), columns.stop - start)) if solve is None else solve(W_um[:, columns].toarray())
        one_step = (W_mm[:, columns].toarray() + W_mu @ H) / degree[landmarks, None]
        one_step[np.arange(start, columns.stop), np.arange(columns.stop - start)] = 0.0
        among.append(_sparse(one_step))
        hits.append(_sparse(H))
    return of_rows(_joined(among), np.float64), of_rows(_joined(hits), np.float64)


def _joined(blocks: list[Matrix]) -> Matrix:
    return sparse.csr_matrix(sparse.hstack(blocks, format="csr"))


def _sparse(block: Array) -> Matrix:
    """Return a block of probabilities as a CSR matrix, without entries below `SMALL`."""
    return sparse.csr_matrix(np.where(block >= SMALL, block, 0.0))


def _landmarks(landmarks: Any, n: int, random_state: Any) -> Array:
    """Return the indices of the landmarks, ascending."""
    if is_integer(landmarks):
        if not 2 <= landmarks <= n:
            raise ValueError(f"landmarks={landmarks} is out of range for n_samples={n}; use 2 to {n} landmarks")
        return choose(n, int(landmarks), check_random_state(random_state))
    chosen = np.unique(check_points(landmarks, n, "landmarks"))
    if len(chosen) < 2:
        raise ValueError(f"landmarks contains {plural(len(chosen), 'point')}; pass at least 2")
    return chosen


def _require_two_landmarks(graph: Matrix, landmarks: Array) -> None:
    """Raise ValueError unless every component of the graph has at least two landmarks, so that every walk ends."""
    count, part = csgraph.connected_components(graph, directed=False)
    found = np.bincount(part[landmarks], minlength=count)
    if found.min() < 2:
        i = int((part == found.argmin()).argmax())
        raise ValueError(
            f"the component of the graph that contains point {i} has {plural(int(found.min()), 'landmark')}, but a walk"
            " needs two to start and to end; add landmarks there, or connect the components"
        )


def _weights(graph: Matrix, bandwidth: Bandwidth) -> Matrix:
    """Return the symmetric weights exp(−d²/2σ_iσ_j) of the edges of a graph of distances, CSR (n, n)."""
    d2 = make_csr(np.square(graph.data), graph.indices, graph.indptr, graph.shape)
    sigma = np.sqrt(bandwidth.fit(d2))
    exponent = d2.data / (2 * sigma[entry_rows(d2)] * sigma[d2.indices])
    W = make_csr(np.exp(-np.minimum(exponent, MAX_EXPONENT)), d2.indices, d2.indptr, d2.shape).sorted_indices()
    return sparse.csr_matrix(W.maximum(W.T))
