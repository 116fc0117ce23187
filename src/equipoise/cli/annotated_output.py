"""Add maps to the AnnData file from which they were made."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from .._types import Array
from ..anndata.stored import add_map, count_cells, describe_fit, map_name
from .outputs import Outputs

SUFFIX = ".h5ad"


class AnnotatedOutput:
    """A copy of the AnnData file of the data, with the map in `obsm`.

    Parameters
    ----------
    source : Path
        The file of the data.
    name : str
        The map is written to `obsm["X_<name>"]`.
    table : dict
        The table that was embedded, as arguments of `equipoise.anndata.evaluate`; empty if it was prepared.
    method : estimator
        The method that computes the map.
    """

    def __init__(self, source: Path, name: str, table: dict[str, str], method: Any):
        self.source, self.name, self.table, self.method = source, name, table, method

    def write(self, path: Path, Y: Array) -> None:
        """Write the copy with the map Y (n, d)."""
        add_map(self.source, path, self.name, Y, describe_fit(self.method, self.source.name, self.table))


def annotated_output(
    args: argparse.Namespace, outputs: Outputs, method: Any, n: int, is_prepared: bool
) -> AnnotatedOutput | None:
    """Return the output for a map of an .h5ad file in an .h5ad file; None for other files.

    Raise if the map has fewer rows than the file.
    """
    if outputs.map is None or args.transpose:
        return None
    if not (args.data.lower().endswith(SUFFIX) and outputs.map.suffix.lower() == SUFFIX):
        return None
    if (cells := count_cells(Path(args.data))) != n:
        raise ValueError(
            f"{args.data} has {cells:,} rows, but {n:,} are embedded, so the map cannot be added to it; write it to"
            " another format, such as --out map.csv"
        )
    table = {} if is_prepared else {"layer": args.layer} if args.layer else {"use_rep": args.use_rep or "X"}
    if table and isinstance(metric := method.get_params().get("metric", "euclidean"), str):
        table["metric"] = metric
    return AnnotatedOutput(Path(args.data), map_name(type(method)), table, method)
