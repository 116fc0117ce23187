"""LLE and Laplacian eigenmaps: maps of fixed spread that preserve the relation of each point to its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._suggest import did_you_mean
from .._types import Array, Matrix
from .._warn import warn
from ..affinities import locally_linear as lle
from ..affinities.feature_kernels import (
    DataKernel,
    FeatureKernel,
    check_feature_kernel,
    feature_weights,
    is_linear,
    is_radial,
    kernel_input,
    new_feature_weights,
)
from ..affinities.local_geometry import VARIANTS, smallest_neighborhood, variant_matrix
from ..arrays.csr import entry_rows, make_csr, on_host, symmetrized
from ..arrays.namespace import is_positive, to_numpy
from ..data import check_affinities
from ..geometry import Orthonormal
from ..inputs import Input, make_input
from ..inputs.make import check_affinity_name
from ..inputs.neighbor_graphs import resolve_neighbors
from ..linalg.laplacian import normalized_laplacian
from ..memory import DISTANCE_PAIR, EIGEN_PAIR, require_memory_for_pairs
from ..objectives import TraceQuotient
from ..progress import stage
from .closed_form import ClassicalEmbedding, Model

MAX_EXPONENT = 600.0  # of a weight; derived: e^−600 does not underflow in float64


def _warn_disconnected(method: str, components: Array) -> None:
    sizes = np.sort(np.bincount(components))[::-1]
    if len(sizes) > 1:
        shown = ", ".join(map(str, sizes[:5])) + (", …" if len(sizes) > 5 else "")
        count = len(sizes) - 1
        axes = f"axis of {method} only separates" if count == 1 else f"{count} axes of {method} only separate"
        warn(
            f"the neighbour graph has {len(sizes)} components, of {shown} points, and the first {axes} them; connect"
            " them, for example by a larger n_neighbors, or embed each component separately",
        )


@dataclass(eq=False, repr=False, kw_only=True)
class LLE(ClassicalEmbedding):
    """Locally linear embedding: preserve the weights that reconstruct points from neighbours (Roweis & Saul 2000).

    The weights are computed from the data. The map is the one whose points they reconstruct best:

        E = Σ_i ‖y_i − Σ_j w_ij y_j‖² / n = tr(YᵀMY)/n, M = (I − W)ᵀ(I − W), subject to YᵀY = n I and Σ y_i = 0

    The weights w_ij, with Σ_j w_ij = 1, minimise ‖x_i − Σ_j w_ij x_j‖, in the feature space of the kernel if there is
    one. With engine="torch", which needs dense tables, neighbours and weights are computed on the device; the
    eigenvectors and the flow are computed on the CPU.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number of neighbours of each point; "auto" is the smaller of 10 and n − 1.
    reg : float, default=0.001
        Regularisation: this fraction of the trace of each local Gram matrix is added to its diagonal.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn or a function of two rows, which defines the neighbours; the weights are computed from
        the coordinates. With "precomputed", X is a distance matrix (n, n) of points in some Euclidean space, and the
        weights are computed from these distances.
    kernel : {"linear", "rbf", "polynomial", "precomputed"}, Kernel or callable, default="linear"
        The kernel k(x, y) on the data, whose feature space has the neighbours and the weights; as for `PCA`. Kernels
        other than "rbf" and those of `kernels` need the kernel of all pairs.
    gamma : float, optional
        The factor γ of the kernel; 1/D by default, or 1 for a kernel of `kernels`.
    variant : {"standard", "modified", "hessian", "ltsa"}, default="standard"
        What the map preserves of each neighbourhood, which defines M (docs/classical.md): its weights; several weight
        vectors ("modified"; Zhang & Wang 2007); all functions with zero second derivatives ("hessian"; Donoho & Grimes
        2003); its principal components ("ltsa", local tangent space alignment; Zhang & Zha 2004). Variants other than
        "standard" need a table, without a kernel or an engine; "hessian" needs at least d(d + 3)/2 neighbours.

    Further attributes
    ------------------
    weights_ : csr_matrix of shape (n, n), or None
        The weights W; None for variants other than "standard".
    affinities_ : csr_matrix of shape (n, n)
        The matrix M.
    """

    n_neighbors: Any = "auto"
    reg: float = lle.REG
    metric: Any = "euclidean"
    kernel: DataKernel = "linear"
    gamma: float | None = None
    variant: str = "standard"
    tol: float = 1e-9

    def check_parameters(self) -> None:
        super().check_parameters()
        if not is_positive(self.reg):
            raise ValueError(f"reg must be a positive number, got {self.reg!r}")
        check_feature_kernel(self.kernel, self.gamma)
        if not (isinstance(self.variant, str) and self.variant in VARIANTS):
            known = f"choose from {', '.join(VARIANTS)}"
            advice = did_you_mean(self.variant, VARIANTS, known) if isinstance(self.variant, str) else known
            raise ValueError(f"unknown variant {self.variant!r}; {advice}")
        if self.variant != "standard" and not is_linear(self.kernel):
            raise ValueError(f'variant={self.variant!r} needs kernel="linear"')

    def _kernel_model(self, X: Any) -> Model:
        """Return the model of kernel LLE."""
        if self._device(X) is not None:
            raise ValueError('LLE with a kernel does not support engine="torch"; use engine="auto" with device="cpu"')
        data = kernel_input(X, self.kernel, self.metric)
        self._record_features(X, data)
        self._check_dimension(data.n - 1, f"n_samples={data.n}")
        self._k = resolve_neighbors(self.n_neighbors, data.n)
        if data.coordinates is None or not is_radial(self.kernel):
            require_memory_for_pairs(
                data.n, EIGEN_PAIR, "LLE with a kernel", 'use fewer rows, or kernel="rbf" and a table'
            )
        stage("weights")
        features = FeatureKernel(data, self.kernel, self.gamma)
        self.weights_, recall = feature_weights(features, self._k, float(self.reg), self._n_threads())
        return self._model_of_matrix(data, lle.lle_matrix(self.weights_), recall)

    def _model_of_matrix(self, data: Input, M: Matrix, recall: float) -> Model:
        objective = TraceQuotient(M, np.ones(data.n), M)
        _warn_disconnected("LLE", objective.components)
        return Model(data, objective, Orthonormal(objective.root), recall)

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        if not is_linear(self.kernel):
            return self._kernel_model(X)
        data = make_input(X, self.metric, device=self._device(X))
        data.check_power(2)  # local Gram matrices
        self._require_on_device(X, data)
        if data.sparse:
            raise ValueError(
                "LLE needs the distances among the neighbours of each point, but X stores only some distances; pass a"
                " dense distance matrix (n, n) or a table (n, D)"
            )
        data.warn_if_not_metric()
        self._record_features(X, data)
        self._check_dimension(data.n - 1, f"n_samples={data.n}")
        self._k = resolve_neighbors(self.n_neighbors, data.n)
        self._require_memory_for_pairs(data)
        self._check_variant(X, data)
        near, recall = data.neighbors(self._k, self._n_threads())
        neighbors = near.indices.reshape(data.n, self._k)
        if self.variant != "standard":
            self.weights_ = None
            return self._model_of_matrix(data, self._variant_matrix(data, neighbors), recall)
        self.weights_ = self._weights(data, neighbors)
        return self._model_of_matrix(data, lle.lle_matrix(self.weights_), recall)

    def _check_variant(self, X: Any, data: Input) -> None:
        """Raise ValueError if a variant cannot be computed from X, or needs more neighbours or columns."""
        if self.variant == "standard":
            return
        label, d = f"variant={self.variant!r}", self.n_components
        if self._device(X) is not None:
            raise ValueError(f'LLE with {label} does not support engine="torch"; use engine="auto" with device="cpu"')
        if data.coordinates is None:
            raise ValueError(f"{label} needs a table (n, D), because it uses coordinates; X has distances only")
        self._check_dimension(data.coordinates.shape[1], f"{label} and {data.coordinates.shape[1]} columns")
        own = self.variant != "modified"
        if self._k < (fewest := smallest_neighborhood(self.variant, d) - own):
            raise ValueError(
                f"n_neighbors={self._k} is too small for {label} and {d} components; use at least {fewest}"
            )

    def _variant_matrix(self, data: Input, neighbors: Array) -> Matrix:
        """Return M of a variant; the neighbourhoods of "hessian" and "ltsa" include the point itself."""
        stage("local geometry")
        if self.variant != "modified":  # a point that is nobody's neighbour would not appear in M
            neighbors = np.column_stack([np.arange(data.n), neighbors])
        table = data.scaled(data.coordinates)
        return variant_matrix(self.variant, table, neighbors, self.n_components, float(self.reg))

    @staticmethod
    def _require_memory_for_pairs(data: Input) -> None:
        """Raise MemoryError if weights come from the distances of all pairs and these do not fit into memory."""
        if data.coordinates is None:
            require_memory_for_pairs(
                data.n, DISTANCE_PAIR, "LLE", "use fewer rows or a table of coordinates"
            )  # d and d²

    def _weights(self, data: Input, neighbors: Array, rows: Any = None) -> Matrix:
        """Return the weights W of the fitted points, or of the new `rows` if `rows` is not None."""
        stage("weights")
        if (X := data.coordinates) is not None:
            new = None if rows is None else data.scaled(rows)
            return on_host(lle.lle_weights(data.scaled(X), neighbors, rows=new, reg=float(self.reg)))
        new = None if rows is None else data.squared_to_all(rows)
        return lle.lle_weights_from_distances(data.squared(), neighbors, rows=new, reg=float(self.reg))

    def _prepare_transform(self, model: Model) -> None:
        pass

    def _bytes_per_new_row(self) -> float:
        by_coordinates = self._data.coordinates is not None and (is_linear(self.kernel) or is_radial(self.kernel))
        return 0.0 if by_coordinates else 16.0 * self._data.n

    def _place(self, X: Any) -> Array:
        """Place a new point at the weighted mean of its neighbours (Saul & Roweis 2003, section 6.1)."""
        if self._data.coordinates is None and sparse.issparse(X):
            raise ValueError(
                f"LLE needs the distances of new points to all {self._data.n:,} fitted points, but X is sparse; pass a"
                f" dense array (m, {self._data.n})"
            )
        if is_linear(self.kernel):
            self._require_memory_for_pairs(self._data)
            near = self._data.nearest(X, self._k, self._n_threads())
            W, twins = self._weights(self._data, near.d2.indices.reshape(-1, self._k), X), near.twins
        else:
            features = FeatureKernel(self._data, self.kernel, self.gamma)
            W, twins = new_feature_weights(features, X, self._k, float(self.reg), self._n_threads())
        fitted = to_numpy(self.embedding_)
        Y = np.asarray(W @ fitted)
        Y[twins >= 0] = fitted[twins[twins >= 0]]
        return Y


@dataclass(eq=False, repr=False, kw_only=True)
class LaplacianEigenmaps(ClassicalEmbedding):
    """Laplacian eigenmaps (Belkin & Niyogi 2003): neighbours attract, and a fixed spread keeps them apart.

        E = ½ Σ_ij w_ij ‖y_i − y_j‖² / Σ_ij w_ij = tr(YᵀLY)/tr D, L = D − W

    subject to YᵀDY = (tr D) I and Σ D_ii y_i = 0, where the diagonal matrix D contains the row sums of W. With
    engine="torch", which needs dense tables, the neighbours are found on the device, and so are the eigenvectors if it
    is a GPU; the flow is computed on the CPU.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number of neighbours of each point; "auto" is the smaller of 10 and n − 1.
    affinity : {"uniform", "gaussian", "precomputed"}, default="uniform"
        "uniform": w_ij is 1 between mutual neighbours and ½ if only one is a neighbour of the other. "gaussian": this
        weight times exp(−d²/(σ_i σ_j)), where σ_i is the distance from point i to its farthest neighbour (Zelnik-Manor
        & Perona 2004). "precomputed": X is W itself (n, n), dense or sparse and nonnegative; (W + Wᵀ)/2 is used.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn, a function of two rows, or "precomputed": X is then a distance matrix (n, n), a sparse
        one that stores only the distances to neighbours, or a pair (indices, distances).

    Further attributes
    ------------------
    affinities_ : csr_matrix of shape (n, n)
        The weights W.
    """

    n_neighbors: Any = "auto"
    affinity: str = "uniform"
    metric: Any = "euclidean"
    tol: float = 1e-9

    def check_parameters(self) -> None:
        super().check_parameters()
        check_affinity_name(self.affinity)

    def _model(self, X: Any, rng: np.random.RandomState) -> Model:
        data = make_input(X, self.metric, None, self.affinity, device=self._device(X))
        self._require_on_device(X, data)
        self._record_features(X, data)
        self._check_dimension(data.n - 1, f"n_samples={data.n}")
        W, recall = self._graph(data)
        A, root = normalized_laplacian(W)
        objective = TraceQuotient(A, root, W, self._device(X))
        _warn_disconnected("LaplacianEigenmaps", objective.components)
        return Model(data, objective, Orthonormal(root), recall)

    def _graph(self, data: Input) -> tuple[Matrix, float]:
        if (P := data.affinities) is not None:
            W, recall = sparse.csr_matrix(P), 1.0
        else:
            self._k = resolve_neighbors(self.n_neighbors, data.n)
            D2, recall = data.measured_neighbors(self._k, self._n_threads())
            if not np.diff(D2.indptr).all():
                i = int(np.diff(D2.indptr).argmin())
                raise ValueError(
                    f"row {i} of the precomputed graph has no neighbours; store at least one distance in it, or remove"
                    " the point"
                )
            self._reach = self._farthest(D2)
            W = self._decay(D2, self._reach)
        W = symmetrized(W)
        W.data /= 2
        return W, recall

    def _decay(self, D2: Matrix, new_reach: Array) -> Matrix:
        """Return the weights of edges from m points to their neighbours, CSR (m, n), before they are symmetrised.

        `D2` (m, n) contains the squared distances to the neighbours, and `new_reach` (m,) the largest distance in each
        row.
        """
        if self.affinity == "uniform":
            return make_csr(np.ones(D2.nnz), D2.indices, D2.indptr, D2.shape)
        scale = new_reach[entry_rows(D2)] * self._reach[D2.indices]
        exponent = np.divide(D2.data, scale, out=np.zeros(D2.nnz), where=scale > 0)
        return make_csr(np.exp(-np.minimum(exponent, MAX_EXPONENT)), D2.indices, D2.indptr, D2.shape)

    @staticmethod
    def _farthest(D2: Matrix) -> Array:
        return np.sqrt(np.maximum.reduceat(D2.data, D2.indptr[:-1]))

    def _prepare_transform(self, model: Model) -> None:
        pass

    def _place(self, X: Any) -> Array:
        """Place new points i so that (1 − λ) y_i = Σ_j w_ij y_j / Σ_j w_ij, as for fitted points (Bengio et al. 2004).

        λ is the eigenvalue of the axis. A row equal to a fitted row gets the position of that row.
        """
        if self._data.affinities is not None:
            W, twins = sparse.csr_matrix(check_affinities(X, self._data.n)), np.full(X.shape[0], -1)
        else:
            near = self._data.nearest(X, self._k, self._n_threads())
            W, twins = self._decay(near.d2, self._farthest(near.d2)), near.twins
        fitted = to_numpy(self.embedding_)
        mean = np.asarray(W @ fitted) / np.asarray(W.sum(axis=1)).reshape(-1, 1)
        scale = 1 - self.eigenvalues_
        Y = mean / np.where(np.abs(scale) > 1e-8, scale, np.inf)  # at λ = 1 neighbours give no information
        Y[twins >= 0] = fitted[twins[twins >= 0]]
        return Y
