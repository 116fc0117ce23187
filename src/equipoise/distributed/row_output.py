"""Write a map in blocks of rows: each rank writes its own part of a Zarr array or of a folder of Parquet files.

The rows are in the order of the input. All files are written under a temporary name, `.NAME.equipoise-partial`, and
rank 0 renames the file or folder when every rank has finished. If a rank fails before, the old map stays. A folder
cannot be replaced in one step: for a moment, the old one is called `.NAME.equipoise-old`, and if the process ends just
then, the next call restores it.
"""

from __future__ import annotations

import os
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np

from .._optional import import_optional
from .._types import Array
from ..data.write import map_names
from .group import Group
from .partition import Partition

FORMATS = (".zarr", ".parquet", ".npy")


def check_output(path: str | Path) -> Path:
    """Return the path of a map to be written; raise ValueError for an unknown format or a missing folder."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"unknown format {path.suffix!r} of {path}; choose from {', '.join(FORMATS)}")
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist; create it or choose another")
    if path.suffix.lower() == ".zarr":
        import_optional("zarr", "anndata", "writing Zarr")
    return path


def input_rows(group: Group, partition: Partition, x: Array, ids: Array) -> Array:
    """Return the rows of the input, those of `partition.own`, from rows x (own, ...) of any input rows `ids`."""
    owners = partition.owner(ids)
    order = np.argsort(owners, kind="stable")
    cuts = np.searchsorted(owners[order], np.arange(group.size + 1))
    parts = [order[a:b] for a, b in pairwise(cuts)]
    rows = np.concatenate(group.all_to_all([np.ascontiguousarray(ids[part]) for part in parts]))
    values = np.concatenate(group.all_to_all([np.ascontiguousarray(x[part]) for part in parts]))
    result = np.empty((partition.count, *x.shape[1:]), x.dtype)
    result[rows - partition.own.start] = values
    return result


def write_rows(group: Group, path: str | Path, Y: Array, ids: Array, n: int) -> None:
    """Write a map of n points, of which this rank has the rows Y (own, d) with the input rows `ids`.

    Parameters
    ----------
    group : Group
    path : str or Path
        A Zarr array (`.zarr`), a folder of Parquet files, one per rank (`.parquet`), or an NPY file (`.npy`).
    Y : array of shape (own, d)
    ids : array of int64, shape (own,)
    n : int
    """
    path = check_output(path)
    partition = Partition.of(group, n)
    with group.stage("writing"):
        rows = input_rows(group, partition, Y, ids)
        partial = path.with_name(f".{path.name}.equipoise-partial")
        if group.rank == 0:
            _remove(partial)
            _finish_replacing(path)
        group.barrier()
        {".zarr": _write_zarr, ".parquet": _write_parquet, ".npy": _write_npy}[path.suffix.lower()](
            group, partition, partial, rows
        )
        group.barrier()
        if group.rank == 0:
            _replace(partial, path)
        group.barrier()


def _replace(partial: Path, path: Path) -> None:
    """Rename `partial` to `path`, which may exist."""
    if partial.is_dir() or (path.is_dir() and not path.is_symlink()):
        if os.path.lexists(path):
            os.replace(path, _aside(path))
        try:
            os.replace(partial, path)
        finally:
            _finish_replacing(path)
    else:
        os.replace(partial, path)


def _finish_replacing(path: Path) -> None:
    """Restore the old map if the second renaming of `_replace` was not done, and remove it otherwise."""
    if os.path.lexists(_aside(path)) and not os.path.lexists(path):
        os.replace(_aside(path), path)
    _remove(_aside(path))


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.equipoise-old")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write_zarr(group: Group, partition: Partition, path: Path, rows: Array) -> None:
    zarr = import_optional("zarr", "anndata", "writing Zarr")
    if group.rank == 0:
        shape, chunks = (partition.n, rows.shape[1]), (partition.block, rows.shape[1])
        zarr.open(str(path), mode="w", shape=shape, chunks=chunks, dtype=rows.dtype)
    group.barrier()
    if len(rows):
        zarr.open(str(path), mode="r+")[partition.own] = rows  # ranks are cut at chunks


def _write_parquet(group: Group, partition: Partition, path: Path, rows: Array) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    if group.rank == 0:
        path.mkdir()
    group.barrier()
    own = partition.own
    columns = {"row": np.arange(own.start, own.stop)}
    columns |= {name: np.ascontiguousarray(rows[:, c]) for c, name in enumerate(map_names(rows))}
    parquet.write_table(pa.table(columns), path / f"part-{group.rank:05d}-of-{group.size:05d}.parquet")


def _write_npy(group: Group, partition: Partition, path: Path, rows: Array) -> None:
    if group.rank == 0:
        np.lib.format.open_memmap(path, "w+", rows.dtype, (partition.n, rows.shape[1])).flush()
    group.barrier()
    if len(rows):
        part = np.lib.format.open_memmap(path, "r+")
        part[partition.own] = rows
        part.flush()
