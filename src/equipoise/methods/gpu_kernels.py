"""Compiles the Triton kernels of a fit on a GPU while the fit begins, or all of them for `equipoise info --warm-up`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from itertools import product
from types import SimpleNamespace
from typing import Any

import torch

from ..affinities import perplexity_triton
from ..affinities.perplexity import HALVINGS
from ..arrays import sums_triton as sums
from ..arrays.triton_kernels import META, Variant, prepare
from ..engines.torch import fused
from ..neighbors import sieve_triton as sieve
from ..neighbors.gpu import FEW
from ..optimize import step_triton

N = 4096  # points in recorded launches; the kernels do not depend on it


def prepare_fit(n: int, D: int, k: int, d: int) -> list[Future[Variant]]:
    """Begin to compile the kernels for a map in d dimensions of n points with D columns and k neighbours."""
    found = prepare_search(D) if n >= FEW else []
    return [*found, *prepare_perplexity(k), *(prepare_descent(d) if d <= 3 else [])]


def prepare_search(D: int) -> list[Future[Variant]]:
    """Begin to compile the kernels of a neighbour search among points with D columns."""
    return prepare(("search", sieve.padded(D)), [lambda: sieve.launch_on_meta(D)])


def prepare_perplexity(k: int) -> list[Future[Variant]]:
    """Begin to compile the kernel that computes affinities of a given perplexity from k neighbours."""
    rows = [lambda: perplexity_triton.conditional(_empty(N, k), 30.0, HALVINGS)]
    return prepare(("perplexity", perplexity_triton.padded(k)), rows)


def prepare_descent(d: int) -> list[Future[Variant]]:
    """Begin to compile the kernels of a descent in d = 1, 2 or 3 dimensions, roughly in the order of their first use."""
    return prepare(("descent", d), list(descent_launches(d)))


def descent_launches(d: int) -> list[Callable[[], Any]]:
    """Return functions that launch the kernels of a descent in d dimensions on tensors without memory."""
    Y, box, one, flag = _empty(N, d), _empty(2, d), _empty(dtype=torch.float64), _empty(dtype=torch.int32)
    table = SimpleNamespace(ends=(0.0, 1.0), scale=1.0, first=0, segments=_empty(1, 4), rational=None)
    rational = SimpleNamespace(**{**vars(table), "rational": (1.0, 1.0)})
    A = SimpleNamespace(
        shape=(N, N), indptr=_empty(N + 1, dtype=torch.int64), indices=_empty(N, dtype=torch.int32), data=_empty(N)
    )
    state = [Y, Y, Y, one]
    rule = 0.2, 0.8, 0.5, 0.01, 5.0
    first: list[Callable[[], Any]] = [
        lambda: sums.centered(Y),
        lambda: fused.edges(Y, A, table, True),
        lambda: sums.total(_empty(N)),
        lambda: fused.bounding_box(Y),
        lambda: fused.direct(Y, Y, None, table, True),
        lambda: fused.edges(Y, A, rational, False),
        lambda: fused.edges(Y, A, table, False),
        lambda: fused.flag_extent(box, flag, (1.0,) * d, 0.0),
        lambda: fused.accept_step(flag, flag, state, state),
        lambda: fused.transpose_padded(_empty(1, 2, 2, dtype=torch.complex64), 4),
    ]
    for charges, dtype in product((None, _empty(N, 2)), (torch.float64, torch.float32)):
        first += [lambda dtype=dtype, charges=charges: _field(d, dtype, Y, box, charges)]
    for dtype, number in product((torch.float64, torch.float32), (0.5, one)):
        gradient = _empty(N, d, dtype=dtype)
        first += [lambda g=gradient, number=number: step_triton.step(g, Y, Y, 0.1, number, *rule)]
    return first


def _field(d: int, dtype: torch.dtype, Y: torch.Tensor, box: torch.Tensor, charges: torch.Tensor | None) -> None:
    mesh = SimpleNamespace(size=(8,) * d, half=[1.0] * d, h=0.5, copies=1, dtype=dtype, fixed_point=True)
    unit = base = _empty(1, dtype=torch.float64)
    padded = fused.spread(mesh, Y, box, charges, unit)
    fused.gather(mesh, Y, box, padded, base)


def _empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=META)
