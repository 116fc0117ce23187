"""AnnData, in H5AD or Zarr: X with the names of its rows and columns, and `obs` beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import numpy as np
from scipy import sparse

from ..._optional import import_optional
from ..._types import Array
from ..._warn import warn
from ..dataset import Dataset
from .broken import decoding
from .values import check_table_of_numbers
from .wanted import Wanted, as_text

TRIAL = Path(__file__).with_name("trial.py")
ELSEWHERE = "import sys; sys.path[:] = [p for p in sys.path if p]; "  # nothing is imported from the current folder
RUN = "import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"
BREAKDOWNS = {-getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE") if hasattr(signal, name)}


def read_h5ad(path: Path, wanted: Wanted) -> Dataset:
    """Return X of an H5AD file, CSR if it is sparse; rows are named by `obs_names` unless `id` says otherwise."""
    anndata = import_optional("anndata", "anndata", "reading H5AD")
    _try_first(path)
    with decoding(str(path), "H5AD"):
        annotated = anndata.read_h5ad(path)
    return from_anndata(annotated, str(path), wanted)


def _try_first(path: Path) -> None:
    """Raise for a file on which the HDF5 library breaks down and does not only raise: some changed bytes do that.

    It is read once in a process of its own (trial.py), which dies in place of this one, and imports nothing from the
    current folder: that may be the file's.
    """
    status, reason = _trial(path)
    if status in BREAKDOWNS:
        raise ValueError(
            f"{path} cannot be read as H5AD: the HDF5 library breaks down on it (status {status}), so that it is"
            " damaged; get it again, or write it anew"
        )
    if status:  # an error of Python's own, before it came to the file, or an end from outside, as for want of memory
        warn(f"{path} could not be tried in a process of its own ({reason}); if it is damaged, it may end this one")


def _trial(path: Path) -> tuple[int, str]:
    """Return the status with which the process of its own ended, 1 where none could be started, and why."""
    if not sys.executable:
        return 1, "Python does not say where its program is"
    command = [sys.executable, "-c", ELSEWHERE + RUN, str(TRIAL), str(path)]
    safe = {**os.environ, "PYTHONSAFEPATH": "1"}
    try:
        tried = subprocess.run(command, capture_output=True, stdin=DEVNULL, env=safe)
    except OSError as error:
        return 1, str(error)
    said = tried.stderr.decode(errors="replace").strip().splitlines()
    return tried.returncode, said[-1] if said else f"it ended with status {tried.returncode}"


def from_anndata(annotated: Any, source: str, wanted: Wanted) -> Dataset:
    """Return X, `var_names` as columns, and `obs` as the columns beside it."""
    if annotated.X is None:
        raise ValueError(f"{source} has no X; write the values to embed there")
    X = sparse.csr_matrix(annotated.X) if sparse.issparse(annotated.X) else np.asarray(annotated.X)
    columns = [str(name) for name in annotated.var_names]
    if wanted.columns is not None:
        Wanted(wanted.columns).check(columns, source)
        place = {name: j for j, name in enumerate(columns)}
        X, columns = X[:, [place[name] for name in wanted.columns]], list(wanted.columns)
    others = {str(name): _values(annotated.obs[name]) for name in annotated.obs.columns}
    Wanted(None, wanted.label, wanted.id).check(list(others), source)
    if wanted.id is None:
        wanted = Wanted(wanted.columns, wanted.label, _free("index", others))
        others[str(wanted.id)] = np.array([str(name) for name in annotated.obs_names], dtype=object)
    return wanted.dataset(source, check_table_of_numbers(X, source, columns), columns, others)


def _free(name: str, taken: dict[str, Array]) -> str:
    while name in taken:
        name += "_"
    return name


def _values(column: Any) -> Array:
    """Return a column of `obs`: numbers as float64, anything else as text."""
    if column.dtype.kind in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return as_text(column.astype(object).where(column.notna(), None).to_numpy())
