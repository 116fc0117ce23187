"""What AnnData objects and files store about a map."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._atomic import atomic_write
from .._names import list_names
from .._optional import import_optional
from .._plural import plural
from .._types import Array
from ..data.read.annotated import check_in_separate_process
from ..data.read.decode_errors import decoding

MAP_COLUMNS = 3  # a table of `obsm` with more columns is not taken for a map


def map_name(Method: type[Any]) -> str:
    """Return the name of the maps of a method, "symmetric_sne" for `SymmetricSNE`: `obsm["X_<name>"]`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", Method.__name__).lower()


def describe_fit(method: Any, source: str, table: dict[str, Any]) -> dict[str, Any]:
    """Return what `uns` stores about a fitted method: parameters, source, table, loss and number of iterations."""
    params = {name: _storable(value) for name, value in method.get_params(deep=False).items() if _is_set(name, value)}
    about = {"params": params, "source": source, "table": table}
    fitted = {"loss": float, "n_iter": int}
    return about | {
        name: kind(getattr(method, f"{name}_")) for name, kind in fitted.items() if hasattr(method, f"{name}_")
    }


def count_cells(path: Path) -> int:
    """Return the number of rows of an H5AD file; raise if it is too old for `add_map`."""
    h5py = import_optional("h5py", "anndata", "writing H5AD")
    with decoding(str(path), "H5AD"), h5py.File(path, "r") as file:
        for part in ("obs", "obsm", "uns"):
            if not isinstance(file.get(part), h5py.Group):
                raise ValueError(f"its {part} is not a group; write it again with a newer version of anndata")
        index = file["obs"].attrs.get("_index", "_index")
        return len(file["obs"][index])


def find_stored_map(source: str, keys: Sequence[str] | None) -> str | None:
    """Return the key of `obsm` in an H5AD file that contains a map; None for other files.

    Parameters
    ----------
    source : str
        A path.
    keys : sequence of str or None
        The key that the user names, with or without "X_". By default, the file must contain exactly one map: a table
        of at most three columns whose key is not "X_pca". If X is a map with a column y1, the result is None.
    """
    if not source.lower().endswith(".h5ad"):
        return None
    h5py = import_optional("h5py", "anndata", "reading H5AD")
    check_in_separate_process(Path(source), "H5AD")
    with decoding(source, "H5AD"), h5py.File(source, "r") as file:
        obsm = file.get("obsm", {})
        widths = {key: table.shape[1] for key, table in obsm.items() if getattr(table, "ndim", 0) == 2}
        index = file["var"].attrs.get("_index", "_index") if isinstance(file.get("var"), h5py.Group) else None
        names = [] if index is None else file["var"][index].asstr()[:]
    for key in keys or ():
        if found := next((name for name in (key, f"X_{key}") if name in widths), None):
            return found
    if keys or "y1" in names:
        return None
    maps = [key for key, width in widths.items() if width <= MAP_COLUMNS and key != "X_pca"]
    if len(maps) != 1:
        choice = f"choose one with --coordinates: {list_names(maps)}" if maps else "its obsm has no map"
        raise ValueError(f"{source} contains {plural(len(maps), 'map')}; {choice}")
    return maps[0]


def add_map(source: Path, path: Path, name: str, Y: Array, about: dict[str, Any]) -> None:
    """Write a copy of an H5AD file with a map in `obsm["X_<name>"]` and its description in `uns["<name>"]`.

    Everything else is copied byte by byte. The file is written atomically; `path` may be the file itself.
    """
    h5py, anndata = (import_optional(package, "anndata", "writing H5AD") for package in ("h5py", "anndata"))
    with atomic_write(path) as file:
        with open(source, "rb") as original:
            shutil.copyfileobj(original, file)
        file.flush()
        with h5py.File(file.name, "r+", locking=False) as target:  # the temporary file is locked already
            anndata.io.write_elem(target["obsm"], f"X_{name}", np.asarray(Y))
            anndata.io.write_elem(target["uns"], name, about)


def _is_set(name: str, value: Any) -> bool:
    return name != "callbacks" and value is not None and not (isinstance(value, tuple) and value == ())


def _storable(value: Any) -> Any:
    """Return a parameter in a form that .h5ad files can store: a number, text or array, else its repr."""
    if isinstance(value, list | tuple):
        return np.asarray(value)
    return value if isinstance(value, bool | int | float | str | np.ndarray | np.generic) else repr(value)
