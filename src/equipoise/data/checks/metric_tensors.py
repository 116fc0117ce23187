"""Check the metric tensors that a user-defined function returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array


def check_tensors(G: Array, call: str, n: int, d: int) -> None:
    """Raise ValueError unless every metric tensor in G is finite, symmetric and positive definite.

    Parameters
    ----------
    G : array, shape (d, d) or (n, d, d)
        One metric tensor for all points, or one per point.
    call : str
        The call that returned G, such as "g(Y)", for error messages.
    n, d : int
        Number of points and of dimensions.
    """
    if G.shape not in ((d, d), (n, d, d)):
        raise ValueError(
            f"{call} must return one metric tensor ({d}, {d}) or one per point ({n}, {d}, {d}); it returned shape"
            f" {G.shape}"
        )
    stack = G.reshape(-1, d, d)

    def at(i: Any) -> str:
        return f" at point {int(i)}" if G.ndim == 3 else ""

    finite = np.isfinite(stack).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(f"{call} must be finite, but contains NaN or inf{at(finite.argmin())}")
    largest = np.abs(stack).max(axis=(1, 2))
    asymmetric = np.abs(stack - stack.transpose(0, 2, 1)).max(axis=(1, 2)) > 1e-8 * largest
    if asymmetric.any():
        raise ValueError(f"{call} must be symmetric, but is not{at(asymmetric.argmax())}")
    try:
        np.linalg.cholesky(stack)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(stack)[:, 0]
        i = int(smallest.argmin())
        raise ValueError(
            f"{call} must be positive definite; its smallest eigenvalue{at(i)} is {smallest[i]:g}"
        ) from None
