"""Estimates of the memory that a fit needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .affinities.perplexity import resolve_perplexity
from .arrays.namespace import is_integer
from .engines import choose_engine
from .engines.mesh.mesh_engine import CACHE

OVERHEAD = 200e6  # bytes for libraries, search buffers and all else that does not grow with the data; measured
GPU_NEIGHBOR = 140  # bytes on a GPU per neighbour, most of them while P is symmetrised; measured by benchmarks/gpu.py
GPU_NODE = 40  # bytes on a GPU per node of the padded mesh: charges, transforms, inverse transforms, 8 cached kernels
GPU_NODES = 96  # nodes of the padded mesh per point on a GPU; 89 were measured on Fashion-MNIST in 2-D
NODES = 64  # nodes of the padded mesh per point; 53 were measured on Fashion-MNIST in 2-D, 3-D was not measured


def gpu_memory(n: int, D: int, k: int) -> int:
    """Return an upper bound, in bytes, of the GPU memory for n points with D columns and k neighbours each."""
    return int(OVERHEAD + 16 * n * D + GPU_NEIGHBOR * n * k)


@dataclass(frozen=True)
class Memory:
    """Peak memory of the two phases of a fit, in bytes, not counting the user's X.

    Attributes
    ----------
    build : int
        Peak of the neighbour search and the affinities.
    optimize : int
        Peak of the optimisation.
    peak : int
        The larger of the two.
    """

    build: int
    optimize: int

    @property
    def peak(self) -> int:
        return max(self.build, self.optimize)

    def __str__(self) -> str:
        return f"{self.peak / 1e9:.2f} GB (build {self.build / 1e9:.2f}, optimise {self.optimize / 1e9:.2f})"


def estimate_memory(
    n: int, D: int, *, n_components: int = 2, perplexity: float | str = "auto", engine: str = "auto", kl: bool = True
) -> Memory:
    """Return an upper bound of the memory needed to embed a dense table (n, D) under the Euclidean metric.

    The bound assumes that no two points are mutual neighbours, so that P has as many entries as possible. In three
    dimensions the size of the mesh is a guess.

    Parameters
    ----------
    n, D : int
        Rows and columns of X.
    n_components : int, default=2
    perplexity : float or "auto", default="auto"
    engine : str, default="auto"
        With "torch" the result is the GPU memory.
    kl : bool, default=True
        Whether the loss is KL on joint affinities, as for t-SNE; other losses store a second copy of P.

    Returns
    -------
    Memory

    Examples
    --------
    >>> print(estimate_memory(1_000_000, 50))
    5.90 GB (build 2.76, optimise 5.90)
    """
    if not all(map(is_integer, (n, D, n_components))) or n < 2 or D < 1 or n_components < 1:
        raise ValueError(
            f"n must be at least 2, D and n_components at least 1; got n={n}, D={D}, n_components={n_components}"
        )
    n, D, n_components = int(n), int(D), int(n_components)
    table = 8 * n * D  # X in float64, stored for transform
    points = 80 * n * n_components  # embedding, forces, velocity and gains
    copies = 1 if kl else 2
    name = choose_engine(engine, n, n_components, False)
    if name in ("exact", "reference"):
        entry = 8 if name == "reference" else 4
        square = entry * n * n
        return Memory(int(OVERHEAD + 2 * table + square), int(OVERHEAD + table + copies * square + points))
    k = min(n - 1, int(np.ceil(3 * float(resolve_perplexity(perplexity, n).max()))))
    if name == "torch":
        return Memory(gpu_memory(n, D, k), int(OVERHEAD + 12 * n * D + 40 * n * k + GPU_NODE * GPU_NODES * n + points))
    search = 8 * n * D + 256 * n  # two float32 copies of the vectors; the 32 nearest cells, order and cell of each row
    neighbors = (4 + 8) * n * k  # indices in int32, distances in float64
    rows = 4 * n * k  # p_{j|i} in float32
    P = min((4 + 4) * 2 * n * k, 8 * n * n)  # no mutual neighbours: twice the entries, with their indices
    build = table + max(search + neighbors, neighbors + rows, (4 + 4) * n * k + P)
    # Potentials, transforms in use and in the cache; or the stored pairs of every sample.
    mesh = 4 * NODES * n * (4 + CACHE / 2) if name == "grid" else 4.0 * 2 * n * k
    # P, P in the order of the embedding, and temporarily its indices once more.
    optimize = table + copies * (2 * P + P / 2) + points + mesh
    return Memory(int(OVERHEAD + build), int(OVERHEAD + optimize))
