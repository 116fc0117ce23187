"""Embed AnnData objects, in the style of scanpy: `equipoise.anndata.tsne(adata)`.

There is one function per method. The function `tsne`, for example, embeds the cells, writes the map to
`adata.obsm["X_tsne"]`, writes the parameters, the final loss and the number of iterations to `adata.uns["tsne"]`, and
returns the fitted method. Each function takes the parameters of its method and the arguments below; `random_state` is 0
by default, as in scanpy. `evaluate` measures how far each cell of a map can be trusted.

Parameters
----------
adata : AnnData
    The data, in memory or backed by a file. By default the method uses the neighbour graph written by
    `scanpy.pp.neighbors`, if the graph has enough neighbours; otherwise `obsm["X_pca"]`; otherwise `X`, dense or
    sparse. A printed line says which was used.
use_rep : str, optional
    The table to embed instead: a key of `obsm`, or "X".
layer : str, optional
    The table to embed instead: a key of `layers`.
n_pcs : int, optional
    Number of columns of `obsm["X_pca"]`, or of `obsm[use_rep]`, to embed: the first `n_pcs`; 0 stands for `X`.
neighbors_key : str, optional
    The neighbour graph to use: the `key_added` passed to `scanpy.pp.neighbors`.
key_added : str, optional
    Key in `obsm` and in `uns`, as in scanpy; by default, for `tsne`, "X_tsne" in `obsm` and "tsne" in `uns`.
copy : bool, default=False
    Whether to leave `adata` as it is, and return a copy with the map instead of the fitted method.

Notes
-----
The graph is not used if `metric` or the metric tensor `h` is set, because they apply to the columns of a table. Methods
that need more distances than a graph has (`pca`, `classical_mds`, `mds`, `lle`, `dklle`) never use the graph, and `pca`
embeds `X` unless `use_rep` is set. If `adata` is backed by a file, the map is written to the object in memory; the file
changes only with `adata.write()`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import methods
from .._plural import plural
from .._warn import warn
from .representation import (
    ALL_EDGES,
    FUZZY,
    N_NEIGHBORS,
    SNE,
    GraphUse,
    Parameters,
    Representation,
    check_is_anndata,
    choose_representation,
    read_table,
)
from .stored import describe_fit, map_name
from .trust import evaluate

__all__ = [
    "classical_mds",
    "dklle",
    "dkpca",
    "evaluate",
    "gsne",
    "isomap",
    "laplacian_eigenmaps",
    "lle",
    "mds",
    "pair_embedding",
    "pca",
    "power_sne",
    "sne",
    "spherical_sne",
    "symmetric_sne",
    "tsne",
    "umap",
]


def _make_function(Method: type[Any], graph: GraphUse | None) -> Callable[..., Any]:
    """Return the function that embeds AnnData objects with a method."""
    name = map_name(Method)

    def embed(
        adata: Any,
        *,
        use_rep: str | None = None,
        layer: str | None = None,
        n_pcs: int | None = None,
        neighbors_key: str | None = None,
        key_added: str | None = None,
        copy: bool = False,
        **parameters: Any,
    ) -> Any:
        check_is_anndata(adata)
        if not isinstance(key_added, str | None):
            raise ValueError(f"key_added must be a string, got {key_added!r}")
        if use_rep is not None or layer is not None or n_pcs is not None:
            if neighbors_key is not None:
                named = next(
                    f"{key}={value!r}"
                    for key, value in {"use_rep": use_rep, "layer": layer, "n_pcs": n_pcs}.items()
                    if value is not None
                )
                raise ValueError(f"{named} and neighbors_key={neighbors_key!r} exclude each other; omit one")
            chosen = read_table(adata, use_rep, layer, n_pcs)
        else:
            chosen = choose_representation(adata, name, graph, neighbors_key, parameters)
        method = Method(**{"random_state": 0, **chosen.parameters, **parameters})
        print(f"{name}: using {chosen.name}", flush=True)
        method.fit(chosen.X)
        if copy:
            adata = adata.to_memory() if adata.isbacked else adata.copy()
        keys = (f"X_{name}", name) if key_added is None else (key_added, key_added)
        _write(adata, keys, method, chosen)
        return adata if copy else method

    own = list(inspect.signature(embed).parameters.values())[:-1]
    options = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(Method).parameters.values()]
    options = [p.replace(default=0) if p.name == "random_state" else p for p in options]
    embed.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    embed.__name__ = embed.__qualname__ = name
    embed.__doc__ = (
        f"Embed an AnnData object with `equipoise.{Method.__name__}`. The map is written to obsm['X_{name}'] and the"
        f" parameters to uns['{name}']; `key_added`, if set, replaces both keys."
    )
    return embed


def _write(adata: Any, keys: tuple[str, str], method: Any, chosen: Representation) -> None:
    """Write the map to obsm[first key], and the parameters, the source, the loss and n_iter to uns[second key]."""
    (obsm_key, uns_key), Y = keys, method.embedding_
    if obsm_key in adata.obsm and adata.obsm[obsm_key].shape[1] != Y.shape[1]:
        before = plural(adata.obsm[obsm_key].shape[1], "column")
        warn(f"obsm[{obsm_key!r}] had {before} and now has {Y.shape[1]}; set key_added to keep both maps")
    adata.obsm[obsm_key] = Y
    adata.uns[uns_key] = describe_fit(method, chosen.name, _table_of(method, chosen))


def _table_of(method: Any, chosen: Representation) -> Parameters:
    """Return the table behind the map and the metric of its distances, as arguments of `evaluate`."""
    metric = method.get_params(deep=False).get("metric", "euclidean")
    return {"metric": metric, **chosen.table} if isinstance(metric, str) and metric != "precomputed" else chosen.table


sne = _make_function(methods.SNE, SNE)
symmetric_sne = _make_function(methods.SymmetricSNE, SNE)
tsne = _make_function(methods.TSNE, SNE)
power_sne = _make_function(methods.PowerSNE, SNE)
gsne = _make_function(methods.GSNE, SNE)
spherical_sne = _make_function(methods.SphericalSNE, SNE)
umap = _make_function(methods.UMAP, FUZZY)
dklle = _make_function(methods.DKLLE, None)
dkpca = _make_function(methods.DKPCA, N_NEIGHBORS)
pair_embedding = _make_function(methods.PairEmbedding, None)
pca = _make_function(methods.PCA, None)
classical_mds = _make_function(methods.ClassicalMDS, None)
isomap = _make_function(methods.Isomap, ALL_EDGES)
lle = _make_function(methods.LLE, None)
laplacian_eigenmaps = _make_function(methods.LaplacianEigenmaps, ALL_EDGES)
mds = _make_function(methods.MDS, None)
