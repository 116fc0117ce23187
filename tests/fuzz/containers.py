"""Containers: one table as NumPy of any kind, sparse in any format and state, data frames, tensors and others."""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from .values import choose

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
    "longdouble", "complex64", "complex128", ">f8", ">f4", ">i4", "<U8", "S8", "datetime64[s]", "timedelta64[D]",
    "structured",
)  # fmt: skip
LAYOUTS = (
    "read_only", "memory_map", "fortran", "strided", "negative_strides", "broadcast", "matrix", "transposed",
    "subclass",
)  # fmt: skip
PYTHON = (
    "list", "tuple", "ragged", "list_of_text", "list_with_none", "object", "object_mixed", "object_big_integers",
    "one_dimension", "three_dimensions", "zero_dimensions", "none", "text", "dictionary", "generator", "set",
    "masked", "masked_some", "array_interface", "pair",
)  # fmt: skip
FRAMES = (
    "pandas", "pandas_nullable", "pandas_missing", "pandas_boolean", "pandas_category", "pandas_dates", "pandas_text",
    "pandas_duplicate_names", "pandas_mixed_names", "pandas_levels", "pandas_sparse", "pandas_arrow", "pandas_complex",
    "series", "polars", "polars_lazy", "polars_nulls", "polars_text", "polars_series", "arrow", "arrow_nulls",
    "arrow_dictionary",
)  # fmt: skip
TENSORS = (
    "torch", "torch_float32", "torch_bfloat16", "torch_int", "torch_bool", "torch_grad", "torch_sparse",
    "torch_complex", "torch_one_dimension", "cupy", "cupy_float32", "dask",
)  # fmt: skip
FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
DAMAGES = (
    "unsorted", "duplicates", "explicit_zeros", "negative_index", "large_index", "huge_index", "negative_pointer",
    "decreasing_pointers", "first_pointer", "last_pointer", "short_pointers", "short_data", "short_indices",
    "float_indices", "wide_indices", "wrong_shape", "complex_data", "integer_data", "object_data", "read_only",
    "false_flags", "nan_data",
)  # fmt: skip


def draw_container(rng: np.random.Generator) -> dict[str, Any]:
    """Draw the description of a container; a plain float64 array in every other case."""
    if (r := rng.random()) < 0.5:
        return {"kind": "array"}
    if r < 0.57:
        return {"kind": "dtype", "dtype": choose(rng, DTYPES)}
    if r < 0.62:
        return {"kind": choose(rng, LAYOUTS)}
    if r < 0.66:
        return {"kind": choose(rng, PYTHON)}
    if r < 0.74:
        return {"kind": choose(rng, FRAMES)}
    if r < 0.79:
        return {"kind": choose(rng, TENSORS)}
    container = {"kind": "sparse", "format": choose(rng, FORMATS), "array": bool(rng.random() < 0.5)}
    container["density"] = choose(rng, [0.0, 0.1, 0.5, 1.0])
    if rng.random() < 0.6:
        container["damage"] = choose(rng, DAMAGES)
    return container


def wrap(X: np.ndarray, container: dict[str, Any], seed: int = 0) -> Any:
    """Return the table in the container."""
    kind = container["kind"]
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        if kind == "sparse":
            return _sparse(X, container, rng)
        if kind == "dtype":
            return _with_dtype(X, container["dtype"])
        if kind.startswith(("pandas", "series")):
            return _pandas(X, kind)
        if kind.startswith(("polars", "arrow")) and kind != "array_interface":
            return _polars(X, kind) if kind.startswith("polars") else _arrow(X, kind)
        if kind.startswith("torch"):
            return _torch(X, kind)
        return _CONTAINERS[kind](X)


def _with_dtype(X: np.ndarray, dtype: str) -> Any:
    if dtype == "structured":
        return np.zeros(len(X), dtype=[("a", "f8"), ("b", "f8")])
    if dtype.startswith(("datetime", "timedelta")):
        return np.nan_to_num(X, posinf=0, neginf=0).clip(-1e9, 1e9).astype(np.int64).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        return np.nan_to_num(X, posinf=0, neginf=0).clip(-9e18, 9e18).astype(np.int64).astype(dtype)
    return X.astype(dtype)


def _memory_map(X: np.ndarray) -> Any:
    if not X.size:
        return X
    file = tempfile.TemporaryFile()  # noqa: SIM115 (removed when the map is)
    mapped = np.memmap(file, dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    return mapped


def _read_only(X: np.ndarray) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


class _Subclass(np.ndarray):
    """A subclass of arrays that adds nothing."""


class _Interface:
    """An object that NumPy can convert and that has no other array methods."""

    def __init__(self, X: np.ndarray):
        self._X = X

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._X, dtype=dtype)


def _objects(X: np.ndarray, entry: Any) -> Any:
    X = X.astype(object)
    if X.size:
        X[-1, -1] = entry
    return X


def _spaced(X: np.ndarray) -> Any:
    wide = np.zeros((2 * X.shape[0], 2 * X.shape[1]))
    wide[::2, ::2] = X
    return wide[::2, ::2]


def _cupy(X: np.ndarray) -> Any:
    from support.fake_cupy import ndarray

    if "cupy" not in sys.modules:
        with suppress(ImportError):
            import anndata  # noqa: F401 (it must not see the stand-in, which has no sparse matrices)
        module: Any = ModuleType("cupy")
        module.ndarray, module.asarray = ndarray, ndarray
        module.from_dlpack = lambda x: ndarray(np.from_dlpack(x))
        sys.modules["cupy"] = module
    return ndarray(X)


def _dask(X: np.ndarray) -> Any:
    import dask.array

    return dask.array.from_array(X, chunks=(max(1, len(X) // 2), max(1, X.shape[1])))


_CONTAINERS = {
    "array": lambda X: X,
    "read_only": _read_only,
    "memory_map": _memory_map,
    "fortran": np.asfortranarray,
    "strided": _spaced,
    "negative_strides": lambda X: X[::-1, ::-1],
    "broadcast": lambda X: np.broadcast_to(X[:1], X.shape),
    "matrix": lambda X: X.view(np.matrix),
    "transposed": lambda X: np.ascontiguousarray(X.T).T,
    "subclass": lambda X: X.view(_Subclass),
    "list": lambda X: X.tolist(),
    "tuple": lambda X: tuple(map(tuple, X.tolist())),
    "ragged": lambda X: [row[: max(1, i % 3)] for i, row in enumerate(X.tolist())],
    "list_of_text": lambda X: [[str(x) for x in row] for row in X.tolist()],
    "list_with_none": lambda X: [[None, *row[1:]] for row in X.tolist()],
    "object": lambda X: X.astype(object),
    "object_mixed": lambda X: _objects(X, "a"),
    "object_big_integers": lambda X: _objects(X, 10**400),
    "one_dimension": lambda X: X.ravel(),
    "three_dimensions": lambda X: X[:, :, None],
    "zero_dimensions": lambda X: np.array(1.0),
    "none": lambda X: None,
    "text": lambda X: "X",
    "dictionary": lambda X: {"a": X},
    "generator": lambda X: (row for row in X),
    "set": lambda X: {1.0, 2.0},
    "masked": lambda X: np.ma.masked_array(X, mask=np.zeros(X.shape, bool)),
    "masked_some": lambda X: np.ma.masked_array(X, mask=np.median(X) < X if X.size else False),
    "array_interface": _Interface,
    "pair": lambda X: (X, X),
    "cupy": _cupy,
    "cupy_float32": lambda X: _cupy(X.astype(np.float32)),
    "dask": _dask,
}


def _pandas(X: np.ndarray, kind: str) -> Any:
    import pandas as pd

    names = [f"c{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names)
    if kind == "series":
        return pd.Series(X.ravel())
    if kind in ("pandas_nullable", "pandas_missing"):
        frame = frame.astype("Float64")
        if kind == "pandas_missing" and X.size:
            frame.iloc[0, 0] = pd.NA
    elif kind == "pandas_boolean":
        frame = (frame > 0).astype("boolean")
    elif kind in ("pandas_category", "pandas_dates", "pandas_text", "pandas_complex") and X.shape[1]:
        column = {"pandas_category": "category", "pandas_text": str, "pandas_complex": complex}.get(kind)
        frame["c0"] = frame["c0"].astype(column) if column else pd.Timestamp(0)
    elif kind == "pandas_duplicate_names":
        frame.columns = ["same"] * X.shape[1]
    elif kind == "pandas_mixed_names":
        frame.columns = [name if j % 2 else j for j, name in enumerate(names)]
    elif kind == "pandas_levels" and X.shape[1]:
        frame.columns = pd.MultiIndex.from_tuples([("a", name) for name in names])
    elif kind == "pandas_sparse":
        frame = frame.astype(pd.SparseDtype("float64", 0.0))
    elif kind == "pandas_arrow":
        frame = frame.convert_dtypes(dtype_backend="pyarrow")
    return frame


def _polars(X: np.ndarray, kind: str) -> Any:
    import polars

    columns: dict[str, Any] = {f"c{j}": X[:, j].tolist() for j in range(X.shape[1])}
    if kind == "polars_nulls" and X.size:
        columns["c0"][0] = None
    if kind == "polars_text" and X.size:
        columns["c0"] = [str(x) for x in columns["c0"]]
    if kind == "polars_series":
        return polars.Series("c", X.ravel())
    frame = polars.DataFrame(columns)
    return frame.lazy() if kind == "polars_lazy" else frame


def _arrow(X: np.ndarray, kind: str) -> Any:
    import pyarrow

    columns: dict[str, Any] = {f"c{j}": pyarrow.array(X[:, j]) for j in range(X.shape[1])}
    if kind == "arrow_nulls" and X.size:
        columns["c0"] = pyarrow.array([None, *X[1:, 0].tolist()])
    if kind == "arrow_dictionary" and X.size:
        columns["c0"] = pyarrow.array([str(x) for x in X[:, 0]]).dictionary_encode()
    return pyarrow.table(columns)


def _torch(X: np.ndarray, kind: str) -> Any:
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(X).copy())
    changes = {
        "torch_float32": lambda: tensor.float(),
        "torch_bfloat16": lambda: tensor.bfloat16(),
        "torch_int": lambda: tensor.nan_to_num(0, 0, 0).clamp(-1e9, 1e9).to(torch.int64),
        "torch_bool": lambda: tensor > 0,
        "torch_grad": lambda: tensor.requires_grad_(),
        "torch_sparse": lambda: tensor.to_sparse(),
        "torch_complex": lambda: tensor.to(torch.complex64),
        "torch_one_dimension": lambda: tensor.reshape(-1),
    }
    return changes.get(kind, lambda: tensor)()


def _sparse(X: np.ndarray, container: dict[str, Any], rng: Any) -> Any:
    """Return a sparse matrix or array in a format, with a damage if the container has one."""
    X = np.where(rng.random(X.shape) < container["density"], X, 0.0)
    of_format = getattr(sparse, f"{container['format']}_{'array' if container['array'] else 'matrix'}")
    try:
        A = of_format(X)
    except (ValueError, NotImplementedError):  # no such format without rows or columns
        return sparse.csr_matrix(X)
    return damaged(A, container["damage"], rng) if container.get("damage") else A


def damaged(A: Any, damage: str, rng: Any) -> Any:
    """Return the sparse matrix with its arrays changed; formats without such arrays are returned unchanged."""
    if damage in ("complex_data", "integer_data"):
        return A.astype({"complex_data": np.complex128, "integer_data": np.int64}[damage])
    if getattr(A, "data", None) is not None and A.format not in ("lil", "dok"):
        if damage == "nan_data" and A.data.size:
            A.data.flat[0] = np.nan
        elif damage == "object_data":
            A.data = A.data.astype(object)
        elif damage == "explicit_zeros":
            A.data[...] = 0.0
        elif damage == "short_data":
            A.data = A.data[:-1]
    if A.format == "coo":
        return _damaged_coo(A, damage)
    if A.format in ("csr", "csc", "bsr"):
        _damage_compressed(A, damage, rng)
    return A


def _damaged_coo(A: Any, damage: str) -> Any:
    if damage == "wrong_shape":
        A.resize((A.shape[0] + 1, max(1, A.shape[1] - 1)))
    if not A.nnz:
        return A
    row, col = (np.array(index) for index in (A.row, A.col))
    if damage == "duplicates":
        return type(A)((np.tile(A.data, 2), (np.tile(row, 2), np.tile(col, 2))), shape=A.shape)
    if damage in ("negative_index", "large_index", "huge_index"):
        col[-1] = {"negative_index": -1, "large_index": A.shape[1], "huge_index": 2**31 - 1}[damage]
        A.coords = (row, col)
    elif damage == "negative_pointer":
        row[0] = -5
        A.coords = (row, col)
    elif damage == "float_indices":
        A.coords = (row.astype(float), col.astype(float))
    elif damage == "short_indices":
        A.coords = (row[:-1], col)
    return A


def _damage_compressed(A: Any, damage: str, rng: Any) -> None:
    """Change the arrays of CSR, CSC or BSR in place."""
    indices, indptr = A.indices, A.indptr
    if damage == "unsorted":
        for start, end in pairwise(indptr.tolist()):
            indices[start:end] = indices[start:end][::-1]
        A.has_sorted_indices = False
    elif damage == "duplicates" and len(indices) > 1:
        indices[:] = indices[0]
        A.has_sorted_indices = A.has_canonical_format = False
    elif damage in ("negative_index", "large_index", "huge_index") and len(indices):
        at = rng.integers(len(indices))
        indices[at] = {"negative_index": -1, "large_index": max(A.shape), "huge_index": 2**31 - 1}[damage]
    elif damage in ("negative_pointer", "first_pointer", "last_pointer", "decreasing_pointers"):
        at, value = {
            "negative_pointer": (len(indptr) // 2, -3),
            "first_pointer": (0, 2),
            "last_pointer": (-1, len(indices) + 1000),
            "decreasing_pointers": (len(indptr) // 2, len(indices) + 5),
        }[damage]
        indptr[at] = value
    elif damage == "short_pointers":
        A.indptr = indptr[:-2]
    elif damage == "short_indices":
        A.indices = indices[:-1]
    elif damage == "float_indices":
        A.indices, A.indptr = indices.astype(float), indptr.astype(float)
    elif damage == "wide_indices":
        A.indices, A.indptr = indices.astype(np.int64), indptr.astype(np.int64)
    elif damage == "read_only":
        for array in (A.data, indices, indptr):
            array.flags.writeable = False
    elif damage == "wrong_shape":
        A._shape = (A.shape[0] + 3, max(1, A.shape[1] - 1))
    elif damage == "false_flags":
        indices[:] = indices[::-1].copy()
        A.has_sorted_indices = A.has_canonical_format = True
