"""The methods on annotated data, as scanpy has it: `equipoise.anndata.tsne(adata)` writes `adata.obsm["X_tsne"]`.

There is a function for each method. Each takes the parameters of its method, and

adata : an `AnnData`. If it has a neighbour graph, as `scanpy.pp.neighbors` writes it, with as many neighbours as the
    method is asked for, the method starts from these; else from `obsm["X_pca"]`, and without it from `X`, which stays
    sparse if it is. One line says which
use_rep : what to start from instead: a key of `obsm`, or "X"
neighbors_key : which graph, the key in `uns` that was `key_added` for `scanpy.pp.neighbors`
key_added : name in `uns`, and with "X_" in front in `obsm`; the name of the function by default

The map is written to `obsm`, the parameters and the final loss to `uns`; the fitted method, which can `transform`, is
returned. A `metric` or `h` is about columns, and so the graph is not used. Methods that need more distances than a
graph has (`pca`, `classical_mds`, `mds`, `lle`, `dklle`) never use it; `pca` starts from `X`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from . import methods
from ._types import Matrix
from ._warn import warn

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Graph:
    """How a method takes neighbours that somebody else has found."""

    asked: Callable[[Parameters], float]  # how many each point must have for these parameters, 0 if they do not say
    taken: Callable[[int], Parameters]  # the parameters that go with so many, where the user has not said


# A few neighbours, all alike, stand in for a Gaussian over many. Measured on 30 principal components of digits, the
# trustworthiness of t-SNE with perplexity 30, with 14 neighbours alike, with perplexity 14/3: 0.991, 0.993, 0.986.
SNE = Graph(
    lambda given: 3 * np.max(given["perplexity"]) if not isinstance(given.get("perplexity", "auto"), str) else 0,
    lambda k: {"affinity": "uniform", "perplexity": k},
)
FUZZY = Graph(lambda given: given.get("n_neighbors", 1) - 1, lambda k: {"n_neighbors": k + 1})  # the point is counted
COUNTED = Graph(lambda given: given.get("n_neighbors", 0), lambda k: {"n_neighbors": k})
WHOLE = Graph(lambda given: 0, lambda k: {})  # the graph as it is, whatever n_neighbors


@dataclass(frozen=True)
class Source:
    """What a map is made from, in words and as the method takes it."""

    name: str
    X: Any
    parameters: Parameters


def _function(Method: type[Any], name: str, graph: Graph | None) -> Callable[..., Any]:
    """Return the function that embeds annotated data by a method."""

    def embed(
        adata: Any,
        *,
        use_rep: str | None = None,
        neighbors_key: str | None = None,
        key_added: str = name,
        **parameters: Any,
    ) -> Any:
        source = _source(adata, name, graph, use_rep, neighbors_key, parameters)
        method = Method(**{**source.parameters, **parameters})
        print(f"{name}: from {source.name}", flush=True)
        method.fit(source.X)
        _write(adata, key_added, method, source.name)
        return method

    own = list(inspect.signature(embed).parameters.values())[:-1]
    options = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(Method).parameters.values()]
    embed.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    embed.__name__ = embed.__qualname__ = name
    embed.__doc__ = f"Embed annotated data by `equipoise.{Method.__name__}`, in obsm['X_{name}'] and uns['{name}']."
    return embed


def _source(
    adata: Any, name: str, graph: Graph | None, use_rep: str | None, neighbors_key: str | None, given: Parameters
) -> Source:
    for part in ("obsm", "obsp", "uns"):
        if not hasattr(adata, part):
            raise ValueError(f"adata must be an anndata.AnnData, got {type(adata).__name__}")
    if use_rep is not None:
        if neighbors_key is not None:
            raise ValueError(f"use_rep={use_rep!r} and neighbors_key={neighbors_key!r} exclude each other")
        return _columns(adata, use_rep)
    why_not = ""
    if neighbors_key is not None or "neighbors" in adata.uns:
        found = _neighbors(adata, neighbors_key or "neighbors", graph, name, given)
        if isinstance(found, Source):
            return found
        if neighbors_key is not None:
            raise ValueError(f"{found}; leave neighbors_key={neighbors_key!r} out")
        why_not = f" ({found})"
    best = _columns(adata, "X_pca" if "X_pca" in adata.obsm and name != "pca" else "X")
    return Source(best.name + why_not, best.X, {})


def _neighbors(adata: Any, key: str, graph: Graph | None, name: str, given: Parameters) -> Source | str:
    """Return the neighbour graph under a key of `uns`, or why this method does not start from it."""
    if key not in adata.uns:
        raise ValueError(f"adata.uns has no {key!r}; there are: {', '.join(map(repr, adata.uns)) or 'none'}")
    stored = adata.uns[key].get("distances_key", "distances")
    place = f"obsp[{stored!r}]"
    if stored not in adata.obsp:
        raise ValueError(f"adata.uns[{key!r}] says that the distances are in {place}, which adata does not have")
    if graph is None:
        return f"{name} needs more distances than the graph in {place} has"
    about_columns = [name for name in ("metric", "h") if name in given]
    if about_columns:
        return f"{about_columns[0]} is about columns, not about the graph in {place}"
    D = adata.obsp[stored]
    if not sparse.issparse(D):
        return Source(f"the distances in {place}", D, {"metric": "precomputed"})
    counts = np.diff(sparse.csr_matrix(D).indptr)
    k = int(counts.min())
    if k == 0:
        return f"row {int(counts.argmin())} of {place} has no neighbour"
    asked = graph.asked(given)
    if asked > k:
        return f"{place} has {k} neighbours of each point, and {asked:g} are needed"
    taken = {} if asked else graph.taken(k)
    return Source(f"the {k} neighbours of each point in {place}", D, {"metric": "precomputed", **taken})


def _columns(adata: Any, rep: str) -> Source:
    """Return a table of `obsm`, or X."""
    if rep == "X":
        if adata.X is None:
            raise ValueError("adata.X is empty; say which table of adata.obsm to start from: use_rep=...")
        return Source("X", _in_memory(adata.X), {})
    if rep not in adata.obsm:
        there = ", ".join(map(repr, adata.obsm)) or "none"
        raise ValueError(f"use_rep={rep!r} is not in adata.obsm; there are: {there}, and 'X'")
    return Source(f"obsm[{rep!r}]", adata.obsm[rep], {})


def _in_memory(X: Any) -> Matrix:
    """Return X, or what a sparse matrix of a file opened with `backed` holds."""
    return X.to_memory() if hasattr(X, "to_memory") else X


def _write(adata: Any, key: str, method: Any, source: str) -> None:
    place, Y = f"X_{key}", method.embedding_
    if place in adata.obsm and adata.obsm[place].shape[1] != Y.shape[1]:
        before = adata.obsm[place].shape[1]
        warn(f"obsm[{place!r}] had {before} columns and now has {Y.shape[1]}; key_added='...' keeps both")
    adata.obsm[place] = Y
    adata.uns[key] = {
        "params": {name: _stored(value) for name, value in method.get_params(deep=False).items() if _says(value)},
        "source": source,
        "loss": float(method.loss_),
        "n_iter": int(method.n_iter_),
    }


def _says(value: Any) -> bool:
    return value is not None and not (isinstance(value, tuple) and value == ())


def _stored(value: Any) -> Any:
    """Return a parameter as files of annotated data can hold it: numbers, text, arrays, and the names of the rest."""
    if isinstance(value, list | tuple):
        return np.asarray(value)
    return value if isinstance(value, bool | int | float | str | np.ndarray | np.generic) else repr(value)


sne = _function(methods.SNE, "sne", SNE)
symmetric_sne = _function(methods.SymmetricSNE, "symmetric_sne", SNE)
tsne = _function(methods.TSNE, "tsne", SNE)
power_sne = _function(methods.PowerSNE, "power_sne", SNE)
gsne = _function(methods.GSNE, "gsne", SNE)
spherical_sne = _function(methods.SphericalSNE, "spherical_sne", SNE)
umap = _function(methods.UMAP, "umap", FUZZY)
dklle = _function(methods.DKLLE, "dklle", None)
dkpca = _function(methods.DKPCA, "dkpca", COUNTED)
pca = _function(methods.PCA, "pca", None)
classical_mds = _function(methods.ClassicalMDS, "classical_mds", None)
isomap = _function(methods.Isomap, "isomap", WHOLE)
lle = _function(methods.LLE, "lle", None)
laplacian_eigenmaps = _function(methods.LaplacianEigenmaps, "laplacian_eigenmaps", WHOLE)
mds = _function(methods.MDS, "mds", None)
