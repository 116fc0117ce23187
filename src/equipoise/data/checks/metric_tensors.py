"""Metric tensors that a function gives: one for all points, or one at each, checked and named."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array


def check_tensors(G: Array, call: str, n: int, d: int) -> None:
    """Raise unless G, which the function `call` returned for n points, is (d, d) or (n, d, d), symmetric and positive.

    Positive definite, that is: no direction has length 0.
    """
    if G.shape not in ((d, d), (n, d, d)):
        raise ValueError(
            f"{call} must return one metric tensor of shape ({d}, {d}), or one at each point, ({n}, {d}, {d}); it"
            f" returned shape {G.shape}"
        )
    stack = G.reshape(-1, d, d)

    def at(i: Any) -> str:
        return f" at point {int(i)}" if G.ndim == 3 else ""

    finite = np.isfinite(stack).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(f"{call} contains NaN or inf{at(finite.argmin())}")
    largest = np.abs(stack).max(axis=(1, 2))
    uneven = np.abs(stack - stack.transpose(0, 2, 1)).max(axis=(1, 2)) > 1e-8 * largest
    if uneven.any():
        raise ValueError(f"{call} must be symmetric, and is not{at(uneven.argmax())}")
    try:
        np.linalg.cholesky(stack)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(stack)[:, 0]
        i = int(least.argmin())
        raise ValueError(f"{call} must be positive definite; its smallest eigenvalue{at(i)} is {least[i]:g}") from None
