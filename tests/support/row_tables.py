"""One table of numbers in every form that is read in blocks of rows."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

KEYS = {
    "Zarr group": "vectors", "list column": "v", "fixed-size list column": "v", "H5AD obsm": "X_pca",
    "AnnData obsm": "X_pca",
}  # fmt: skip
FORMS = (
    "array", "list of lists", "data frame", "sparse matrix", "NPY", "Zarr", "Zarr object", "Zarr group",
    "Zarr group of one array", "Parquet file", "Parquet folder", "list column", "fixed-size list column", "H5AD dense",
    "H5AD CSR", "H5AD obsm", "AnnData", "AnnData obsm", "AnnData backed", "AnnData in Zarr", "AnnData CSR in Zarr",
    "HDF5 data set", "Dask", "Dask sparse chunks", "user object",
)  # fmt: skip


class OwnSource:
    """A source of rows written by a user."""

    name = "my table"

    def __init__(self, X: np.ndarray):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def read(self, start: int, stop: int) -> np.ndarray:
        return self.X[start:stop].copy()


def write_zarr(path: Path, X: np.ndarray, chunk: int = 70, shard: int = 210) -> Path:
    """Write an array of version 3 with shards, or of version 2 where zarr knows no other."""
    import zarr

    width = X.shape[1]
    if hasattr(zarr, "create_array"):
        array = zarr.create_array(str(path), shape=X.shape, chunks=(chunk, width), shards=(shard, width), dtype=X.dtype)
    else:
        array = zarr.open_array(str(path), mode="w", shape=X.shape, chunks=(chunk, width), dtype=X.dtype)
    array[:] = X
    return path


def write_parquet(path: Path, X: np.ndarray, group: int = 150) -> Path:
    """Write numeric columns, and one of text, in row groups."""
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    parquet.write_table(pa.table(columns | {"kind": ["a"] * len(X)}), path, row_group_size=group)
    return path


def write_lists(path: Path, rows: list[Any], kind: Any, group: int = 150) -> Path:
    """Write a column of lists."""
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"v": pa.array(rows, kind), "id": np.arange(len(rows))}), path, row_group_size=group)
    return path


def annotated(X: Any) -> Any:
    """Return AnnData with X also in obsm."""
    import anndata

    dense = X.toarray() if sparse.issparse(X) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anndata.AnnData(X, obsm={"X_pca": dense, "X_other": dense[:, :1]})


def make_table(form: str, X: np.ndarray, folder: Path) -> tuple[Any, str | None]:
    """Return the table in a form, and its key."""
    kind, _, rest = form.partition(" ")
    maker = {"Zarr": _zarr, "H5AD": _h5ad, "AnnData": _anndata, "Dask": _dask}.get(kind)
    if maker is not None:
        return maker(rest, X, folder), KEYS.get(form)
    return _other(form, X, folder), KEYS.get(form)


def _zarr(rest: str, X: np.ndarray, folder: Path) -> Any:
    import zarr

    if rest in ("", "object"):
        path = write_zarr(folder / "t.zarr", X)
        return zarr.open(str(path), mode="r") if rest else path
    zarr.open_group(str(folder / "g.zarr"), mode="w")
    write_zarr(folder / "g.zarr" / "vectors", X)
    if rest == "group":
        write_zarr(folder / "g.zarr" / "other", X[:3, :2])
    return folder / "g.zarr"


def _h5ad(rest: str, X: np.ndarray, folder: Path) -> Any:
    path = folder / "t.h5ad"
    annotated(sparse.csr_matrix(X) if rest == "CSR" else X).write_h5ad(path)
    return path


def _anndata(rest: str, X: np.ndarray, folder: Path) -> Any:
    if rest == "backed":
        import anndata

        return anndata.read_h5ad(_h5ad("CSR", X, folder), backed="r")
    made = annotated(sparse.csr_matrix(X) if rest.startswith("CSR") else X)
    if not rest.endswith("in Zarr"):
        return made
    with warnings.catch_warnings():  # about the Zarr version that anndata writes
        warnings.simplefilter("ignore")
        made.write_zarr(folder / "a.zarr")
    return folder / "a.zarr"


def _dask(rest: str, X: np.ndarray, folder: Path) -> Any:
    from dask import array

    values = array.from_array(X, chunks=(90, 3))
    return values.rechunk((90, -1)).map_blocks(sparse.csr_matrix) if rest else values


def _other(form: str, X: np.ndarray, folder: Path) -> Any:
    if form == "NPY":
        np.save(folder / "t.npy", X)
        return str(folder / "t.npy")
    if form == "Parquet file":
        return write_parquet(folder / "t.parquet", X)
    if form == "Parquet folder":
        (folder / "parts").mkdir()
        for f, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
            write_parquet(folder / "parts" / f"part-{f}.parquet", X[rows])
        return folder / "parts"
    if "list column" in form:
        import pyarrow as pa

        item = pa.from_numpy_dtype(X.dtype)
        kind = pa.list_(item, X.shape[1]) if form.startswith("fixed") else pa.list_(item)
        return write_lists(folder / "t.parquet", list(X), kind)
    if form == "HDF5 data set":
        import h5py

        return h5py.File(folder / "t.h5", "w").create_dataset("t", data=X, chunks=(64, 2))
    if form == "data frame":
        import pandas as pd

        return pd.DataFrame(X)
    made = {"array": np.asarray, "list of lists": np.ndarray.tolist, "sparse matrix": sparse.csc_matrix}
    return made.get(form, OwnSource)(X)
