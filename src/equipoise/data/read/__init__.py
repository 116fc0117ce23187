"""Files that come in: what each kind holds, as a `Dataset`, with errors that name file, line and column."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..dataset import Dataset
from .annotated import read_h5ad
from .arrays import read_npy, read_npz
from .arrow_files import read_feather, read_parquet
from .images import read_images
from .matrix_market import read_matrix_market
from .text_lines import COMPRESSIONS, open_binary
from .text_table import read_text_table
from .wanted import Wanted
from .zarr_store import is_zarr, read_zarr

__all__ = ["READERS", "read"]


def read(
    source: str | Path | BinaryIO,
    *,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    id: str | None = None,
) -> Dataset:
    """Return the data set of a file, by its suffix; of a stream of bytes, or of standard input as "-", in CSV.

    columns: names of the columns to embed; without, all columns of numbers but `label` and `id`.
    label: name of the column with the class of each row.
    id: name of the column with the name of each row.

    What is left goes into `extra`. A missing value in a column to embed is an error that says where it is.
    """
    if isinstance(columns, str):
        columns = (columns,)
    wanted = Wanted(None if columns is None else tuple(map(str, columns)), label, id)
    if wanted.columns == ():
        raise ValueError("columns is empty; give the names of the columns to embed, or leave it out for all")
    if not isinstance(source, str | Path):
        return read_text_table(source, "stream", wanted)
    if str(source) == "-":
        return read_text_table(sys.stdin.buffer, "stdin", wanted)
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"no file or folder is called {str(path)!r}")
    if path.is_dir():
        return read_zarr(path, wanted) if is_zarr(path) else read_images(path, wanted)
    for suffix, reader in READERS.items():
        if path.name.lower().endswith(suffix):
            return reader(path, wanted)
    raise ValueError(
        f"{path}: the kind of a file is told by its suffix, one of {', '.join(READERS)}; a folder holds Zarr or images"
    )


def _read_csv(path: Path, wanted: Wanted) -> Dataset:
    return _read_text(path, wanted, None)


def _read_tsv(path: Path, wanted: Wanted) -> Dataset:
    return _read_text(path, wanted, "\t")


def _read_text(path: Path, wanted: Wanted, delimiter: str | None) -> Dataset:
    size = 0 if path.suffix.lower() in COMPRESSIONS else path.stat().st_size
    with open_binary(path) as stream:
        return read_text_table(stream, str(path), wanted, delimiter=delimiter, size=size)


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
