"""Arrays as integers whose sum, maximum or minimum does not depend on the order of the ranks."""

from __future__ import annotations

import numpy as np

from .._types import Array

OPS = ("sum", "max", "min")
_WIDE = {1: np.int64, 2: np.int64, 4: np.int32, 8: np.int64}  # the types that gloo and NCCL both reduce
_SIGNED = {2: np.int16, 4: np.int32, 8: np.int64}


def to_integers(array: Array, op: str) -> Array:
    """Return a new array of int32 or int64 that has the order (max, min) or the sums of `array`.

    A float becomes the integer with its bits, the lower ones inverted where it is negative, which has the same order.
    Raises a TypeError for sums of floats and of booleans, and for dtypes without an order.
    """
    if op not in OPS:
        raise ValueError(f"unknown op {op!r}; choose from {', '.join(OPS)}")
    kind, size = array.dtype.kind, array.dtype.itemsize
    if op == "sum" and kind == "f":
        raise TypeError(
            f"all_reduce does not sum {array.dtype}: the result would depend on the number of ranks; use blocked_sum"
        )
    if kind not in ("iu" if op == "sum" else "biuf") or size > 8:
        raise TypeError(
            f'all_reduce with op="{op}" is not defined for {array.dtype}; use an integer type, such as int64'
        )
    array = array.astype(array.dtype.newbyteorder("="))
    if kind == "f":
        array[np.isnan(array)] = np.nan if op == "max" else -np.nan  # one NaN, beyond the infinities
        return _flip_negative(array.view(_SIGNED[size])).astype(_WIDE[size])
    if kind == "u" and size == 8:
        bits = array.view(np.int64)
        return bits if op == "sum" else bits ^ np.int64(np.iinfo(np.int64).min)
    return array.astype(np.int64 if kind == "u" else _WIDE[size])


def from_integers(keys: Array, dtype: np.dtype[np.generic], op: str) -> Array:
    """Return the array of `dtype` whose integers, see `to_integers`, are `keys`."""
    kind, size = dtype.kind, dtype.itemsize
    if kind == "f":
        result = _flip_negative(keys.astype(_SIGNED[size])).view(dtype.newbyteorder("="))
    elif kind == "u" and size == 8:
        result = (keys if op == "sum" else keys ^ np.int64(np.iinfo(np.int64).min)).view(np.uint64)
    else:
        result = keys
    return result.astype(dtype)


def _flip_negative(bits: Array) -> Array:
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
