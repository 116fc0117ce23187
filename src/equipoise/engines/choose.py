"""Chooses and creates engines, chooses the device, and saves and restores the state of an engine for checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from .._suggest import did_you_mean
from .._types import Matrix
from ..arrays.namespace import is_tensor, main_array
from ..geometry import Pairs
from ..linalg.pca import openmp_threads
from .base import Engine, Resumable, SamplesPairs, require_no_state
from .exact import Exact
from .mesh.mesh_engine import Grid
from .reference import Reference
from .sampled import HIGH_CROSSOVER, Sampled

ENGINES = ("auto", "reference", "exact", "grid", "sampled", "torch")
DEVICES = ("auto", "cpu", "cuda")
NEGATIVE_SAMPLING = "negative_sampling"  # steps along random pairs, with the engine "sampled" for the loss

# Number of points from which the mesh is used, by dimension. Measured on MNIST with 2 threads, whole fits, all pairs
# against mesh: d = 1, 600 points 0.14 s, 0.14 s; d = 2, 1000 points 0.60 s, 0.56 s; d = 3, 1800 points 1.9 s, 2.6 s,
# 3000 points 5.0 s, 3.1 s.
CROSSOVER = {1: 600, 2: 1000, 3: 2300}


def samples_edges(engine: Any) -> bool:
    """Return whether the parameter `engine` of a method is "negative_sampling"."""
    return isinstance(engine, str) and engine == NEGATIVE_SAMPLING


def engine_for_sampling(requested: str) -> str:
    """Return the name of the engine that evaluates the loss: "sampled" if `requested` is "negative_sampling"."""
    return "sampled" if samples_edges(requested) else requested


def choose_engine(name: str, n: int, d: int, all_pairs: bool, pairs: Pairs | None = None) -> str:
    """Return `name`, or for "auto" the name of the fastest suitable engine for n points in d dimensions.

    Parameters
    ----------
    name : str
        One of `ENGINES`.
    n, d : int
    all_pairs : bool
        Whether the divergence needs P for every pair.
    pairs : Pairs, optional
        How points are compared, in a curved space.

    Raises
    ------
    ValueError
        If the name is unknown, or the engine cannot work in d dimensions, with all pairs or in the space.
    """
    check_engine_name(name, ENGINES)
    if name == "grid" and d > 3:
        others = 'engine="sampled", or "exact" for few points' if pairs is None else 'engine="exact"'
        raise ValueError(f'engine="grid" works in 1, 2 or 3 dimensions, not {d}; use {others}')
    if name == "sampled" and all_pairs:
        raise ValueError(
            'engine="sampled" sums a sample of the pairs, but this divergence needs all pairs; use engine="exact"'
        )
    if name == "torch" and all_pairs:
        raise ValueError(
            'engine="torch" stores P for the nearest neighbours only, but this divergence needs P for all pairs;'
            ' use engine="exact"'
        )
    if pairs is not None:
        return _choose_curved(name, n, d, all_pairs, pairs)
    if name != "auto":
        return name
    if all_pairs or n < CROSSOVER.get(d, HIGH_CROSSOVER):
        return "exact"
    return "grid" if d <= 3 else "sampled"


def _choose_curved(name: str, n: int, d: int, all_pairs: bool, pairs: Pairs) -> str:
    """Return the name of an engine for a curved space: one that sums over all pairs, or the mesh if there is one."""
    has_mesh = pairs.native() is not None
    if name == "grid" and not has_mesh:
        raise ValueError('engine="grid" has no mesh for this geometry; use engine="exact" or "reference"')
    if name not in ("auto", "reference", "exact", "grid"):
        others = '"grid", "exact" or "reference"' if has_mesh else '"exact" or "reference"'
        raise ValueError(f"engine={name!r} works in flat space and on the sphere only; use engine={others}")
    if name != "auto":
        return name
    return "exact" if all_pairs or d > 3 or not has_mesh or n < CROSSOVER[d] else "grid"


def check_engine_name(engine: Any, known: Sequence[str] = (*ENGINES, NEGATIVE_SAMPLING)) -> None:
    """Raise ValueError if `engine` is not one of the known names."""
    if not (isinstance(engine, str) and engine in known):
        names = ", ".join(repr(name) for name in known if name != NEGATIVE_SAMPLING)
        raise ValueError(f"unknown engine {engine!r}; {did_you_mean(engine, known, f'choose from {names}')}")


def check_device_name(device: Any) -> None:
    """Raise ValueError if `device` is not one of `DEVICES`."""
    if not (isinstance(device, str) and device in DEVICES):
        raise ValueError(f"device must be one of {', '.join(map(repr, DEVICES))}, got {device!r}")


def choose_device(engine: str, device: str, X: Any = None) -> tuple[str, str]:
    """Return the engine and the device, "cpu" or "cuda", for the user's parameters.

    engine="auto" becomes "torch" if device="cuda", or if device="auto" and X is on a GPU; X is then a tensor, or a pair
    of tensors with the indices and the distances of neighbours. With engine="torch", device="auto" means the GPU if
    there is one, otherwise the CPU. Every other engine runs on the CPU.

    Raises
    ------
    ValueError
        If the device is unknown or not available, or if the engine cannot use the device.
    ImportError
        If engine="torch" is needed and PyTorch is not installed.
    """
    check_device_name(device)
    X = main_array(X)
    on_gpu = is_tensor(X) and X.is_cuda
    if engine == "auto" and (device == "cuda" or (on_gpu and device == "auto")):
        engine = "torch"
    if engine != "torch":
        if device == "cuda":
            raise ValueError(f'device="cuda" requires engine="torch" or "auto"; engine={engine!r} runs on the CPU')
        return engine, "cpu"
    if find_spec("torch") is None:
        raise ImportError('engine="torch" needs PyTorch: pip install "equipoise[gpu]", or torch itself')
    import torch

    if torch.get_num_threads() != openmp_threads(torch.get_num_threads()):
        torch.set_num_threads(1)  # this process was forked, and faiss may have used the same OpenMP before the fork
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise ValueError(f'device="cuda", but PyTorch {torch.__version__} finds no GPU; use device="cpu" or "auto"')
    return engine, "cuda" if available and device != "cpu" else "cpu"


def make_engine(
    name: str,
    n_threads: int,
    tol: float,
    seed: int = 0,
    device: str = "cpu",
    *,
    deterministic: bool = True,
    pairs: Pairs | None = None,
) -> Engine:
    """Return a new engine.

    Parameters
    ----------
    name : str
        One of `ENGINES` other than "auto".
    n_threads : int
    tol : float
        For "grid" and "torch": the maximum relative error of the force.
    seed : int, default=0
        For "sampled", and for "torch" in more than three dimensions: the seed of the sample of pairs.
    device : str, default="cpu"
        For "torch": "cpu" or "cuda". The other engines run on the CPU.
    deterministic : bool, default=True
        For "torch" on a GPU: whether every run gives identical results, bit for bit.
    pairs : Pairs, optional
        How points are compared, in a curved space; such spaces have the engines that `choose_engine` allows.
    """
    if pairs is not None:
        from .mesh.curved_mesh import make_curved_engine  # a fit in the plane does not pass through it

        return make_curved_engine(name, n_threads, tol, pairs)
    if name == "torch":
        from .torch.engine import Torch  # PyTorch is optional, and slow to import

        return Torch(n_threads, tol, device, deterministic, seed)
    if name == "reference":
        return Reference()
    if name == "sampled":
        return Sampled(n_threads, seed)
    return Grid(n_threads, tol) if name == "grid" else Exact(n_threads)


def sum_stored_pairs(engine: Engine, P: Matrix, d: int) -> None:
    """If the engine samples pairs in d dimensions, make every sample include the pairs stored in P."""
    if isinstance(engine, SamplesPairs):
        engine.sum_exactly(P, d)


def engine_settings(engine: Engine) -> dict[str, Any]:
    """Return the parameters of an engine that affect results; a checkpoint with other values is rejected."""
    return engine.settings if isinstance(engine, Resumable) else {}


def engine_state(engine: Engine) -> list[dict[str, Any]]:
    """Return the state that a checkpoint stores for an engine, as plain values; empty for most engines."""
    return engine.state() if isinstance(engine, Resumable) else []


def restore_engine(engine: Engine, state: list[dict[str, Any]]) -> None:
    """Restore the state returned by `engine_state`, replacing the current one.

    Raise ValueError if `state` is not empty although this kind of engine has no state.
    """
    if isinstance(engine, Resumable):
        engine.restore(state)
    else:
        require_no_state(engine, state)
