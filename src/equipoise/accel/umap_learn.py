"""Answers to umap.UMAP."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .. import methods
from .._types import Array
from ..arrays.namespace import is_integer
from ..engines.choose import NEGATIVE_SAMPLING
from .calls import RECORD, NotAvailable
from .translate import Convert, jobs, shown, translate


class Placement:
    """The method `transform` of a fitted UMAP object: it places new rows in the map that Equipoise computed.

    It is an attribute of the object, so that it is there after `uninstall` and in a pickle.
    """

    def __init__(self, method: methods.UMAP, labels: Any):
        self.method, self.labels = method, labels

    def __call__(self, X: Any, ensure_all_finite: Any = True) -> Array:
        with RECORD.timed("umap.UMAP.transform", "equipoise.UMAP"):
            rows = check_array(X, accept_sparse="csr", dtype=np.float32, ensure_all_finite=ensure_all_finite)
            return np.asarray(self.method.transform(rows), dtype=np.float32)


def fit(estimator: Any, X: Any, y: Any = None, ensure_all_finite: Any = True, **settings: Any) -> Any:
    """Answer umap.UMAP.fit."""
    _require_class(estimator)
    vars(estimator).pop("transform", None)  # of an earlier fit
    if settings or ensure_all_finite is not True:
        raise NotAvailable("arguments of fit other than X and y have no counterpart")
    if estimator.metric_kwds:
        raise NotAvailable(f"metric_kwds={shown(estimator.metric_kwds)} has no counterpart")
    epochs = estimator.n_epochs
    if not (epochs is None or (is_integer(epochs) and epochs > 0)):
        raise NotAvailable(f"n_epochs={shown(epochs)} has no counterpart")
    convert: dict[str, Convert | None] = {
        "n_jobs": jobs,
        "verbose": int,
        "n_epochs": None,
        "learning_rate": None,  # docs/migration/umap_learn.md
        "metric_kwds": None,
    }
    parameters = translate(estimator, "umap.UMAP", convert)
    rows = check_array(X, accept_sparse="csr", dtype=np.float32, order="C")
    if rows.shape[0] <= estimator.n_neighbors:
        raise NotAvailable(f"n_neighbors={estimator.n_neighbors} needs more than {rows.shape[0]} rows")
    # As in umap-learn. Sums over all pairs give more trustworthy maps of most data, but worse ones of closed surfaces:
    # of 600 points on a sphere, 0.988 to 0.999 compared with 0.998 for both samplings (measured on 6 such samples).
    method = methods.UMAP(**parameters, n_iter=epochs, engine=NEGATIVE_SAMPLING).fit(rows, y)
    estimator.embedding_ = np.asarray(method.embedding_, dtype=np.float32)
    estimator.graph_ = sparse.csr_matrix(method.affinities_, dtype=np.float32)
    estimator.graph_dists_ = None
    kernel = method.output_kernel()
    estimator._a, estimator._b = getattr(kernel, "a", None), getattr(kernel, "b", None)
    estimator._raw_data, estimator._n_neighbors = rows, estimator.n_neighbors
    estimator._sparse_data, estimator._supervised = sparse.issparse(rows), y is not None
    estimator._n_features_out = estimator.embedding_.shape[1]
    estimator.transform = Placement(method, y)
    return estimator


def _require_class(estimator: Any) -> None:
    """Parametric UMAP and other classes that inherit from UMAP fit in their own way."""
    if type(estimator).__module__ != "umap.umap_":
        raise NotAvailable(f"{type(estimator).__name__} has no counterpart")


def use_original_state(estimator: Any, *args: Any, **settings: Any) -> Any:
    """Before inverse_transform, update and sums of models, give a model of ours the state of umap-learn's own.

    That state consists of its search, its graph and its thresholds. It is computed by a fit of umap-learn without
    epochs; the map stays the same.
    """
    for model in (estimator, *args):
        if isinstance(vars(model).get("transform") if hasattr(model, "__dict__") else None, Placement):
            _complete(model)
    raise NotAvailable("by umap-learn, around the same map")


def _complete(estimator: Any) -> None:
    Y, X, place = estimator.embedding_, estimator._raw_data, estimator.transform
    given = {"init": estimator.init, "n_epochs": estimator.n_epochs}
    fit = type(estimator).fit
    estimator.init, estimator.n_epochs = Y, 0
    try:
        getattr(fit, "__wrapped__", fit)(estimator, X, place.labels)
    finally:
        vars(estimator).update(given)
    estimator.embedding_, estimator.transform = Y, place
