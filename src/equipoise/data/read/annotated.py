"""Read AnnData from H5AD files and Zarr stores: X, its row and column names, and the columns of `obs`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import numpy as np
from scipy import sparse

from ..._names import list_names
from ..._optional import import_optional
from ..._types import Array
from ..._warn import warn
from ..dataset import Dataset
from .decode_errors import decoding
from .finite import check_numbers
from .selection import Selection, to_texts

TRIAL = Path(__file__).with_name("hdf5_trial.py")
SAFE_PATH = "import sys; sys.path[:] = [p for p in sys.path if p]; "  # import nothing from the current folder
RUN = "import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"
CRASHES = {-getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE") if hasattr(signal, name)}


def read_h5ad(path: Path, selection: Selection) -> Dataset:
    """Return the data set of an H5AD file.

    X is CSR if it is sparse in the file. The row names are `obs_names` unless `id` is selected.
    """
    anndata = import_optional("anndata", "anndata", "reading H5AD")
    check_in_separate_process(path, "H5AD")
    with decoding(str(path), "H5AD"):
        annotated = anndata.read_h5ad(path)
    return from_anndata(annotated, str(path), selection)


def check_in_separate_process(path: Path, kind: str) -> None:
    """Raise if the file crashes the HDF5 library, as some damaged files do; warn if that cannot be checked.

    A separate process (hdf5_trial.py) reads the file first. That process imports nothing from the current folder, which
    the author of the file may control.
    """
    status, reason = _run_trial(path)
    if status in CRASHES:
        raise ValueError(
            f"{path} cannot be read as {kind}: the file is damaged and crashes the HDF5 library (status {status});"
            " download or write it again"
        )
    if status:  # Python failed before reading the file, or the process was killed, for example because memory ran out
        warn(
            f"{path} could not be checked in a separate process ({reason}); if the file is damaged, reading it can"
            " crash this process"
        )


def _run_trial(path: Path) -> tuple[int, str]:
    """Return the exit status of the separate process (1 if it did not start) and the reason for a failure."""
    if not sys.executable:
        return 1, "sys.executable is empty"
    command = [sys.executable, "-c", SAFE_PATH + RUN, str(TRIAL), str(path)]
    safe = {**os.environ, "PYTHONSAFEPATH": "1"}
    try:
        result = subprocess.run(command, capture_output=True, stdin=DEVNULL, env=safe)
    except OSError as error:
        return 1, str(error)
    messages = result.stderr.decode(errors="replace").strip().splitlines()
    return result.returncode, messages[-1] if messages else f"exit status {result.returncode}"


def from_anndata(annotated: Any, source: str, selection: Selection) -> Dataset:
    """Return the data set of an AnnData object: its table, and `obs` as the other columns.

    The table is X with the column names `var_names`, unless a layer or a table of `obsm` is selected.
    """
    table, columns = _table(annotated, source, selection)
    if table is None:
        raise ValueError(f"{source} has no X; store the values to embed in X, or select a table of obsm (use_rep)")
    X = sparse.csr_matrix(table) if sparse.issparse(table) else np.asarray(table)
    if (kept := selection.find(columns, source)) is not None:
        X, columns = X[:, kept], [columns[j] for j in kept]
    others = {str(name): _values(annotated.obs[name]) for name in annotated.obs.columns}
    Selection(None, selection.label, selection.id).check(list(others), source)
    if selection.id is None:
        selection = replace(selection, id=_free_name("index", others))
        others[str(selection.id)] = np.array([str(name) for name in annotated.obs_names], dtype=object)
    return selection.dataset(source, check_numbers(X, source, columns), columns, others)


def _table(annotated: Any, source: str, selection: Selection) -> tuple[Any, list[str]]:
    """Return the selected table of an AnnData object and the names of its columns."""
    genes = [str(name) for name in annotated.var_names]
    if selection.layer is not None:
        return _member(annotated.layers, selection.layer, "layer", source), genes
    if selection.use_rep in (None, "X"):
        return annotated.X, genes
    table = _member(annotated.obsm, str(selection.use_rep), "use_rep", source)
    if hasattr(table, "columns"):
        return table.to_numpy(), [str(name) for name in table.columns]
    stem = str(selection.use_rep).removeprefix("X_")
    return table, [f"{stem}{j + 1}" for j in range(table.shape[1])]


def _member(tables: Any, key: str, argument: str, source: str) -> Any:
    """Return a layer or a table of `obsm`; raise with a list of the existing ones."""
    if key in tables:
        return tables[key]
    known = [*map(str, tables), *(["X"] if argument == "use_rep" else [])]
    what = "table of obsm" if argument == "use_rep" else "layer"
    choice = f"choose from {list_names(known)}" if known else "it has none"
    raise ValueError(f"{source}: {argument}={key!r} is not a {what}; {choice}")


def _free_name(name: str, taken: dict[str, Array]) -> str:
    """Return `name`, with underscores appended while it is a key of `taken`."""
    while name in taken:
        name += "_"
    return name


def _values(column: Any) -> Array:
    """Return a column of `obs`: numbers as float64, anything else as str."""
    if column.dtype.kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return to_texts(column.astype(object).where(column.notna(), None).to_numpy())
