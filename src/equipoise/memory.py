"""How much memory a fit will take, before it is started."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .affinities.perplexity import resolve_perplexity
from .engines import choose_engine
from .engines.mesh.mesh_engine import CACHE

FREE = 200e6  # libraries, search buffers and whatever does not grow with the data
GPU_NEIGHBOR = 140  # bytes on a GPU for each neighbour, most of them while P is made symmetric; benchmarks/gpu.py
GPU_NODE = 40  # bytes on a GPU for each node of the padded mesh: charges, transforms there and back, 8 kernels kept
GPU_NODES = 96  # of them per point; 89 were seen on Fashion-MNIST in 2-D
NODES = 64  # nodes of the padded mesh per point; 53 were seen on Fashion-MNIST in 2-D, 3-D was not looked at


def gpu_memory(n: int, D: int, k: int) -> int:
    """Return the most memory of a GPU that n points with D columns and k neighbours each take, in bytes."""
    return int(FREE + 16 * n * D + GPU_NEIGHBOR * n * k)


@dataclass(frozen=True)
class Memory:
    """Bytes at the busiest moment of each phase of a fit, beyond the user's own X; `peak` is the larger."""

    build: int  # the search for neighbours and the affinities
    optimize: int

    @property
    def peak(self) -> int:
        return max(self.build, self.optimize)

    def __str__(self) -> str:
        return f"{self.peak / 1e9:.2f} GB (build {self.build / 1e9:.2f}, optimise {self.optimize / 1e9:.2f})"


def estimate_memory(
    n: int, D: int, *, n_components: int = 2, perplexity: float | str = "auto", engine: str = "auto", kl: bool = True
) -> Memory:
    """Return the most memory that embedding a dense table (n, D) under the Euclidean metric takes: an upper bound,
    with P as full as it can be. In 3-D the size of the mesh is a guess.

    For engine="torch" it is that of the GPU. `kl` says that the divergence is KL on joint affinities, as for t-SNE; the
    others keep a second copy of P.

    >>> print(estimate_memory(1_000_000, 50))
    5.90 GB (build 2.76, optimise 5.90)
    """
    if n < 2 or D < 1 or n_components < 1:
        raise ValueError(f"n must be at least 2, D and n_components at least 1, got {n}, {D} and {n_components}")
    table = 8 * n * D  # X in float64, kept for transform
    points = 80 * n * n_components  # the map, its forces, velocity and gains
    copies = 1 if kl else 2
    name = choose_engine(engine, n, n_components, False)
    if name in ("exact", "reference"):
        entry = 8 if name == "reference" else 4
        square = entry * n * n
        return Memory(int(FREE + 2 * table + square), int(FREE + table + copies * square + points))
    k = min(n - 1, int(np.ceil(3 * float(resolve_perplexity(perplexity, n).max()))))
    if name == "torch":
        return Memory(gpu_memory(n, D, k), int(FREE + 12 * n * D + 40 * n * k + GPU_NODE * GPU_NODES * n + points))
    search = 8 * n * D + 256 * n  # vectors in float32, also by cell; the 32 nearest cells, order and cell of each
    neighbors = (4 + 8) * n * k  # columns in int32, distances in float64
    rows = 4 * n * k  # p_{j|i} in float32
    P = min((4 + 4) * 2 * n * k, 8 * n * n)  # no pair of neighbours mutual: twice the entries, with their columns
    build = table + max(search + neighbors, neighbors + rows, (4 + 4) * n * k + P)
    # Potentials, transforms in work and those kept; or the stored pairs of every sample.
    mesh = 4 * NODES * n * (4 + CACHE / 2) if name == "grid" else 4.0 * 2 * n * k
    # P, the same in the order of the map, and for a moment its columns once more.
    optimize = table + copies * (2 * P + P / 2) + points + mesh
    return Memory(int(FREE + build), int(FREE + optimize))
