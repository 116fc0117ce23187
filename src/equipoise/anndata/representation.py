"""Choose what to embed of an AnnData object: a neighbour graph, a table in `obsm`, a layer or X."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .._plural import plural
from .._types import Matrix
from ..arrays.namespace import is_integer

Parameters = dict[str, Any]


@dataclass(frozen=True)
class GraphUse:
    """Determines whether a neighbour graph has enough neighbours for a method, and how the method uses them.

    Attributes
    ----------
    required : callable
        Takes the parameters set by the user, and returns the number of neighbours per point that these parameters
        require, or 0 if they do not set this number.
    parameters : callable
        Takes the number of neighbours per point in the graph, and returns the parameters to set so that the method
        uses these neighbours. It is called only if `required` returns 0.
    """

    required: Callable[[Parameters], float]
    parameters: Callable[[int], Parameters]


# With few neighbours, equal weights replace the Gaussian. Measured on 30 principal components of digits, the
# trustworthiness of t-SNE is 0.991 with perplexity 30, 0.993 with 14 equal neighbours, 0.986 with perplexity 14/3.
SNE = GraphUse(
    lambda given: 3 * np.max(given["perplexity"]) if not isinstance(given.get("perplexity", "auto"), str) else 0,
    lambda k: {"affinity": "uniform", "perplexity": k},
)
# UMAP counts the point itself as a neighbour.
FUZZY = GraphUse(lambda given: given.get("n_neighbors", 1) - 1, lambda k: {"n_neighbors": k + 1})
N_NEIGHBORS = GraphUse(lambda given: given.get("n_neighbors", 0), lambda k: {"n_neighbors": k})
ALL_EDGES = GraphUse(lambda given: 0, lambda k: {})  # every edge of the graph, regardless of n_neighbors


@dataclass(frozen=True)
class Representation:
    """The part of an AnnData object that is embedded.

    Attributes
    ----------
    name : str
        Description printed for the user, such as "obsm['X_pca']".
    X : array or sparse matrix
        The input of the method.
    parameters : dict
        Parameters to pass to the method with X.
    table : dict
        The arguments of `evaluate` that select the table behind X: `use_rep`, `layer`, `n_pcs`, `metric`.
    """

    name: str
    X: Any
    parameters: Parameters
    table: Parameters


def check_is_anndata(adata: Any) -> None:
    """Raise ValueError for an object that lacks the parts of an AnnData object."""
    for part in ("obsm", "obsp", "uns"):
        if not hasattr(adata, part):
            raise ValueError(f"adata must be an anndata.AnnData, got {type(adata).__name__}")


def choose_representation(
    adata: Any, name: str, graph: GraphUse | None, neighbors_key: str | None, given: Parameters
) -> Representation:
    """Return the graph if usable, else `obsm["X_pca"]`, else X; a graph named by the user must be usable."""
    why_not = ""
    if neighbors_key is not None or "neighbors" in adata.uns:
        result = _read_graph(adata, neighbors_key or "neighbors", graph, name, given)
        if isinstance(result, Representation):
            return result
        if neighbors_key is not None:
            raise ValueError(f"{result}; omit neighbors_key={neighbors_key!r}")
        why_not = f" ({result})"
    table = read_table(adata, "X" if name == "pca" else None)
    return replace(table, name=table.name + why_not)


def _read_graph(adata: Any, key: str, graph: GraphUse | None, name: str, given: Parameters) -> Representation | str:
    """Return the neighbour graph under a key of `uns`, or the reason why the method cannot use it."""
    if key not in adata.uns:
        keys = ", ".join(map(repr, adata.uns))
        raise ValueError(
            f"neighbors_key={key!r} is not a key of adata.uns;"
            f" {f'its keys are {keys}' if keys else 'run scanpy.pp.neighbors first'}"
        )
    stored = adata.uns[key].get("distances_key", "distances")
    location = f"obsp[{stored!r}]"
    if stored not in adata.obsp:
        raise ValueError(
            f"adata.uns[{key!r}] refers to {location}, which does not exist; run scanpy.pp.neighbors again"
        )
    if graph is None:
        return f"{name} needs more distances than the graph in {location} has"
    on_columns = [name for name in ("metric", "h") if name in given]
    if on_columns:
        return f"the parameter {on_columns[0]} applies to the columns of a table, not to the graph in {location}"
    D = adata.obsp[stored]
    params = adata.uns[key].get("params", {})
    table = {
        name: params[name] for name in ("use_rep", "n_pcs", "metric") if isinstance(params.get(name), str | Integral)
    }
    if not sparse.issparse(D):
        return Representation(f"the distances in {location}", D, {"metric": "precomputed"}, table)
    counts = np.diff(sparse.csr_matrix(D).indptr)
    k = int(counts.min())
    if k == 0:
        return f"row {int(counts.argmin())} of {location} has no neighbours"
    required = graph.required(given)
    if required > k:
        return (
            f"row {int(counts.argmin())} of {location} has {plural(k, 'neighbour')}, but {name} with these parameters"
            f" needs {required:g}"
        )
    extra = {} if required else graph.parameters(k)
    return Representation(f"the {k} neighbours per point in {location}", D, {"metric": "precomputed", **extra}, table)


def read_table(
    adata: Any, use_rep: str | None = None, layer: str | None = None, n_pcs: int | None = None
) -> Representation:
    """Return a table in `obsm`, X or a layer; by default `obsm["X_pca"]` if it exists, else X."""
    if n_pcs is not None and not (is_integer(n_pcs) and n_pcs >= 0):
        raise ValueError(f"n_pcs must be an integer, at least 0, got {n_pcs!r}")
    if layer is not None:
        if use_rep is not None or n_pcs is not None:
            other = f"use_rep={use_rep!r}" if use_rep is not None else f"n_pcs={n_pcs}"
            raise ValueError(f"layer={layer!r} and {other} exclude each other; omit one")
        if layer not in adata.layers:
            layers = ", ".join(map(repr, adata.layers))
            choice = f"choose from {layers}" if layers else "adata has no layers; omit it to embed X"
            raise ValueError(f"layer={layer!r} is not a key of adata.layers; {choice}")
        return Representation(f"layers[{layer!r}]", _in_memory(adata.layers[layer]), {}, {"layer": layer})
    if not isinstance(use_rep, str | None):
        raise ValueError(f"use_rep must be 'X' or a key of adata.obsm, got {type(use_rep).__name__}")
    if use_rep is None:
        if n_pcs and "X_pca" not in adata.obsm:
            raise ValueError(f"n_pcs={n_pcs} needs obsm['X_pca']; run scanpy.pp.pca first, or omit n_pcs to embed X")
        use_rep = "X_pca" if "X_pca" in adata.obsm and n_pcs != 0 else "X"
    table = {"use_rep": use_rep}
    if use_rep == "X":
        if n_pcs:
            raise ValueError(f"n_pcs={n_pcs} does not apply to use_rep='X'; omit one")
        if adata.X is None:
            raise ValueError("adata.X is empty; choose a table of adata.obsm with use_rep")
        return Representation("X", _in_memory(adata.X), {}, table)
    if use_rep not in adata.obsm:
        known = ", ".join(map(repr, ["X", *adata.obsm]))
        raise ValueError(f"use_rep={use_rep!r} is not a key of adata.obsm; choose from {known}")
    location, X = f"obsm[{use_rep!r}]", adata.obsm[use_rep]
    if n_pcs is None:
        return Representation(location, X, {}, table)
    if not 0 < n_pcs <= X.shape[1]:
        raise ValueError(f"n_pcs={n_pcs} is out of range for {location}; use an integer from 1 to {X.shape[1]}")
    columns = X.iloc[:, :n_pcs] if hasattr(X, "iloc") else X[:, :n_pcs]
    return Representation(
        f"the first {plural(n_pcs, 'column')} of {location}", columns, {}, {**table, "n_pcs": int(n_pcs)}
    )


def _in_memory(X: Any) -> Matrix:
    """Return a table, loaded into memory if the AnnData object is backed by a file."""
    if hasattr(X, "to_memory"):
        return X.to_memory()
    return X[()] if type(X).__module__.partition(".")[0] in ("h5py", "zarr") else X
