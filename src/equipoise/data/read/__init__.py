"""Read data files; errors name the file, the line or row, and the column."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from ..._warn import warn
from ..dataset import Dataset
from .annotated import read_h5ad
from .arrow_files import read_feather, read_parquet
from .every_column import gather_columns
from .excel import read_excel
from .images import read_images
from .matrix_market import read_matrix_market
from .numpy_files import read_npy, read_npz
from .selection import Selection
from .tenx import MATRIX, find_parts, read_10x_folder, read_10x_h5
from .text_lines import COMPRESSIONS, check_encoding, open_binary
from .text_table import read_text_table
from .transpose import transpose as exchange_rows_and_columns
from .zarr_store import is_zarr, read_zarr

__all__ = ["READERS", "read"]

SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")


def read(
    source: str | Path | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    id: str | None = None,
    transpose: bool = False,
    use_rep: str | None = None,
    layer: str | None = None,
    exclude: Sequence[str] = (),
    every_kind: bool = False,
    encoding: str | None = None,
) -> Dataset:
    """Read a data set from a file or stream.

    Parameters
    ----------
    source : str, Path or binary file
        A file, whose suffix determines its format (see `READERS`); a folder of images, a Zarr store or a folder of 10x
        Genomics; "-" for CSV from standard input; or a binary stream of CSV.
    columns : sequence of str, default=None
        Columns to embed; None for all numeric columns except `label` and `id`.
    label : str, default=None
        Column with the class of each row.
    id : str, default=None
        Column with the name of each row.
    transpose : bool, default=False
        Whether to exchange rows and columns after reading, for example if the file has a row for each gene and a column
        for each cell.
    use_rep : str, default=None
        In AnnData files, the table of `obsm` to embed, such as "X_pca"; by default X.
    layer : str, default=None
        In AnnData files, the layer to embed; by default X.
    exclude : sequence of str, default=()
        Columns that are not embedded, in files whose columns have names.
    every_kind : bool, default=False
        Embed columns of every kind, for metric="mixed": X is then an Arrow table of all columns of a text table or
        Parquet or Feather file, text and gaps included. Other files contain only numbers, and are read as usual.

    encoding : str, default=None
        Encoding of CSV and TSV, such as "cp1252"; by default UTF-8, or UTF-16 with a byte order mark.

    Returns
    -------
    dataset : Dataset
        `dataset.extra` contains the columns that are not selected. Exception: if `columns` or `exclude` selects some
        columns of X in an AnnData file, or of the counts of 10x Genomics, the others are dropped.

    Raises
    ------
    ValueError
        If the file cannot be read, or if a value to embed is not a finite number; then the message names the row or
        line, and the column.
    FileNotFoundError
        If there is no such file or folder.
    """
    selection = _select(columns, {"label": label, "id": id, "use_rep": use_rep, "layer": layer})
    if isinstance(exclude, str) or not isinstance(exclude, Sequence):
        raise TypeError(f"exclude must be a list of names, got {exclude!r}")
    check_encoding(encoding)
    selection = replace(selection, exclude=tuple(map(str, exclude)), every_kind=every_kind, encoding=encoding)
    name = str(source) if isinstance(source, str | Path) else "stream"
    if encoding is not None and not (name in ("stream", "-") or _is_text(name)):
        raise ValueError(f"{name}: encoding applies to CSV and TSV only; omit it")
    if (use_rep or layer) and not (name.lower().endswith(".h5ad") or Path(name).is_dir()):
        raise ValueError(f"{name}: use_rep and layer select a table of an AnnData file (.h5ad or Zarr); omit them")
    dataset = _read(source, selection, transpose)
    if every_kind and not dataset.X.shape[1]:
        dataset = gather_columns(dataset, selection)
    return exchange_rows_and_columns(dataset, name) if transpose else dataset


def _is_text(name: str) -> bool:
    return any(name.lower().endswith(suffix) for suffix in READERS if suffix.startswith((".csv", ".tsv")))


def _select(columns: Any, names: dict[str, Any]) -> Selection:
    """Return the selection of columns and tables, after a check of its types."""
    if isinstance(columns, str):
        columns = (columns,)
    if columns is not None and not isinstance(columns, Sequence):
        raise TypeError(f"columns must be a list of names, or None for all numeric columns, got {columns!r}")
    for role, name in names.items():
        if name is not None and not isinstance(name, str):
            of = "column" if role in ("label", "id") else "table"
            raise TypeError(f"{role} must be the name of a {of} or None, got {name!r}")
    selection = Selection(None if columns is None else tuple(map(str, columns)), **names)
    if selection.columns == ():
        raise ValueError("`columns` is empty; name the columns to embed, or use None for all numeric columns")
    if selection.layer and selection.use_rep:
        raise ValueError(f"use_rep={selection.use_rep!r} and layer={selection.layer!r} exclude each other; omit one")
    return selection


def _read(source: str | Path | BinaryIO, selection: Selection, is_oriented: bool) -> Dataset:
    """Read a data set; unless `is_oriented`, warn if its rows seem to be genes."""
    if not isinstance(source, str | Path):
        return read_text_table(source, "stream", selection)
    if str(source) == "-":
        return read_text_table(sys.stdin.buffer, "stdin", selection)
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {str(path)!r}")
    if path.is_dir():
        return _read_folder(path, selection)
    for suffix, reader in READERS.items():
        if path.name.lower().endswith(suffix):
            if path.name.endswith(MATRIX) and not is_oriented:
                warn(
                    f"{path}: each row of the matrix is taken as a point, but 10x Genomics stores genes as rows; read"
                    " its folder with features and barcodes, or set transpose=True (--transpose), to embed cells"
                )
            return reader(path, selection)
    if path.suffix.lower() in SPREADSHEETS:
        raise ValueError(f"{path}: {path.suffix} files cannot be read; save the sheet as .xlsx or .csv")
    raise ValueError(
        f"{path}: unknown suffix; choose from {', '.join(READERS)}, or pass a Zarr store, a folder of images, or a"
        " folder of 10x Genomics"
    )


def _read_folder(path: Path, selection: Selection) -> Dataset:
    if is_zarr(path):
        return read_zarr(path, selection)
    if selection.use_rep or selection.layer:
        raise ValueError(f"{path}: use_rep and layer select a table of an AnnData file (.h5ad or Zarr); omit them")
    parts = find_parts(path)
    return read_images(path, selection) if parts is None else read_10x_folder(parts, selection)


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
    ".xlsx": read_excel,
    ".xlsm": read_excel,
    ".h5ad": read_h5ad,
    ".h5": read_10x_h5,
}
