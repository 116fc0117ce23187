"""Fits of methods other than t-SNE in the plane on a GPU, and the same fits on the CPU; gpu.py writes them to its page.

Every method has its default parameters and random_state=0. The CPU uses the engine that "auto" chooses there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import torch

import equipoise as eq

METHODS: dict[str, Callable[..., Any]] = {
    "TSNE(3)": lambda **settings: eq.TSNE(3, **settings),
    "TSNE(5)": lambda **settings: eq.TSNE(5, **settings),
    "PowerSNE()": eq.PowerSNE,
    "GSNE()": eq.GSNE,
    "UMAP()": eq.UMAP,
    "DKLLE()": eq.DKLLE,
    "LaplacianEigenmaps()": eq.LaplacianEigenmaps,
}
COLUMNS = [
    "method", "first fit, s", "later fits, s (least to most)", "iterations", "same bytes", "loss, GPU", "loss, CPU",
    "GPU over CPU", "CPU, s",
]  # fmt: skip
NOTES = """
Default parameters; the GPU time includes the neighbours. The **first fit** of each method comes after those above it,
which have compiled some of its kernels. The losses of the CPU and the GPU are each on their own neighbours. In five
dimensions, and for the loss of UMAP, both losses are those that the fits report: in five dimensions an estimate from
the same sample of pairs.
"""


def rows(X: torch.Tensor, repeats: int, cpu: bool) -> Iterator[list[str]]:
    """Yield a row of the table for each method, fitted to X (n, D), a tensor on a GPU; with `cpu` on the CPU too."""
    return (row(name, make, X, repeats, cpu) for name, make in METHODS.items())


def row(name: str, make: Callable[..., Any], X: torch.Tensor, repeats: int, cpu: bool) -> list[str]:
    """Return the row of one method: `repeats` fits on the GPU after a first one, and with `cpu` one fit on the CPU."""
    took, maps = [], []
    for _ in range(1 + repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fit = make(engine="torch", random_state=0).fit(X)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
        maps = [*maps[-1:], fit.embedding_]
    on_cpu = ["–"] * 3
    if cpu:
        on_host = X.cpu().numpy().astype(np.float64)
        start = time.perf_counter()
        same = make(random_state=0).fit(on_host)
        seconds = time.perf_counter() - start
        on_cpu = [f"{same.loss_:.5g}", f"{fit.loss_ / same.loss_ - 1:+.2%}", f"{seconds:.1f}"]
    later = took[1:]
    return [
        name,
        f"{took[0]:.2f}",
        f"{median(later):.3f} ({min(later):.3f} to {max(later):.3f})",
        str(fit.n_iter_),
        "yes" if bool((maps[0] == maps[-1]).all()) else "no",
        f"{fit.loss_:.5g}",
        *on_cpu,
    ]
