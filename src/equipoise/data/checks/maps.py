"""Check maps (embeddings) before they are measured, plotted or used as initial maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._types import Array
from ...arrays.namespace import check_finite, to_numpy
from .table_input import as_array


def check_map(Y: Any, name: str = "Y", shape: tuple[int, int] | None = None, *, keep_float32: bool = False) -> Array:
    """Return a map as a floating-point array (n, d).

    Parameters
    ----------
    Y : array-like or tensor of shape (n, d), or fitted method
        For a fitted method, its `embedding_` is used.
    name : str, default="Y"
        Name of the argument, for error messages.
    shape : tuple of int, default=None
        Required shape (n_samples, n_components); by default any shape (n, d).
    keep_float32 : bool, default=False
        Keep the dtype of a float32 map. By default every map is converted to float64.

    Raises
    ------
    ValueError
        If Y is not numeric, has the wrong shape or no points, or contains NaN or inf.
    """
    try:
        Y = np.asarray(as_array(to_numpy(getattr(Y, "embedding_", Y))))
        Y = Y if keep_float32 and Y.dtype == np.float32 else Y.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a numeric map of shape (n, d): {error}") from None
    if shape is not None and Y.shape != shape:
        raise ValueError(f"{name} has shape {Y.shape}; expected (n_samples, n_components) = {shape}")
    if Y.ndim != 2 or 0 in Y.shape:
        hint = f"; for a map in one dimension use {name}[:, None]" if Y.ndim == 1 else ""
        raise ValueError(f"{name} must be a map of shape (n, d) with one row per point, got shape {Y.shape}{hint}")
    check_finite(Y, name, power=2)
    return Y
