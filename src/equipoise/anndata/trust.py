"""Measure how far each cell of a map can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._names import suggest_column
from .._suggest import did_you_mean
from ..evaluate import Report
from ..evaluate import evaluate as measure
from .representation import check_is_anndata, read_table


def evaluate(
    adata: Any,
    basis: str,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    n_pcs: int | None = None,
    labels: str | None = None,
    key_added: str | None = None,
    **options: Any,
) -> Report:
    """Measure how far each cell of a map can be trusted, and write the results to `obs` and `uns`.

    For the map "tsne" these are `obs["tsne_trust"]`, 1 if all cells near a cell in the map are near in the data;
    `obs["tsne_continuity"]`, 1 if all cells near it in the data are near in the map; and `obs["tsne_recall"]`, the
    fraction of its neighbours in the data that are its neighbours in the map. `uns["tsne_trust"]` contains their means
    and the sentences of the report. Above 20,000 cells a sample of 20,000 is measured; the others are NaN.

    Parameters
    ----------
    adata : AnnData
    basis : str
        The map, as in `scanpy.pl.embedding`: a key of `obsm`, with or without "X_".
    use_rep, layer, n_pcs : optional
        The table with which the map is compared, as for the methods; by default the table from which the map, or its
        neighbour graph, was computed, else `obsm["X_pca"]`, else `X`.
    labels : str, optional
        Column of `obs` with the class of each cell; adds measures of classes to the report.
    key_added : str, optional
        The beginning of the names, instead of "tsne".
    **options
        `k`, `metric`, `geometry`, `n_jobs` and `random_state` of `equipoise.evaluate`. By default `metric` is the one
        from which the map was computed.

    Returns
    -------
    report : Report
        As returned by `equipoise.evaluate`.
    """
    check_is_anndata(adata)
    key = _find_map(adata, basis)
    if labels is not None and labels not in adata.obs:
        known = suggest_column(str(labels), list(map(str, adata.obs.columns)))
        raise ValueError(f"labels={labels!r} is not a column of adata.obs; {known}")
    table, metric = _recorded_table(adata, key, "geometry" in options)
    given = {"use_rep": use_rep, "layer": layer, "n_pcs": n_pcs}
    chosen = read_table(adata, **(given if any(value is not None for value in given.values()) else table))
    classes = None if labels is None else adata.obs[labels].to_numpy()
    report = measure(chosen.X, np.asarray(adata.obsm[key]), classes, **{"metric": metric, **options})
    _write(adata, key.removeprefix("X_") if key_added is None else key_added, report, chosen.name)
    return report


def _find_map(adata: Any, basis: str) -> str:
    """Return the key of `obsm` for "tsne" or "X_tsne"."""
    for key in (basis, f"X_{basis}"):
        if key in adata.obsm:
            return key
    known = ", ".join(map(repr, adata.obsm))
    its_keys = did_you_mean(basis, adata.obsm, f"its keys are {known}" if known else "it has no keys")
    raise ValueError(f"basis={basis!r} is not a key of adata.obsm; {its_keys}")


def _recorded_table(adata: Any, key: str, has_geometry: bool) -> tuple[dict[str, Any], str | None]:
    """Return the table from which a map was computed, as arguments of `read_table`, and the metric.

    Both are empty if they were not recorded. Raise if the map is in a curved space and the user did not name it.
    """
    stored = next((adata.uns[name] for name in (key, key.removeprefix("X_")) if name in adata.uns), None)
    if not isinstance(stored, Mapping):
        return {}, None
    geometry = dict(stored.get("params", {})).get("geometry", "plane")
    if geometry != "plane" and not has_geometry:
        raise ValueError(f"obsm[{key!r}] is a map in the space {geometry}; pass this space as geometry=")
    table = dict(stored.get("table", {}))
    return table, table.pop("metric", None)


def _write(adata: Any, name: str, report: Report, source: str) -> None:
    """Write the measures of each cell to `obs`, their means and the sentences of the report to `uns`."""
    columns = {"trust": report.trust, "continuity": report.continuity_of_points, "recall": report.kept}
    for ending, values in columns.items():
        column = np.full(report.n, np.nan)
        column[report.points] = values
        adata.obs[f"{name}_{ending}"] = column
    adata.uns[f"{name}_trust"] = {
        "trustworthiness": float(report.trustworthiness),
        "continuity": float(report.continuity),
        "recall": float(report.recall),
        "k": report.k,
        "source": source,
        "readings": np.array(report.sentences, dtype=object),
    }
