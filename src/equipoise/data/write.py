"""Write maps to files, with row names, classes and further columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .._atomic import atomic_write
from .._optional import import_optional
from .._types import Array
from ..arrays.blocks import row_blocks
from .dataset import Dataset
from .formulas import mark_formula
from .read.selection import to_text, to_texts

TEXT_BYTES = 64  # memory of a formatted cell


def write_map(path: str | Path, Y: Array, dataset: Dataset) -> None:
    """Write a map to a file.

    The columns are, in this order: `id`, if the rows have names; y1, y2, …; the classes, if there are any, under the
    name of their column; and the `extra` columns. In CSV and TSV an apostrophe precedes a text that a spreadsheet would
    run as a formula; `read` removes the apostrophe. NPY contains Y alone. H5AD contains Y in `X` and in
    `obsm["X_map"]`, the row names in `obs_names`, and the other columns in `obs`. The file is written atomically.

    Parameters
    ----------
    path : str or Path
        Ends in .csv, .tsv, .parquet, .npy or .h5ad.
    Y : array, shape (n, d)
    dataset : Dataset
        The data set of the n embedded rows.
    """
    Y = np.asarray(Y)
    if Y.ndim != 2 or len(Y) != dataset.X.shape[0]:
        raise ValueError(
            f"Y must have shape ({dataset.X.shape[0]}, d), one row for each row of {dataset.name}, got shape {Y.shape}"
        )
    check_map_path(path)
    with atomic_write(path) as file:
        WRITERS[_suffix(path)](file, Y, dataset)


def check_map_path(path: str | Path) -> None:
    """Raise if a map cannot be written to a path: unknown suffix, missing folder, or missing package."""
    suffix = _suffix(path)
    if suffix not in WRITERS:
        raise ValueError(f"{str(path)!r}: unknown suffix for a map; choose from {', '.join(WRITERS)}")
    if not Path(path).parent.is_dir():
        raise ValueError(f"the output folder {str(Path(path).parent)!r} does not exist; create it first")
    if suffix == ".h5ad":
        import_optional("anndata", "anndata", "writing H5AD")


def map_columns(Y: Array, dataset: Dataset) -> dict[str, Array]:
    """Return the columns of a map file by name.

    If the column of classes or an `extra` column has a name that is already used, or that looks like a coordinate
    (y1, y2, …), underscores are appended to its name.
    """
    columns: dict[str, Array] = {} if dataset.ids is None else {"id": to_texts(np.asarray(dataset.ids))}
    columns |= {name: Y[:, c] for c, name in enumerate(map_names(Y))}
    labels = {} if dataset.labels is None else {dataset.label: np.array(dataset.classes, dtype=object)[dataset.labels]}
    for name, values in [*labels.items(), *dataset.extra.items()]:
        while name in columns or re.fullmatch(r"y\d+", name):  # the name of a coordinate
            name += "_"
        columns[name] = values
    return columns


def class_column(columns: Iterable[str], dataset: Dataset) -> str | None:
    """Return the name of the column of classes among those of `map_columns` without coordinates; None without one."""
    if dataset.labels is None:
        return None
    return next(name for name in columns if name != "id" or dataset.ids is None)


def map_names(Y: Array) -> list[str]:
    """Return y1, y2, …, the names of the coordinates."""
    return [f"y{c + 1}" for c in range(Y.shape[1])]


def _suffix(path: str | Path) -> str:
    return Path(path).suffix.lower()


def _write_csv(file: BinaryIO, Y: Array, dataset: Dataset) -> None:
    write_columns(file, map_columns(Y, dataset), ",")


def _write_tsv(file: BinaryIO, Y: Array, dataset: Dataset) -> None:
    write_columns(file, map_columns(Y, dataset), "\t")


def write_columns(file: BinaryIO, columns: dict[str, Array], delimiter: str) -> None:
    """Write columns as text, with their names in the first line."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    _write_rows(text, [[mark_formula(name)] for name in columns], delimiter)
    n = len(next(iter(columns.values())))
    for rows in row_blocks(n, TEXT_BYTES * len(columns)):
        _write_rows(text, [_cells(values[rows]) for values in columns.values()], delimiter)
    text.detach()  # flush without closing the file


def _write_rows(text: io.TextIOWrapper, columns: list[list[str]], delimiter: str) -> None:
    # Python's csv module does not quote a cell for a \r unless lines end in \r\n, but readers take it for a line end.
    has_return = any("\r" in cell for cells in columns for cell in cells)
    writer = csv.writer(
        text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    )
    writer.writerows(zip(*columns, strict=True))


def _cells(values: Array) -> list[str]:
    """Return values as text: floats with the fewest digits that keep their value, formulas after an apostrophe."""
    if values.dtype.kind == "f":
        return ["" if cell == "nan" else cell.removesuffix(".0") for cell in values.astype(str).tolist()]
    return [mark_formula(to_text(value)) for value in values.tolist()]


def _write_parquet(file: BinaryIO, Y: Array, dataset: Dataset) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(map_columns(Y, dataset)), file)


def _write_h5ad(file: BinaryIO, Y: Array, dataset: Dataset) -> None:
    anndata = import_optional("anndata", "anndata", "writing H5AD")
    h5py, pandas = (import_optional(name, "anndata", "writing H5AD") for name in ("h5py", "pandas"))
    columns = map_columns(Y, dataset)
    index = np.arange(len(Y)).astype(str) if dataset.ids is None else columns.pop("id")
    coordinates = {name: columns.pop(name) for name in map_names(Y)}
    annotated = anndata.AnnData(
        X=Y,
        obs=pandas.DataFrame(columns, index=index),
        var=pandas.DataFrame(index=list(coordinates)),
        obsm={"X_map": Y},
    )
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as target:
        anndata.io.write_elem(target, "/", annotated)
    file.write(buffer.getbuffer())


def _write_npy(file: BinaryIO, Y: Array, dataset: Dataset) -> None:
    np.save(file, Y, allow_pickle=False)


WRITERS = {
    ".csv": _write_csv,
    ".tsv": _write_tsv,
    ".parquet": _write_parquet,
    ".npy": _write_npy,
    ".h5ad": _write_h5ad,
}
