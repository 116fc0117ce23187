"""PCA, classical MDS and Isomap, which find the map whose Gram matrix is nearest to that of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .._types import Array, Matrix
from ..affinities.feature_kernels import DataKernel, is_linear
from ..arrays.namespace import array_like, column_squares, is_device_array, is_tensor, to_float64, to_numpy
from ..arrays.to_device import require_gpu_memory, to_device
from ..data import is_neighbors
from ..inputs import make_input
from ..inputs.neighbor_graphs import neighbor_graph, resolve_neighbors
from ..linalg.gram import Factor, Inner, divide_columns
from ..linalg.landmark_choice import FromRows, choose_landmarks
from ..linalg.nystrom import Landmarks
from ..linalg.row_products import multiply_rows, multiply_vector
from ..memory import EIGEN_PAIR, require_memory_for_pairs
from ..neighbors.vectors import is_euclidean
from ..progress import stage
from ..spaces import Euclidean, GraphGeodesic
from .closed_form import Model
from .estimator import accepts_cupy
from .feature_space import KernelPCA
from .nearest_gram import Scaling

if TYPE_CHECKING:
    from ..inputs.device_table import DeviceTable  # it imports PyTorch

LANDMARKS = "use fewer rows or n_landmarks=500"  # advice where all pairs take too much memory


@dataclass(eq=False, repr=False, kw_only=True)
class PCA(KernelPCA, Scaling):
    """Principal components: E = ‖C(XXᵀ − YYᵀ)C‖²_F, minimised by projection on the directions of largest variance.

    C = I − 11ᵀ/n subtracts the mean. X is a table (n, D), dense or sparse. For more than 1,000 rows, XXᵀ is not formed.
    With engine="torch", which needs dense tables, everything runs on the device except the basis of the landmarks and
    the steps of solver="flow". With a kernel, XXᵀ is replaced by the kernel matrix K (kernel PCA, Schölkopf et al.
    1998), which is computed on the CPU and stored, unless there are landmarks.

    Parameters
    ----------
    kernel : {"linear", "rbf", "polynomial", "precomputed"}, Kernel or callable, default="linear"
        The kernel k(x, y) on the data. "linear": ⟨x, y⟩. "rbf": exp(−γ d²). "polynomial": (γ ⟨x, y⟩ + 1)³.
        "precomputed": X is K itself (n, n). A kernel of `kernels`: k(γ d²). A function takes two tables (m, D) and
        (n, D) and returns (m, n), as in sklearn.metrics.pairwise. For kernels of the distance d, X may also be a metric
        space.
    gamma : float, optional
        The factor γ of the kernel; 1/D by default, or 1 for a kernel of `kernels`.
    n_landmarks : int, optional
        Number of landmarks, which are rows of X. The Gram matrix is projected on their span (Nyström;
        docs/math.md, section 15, bounds the error). A step of solver="flow" then costs O(n · n_landmarks) instead of
        O(n D). None uses all rows.

    Further attributes
    ------------------
    components_ : ndarray of shape (d, D)
        Principal directions, of unit length; only with kernel="linear".
    mean_ : ndarray of shape (D,)
        Mean of the rows of X; only with kernel="linear".
    explained_variance_, explained_variance_ratio_ : ndarray of shape (d,)
        Variance along each direction, and its fraction of the total.
    """

    kernel: DataKernel = "linear"
    gamma: float | None = None

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        self._landmarks: Landmarks | None = None
        if not is_linear(self.kernel):
            return self._kernel_model(X, rng)
        if is_neighbors(X):
            raise ValueError(
                "PCA needs a table of coordinates (n, D), but X is a pair (indices, distances); use"
                ' Isomap(metric="precomputed") for neighbour lists'
            )
        if isinstance(X, Euclidean):
            X = X.X
        data = make_input(X, "euclidean", order="rows", device=self._device(X))
        data.check_power(4)  # the loss is quadratic in the Gram matrix
        if data.coordinates is None:
            raise ValueError(
                "PCA needs a table of coordinates (n, D); for a metric space use ClassicalMDS, which is PCA of its"
                ' distances, or kernel="rbf"'
            )
        self._require_on_device(X, data)
        self._record_features(X, data)
        self._check_dimension(data.limit, data.limited_by)
        with_landmarks = self._uses_landmarks(data.n)
        F = _in_float64(data.coordinates)
        exact = Factor(F)
        self.mean_, self._total = to_numpy(exact.mean), exact.trace()
        self._basis: Array | None = None
        if not with_landmarks:
            return self._gram_model(data, exact)
        found, error = choose_landmarks(lambda chosen: FromRows(exact, chosen), data.n, self._plan(), rng)
        self._basis = cast(FromRows, found).basis
        self._check_span(found)
        return self._gram_model(data, Factor(F @ array_like(F, self._basis)), (found, error))

    def _prepare_transform(self, model: Model) -> None:
        super()._prepare_transform(model)
        if is_linear(self.kernel):
            axes = to_numpy(self._axes)
            self.components_ = (axes if self._basis is None else self._basis @ axes).T
        lengths = column_squares(self.embedding_)
        self.explained_variance_ = lengths / (model.data.n - 1)
        self.explained_variance_ratio_ = divide_columns(lengths, np.full(self.n_components, self._total))

    def _place(self, X: Matrix) -> Array:
        if not is_linear(self.kernel):
            return self._place_by_kernel(X)
        X = to_float64(X) if is_tensor(X) else X
        axes = array_like(X, self.components_.T)
        return multiply_rows(X, axes) - multiply_vector(array_like(X, self.mean_), axes)

    @accepts_cupy
    def inverse_transform(self, Y: Any) -> Array:
        """Return the points (m, D) of the principal subspace that have the positions Y (m, d) in the map."""
        check_is_fitted(self, "embedding_")
        if not is_linear(self.kernel):
            raise ValueError('inverse_transform requires kernel="linear"; a feature space has no coordinates')
        Y = (
            to_float64(Y)
            if is_tensor(Y) and is_device_array(self.embedding_)
            else np.asarray(to_numpy(Y), dtype=np.float64)
        )
        if Y.ndim != 2 or Y.shape[1] != self.n_components:
            raise ValueError(f"Y has shape {tuple(Y.shape)}; pass an array (m, {self.n_components}), one row per point")
        return multiply_rows(Y, array_like(Y, self.components_)) + array_like(Y, self.mean_)


@dataclass(eq=False, repr=False, kw_only=True)
class ClassicalMDS(Scaling):
    """Classical scaling: E = ‖B − C Y Yᵀ C‖²_F, B = −½ C D∘D C, from distances D (Torgerson 1952).

    C = I − 11ᵀ/n subtracts the mean, and D∘D contains the squared distances. With Euclidean distances this is PCA.
    With engine="torch", B and its eigenvectors are computed on the device, and so are the Euclidean or cosine
    distances of a dense table; other distances, and coordinates from landmarks, are computed on the CPU.

    Parameters
    ----------
    metric : str or callable, default="euclidean"
        A metric of scikit-learn, a function of two rows, or "precomputed": X is then a distance matrix (n, n). X may
        also be a metric space (see `spaces`), which defines its own distances; leave metric at its default then.
    n_landmarks : int, optional
        Number of landmarks, which are points of the data. B is replaced by Nyström's approximation from the
        distances between landmarks and all points (landmark MDS, de Silva & Tenenbaum 2003; docs/math.md, section 15,
        bounds the error). The only other distances computed are those from 128 points, to estimate the error.
        None uses all points.

    Further attributes
    ------------------
    affinities_ : ndarray of shape (n, n) or None
        The matrix B; None if it is not formed: with landmarks, or for a table with the Euclidean metric.
    """

    metric: Any = "euclidean"

    def _gpu_bytes(self, n: int, D: int) -> float:
        return 24.0 * n * (n + D)  # B, and the workspace of its eigenvectors

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        device = self._device(X)
        data = make_input(X, self.metric, device=device)
        data.check_power(4)
        if self.metric == "inner_product":
            raise ValueError(
                'metric="inner_product" does not define distances between all pairs; use metric="cosine" or "euclidean"'
            )
        if data.sparse:
            raise ValueError(
                "ClassicalMDS needs the distances of all pairs, but X stores only some of them; pass a dense distance"
                " matrix (n, n), or use Isomap"
            )
        self._record_features(X, data)
        rows = data.coordinates
        in_columns = rows is not None and is_euclidean(self.metric)
        self._check_dimension(*(data.limit, data.limited_by) if in_columns else (data.n, f"n_samples={data.n}"))
        self._landmarks: Landmarks | None = None
        if self._uses_landmarks(data.n):
            return self._from_landmarks(data, lambda i: data.squared_to_all(data.rows(i)), rng, device)
        if in_columns:
            if sparse.issparse(rows):
                self._require_on_device(X, data)
            return self._gram_model(data, Factor(_in_float64(rows)))
        data.warn_if_not_metric()
        if data.on_device:
            table = cast("DeviceTable", data)
            require_gpu_memory(3 * 8 * data.n**2, f"storing all distances of {data.n:,} points on the GPU", str(device))
            return self._gram_model(data, Inner(table.squared_from(table.X).fill_diagonal_(0.0)))
        require_memory_for_pairs(data.n, EIGEN_PAIR, "ClassicalMDS", LANDMARKS)  # d, d², a copy and B
        return self._gram_model(data, Inner(to_device(data.squared(), device)))

    def _bytes_per_new_row(self) -> float:
        return 0.0 if self._landmarks is None and isinstance(self._gram, Factor) else 32.0 * self._data.n

    def _place(self, X: Any) -> Array:
        if self._landmarks is not None:
            d2 = np.ascontiguousarray(self._data.squared_to_all(X)[:, self._landmarks.chosen])
            return self._place_by_gram(self._landmarks.coordinates(d2))
        if isinstance(self._gram, Factor):
            return self._gram.place(to_float64(X) if is_tensor(X) else X, self._axes)
        return self._place_by_gram(self._data.squared_to_all(X))


@dataclass(eq=False, repr=False, kw_only=True)
class Isomap(Scaling):
    """Isomap: classical scaling of shortest path lengths in the neighbour graph (Tenenbaum et al. 2000).

        E = ‖B − C Y Yᵀ C‖²_F, B = −½ C D∘D C, D_ij the length of the shortest path from i to j

    C = I − 11ᵀ/n subtracts the mean, and D∘D contains the squared path lengths. If the graph is not connected, its
    components are joined by the shortest bridges, with a warning. With engine="torch", the neighbours of a dense table
    (Euclidean or cosine), B and its eigenvectors are computed on the device; the paths, which take most of the time,
    and coordinates from landmarks are computed on the CPU.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number of neighbours of each point; "auto" is 10, or n − 1 for n < 11 points.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn, a function of two rows, or "precomputed": X is then a distance matrix (n, n) or a
        connected graph, as a sparse matrix of edge lengths or as (indices, distances).
    n_landmarks : int, optional
        Number of landmarks, which are points of the data. B is replaced by Nyström's approximation from the
        paths between landmarks and all points (landmark Isomap, de Silva & Tenenbaum 2003; docs/math.md, section 15,
        bounds the error). The only other paths computed are those from 128 points, to estimate the error. None uses
        all points.

    Further attributes
    ------------------
    affinities_ : ndarray of shape (n, n) or None
        The matrix B; None with landmarks, when it is not formed.
    """

    n_neighbors: Any = "auto"
    metric: Any = "euclidean"

    def _gpu_bytes(self, n: int, D: int) -> float:
        return 24.0 * n * (n + D)  # B, and the workspace of its eigenvectors

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        device = self._device(X)
        data = make_input(X, self.metric, device=device)
        data.check_power(4)
        if self.metric == "inner_product":
            raise ValueError('metric="inner_product" does not define path lengths; use metric="cosine" or "euclidean"')
        self._record_features(X, data)
        self._check_dimension(data.n, f"n_samples={data.n}")
        with_landmarks = self._uses_landmarks(data.n)
        self._k = resolve_neighbors(self.n_neighbors, data.n)
        graph, recall = neighbor_graph(data, self._k, self._n_threads())
        stage("paths")
        space = GraphGeodesic(graph, n_threads=self._n_threads())
        self._landmarks: Landmarks | None = None
        if with_landmarks:
            model = self._from_landmarks(data, lambda i: space.distances(i) ** 2, rng, device)
        else:
            require_memory_for_pairs(data.n, EIGEN_PAIR, "Isomap", LANDMARKS)  # D, its transpose, d² and B
            D = space.matrix()
            model = self._gram_model(data, Inner(to_device(np.minimum(D, D.T) ** 2, device)))
        return replace(model, recall=recall)

    def _bytes_per_new_row(self) -> float:
        return 40.0 * (self._data.n if self._landmarks is None else len(self._landmarks.chosen))

    def _place(self, X: Any) -> Array:
        """Return the positions of new points; a path from a new point begins with the step to one of its neighbours."""
        near = self._data.nearest(X, self._k, self._n_threads()).d2
        if not np.diff(near.indptr).all():
            i = int(np.diff(near.indptr).argmin())
            raise ValueError(
                f"row {i} of X cannot be placed, because it stores no distance to a fitted point; store at least one"
                " distance"
            )
        paths = []
        for begin, end in zip(near.indptr[:-1], near.indptr[1:], strict=True):
            step, onwards = np.sqrt(near.data[begin:end]), np.sqrt(self._squared_paths(near.indices[begin:end]))
            paths.append((step[:, None] + onwards).min(axis=0))
        d2 = np.square(paths)
        return self._place_by_gram(d2 if self._landmarks is None else self._landmarks.coordinates(d2))

    def _squared_paths(self, which: Array) -> Array:
        """Return the squared path lengths from points `which` to all points, or to the landmarks if there are any."""
        if self._landmarks is not None:
            return self._landmarks.D2[:, which].T
        assert isinstance(self._gram, Inner)
        return self._gram.squared(which)


def _in_float64(X: Any) -> Matrix:
    """Return the table X in float64; only tensors are converted, because all other tables are float64 already."""
    return X.double() if is_tensor(X) else X
