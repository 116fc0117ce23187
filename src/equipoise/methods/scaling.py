"""PCA, classical MDS and Isomap: the map whose Gram matrix is nearest to that of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg, sparse

from .._types import Array, Matrix
from ..affinities import Points
from ..data.check_stress import warn_if_not_metric
from ..geometry import Flat
from ..gram import Factor, Gram, Inner, over, squares
from ..inputs import Distances, FromSpace, Input, SparseTable, Table, make_input
from ..landmarks import PROBES, Landmarks, choose, factor_error
from ..objectives import GramLoss
from ..progress import stage
from ..spaces import GraphGeodesic, MetricSpace
from .classical import ClassicalEmbedding, Model
from .neighbor_graphs import neighbor_graph, resolve_neighbors


@dataclass(eq=False, repr=False)
class Scaling(ClassicalEmbedding):
    """What PCA, classical MDS and Isomap share: E = ‖C(G_X − G_Y)C‖²_F, G_Y = Y Yᵀ, perhaps with G_X from landmarks."""

    _: KW_ONLY
    n_landmarks: int | None = None
    _landmarks = None

    def _scaled(self, data: Input, gram: Gram, error: tuple[float, float] = (0.0, 1.0)) -> Model:
        self.low_rank_error_ = error[0] / error[1] if error[1] > 0 else 0.0
        return Model(data, GramLoss(gram, error[0]), Flat())

    def _from_landmarks(
        self, data: Input, m: int, squared: Callable[[Array], Array], rng: np.random.RandomState
    ) -> Model:
        """`squared` returns the squared distances (q, n) from some points to all."""
        chosen, probes = choose(data.n, m, rng), choose(data.n, min(PROBES, data.n), rng)
        self._landmarks = Landmarks(squared(chosen), chosen)
        if self._landmarks.F.shape[1] < self.n_components:
            raise ValueError(f"{m} landmarks span only {self._landmarks.F.shape[1]} dimensions; raise n_landmarks")
        return self._scaled(data, Factor(self._landmarks.F), self._landmarks.error(squared(probes), probes))

    def _keep(self, model: Model) -> None:
        assert isinstance(model.objective, GramLoss)
        self._gram = model.objective.gram
        self._axes = self._gram.axes(self.embedding_)

    def _check_landmarks(self, n: int) -> int | None:
        m = self.n_landmarks
        if m is None:
            return None
        if not isinstance(m, int | np.integer) or not self.n_components < m <= n:
            raise ValueError(
                f"n_landmarks must be a whole number above n_components={self.n_components} and at most n_samples={n},"
                f" or None for all points; got {m!r}"
            )
        return int(m)


@dataclass(eq=False, repr=False, kw_only=True)
class PCA(Scaling):
    """Principal components: E = ‖C(XXᵀ − YYᵀ)C‖²_F, least for the projection on the directions of largest variance.

    X is a table (n, D), dense or sparse. Neither XXᵀ nor, beyond 1,000 columns, XᵀX is formed.

    Parameters
    ----------
    n_landmarks : rows that stand for all in the Gram matrix: it is replaced by its projection on their span (Nyström,
        Draganov & Dohn 2024, Theorem 3.4), and a step costs O(n · n_landmarks) instead of O(n D)

    Further attributes
    ------------------
    components_, mean_ : directions (d, D) of unit length, and the mean row (D,)
    explained_variance_, explained_variance_ratio_ : variance along each direction, and its share of the whole
    low_rank_error_ : ‖G_X − G'_X‖_F / ‖G_X‖_F, estimated on 64 rows; 0 without landmarks
    """

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        data = make_input(X, "euclidean", None, order="rows")
        assert isinstance(data, Table | SparseTable)
        self._record_features(X, data)
        self._check_dimension(data.limit, data.limited_by)
        m = self._check_landmarks(data.n)
        exact = Factor(data.X)
        self.mean_, self._total = exact.mean, exact.trace()
        self._basis: Array | None = None
        if m is None:
            return self._scaled(data, exact)
        near: Matrix = data.X[choose(data.n, m, rng)]
        if sparse.issparse(near):
            near = near.toarray()
        self._basis = linalg.orth((near - exact.mean).T)
        if self._basis.shape[1] < self.n_components:
            raise ValueError(f"{m} landmarks span only {self._basis.shape[1]} directions; raise n_landmarks")
        reduced = Factor(np.asarray(data.X @ self._basis))
        return self._scaled(data, reduced, factor_error(exact, reduced, rng))

    def _keep(self, model: Model) -> None:
        super()._keep(model)
        self.components_ = (self._axes if self._basis is None else self._basis @ self._axes).T
        lengths = squares(self.embedding_)
        self.explained_variance_ = lengths / (model.data.n - 1)
        self.explained_variance_ratio_ = over(lengths, np.full(self.n_components, self._total))

    def _place(self, X: Matrix) -> Array:
        return np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T

    def inverse_transform(self, Y: Any) -> Array:
        """Return the rows (m, D) of the plane of the map that places Y (m, d) stand for."""
        Y = np.asarray(Y, dtype=np.float64)
        if Y.ndim != 2 or Y.shape[1] != self.n_components:
            raise ValueError(f"Y has shape {Y.shape}; places (m, {self.n_components}) are needed")
        return Y @ self.components_ + self.mean_


@dataclass(eq=False, repr=False, kw_only=True)
class ClassicalMDS(Scaling):
    """Classical scaling: E = ‖B − C Y Yᵀ C‖²_F, B = −½ C D∘D C from distances D (Torgerson 1952); PCA if Euclidean.

    Parameters
    ----------
    metric : a metric of scikit-learn or a callable; "precomputed": X is a distance matrix (n, n). X may also be a
        `spaces.MetricSpace`, whatever the metric
    n_landmarks : points that stand for all: only their distances to the others are computed, and G_X is
        Nyström's approximation from these (landmark MDS; Draganov & Dohn 2024, Theorem 3.4)

    Further attributes
    ------------------
    low_rank_error_ : ‖G_X − G'_X‖_F / ‖G_X‖_F, estimated on 64 rows; 0 without landmarks
    affinities_ : B (n, n); None if it is not formed, from landmarks or for the Euclidean metric
    """

    metric: Any = "euclidean"

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        data = FromSpace(X) if isinstance(X, MetricSpace) else make_input(X, self.metric, None)
        if self.metric == "inner_product":
            raise ValueError('metric="inner_product" gives no distances between all pairs; use "cosine" or "euclidean"')
        if isinstance(data, Distances) and data.sparse:
            raise ValueError("classical MDS needs the distances of all pairs, not a sparse matrix; use Isomap")
        self._record_features(X, data)
        self._check_dimension(data.n, f"n_samples={data.n}")
        m = self._check_landmarks(data.n)
        self._landmarks: Landmarks | None = None
        if m is not None:
            return self._from_landmarks(data, m, lambda i: data.squared_to_all(data.rows(i)), rng)
        if isinstance(data, Table | SparseTable) and self.metric in ("euclidean", "l2"):
            return self._scaled(data, Factor(data.X))
        if isinstance(data, Distances):
            warn_if_not_metric(data.D)
        distances = data.distances()
        assert not isinstance(distances, Points)
        return self._scaled(data, Inner(distances.D2))

    def _place(self, X: Any) -> Array:
        if self._landmarks is not None:
            d2 = self._data.squared_to_all(X)[:, self._landmarks.chosen]
            return self._gram.place(self._landmarks.coordinates(d2), self._axes)
        return self._gram.place(X if isinstance(self._gram, Factor) else self._data.squared_to_all(X), self._axes)


@dataclass(eq=False, repr=False, kw_only=True)
class Isomap(Scaling):
    """Classical scaling of the lengths of shortest paths through near neighbours (Tenenbaum et al. 2000).

        E = ‖B − C Y Yᵀ C‖²_F, B = −½ C D∘D C, D_ij the shortest path from i to j in the graph of neighbours

    A graph that falls apart is joined by its shortest bridges, with a warning.

    Parameters
    ----------
    n_neighbors : neighbours of each point; "auto" is 10, n − 1 on fewer points
    metric : a metric of scikit-learn or a callable; "precomputed": X is a distance matrix (n, n), or a connected graph:
        a sparse matrix of the lengths of its edges, or (indices, distances)
    n_landmarks : points that stand for all: only paths from these are computed, and G_X is Nyström's
        approximation from them (landmark Isomap, de Silva & Tenenbaum 2003; Draganov & Dohn 2024, Theorem 3.4)

    Further attributes
    ------------------
    low_rank_error_ : ‖G_X − G'_X‖_F / ‖G_X‖_F, estimated on 64 rows; 0 without landmarks
    affinities_ : B (n, n); None if it is not formed, from landmarks
    """

    n_neighbors: Any = "auto"
    metric: Any = "euclidean"

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        data = make_input(X, self.metric, None)
        if self.metric == "inner_product":
            raise ValueError('metric="inner_product" gives no lengths of paths; use "cosine" or "euclidean"')
        self._record_features(X, data)
        self._check_dimension(data.n, f"n_samples={data.n}")
        m = self._check_landmarks(data.n)
        self._k = resolve_neighbors(self.n_neighbors, data.n)
        graph, recall = neighbor_graph(data, self._k, self._n_threads())
        stage("paths")
        space = GraphGeodesic(graph, n_threads=self._n_threads())
        self._landmarks: Landmarks | None = None
        if m is not None:
            model = self._from_landmarks(data, m, lambda i: space.distances(i) ** 2, rng)
        else:
            D = space.matrix()
            model = self._scaled(data, Inner(np.minimum(D, D.T) ** 2))
        return replace(model, recall=recall)

    def _place(self, X: Any) -> Array:
        """A path from a new point begins with the step to one of its neighbours."""
        near = self._data.nearest(X, self._k, self._n_threads()).d2
        if not np.diff(near.indptr).all():
            i = int(np.diff(near.indptr).argmin())
            raise ValueError(f"new row {i} stores no distance, and so no path leads to it; store one or more")
        paths = []
        for begin, end in zip(near.indptr[:-1], near.indptr[1:], strict=True):
            step, onwards = np.sqrt(near.data[begin:end]), np.sqrt(self._squared_paths(near.indices[begin:end]))
            paths.append((step[:, None] + onwards).min(axis=0))
        d2 = np.square(paths)
        return self._gram.place(d2 if self._landmarks is None else self._landmarks.coordinates(d2), self._axes)

    def _squared_paths(self, which: Array) -> Array:
        """Return the squared lengths of the paths from some points to all, or to the landmarks."""
        if self._landmarks is not None:
            return self._landmarks.D2[:, which].T
        assert isinstance(self._gram, Inner)
        return self._gram.squared(which)
