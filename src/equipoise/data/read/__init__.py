"""Read data files; errors name the file, the line or row, and the column."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..dataset import Dataset
from .annotated import read_h5ad
from .arrow_files import read_feather, read_parquet
from .images import read_images
from .matrix_market import read_matrix_market
from .numpy_files import read_npy, read_npz
from .selection import Selection
from .text_lines import COMPRESSIONS, open_binary
from .text_table import read_text_table
from .zarr_store import is_zarr, read_zarr

__all__ = ["READERS", "read"]


def read(
    source: str | Path | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    id: str | None = None,
) -> Dataset:
    """Read a data set from a file or stream.

    Parameters
    ----------
    source : str, Path or binary file
        A file, whose suffix determines its format (see `READERS`); a folder of images or a Zarr store; "-" for CSV
        from standard input; or a binary stream of CSV.
    columns : sequence of str, default=None
        Columns to embed; None for all numeric columns except `label` and `id`.
    label : str, default=None
        Column with the class of each row.
    id : str, default=None
        Column with the name of each row.

    Returns
    -------
    dataset : Dataset
        `dataset.extra` contains the columns that are not selected. Exception: if `columns` selects some columns of X
        in an AnnData file, the others are dropped.

    Raises
    ------
    ValueError
        If the file cannot be read, or if a value to embed is not a finite number; then the message names the row or
        line, and the column.
    FileNotFoundError
        If there is no such file or folder.
    """
    if isinstance(columns, str):
        columns = (columns,)
    if columns is not None and not isinstance(columns, Sequence):
        raise TypeError(f"columns must be a list of names, or None for all numeric columns, got {columns!r}")
    for role, name in (("label", label), ("id", id)):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{role} must be the name of a column or None, got {name!r}")
    selection = Selection(None if columns is None else tuple(map(str, columns)), label, id)
    if selection.columns == ():
        raise ValueError("`columns` is empty; name the columns to embed, or use None for all numeric columns")
    if not isinstance(source, str | Path):
        return read_text_table(source, "stream", selection)
    if str(source) == "-":
        return read_text_table(sys.stdin.buffer, "stdin", selection)
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {str(path)!r}")
    if path.is_dir():
        return read_zarr(path, selection) if is_zarr(path) else read_images(path, selection)
    for suffix, reader in READERS.items():
        if path.name.lower().endswith(suffix):
            return reader(path, selection)
    raise ValueError(
        f"{path}: unknown suffix; choose from {', '.join(READERS)}, or pass a Zarr store or a folder of images"
    )


def _read_csv(path: Path, selection: Selection) -> Dataset:
    return _read_text(path, selection, None)


def _read_tsv(path: Path, selection: Selection) -> Dataset:
    return _read_text(path, selection, "\t")


def _read_text(path: Path, selection: Selection, delimiter: str | None) -> Dataset:
    size = 0 if path.suffix.lower() in COMPRESSIONS else path.stat().st_size
    with open_binary(path) as stream:
        return read_text_table(stream, str(path), selection, delimiter=delimiter, size=size)


READERS = {
    **{f".csv{suffix}": _read_csv for suffix in ("", *COMPRESSIONS)},
    **{f".tsv{suffix}": _read_tsv for suffix in ("", *COMPRESSIONS)},
    ".npy": read_npy,
    ".npz": read_npz,
    ".parquet": read_parquet,
    ".feather": read_feather,
    ".arrow": read_feather,
    ".mtx": read_matrix_market,
    ".mtx.gz": read_matrix_market,
    ".h5ad": read_h5ad,
}
