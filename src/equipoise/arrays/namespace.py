"""What losses and the loop do with arrays beyond arithmetic, for NumPy's and for PyTorch's, which is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array


def is_tensor(x: Any) -> bool:
    """Return whether x is a tensor of PyTorch."""
    return hasattr(x, "detach") and hasattr(x, "element_size")


def log(x: Any) -> Any:
    """Return the natural logarithm."""
    return x.log() if is_tensor(x) else np.log(x)


def exp(x: Any) -> Any:
    """Return e^x."""
    return x.exp() if is_tensor(x) else np.exp(x)


def log1p(x: Any) -> Any:
    """Return log(1 + x)."""
    return x.log1p() if is_tensor(x) else np.log1p(x)


def expm1(x: Any) -> Any:
    """Return e^x − 1."""
    return x.expm1() if is_tensor(x) else np.expm1(x)


def total(x: Any) -> Any:
    """Return the sum of all entries in float64: a float, or a tensor that waits on its device."""
    if not is_tensor(x):
        return float(x.sum())
    if x.is_cuda and x.numel():
        from . import sums_triton as sums

        return sums.total(x)
    import torch  # it is there: x is one of its own

    return x.sum(dtype=torch.float64)


def double(x: Any) -> Any:
    """Return x in float64."""
    return x.double() if is_tensor(x) else x.astype(np.float64)


def where(holds: Any, value: float, other: Any) -> Any:
    """Return `value` where a condition holds, else `other`."""
    return other.masked_fill(holds, value) if is_tensor(other) else np.where(holds, value, other)


def maximum(x: Any, least: float) -> Any:
    """Return x where it is above `least`, else `least`."""
    return x.clamp(min=least) if is_tensor(x) else np.maximum(x, least)


def full_like(x: Any, value: float) -> Any:
    """Return an array of the shape of x that holds one value."""
    return x.new_full(x.shape, value) if is_tensor(x) else np.full_like(x, value)


def like(x: Any, values: Array) -> Any:
    """Return values as an array of the kind and the precision of x, where x is."""
    return x.new_tensor(values) if is_tensor(x) else values


def placed(x: Any, values: Any) -> Any:
    """Return values, an array or a tensor, in their own precision as an array of the kind of x, where x is."""
    if not is_tensor(x):
        return host(values)
    import torch  # it is there: x is one of its own

    return torch.as_tensor(values, device=x.device)


def host(x: Any) -> Array:
    """Return x as an array of NumPy."""
    return np.asarray(x.detach().cpu()) if is_tensor(x) else np.asarray(x)


def moved(x: Any, values: Any) -> Any:
    """Return an array or a tensor as one of the kind of x, where x is: a tensor that is new has the precision of x."""
    return values if is_tensor(values) and is_tensor(x) else like(x, host(values))


def square_sum(x: Any) -> float:
    """Return the sum of the squares of all entries of a matrix."""
    return float(x.square().sum()) if is_tensor(x) else float(np.einsum("ij,ij->", x, x))


def beside(*columns: Any) -> Any:
    """Return vectors as the columns of a matrix."""
    first = columns[0]
    if not is_tensor(first):
        return np.column_stack(columns)
    result = first.new_empty((len(first), len(columns)))
    for c, column in enumerate(columns):
        result[:, c] = column
    return result


def turned(x: Any, M: Array) -> Any:
    """Return x M for a small matrix M, computed in float64, in the precision of x."""
    if is_tensor(x):
        return (x.double() @ placed(x, M)).to(x.dtype)
    return (x.astype(np.float64) @ M).astype(x.dtype)


def centered(U: Any) -> Any:
    """Return U (n, d) without its mean, which is taken in float64."""
    if is_tensor(U):
        if U.is_cuda and U.shape[1] <= 3:
            from . import sums_triton as sums

            return sums.centered(U)
        import torch  # it is there: U is one of its own

        return U - U.mean(dim=0, dtype=torch.float64).to(U.dtype)
    center = np.ascontiguousarray(U.T).mean(axis=1, dtype=np.float64)  # NumPy reduces rows faster than columns
    return U - center.astype(U.dtype)


def spread(U: Any) -> float:
    """Return the largest standard deviation along an axis of U (n, d)."""
    if is_tensor(U):
        return float(U.std(dim=0, correction=0).max())
    return float(np.ascontiguousarray(U.T).std(axis=1).max())


def put_back(U: Any, order: Array | None) -> Any:
    """Return V with V[order] = U; U itself if there is no order."""
    if order is None:
        return U
    V = U.clone() if is_tensor(U) else np.empty_like(U)
    V[order] = U
    return V
