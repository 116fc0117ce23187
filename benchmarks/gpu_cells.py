"""Cytometry-like data of any size for benchmarks/gpu.py, and the phases of a fit up to the descent.

Rows of a table of real cells are drawn with replacement, and noise of 0.15 standard deviations is added to each column.
With 24 columns, a fixed linear map with orthonormal rows mixes the columns first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gpu_stages import PERPLEXITY, K

from equipoise.affinities.perplexity import conditional_rows
from equipoise.arrays.device_csr import Rows
from equipoise.arrays.namespace import morton_order
from equipoise.inputs.device_table import DeviceTable
from equipoise.neighbors import search as neighbors
from equipoise.neighbors.gpu import search

NOISE = 0.15  # standard deviations of a column
PHASES = ["data", "neighbours, s", "perplexity, s", "symmetrise, s", "order, s", "start and descent, s", "whole fit, s"]


def resampled(cells: torch.Tensor, n: int, columns: int | None = None) -> torch.Tensor:
    """Return n rows of a table of cells, drawn with replacement, with noise, mixed to `columns` columns."""
    X = (cells - cells.mean(dim=0)) / cells.std(dim=0)
    if columns is not None:
        square = np.random.default_rng(1).standard_normal((columns, columns))
        X = X @ torch.from_numpy(np.linalg.qr(square)[0][: X.shape[1]]).to(X)
        X /= X.std(dim=0)
    generator = torch.Generator(device=X.device).manual_seed(0)
    rows = torch.randint(len(X), (n,), device=X.device, generator=generator)
    return X[rows] + NOISE * torch.randn(n, X.shape[1], device=X.device, generator=generator)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a function takes on the device, and its result."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = function()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def phase_row(name: str, X: torch.Tensor, whole: float) -> list[str]:
    """Return the times of the phases before the descent, each run once after a fit, and what is left of the whole."""
    V = DeviceTable(X, "euclidean")._V
    searching, (indices, d2, _) = timed(lambda: search(V, K, neighbors.MIN_RECALL))
    solving, p = timed(lambda: conditional_rows(d2, PERPLEXITY))
    joining, P = timed(lambda: Rows.of_neighbors(p, indices).symmetrized())
    order = morton_order(X[:, :2].contiguous())
    ordering, _ = timed(lambda: P.permuted(order))
    parts = searching, solving, joining, ordering
    return [name, *(f"{part:.3f}" for part in (*parts, whole - sum(parts), whole))]
