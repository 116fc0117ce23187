"""One namespace for the arrays of NumPy, PyTorch and CuPy: the array API standard and a few additions.

`xp = array_namespace(x)` has the functions of the standard (https://data-apis.org/array-api) for the library of x.
This module adds sums in a fixed order, transfers between devices, the Morton order of points and a few functions that
the standard lacks. It also checks tables, and numbers and seeds that are passed as parameters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state as random_state_of

from .. import _core
from .._plural import plural
from .._types import Array, Matrix

LARGEST = 1e300  # sums, differences and products by small numbers stay below the largest float64, 1.8e308
LARGEST_SEED = 2**32 - 1  # of NumPy's RandomState
MORTON_BITS = {1: 20, 2: 12, 3: 8}  # bits per axis, by the number of axes
_NAMESPACES: dict[type, Any] = {}  # by type: array_api_compat takes 3 µs per look-up, and a step needs several


def array_namespace(x: Any) -> Any:
    """Return the array API namespace of an array or a tensor; NumPy's for numbers, None and SciPy matrices."""
    xp = _NAMESPACES.get(type(x))
    return _find_namespace(x) if xp is None else xp


def _find_namespace(x: Any) -> Any:
    import array_api_compat  # imported on first use: it takes 15 ms

    kind, x = type(x), x.data if getattr(x, "is_device_csr", False) else x
    try:
        xp = array_api_compat.array_namespace(x)
    except TypeError:  # not an array
        xp = array_api_compat.array_namespace(np.empty(0))
    _NAMESPACES[kind] = xp
    return xp


def is_tensor(x: Any) -> bool:
    """Return whether x is a PyTorch tensor; PyTorch is not imported."""
    return hasattr(x, "detach") and hasattr(x, "element_size")


def is_cupy(x: Any) -> bool:
    """Return whether x is a CuPy array; CuPy is not imported."""
    return type(x).__module__.partition(".")[0] == "cupy" and hasattr(x, "__dlpack__")


def is_device_array(x: Any) -> bool:
    """Return whether x is a PyTorch tensor or a CuPy array."""
    return is_tensor(x) or is_cupy(x)


def main_array(X: Any) -> Any:
    """Return the array that determines the library and the device of results.

    This is the second array if X is a pair (indices, distances) on a device, otherwise X.
    """
    is_pair = isinstance(X, tuple | list) and len(X) == 2 and is_device_array(X[1]) and X[1].ndim == 2
    return X[1] if is_pair else X


def is_numpy(x: Any) -> bool:
    """Return whether NumPy's functions apply to x, that is, x is a NumPy array, a number, None or a SciPy matrix."""
    return array_namespace(x) is array_namespace(None)


def device_of(x: Any) -> Any:
    """Return the device of an array, as its library names it."""
    import array_api_compat

    return array_api_compat.device(x)


# Transfers between libraries and devices


def to_numpy(x: Any) -> Array:
    """Return x as a NumPy array in host memory."""
    if is_tensor(x):
        return np.asarray(x.detach().cpu())
    return np.asarray(x.get() if is_cupy(x) else x)


def from_cupy(x: Any) -> Any:
    """Return a CuPy array as a PyTorch tensor that shares its memory; a NumPy array if PyTorch is not installed."""
    try:
        from torch.utils.dlpack import from_dlpack
    except ImportError:
        return to_numpy(x)
    return from_dlpack(x)


def to_cupy(x: Any) -> Any:
    """Return a PyTorch tensor or a NumPy array as a CuPy array; a tensor on a GPU shares its memory with the result."""
    cupy = import_module("cupy")
    return cupy.from_dlpack(x.detach()) if is_tensor(x) and x.is_cuda else cupy.asarray(to_numpy(x))


def array_like(x: Any, values: Any) -> Any:
    """Return `values` as an array of the same library as x.

    Values that already belong to this library are returned unchanged, even from another device. Other values are copied
    to the device of x in the precision of x; if x is a NumPy array, they keep their own precision.
    """
    xp = array_namespace(x)
    if array_namespace(values) is xp:
        return values
    values = to_numpy(values)
    return values if is_numpy(x) else xp.asarray(values, dtype=x.dtype, device=device_of(x), copy=True)


def cast_like(x: Any, values: Any) -> Any:
    """Return `values` in the array library, on the device and with the precision of x.

    If x is a NumPy array, `values` keeps its own precision.
    """
    values = array_like(x, values)
    return values if is_numpy(x) else array_namespace(x).asarray(values, dtype=x.dtype, device=device_of(x))


def on_device_of(x: Any, values: Any) -> Any:
    """Return `values`, in their own precision, with the library and device of x; a NumPy array if x is None."""
    if is_numpy(x):
        return to_numpy(values)
    xp = array_namespace(x)
    if is_tensor(x):
        return xp.as_tensor(values, device=x.device)  # does not copy a tensor that is already on this device
    return xp.asarray(values, device=device_of(x))


# Sums in a fixed order, so that every run gives the same last digits. NumPy sums rows faster than columns. CUDA tensors
# are summed by Triton.


def total(x: Any) -> Any:
    """Return the sum of all entries: for a NumPy array a float, else a float64 scalar on the device of x."""
    if is_numpy(x):
        plain = isinstance(x, np.ndarray) and x.dtype == np.float64 and x.flags.c_contiguous and x.flags.aligned
        return _core.total(x.reshape(-1), 1) if plain else float(x.sum())
    if is_tensor(x) and x.is_cuda and x.numel():
        from . import sums_triton

        return sums_triton.total(x)
    xp = array_namespace(x)
    return xp.sum(x, dtype=xp.float64)


def sum_squares(x: Any) -> float:
    """Return the sum of the squares of all entries of a matrix."""
    return float(np.einsum("ij,ij->", x, x)) if is_numpy(x) else float(array_namespace(x).sum(x * x))


def column_squares(x: Any) -> Array:
    """Return the sums of squares of the columns of x (n, d), as a NumPy array (d,)."""
    return np.einsum("ij,ij->j", x, x) if is_numpy(x) else to_numpy(array_namespace(x).sum(x * x, axis=0))


def centered(U: Any) -> Any:
    """Return U (n, d) minus its mean row, which is computed in float64."""
    if is_numpy(U):
        if U.dtype == np.float32 and U.size:
            U = np.require(U, requirements=["C", "A"])
            _core.center(U, out := np.empty_like(U), 1)
            return out
        center = np.ascontiguousarray(U.T).mean(axis=1, dtype=np.float64)
        return U - center.astype(U.dtype)
    if is_tensor(U) and U.is_cuda and U.shape[1] <= 3:
        from . import sums_triton

        return sums_triton.centered(U)
    xp = array_namespace(U)
    return U - xp.astype(xp.sum(U, axis=0, dtype=xp.float64) / U.shape[0], U.dtype)


def spread(U: Any) -> float:
    """Return the largest of the standard deviations of the columns of U (n, d)."""
    if is_numpy(U):
        return float(np.ascontiguousarray(U.T).std(axis=1).max())
    xp = array_namespace(U)
    return float(xp.max(xp.std(U, axis=0, correction=0.0)))


# Functions that the standard lacks, or that are slow in array_api_compat


def at_least(x: Any, bound: float) -> Any:
    """Return max(x, bound), elementwise.

    This avoids `xp.maximum` of array_api_compat, which would copy the bound to the GPU and wait for the transfer.
    """
    bound = bound if is_numpy(x) else float(bound)
    return array_namespace(x).where(x < bound, bound, x)


def at_most(x: Any, bound: float) -> Any:
    """Return min(x, bound), elementwise; if x is a number, so is the result."""
    return min(x, bound) if isinstance(x, int | float) else array_namespace(x).where(x > bound, bound, x)


def to_float64(x: Any) -> Any:
    """Return x in float64."""
    xp = array_namespace(x)
    return xp.astype(x, xp.float64)


def times_matrix(x: Any, M: Array) -> Any:
    """Return the product x M with a small matrix M, computed in float64 and rounded to the precision of x."""
    xp = array_namespace(x)
    return xp.astype(xp.astype(x, xp.float64) @ on_device_of(x, M), x.dtype)


def normal_like(x: Any, rng: np.random.RandomState) -> Any:
    """Return standard normal numbers in the shape of x, drawn by `rng`.

    If x is a tensor, `rng` only seeds a generator on the device of x, and this generator draws the numbers.
    """
    if not is_tensor(x):
        return array_like(x, rng.standard_normal(x.shape))
    import torch

    generator = torch.Generator(device=x.device).manual_seed(int(rng.randint(2**31 - 1)))
    return torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)


def morton_order(U: Any) -> Any:
    """Return the order (n,) of the points U (n, d) along a Morton curve through their bounding box.

    Points that are close in this order are mostly close in space. Only the first three axes are used. The result has
    the array library and the device of U.
    """
    xp = array_namespace(U)
    axes = [xp.astype(U[:, c], xp.float64) for c in range(min(3, U.shape[1]))]  # each contiguous
    axes = [axis - xp.min(axis) for axis in axes]
    d, bits = len(axes), MORTON_BITS[len(axes)]
    extent = xp.max(xp.stack([xp.max(axis) for axis in axes]))
    extent = xp.where(extent > 0, extent, 1.0)
    cells = [xp.astype(axis / extent * (2**bits - 1), xp.int64) for axis in axes]
    code = xp.zeros_like(cells[0])
    for bit in range(bits):
        for c, cell in enumerate(cells):
            code |= ((cell >> bit) & 1) << (bit * d + c)
    return xp.argsort(code, stable=True)


def unpermute(U: Any, order: Array | None) -> Any:
    """Return V with V[order] = U; U itself if `order` is None."""
    if order is None:
        return U
    V = array_namespace(U).empty_like(U)
    V[order] = U
    return V


# Numbers and seeds passed as parameters


def is_integer(value: Any) -> bool:
    """Return whether a parameter is an integer of Python or NumPy; a bool does not count as one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Return whether a parameter is a real number that float64 can represent: not NaN, inf or 10**400."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    value = value.item() if isinstance(value, np.float16 | np.float32 | np.integer) else value
    return bool(abs(value) <= sys.float_info.max)


def require(value: Any, name: str, condition: str, is_valid: Callable[[Any], bool]) -> Any:
    """Return the parameter `value`; raise ValueError unless it is a finite number and `is_valid(value)` is true.

    The message is "`name` must be a finite number `condition`, got …". A `numpy.longdouble` is returned as a float, so
    that arrays combined with it keep their precision.
    """
    if not (is_finite(value) and is_valid(value)):
        raise ValueError(f"{name} must be a finite number {condition}, got {value!r}")
    return float(value) if isinstance(value, np.longdouble) else value


def is_positive(value: Any) -> bool:
    """Return whether a parameter is a positive finite number."""
    return is_finite(value) and bool(value > 0)


def is_auto(value: Any) -> bool:
    """Return whether a parameter is the string "auto"; always False for an array, without an elementwise comparison."""
    return isinstance(value, str) and value == "auto"


def require_size(X: Any) -> None:
    """Raise ValueError if X is a lazy table with an unknown number of rows."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    lazy = not hasattr(X, "shape") and hasattr(X, "collect")
    if lazy or not all(isinstance(length, Integral) for length in shape):
        raise ValueError(
            f"X ({type(X).__name__}) has an unknown number of rows; compute X first: with X.collect() in polars, or"
            " with X.compute_chunk_sizes() or X.to_dask_array(lengths=True) in dask"
        )


def check_random_state(seed: Any) -> np.random.RandomState:
    """Return `seed` if it is a RandomState, a new RandomState if it is an integer, NumPy's global one if it is None."""
    if isinstance(seed, Integral) and not 0 <= int(seed) <= LARGEST_SEED:
        raise ValueError(f"random_state must be between 0 and {LARGEST_SEED}, got {seed}")
    return random_state_of(seed)


def check_finite(X: Matrix, name: str, columns: Any = None, power: int = 1) -> None:
    """Raise ValueError if X contains NaN, inf or a value whose power would overflow.

    The message names the row and the column of the first such value.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, m)
    name : str
        Name of X in the message.
    columns : sequence of str, default=None
        Names of the columns.
    power : int, default=1
        The highest power of the values that is computed: 2 for distances, 4 for products of Gram matrices. Magnitudes
        up to 1e300^(1/power) are accepted.
    """
    values = X.data if sparse.issparse(X) else X
    largest = LARGEST ** (1 / power)
    if not values.size or (float(values.max()) <= largest and float(values.min()) >= -largest):  # not so for NaN
        return
    bad = np.flatnonzero(~np.isfinite(values.ravel()))
    if bad.size:
        raise not_finite(name, X, bad, columns)
    far = np.flatnonzero(np.abs(values.ravel()) > largest)
    i, j = entry_place(X, far[0])
    raise ValueError(
        f"{name} contains {values.flat[far[0]]:g} at row {i}, {column_label(j, columns)}{_more(far)}; values beyond"
        f" {largest:.0e} would overflow: rescale the column, or divide all values by a constant"
    )


def entry_place(A: Matrix, t: int) -> tuple[int, int]:
    """Return the row and the column of the t-th stored entry of CSR A, or of the t-th entry of a dense A."""
    if sparse.issparse(A):
        return int(np.searchsorted(A.indptr, t, side="right")) - 1, int(A.indices[t])
    return int(t // A.shape[1]), int(t % A.shape[1])


def not_finite(name: str, X: Matrix, bad: Array, columns: Any = None) -> ValueError:
    """Return the error for NaN or infinite entries of X; `bad` contains their indices, counted as in `entry_place`."""
    i, j = entry_place(X, bad[0])
    value = (X.data if sparse.issparse(X) else X.ravel())[bad[0]]
    kind = "NaN" if np.isnan(value) else f"{value:g}"
    overflowed = "rescale X" if name.startswith("X in ") else "all values must be finite"
    remedy = "drop such rows, or replace the values" if name == "X" else overflowed
    where = f"row {i}, {column_label(j, columns)}{_more(bad)}"
    if name == "X" and np.isnan(value) and not sparse.issparse(X):
        gaps = np.isnan(X)
        rows, wide = int(gaps.any(axis=1).sum()), int(gaps.any(axis=0).sum())
        where += f" ({plural(rows, 'row')} and {plural(wide, 'column')} have missing values)" * (len(bad) > 1)
        remedy += ', or use metric="nan_euclidean", which compares rows in the columns where both have a value'
    return ValueError(f"{name} contains {kind} at {where}; {remedy}")


def _more(bad: Array) -> str:
    return f", and {plural(len(bad) - 1, 'more such entry', 'more such entries')}" if len(bad) > 1 else ""


def column_label(j: int, columns: Any = None) -> str:
    """Return how messages refer to a column: by its index, and by its name if it has one."""
    return f"column {j}" if columns is None else f"column {j} ({str(columns[j])!r})"
