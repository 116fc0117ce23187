"""Any loss of the package on any map: what one method thinks of the result of another."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from .checks import check_map, count_points


def loss(method: Any, X: Any, Y: Any) -> float:
    """Return the stated loss of a method, such as `eq.TSNE(perplexity=30)`, at a map Y (n, d) of X from anywhere.

    The method need not be fitted and stays as it is. X is what its `fit` takes. Y is taken in the scale it has; the
    loss is computed with the method's own engine and neighbours, so it is what `loss_` would say of this map.
    """
    if isinstance(method, type) or not hasattr(method, "problem"):
        raise TypeError(f"method must be a method of the package, such as eq.TSNE(); got {method!r}")
    Y = check_map(Y)
    d = method.n_components
    if Y.shape[1] != d:
        name = type(method).__name__
        raise ValueError(f"Y has {Y.shape[1]} columns; compare it with {name}(n_components={Y.shape[1]}), not {d}")
    if count_points(X) != len(Y):
        raise ValueError(f"X has {count_points(X)} rows and Y has {len(Y)}; they must be the same points")
    method = clone(method)
    if "init" in method.get_params(deep=False):
        method.set_params(init=Y)  # spares it the search for a start
    return float(method.problem(X).loss(Y))
