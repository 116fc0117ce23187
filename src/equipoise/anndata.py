"""Embed AnnData objects, in the style of scanpy: `equipoise.anndata.tsne(adata)`.

There is one function per method. The function `tsne`, for example, embeds the cells, writes the map to
`adata.obsm["X_tsne"]`, writes the parameters, the final loss and the number of iterations to `adata.uns["tsne"]`, and
returns the fitted method. Each function takes the parameters of its method and the arguments below.

Parameters
----------
adata : AnnData
    The data. By default the method uses the neighbour graph written by `scanpy.pp.neighbors`, if the graph has enough
    neighbours; otherwise `obsm["X_pca"]`; otherwise `X`, dense or sparse. A printed line says which was used.
use_rep : str, optional
    The table to embed instead: a key of `obsm`, or "X".
neighbors_key : str, optional
    The neighbour graph to use: the `key_added` passed to `scanpy.pp.neighbors`.
key_added : str, optional
    Key in `obsm` and in `uns`, as in scanpy; by default, for `tsne`, "X_tsne" in `obsm` and "tsne" in `uns`.

Notes
-----
The graph is not used if `metric` or the metric tensor `h` is set, because they apply to the columns of a table. Methods
that need more distances than a graph has (`pca`, `classical_mds`, `mds`, `lle`, `dklle`) never use the graph, and `pca`
embeds `X` unless `use_rep` is set.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from . import methods
from ._plural import plural
from ._types import Matrix
from ._warn import warn

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
    """

    name: str
    X: Any
    parameters: Parameters


def _make_function(Method: type[Any], name: str, graph: GraphUse | None) -> Callable[..., Any]:
    """Return the function that embeds AnnData objects with a method."""

    def embed(
        adata: Any,
        *,
        use_rep: str | None = None,
        neighbors_key: str | None = None,
        key_added: str | None = None,
        **parameters: Any,
    ) -> Any:
        if not isinstance(key_added, str | None):
            raise ValueError(f"key_added must be a string, got {key_added!r}")
        chosen = _choose_representation(adata, name, graph, use_rep, neighbors_key, parameters)
        method = Method(**{**chosen.parameters, **parameters})
        print(f"{name}: using {chosen.name}", flush=True)
        method.fit(chosen.X)
        keys = (f"X_{name}", name) if key_added is None else (key_added, key_added)
        _write(adata, keys, method, chosen.name)
        return method

    own = list(inspect.signature(embed).parameters.values())[:-1]
    options = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(Method).parameters.values()]
    embed.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    embed.__name__ = embed.__qualname__ = name
    embed.__doc__ = (
        f"Embed an AnnData object with `equipoise.{Method.__name__}`. The map is written to obsm['X_{name}'] and the"
        f" parameters to uns['{name}']; `key_added`, if set, replaces both keys."
    )
    return embed


def _choose_representation(
    adata: Any, name: str, graph: GraphUse | None, use_rep: str | None, neighbors_key: str | None, given: Parameters
) -> Representation:
    """Return the table or graph that the user chose; by default the graph if usable, else `obsm["X_pca"]`, else X."""
    for part in ("obsm", "obsp", "uns"):
        if not hasattr(adata, part):
            raise ValueError(f"adata must be an anndata.AnnData, got {type(adata).__name__}")
    if use_rep is not None:
        if neighbors_key is not None:
            raise ValueError(f"use_rep={use_rep!r} and neighbors_key={neighbors_key!r} exclude each other; omit one")
        return _read_table(adata, use_rep)
    why_not = ""
    if neighbors_key is not None or "neighbors" in adata.uns:
        result = _read_graph(adata, neighbors_key or "neighbors", graph, name, given)
        if isinstance(result, Representation):
            return result
        if neighbors_key is not None:
            raise ValueError(f"{result}; omit neighbors_key={neighbors_key!r}")
        why_not = f" ({result})"
    table = _read_table(adata, "X_pca" if "X_pca" in adata.obsm and name != "pca" else "X")
    return Representation(table.name + why_not, table.X, {})


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
    if not sparse.issparse(D):
        return Representation(f"the distances in {location}", D, {"metric": "precomputed"})
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
    return Representation(f"the {k} neighbours per point in {location}", D, {"metric": "precomputed", **extra})


def _read_table(adata: Any, rep: str) -> Representation:
    """Return a table in `obsm`, or X."""
    if not isinstance(rep, str):
        raise ValueError(f"use_rep must be 'X' or a key of adata.obsm, got {type(rep).__name__}")
    if rep == "X":
        if adata.X is None:
            raise ValueError("adata.X is empty; choose a table of adata.obsm with use_rep")
        return Representation("X", _in_memory(adata.X), {})
    if rep not in adata.obsm:
        known = ", ".join(map(repr, ["X", *adata.obsm]))
        raise ValueError(f"use_rep={rep!r} is not a key of adata.obsm; choose from {known}")
    return Representation(f"obsm[{rep!r}]", adata.obsm[rep], {})


def _in_memory(X: Any) -> Matrix:
    """Return X, loaded into memory if the AnnData object was opened in backed mode."""
    return X.to_memory() if hasattr(X, "to_memory") else X


def _write(adata: Any, keys: tuple[str, str], method: Any, source: str) -> None:
    """Write the map to obsm[first key], and the parameters, the source, the loss and n_iter to uns[second key]."""
    (obsm_key, uns_key), Y = keys, method.embedding_
    if obsm_key in adata.obsm and adata.obsm[obsm_key].shape[1] != Y.shape[1]:
        before = plural(adata.obsm[obsm_key].shape[1], "column")
        warn(f"obsm[{obsm_key!r}] had {before} and now has {Y.shape[1]}; set key_added to keep both maps")
    adata.obsm[obsm_key] = Y
    adata.uns[uns_key] = {
        "params": {name: _storable(value) for name, value in method.get_params(deep=False).items() if _is_set(value)},
        "source": source,
        "loss": float(method.loss_),
        "n_iter": int(method.n_iter_),
    }


def _is_set(value: Any) -> bool:
    return value is not None and not (isinstance(value, tuple) and value == ())


def _storable(value: Any) -> Any:
    """Return a parameter in a form that .h5ad files can store: a number, text or array, else its repr."""
    if isinstance(value, list | tuple):
        return np.asarray(value)
    return value if isinstance(value, bool | int | float | str | np.ndarray | np.generic) else repr(value)


sne = _make_function(methods.SNE, "sne", SNE)
symmetric_sne = _make_function(methods.SymmetricSNE, "symmetric_sne", SNE)
tsne = _make_function(methods.TSNE, "tsne", SNE)
power_sne = _make_function(methods.PowerSNE, "power_sne", SNE)
gsne = _make_function(methods.GSNE, "gsne", SNE)
spherical_sne = _make_function(methods.SphericalSNE, "spherical_sne", SNE)
umap = _make_function(methods.UMAP, "umap", FUZZY)
dklle = _make_function(methods.DKLLE, "dklle", None)
dkpca = _make_function(methods.DKPCA, "dkpca", N_NEIGHBORS)
pair_embedding = _make_function(methods.PairEmbedding, "pair_embedding", None)
pca = _make_function(methods.PCA, "pca", None)
classical_mds = _make_function(methods.ClassicalMDS, "classical_mds", None)
isomap = _make_function(methods.Isomap, "isomap", ALL_EDGES)
lle = _make_function(methods.LLE, "lle", None)
laplacian_eigenmaps = _make_function(methods.LaplacianEigenmaps, "laplacian_eigenmaps", ALL_EDGES)
mds = _make_function(methods.MDS, "mds", None)
