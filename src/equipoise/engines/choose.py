"""The choice of the engine and of the device."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from ..arrays.namespace import is_tensor
from .base import Engine
from .exact import Exact
from .mesh.grid import Grid
from .reference import Reference
from .sampled import Sampled

ENGINES = ("auto", "reference", "exact", "grid", "sampled", "torch")


def choose_engine(name: str, n: int, d: int, all_pairs: bool) -> str:
    """Return the engine for n points in d dimensions: the one named, or for "auto" the fastest that can do it."""
    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(map(repr, ENGINES))}, got {name!r}")
    if name == "grid" and d > 3:
        raise ValueError(
            f'engine="grid" works in 1, 2 or 3 dimensions, not {d}; use engine="sampled", or "exact" for few points'
        )
    if name == "sampled" and all_pairs:
        raise ValueError('engine="sampled" sees a part of the pairs, and this divergence needs all; use engine="exact"')
    if name == "torch" and all_pairs:
        raise ValueError(
            'engine="torch" takes P on the nearest pairs, and this divergence needs all; use engine="exact"'
        )
    if name != "auto":
        return name
    if all_pairs or n < CROSSOVER.get(d, HIGH_CROSSOVER):
        return "exact"
    return "grid" if d <= 3 else "sampled"


# Points from which the mesh is used. Measured, 2 threads, whole fits on MNIST, all pairs against mesh: d = 1, 600
# points 0.14 s, 0.14 s; d = 2, 1000 points 0.60 s, 0.56 s; d = 3, 1800 points 1.9 s, 2.6 s, 3000 points 5.0 s, 3.1 s.
CROSSOVER = {1: 600, 2: 1000, 3: 2300}


# Points from which partners are sampled in more dimensions. An iteration takes about as long either way at 600 points,
# and with all pairs five times as long at 3000 (MNIST, d = 5: 26 ms on a core, measured); below, that is affordable.
HIGH_CROSSOVER = 3000


DEVICES = ("auto", "cpu", "cuda")


def choose_device(engine: str, device: str, X: Any = None) -> tuple[str, str]:
    """Return the engine to ask for and where it runs, "cpu" or "cuda": a GPU that is named is the engine "torch"'s.

    "auto" is a GPU for the engine "torch" if there is one; nothing makes the engine "auto" look for a GPU but a tensor
    X that is on one.
    """
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(map(repr, DEVICES))}, got {device!r}")
    on_gpu = is_tensor(X) and X.is_cuda
    if engine == "auto" and (device == "cuda" or (on_gpu and device == "auto")):
        engine = "torch"
    if engine != "torch":
        if device == "cuda":
            raise ValueError(f'device="cuda" is for engine="torch"; engine={engine!r} runs on the CPU')
        return engine, "cpu"
    if find_spec("torch") is None:
        raise ImportError('engine="torch" needs PyTorch: pip install "equipoise[gpu]", or torch itself')
    import torch

    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        raise ValueError(f'device="cuda", but PyTorch {torch.__version__} sees no GPU; use device="cpu" or "auto"')
    return engine, "cuda" if there and device != "cpu" else "cpu"


def make_engine(
    name: str, n_threads: int, tol: float, seed: int = 0, device: str = "cpu", *, deterministic: bool = True
) -> Engine:
    """Return the engine called `name`; `tol` is for the mesh, `seed` for the sample, the rest for PyTorch."""
    if name == "torch":
        from .torch.engine import Torch  # PyTorch is heavy, and an extra

        return Torch(n_threads, tol, device, deterministic, seed)
    if name == "reference":
        return Reference()
    if name == "sampled":
        return Sampled(n_threads, seed)
    return Grid(n_threads, tol) if name == "grid" else Exact(n_threads)
