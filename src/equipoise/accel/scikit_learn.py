"""Answers to the estimators of sklearn.manifold.

Each function computes the map with a method of ours and sets the fitted attributes of scikit-learn's estimator, so that
everything else about it (transform, pickling, set_output, names of features) is scikit-learn's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import validate_data

from .. import methods
from .._types import Array
from ..affinities.local_geometry import smallest_neighborhood, variant_matrix
from ..affinities.locally_linear import REG
from ..inputs import make_input
from ..inputs.neighbor_graphs import neighbor_graph
from ..linalg.pca import fix_signs, one_blas_thread
from ..methods.estimator import default_n_iter, threads
from ..objectives import TraceQuotient
from ..spaces import GraphGeodesic
from .calls import NotAvailable
from .translate import Convert, iterations, jobs, shown, translate

COMMON: dict[str, Convert | None] = {"n_jobs": jobs, "verbose": int, "eigen_solver": None}
TSNE_ITERATIONS = 1000  # scikit-learn's default


def _refuse_metric_params(estimator: Any) -> None:
    if getattr(estimator, "metric_params", None):  # MDS has none before scikit-learn 1.8
        raise NotAvailable(f"metric_params={shown(estimator.metric_params)} has no counterpart")


def _refuse_invalid(estimator: Any) -> None:
    """Leave the error about an invalid parameter to scikit-learn."""
    try:
        estimator._validate_params()
    except ValueError as error:
        raise NotAvailable(str(error)) from None


def tsne(estimator: Any, X: Any, skip_num_points: int = 0) -> Array:
    """Answer sklearn.manifold.TSNE."""
    convert: dict[str, Convert | None] = {
        **COMMON,
        "learning_rate": lambda rate: rate if isinstance(rate, str) else 4 * rate,  # docs/migration/scikit_learn.md
        "method": lambda method: {"barnes_hut": "auto", "exact": "exact"}[method],
        "n_iter_without_progress": None,
        "min_grad_norm": None,
        "metric_params": None,
        "angle": None,
        "max_iter": None,
        "n_iter": None,
    }
    _refuse_metric_params(estimator)
    if estimator.metric == "precomputed" and isinstance(estimator.init, str) and estimator.init == "pca":
        raise NotAvailable('init="pca" needs coordinates, not metric="precomputed"')
    parameters = translate(estimator, "sklearn.manifold.TSNE", convert)
    X = validate_data(estimator, X, accept_sparse="csr", ensure_min_samples=2, dtype=[np.float32, np.float64])
    limit = getattr(estimator, "max_iter", None) or TSNE_ITERATIONS  # None with a deprecated n_iter
    n_iter = iterations(limit, TSNE_ITERATIONS, default_n_iter(X.shape[0]))
    dof = float(max(estimator.n_components - 1, 1))
    method = methods.TSNE(**parameters, n_iter=n_iter, dof=dof).fit(X)
    rate = estimator.learning_rate
    automatic = max(X.shape[0] / estimator.early_exaggeration / 4, 50)
    estimator.learning_rate_ = automatic if isinstance(rate, str) else rate
    estimator.kl_divergence_, estimator.n_iter_ = method.loss_, method.n_iter_
    return np.asarray(method.embedding_, dtype=np.float32)


def mds(estimator: Any, X: Any, y: Any = None, init: Any = None) -> Array:
    """Answer sklearn.manifold.MDS."""
    _refuse_invalid(estimator)
    _refuse_metric_params(estimator)
    metric, is_metric = _mds_kind(estimator)
    normalized = estimator.normalized_stress
    convert: dict[str, Convert | None] = {
        **COMMON,
        "metric": lambda _: metric,
        "dissimilarity": lambda _: metric,
        "metric_mds": lambda _: "metric",
        "metric_params": None,
        "init": None,
        "n_init": lambda n_init: 1 if isinstance(n_init, str) else n_init,
    }
    parameters = {**translate(estimator, "sklearn.manifold.MDS", convert)}
    parameters["stress"] = "metric" if is_metric else "ordinal"
    if getattr(estimator, "init", "random") == "classical_mds":  # scikit-learn 1.8
        parameters["n_init"] = 1
    if init is not None:
        parameters["init"] = np.asarray(init, dtype=np.float64)
    X = validate_data(estimator, X)
    D = _distances(X, metric)
    if not is_metric and np.count_nonzero(D) < D.size - len(D):
        raise NotAvailable("non-metric MDS takes dissimilarities of 0 as missing")
    method = methods.MDS(**{**parameters, "metric": "precomputed"}).fit(D)
    Y = np.asarray(method.embedding_, dtype=np.float64)
    estimator.dissimilarity_matrix_ = D
    estimator.n_iter_ = method.n_iter_
    estimator.stress_ = method.stress_1_ if normalized is True or not is_metric else method.loss_
    if not is_metric:
        Y, squares = _scaled_like_disparities(Y)
        if normalized is False:
            estimator.stress_ = method.stress_1_**2 * squares
    estimator.embedding_ = Y
    return Y


def _mds_kind(estimator: Any) -> tuple[Any, bool]:
    """Return the metric, and whether MDS is metric: before scikit-learn 1.8 the parameters had other names."""
    metric, dissimilarity = estimator.metric, getattr(estimator, "dissimilarity", "deprecated")
    is_metric = metric if isinstance(metric, bool) else getattr(estimator, "metric_mds", True)
    if dissimilarity != "deprecated":
        if not isinstance(metric, bool) and metric != "euclidean":
            raise NotAvailable("both metric and dissimilarity are given")
        return dissimilarity, is_metric
    return ("euclidean" if isinstance(metric, bool) else metric), is_metric


def _distances(X: Array, metric: Any) -> Array:
    if metric == "precomputed":
        from sklearn.utils.validation import check_symmetric

        return check_symmetric(X, raise_exception=True)
    from sklearn.metrics import pairwise_distances

    return pairwise_distances(X, metric=metric)


def _scaled_like_disparities(Y: Array) -> tuple[Array, float]:
    """Return a map of non-metric MDS in scikit-learn's size, Σ d² = n(n − 1)/2 over the pairs i < j, and this sum."""
    n = len(Y)
    squares = n * float(np.square(Y - Y.mean(axis=0)).sum())  # Σ_{i<j} d²
    if not squares > 0:
        return Y, 0.0
    return Y * np.sqrt(n * (n - 1) / 2 / squares), n * (n - 1) / 2


def isomap(estimator: Any, X: Any) -> None:
    """Answer sklearn.manifold.Isomap."""
    _refuse_metric_params(estimator)
    metric = _isomap_metric(estimator)
    convert: dict[str, Convert | None] = {**COMMON, "metric": lambda _: metric, "p": lambda _: metric}
    parameters = translate(estimator, "sklearn.manifold.Isomap", convert | {"metric_params": None})
    if parameters["n_neighbors"] is None:
        raise NotAvailable("n_neighbors=None has no counterpart")
    n_threads = threads(parameters["n_jobs"])
    search = NearestNeighbors(
        n_neighbors=estimator.n_neighbors,
        algorithm=estimator.neighbors_algorithm,
        metric=estimator.metric,
        p=estimator.p,
        n_jobs=estimator.n_jobs,
    ).fit(X)
    table = search._fit_X
    if sparse.issparse(table):
        raise NotAvailable("sparse tables are not answered by accel")
    data = make_input(table, metric)
    if estimator.n_neighbors >= data.n:
        raise NotAvailable(f"n_neighbors={estimator.n_neighbors} needs more than {data.n} rows")
    graph, _ = neighbor_graph(data, estimator.n_neighbors, n_threads)
    D = GraphGeodesic(graph, n_threads=n_threads).matrix()
    D = np.minimum(D, D.T)
    method = methods.ClassicalMDS(estimator.n_components, metric="precomputed").fit(D)
    dtype = np.float32 if table.dtype == np.float32 else np.float64
    estimator.nbrs_, estimator.dist_matrix_ = search, D.astype(dtype, copy=False)
    estimator.n_features_in_ = search.n_features_in_
    if hasattr(search, "feature_names_in_"):
        estimator.feature_names_in_ = search.feature_names_in_
    estimator.embedding_ = np.asarray(method.embedding_, dtype=dtype)
    estimator.kernel_pca_ = _kernel_pca(estimator, method)
    estimator._n_features_out = estimator.embedding_.shape[1]


def _isomap_metric(estimator: Any) -> Any:
    if estimator.metric != "minkowski":
        return estimator.metric
    names = {1: "manhattan", 2: "euclidean"}
    if estimator.p not in names:
        raise NotAvailable(f"p={shown(estimator.p)} has no counterpart")
    return names[estimator.p]


def _kernel_pca(estimator: Any, method: Any) -> Any:
    """Return the KernelPCA of −½ D∘D, from which scikit-learn's Isomap places new points."""
    from sklearn.decomposition import KernelPCA
    from sklearn.preprocessing import KernelCenterer

    G = estimator.dist_matrix_**2
    G *= -0.5
    pca = KernelPCA(
        n_components=estimator.n_components,
        kernel="precomputed",
        eigen_solver=estimator.eigen_solver,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        n_jobs=estimator.n_jobs,
    ).set_output(transform="default")
    pca.gamma_, pca.n_features_in_, pca.X_fit_ = None, G.shape[1], G
    pca._centerer = KernelCenterer().set_output(transform="default").fit(G)
    pca.eigenvalues_ = np.asarray(method.eigenvalues_, dtype=G.dtype)
    lengths = np.sqrt(np.maximum(method.eigenvalues_, 0.0))
    pca.eigenvectors_ = np.divide(
        method.embedding_, lengths, out=np.zeros_like(method.embedding_), where=lengths > 0
    ).astype(G.dtype, copy=False)
    return pca


def locally_linear_embedding(estimator: Any, X: Any) -> None:
    """Answer sklearn.manifold.LocallyLinearEmbedding."""
    parameters = translate(estimator, "sklearn.manifold.LocallyLinearEmbedding", COMMON)
    variant, k = parameters.pop("variant"), estimator.n_neighbors
    search = NearestNeighbors(n_neighbors=k, algorithm=estimator.neighbors_algorithm, n_jobs=estimator.n_jobs)
    X = validate_data(estimator, X, dtype=float)
    if k >= X.shape[0]:
        raise NotAvailable(f"n_neighbors={k} needs more than {X.shape[0]} rows")
    if variant == "standard":
        method = methods.LLE(**parameters).fit(X)
        embedding, loss = method.embedding_ / np.sqrt(X.shape[0]), method.loss_  # of unit length in scikit-learn
    else:
        embedding, loss = _variant_of_lle(variant, X, k, parameters)
    estimator.nbrs_ = search.fit(X)
    estimator.embedding_, estimator.reconstruction_error_ = embedding, loss
    estimator._n_features_out = embedding.shape[1]


def _variant_of_lle(variant: str, X: Array, k: int, parameters: dict[str, Any]) -> tuple[Array, float]:
    """Return scikit-learn's map of a variant of LLE, and the sum of its eigenvalues.

    scikit-learn's neighbourhoods do not include the point itself, its "hessian" takes all columns of a QR decomposition
    instead of those of second derivatives, so that it is LTSA, and its "modified" always has the default of `reg`.
    """
    d, n = parameters["n_components"], X.shape[0]
    if k < (fewest := smallest_neighborhood(variant, d)):
        raise NotAvailable(f"method={variant!r} needs at least {fewest} neighbours, got {k}")
    if X.shape[1] < d:
        raise NotAvailable(f"method={variant!r} needs at least {d} columns, got {X.shape[1]}")
    graph = make_input(X, "euclidean").neighbors(k, threads(parameters["n_jobs"]))[0]
    with one_blas_thread():
        name = "ltsa" if variant == "hessian" else variant
        M = variant_matrix(name, X, graph.indices.reshape(n, k), d, REG)
        eigenvalues, U = TraceQuotient(M, np.ones(n), M).solve(d)
    return fix_signs(U) / np.sqrt(n), float(eigenvalues.sum())


def spectral_embedding(estimator: Any, X: Any, y: Any = None) -> Any:
    """Answer sklearn.manifold.SpectralEmbedding: scikit-learn's affinities, our eigenvectors."""
    _refuse_invalid(estimator)
    kind = estimator.affinity
    parameters = translate(estimator, "sklearn.manifold.SpectralEmbedding", COMMON | {"affinity": None})
    X = validate_data(estimator, X, accept_sparse="csr", ensure_min_samples=2)
    if kind == "nearest_neighbors" and not sparse.issparse(X):
        k = max(int(X.shape[0] / 10), 1) if estimator.n_neighbors is None else estimator.n_neighbors
        W: Any = _neighbor_weights(X, k, threads(parameters["n_jobs"]))
        estimator.n_neighbors_, estimator.affinity_matrix_ = k, W
    else:
        W = estimator._get_affinity_matrix(X)
    method = methods.LaplacianEigenmaps(estimator.n_components, affinity="precomputed").fit(W)
    estimator.embedding_ = method.embedding_ / np.sqrt(method.affinities_.sum())  # YᵀDY is I in scikit-learn
    return estimator


def _neighbor_weights(X: Array, k: int, n_threads: int) -> Any:
    """Return ½ (A + Aᵀ), A_ij = 1 if j is i or one of its k − 1 nearest neighbours, as scikit-learn defines them."""
    n = X.shape[0]
    if not 2 <= k <= n:
        raise NotAvailable(f"n_neighbors={k} of {n} rows counts the point itself")
    D2, _ = make_input(X, "euclidean").neighbors(k - 1, n_threads)
    A = sparse.csr_matrix((np.ones(D2.nnz), D2.indices, D2.indptr), shape=(n, n)) + sparse.identity(n, format="csr")
    return (0.5 * (A + A.T)).tocsr()
