"""Compute the loss of any method at any map."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from .._plural import plural
from .checks import check_map, count_points


def loss(method: Any, X: Any, Y: Any) -> float:
    """Return the loss of a method at any map, for example one computed by another method.

    The loss is computed with the engine and the neighbours that the method would use, so it is the value that `loss_`
    would have after a fit that ends at this map. Y is not rescaled.

    Parameters
    ----------
    method : estimator
        A method of the package other than `Parametric`, such as `eq.TSNE(perplexity=30)`. It need not be fitted, and
        it is not modified.
    X : array-like
        The data, as for `method.fit`.
    Y : array-like of shape (n, d)
        The map.

    Returns
    -------
    loss : float
    """
    if isinstance(method, type) or not hasattr(method, "problem"):
        raise TypeError(
            f"method must be an estimator of equipoise, such as eq.TSNE(), but not Parametric; got {method!r}"
        )
    Y = check_map(Y, curved=True)
    d = getattr(method, "n_columns", method.n_components)
    if Y.shape[1] != d:
        name = type(method).__name__
        raise ValueError(
            f"Y has {plural(Y.shape[1], 'column')} but {name} has n_components={d}; set n_components={Y.shape[1]} in"
            f" {name}"
        )
    if count_points(X) != len(Y):
        raise ValueError(
            f"X has {plural(count_points(X), 'point')} and Y has {len(Y):,}; they must be the same points, in the same"
            " order"
        )
    method = clone(method)
    if "init" in method.get_params(deep=False):
        method.set_params(init=Y)  # skips computing an initialisation
    return float(method.problem(X).loss(Y))
