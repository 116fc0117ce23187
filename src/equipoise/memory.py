"""Estimate the memory that a fit needs, and raise MemoryError before a computation that would not fit."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config

from ._plural import plural
from .affinities.perplexity import resolve_perplexity
from .arrays.blocks import FIXED_SORTED
from .arrays.memory_limits import address_space_left, available_memory, require_memory
from .arrays.namespace import is_integer
from .engines import choose_engine
from .engines.mesh.mesh_engine import CACHE
from .inputs import METRICS
from .neighbors.vectors import VECTORS

# Bytes that do not grow with the data: 226 MB for the libraries, measured, and three blocks of the largest size
# (arrays/blocks.py).
OVERHEAD = 450e6
# Copies of the table in float64 that a metric adds during the search, such as rows of unit length.
COPIES = {"cosine": 2, "correlation": 3, "inner_product": 3}
GPU_OVERHEAD = 300e6  # bytes on a GPU for the context and buffers of libraries; measured
# Bytes on a GPU per neighbour, derived: index and affinity of each in the rows (8), up to two entries of P (16), and
# these once more while tiles of P are joined, or P in the order of the map. A tile needs GPU_SORTED for each entry that
# is sorted.
GPU_NEIGHBOR, GPU_SORTED = 40, 64
GPU_SEARCH = 2e9  # bytes on a GPU for the distances of a tile in the search; less for few points
GPU_NODE = 40  # bytes on a GPU per node of the padded mesh: charges, transforms, inverse transforms, 8 cached kernels
GPU_NODES = 96  # nodes of the padded mesh per point on a GPU; 89 were measured on Fashion-MNIST in 2-D
NODES = 64  # nodes of the padded mesh per point; 53 were measured on Fashion-MNIST in 2-D, 3-D was not measured
LITTLE = 100e6  # bytes up to which `transform` skips the check, because it takes longer than placing a row; chosen
LIBRARIES = 500e6  # bytes of address space for libraries that a first fit or transform loads; 470 MB on two cores
BLAS_THREAD = 200e6  # bytes of address space per further core for a BLAS that is loaded: a stack, a buffer, an arena
THREAD = 80e6  # bytes of address space per thread: a stack of 8 MB and an arena of malloc, 64 MB


def require_address_space(n_bytes: float, n_threads: int, what: str) -> None:
    """Raise MemoryError if a resource limit leaves too little address space for a computation.

    The computation needs space for arrays of `n_bytes` bytes in all, for BLAS and other libraries, and for `n_threads`
    threads. The check is necessary because BLAS and OpenMP end the process or hang when an allocation fails, whereas
    NumPy and the compiled core raise MemoryError.
    """
    left = address_space_left()
    need = n_bytes + LIBRARIES + n_threads * THREAD + max(0, _blas_threads() - 2) * BLAS_THREAD
    if need > left:
        raise MemoryError(
            f"{what} needs about {need / 1e9:.2g} GB of address space, but the limits of this process (ulimit -v or"
            f" -d) leave {left / 1e9:.2g} GB. Raise the limits, use fewer rows or n_jobs=1, or set the"
            " environment variable OPENBLAS_NUM_THREADS=1."
        )


def _blas_threads() -> int:
    """Return how many threads the BLAS of faiss starts when faiss is imported; 0 if faiss is imported already."""
    if "faiss" in sys.modules:
        return 0
    stated = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS") or ""
    return int(stated) if stated.isdecimal() and int(stated) > 0 else os.cpu_count() or 1


def gpu_memory(n: int, D: int, k: int) -> int:
    """Return an upper bound, in bytes, of the GPU memory needed to compute P from k neighbours per row of X (n, D)."""
    tile = max(min(GPU_SEARCH, 8.0 * n * n), GPU_SORTED * min(2 * n * k, FIXED_SORTED))
    return int(GPU_OVERHEAD + 28 * n * D + GPU_NEIGHBOR * n * k + tile)


def host_memory(n: int, D: int, d: int, k: int, engine: str, metric: Any, *, kl: bool) -> float:
    """Return an upper bound, in bytes, of the main memory of a fit, without the fixed overhead of the libraries.

    Parameters are those of `estimate_memory`; k is the number of neighbours of a point, d the dimension of the map.
    engine="cuda" means "torch" on a GPU; the main memory then contains only the table in float64, a copy of the table,
    and the map.
    """
    if engine == "cuda":
        return 16.0 * n * D + 80.0 * n * d
    by_name = isinstance(metric, str) and metric in METRICS
    need = estimate_memory(
        n,
        D,
        n_components=d,
        perplexity=max(1.0, k / 3),
        engine=engine,
        kl=kl,
        metric=metric if by_name else "minkowski",  # like a function, computed in blocks
    )
    return need.peak - (GPU_OVERHEAD if engine == "torch" else OVERHEAD)


# Bytes per pair of points of a method that solves for eigenvectors of all pairs: four matrices (n, n) in float64, which
# are the distances, a copy or their transpose, their squares, and the Gram matrix; derived.
EIGEN_PAIR = 32.0
DISTANCE_PAIR = 16.0  # the same of a method that needs distances and their squares


def require_memory_for_pairs(n: int, bytes_per_pair: float, method: str, advice: str) -> None:
    """Raise MemoryError if a method that stores `bytes_per_pair` for n² pairs needs more memory than is available."""
    what = f"{method} compares all pairs of {n:,} points, which"
    require_memory(bytes_per_pair * float(n) ** 2, what, available_memory(), advice)


def require_memory_for_new_rows(m: int, bytes_per_row: float, n: int, method: str) -> None:
    """Raise MemoryError if placing m new rows among n points needs more memory than is available.

    Nothing is checked if at most `LITTLE` bytes are needed.
    """
    if (n_bytes := m * bytes_per_row) > LITTLE:
        what = f"{method}.transform compares {plural(m, 'row')} with {n:,} points, which"
        require_memory(n_bytes, what, available_memory(), "transform fewer rows at a time")


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
    n: int,
    D: int,
    *,
    n_components: int = 2,
    perplexity: float | str = "auto",
    engine: str = "auto",
    kl: bool = True,
    metric: str = "euclidean",
) -> Memory:
    """Return an upper bound of the memory needed to embed a dense table (n, D).

    The bound assumes that no two points are mutual neighbours, so that the affinities P have as many entries as
    possible. For a map in three dimensions the size of the mesh (the FFT grid of engine="grid") is a guess.

    Parameters
    ----------
    n, D : int
        Rows and columns of X.
    n_components : int, default=2
        Dimension of the map.
    perplexity : float or "auto", default="auto"
        As in `TSNE`.
    engine : str, default="auto"
        As in `TSNE`; with "torch" the result is the GPU memory.
    kl : bool, default=True
        Whether the loss is KL on joint affinities, as for t-SNE; other losses store further arrays of the size of P.
    metric : str, default="euclidean"
        One of the names that `TSNE` accepts. For metrics that the neighbour search does not convert to vectors,
        distances are computed in blocks of up to scikit-learn's `working_memory`.

    Returns
    -------
    Memory

    Examples
    --------
    >>> print(estimate_memory(1_000_000, 50))
    6.15 GB (build 3.01, optimise 6.15)
    """
    if not all(map(is_integer, (n, D, n_components))) or n < 2 or D < 1 or n_components < 1:
        raise ValueError(
            "n must be an integer >= 2, and D and n_components integers >= 1;"
            f" got n={n!r}, D={D!r}, n_components={n_components!r}"
        )
    n, D, n_components = int(n), int(D), int(n_components)
    if max(n, D, n_components) >= 2**63:
        raise ValueError(f"n, D and n_components must be below 2**63, got n={n}, D={D}, n_components={n_components}")
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}")
    table = 8 * n * D  # X in float64, stored for transform
    points = 80 * n * n_components  # embedding, forces, velocity and gains
    copies = 1 if kl else 2
    name = choose_engine(engine, n, n_components, False)
    if name in ("exact", "reference"):
        entry = 8 if name == "reference" else 4
        square = entry * n * n
        built = (2 if name == "reference" else 1) * square  # P and its transpose
        stored = (1 if kl else 3) * square  # other losses: P, a power of it, and their difference
        return Memory(int(OVERHEAD + 2 * table + built), int(OVERHEAD + table + stored + points))
    k = min(n - 1, int(np.ceil(3 * float(resolve_perplexity(perplexity, n).max()))))
    if name == "torch":
        return Memory(
            gpu_memory(n, D, k), int(GPU_OVERHEAD + 12 * n * D + 48 * n * k + GPU_NODE * GPU_NODES * n + points)
        )
    search = (
        8 * n * D + _metric_bytes(n, D, metric) + 256 * n
    )  # two float32 copies of the vectors; the 32 nearest cells, order and cell of each row
    neighbors = (4 + 8) * n * k  # indices in int32, distances in float64
    rows = 4 * n * k  # p_{j|i} in float32
    P = min((4 + 4) * 2 * n * k, 8 * n * n)  # no mutual neighbours: twice the entries, with their indices
    build: float = table + max(search + neighbors, neighbors + rows, (4 + 4) * n * k + P)
    # Potentials, transforms in use and in the cache; or the stored pairs of every sample.
    mesh = 4 * NODES * n * (4 + CACHE / 2) if name == "grid" else 4.0 * 2 * n * k
    # P, P in the order of the embedding, and temporarily its indices once more.
    optimize = table + copies * (2 * P + P / 2) + points + mesh
    return Memory(int(OVERHEAD + build), int(OVERHEAD + optimize))


def _metric_bytes(n: int, D: int, metric: str) -> float:
    """Return the bytes that a metric adds to those of a Euclidean search."""
    if metric in VECTORS:
        return 8.0 * n * D * COPIES.get(metric, 0)
    return min(16.0 * n * n, 2.0 * 2**20 * get_config()["working_memory"])  # a block of distances, and their order
