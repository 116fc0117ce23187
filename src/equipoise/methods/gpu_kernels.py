"""Compiles the Triton kernels of a fit on a GPU while the fit begins, or all of them for `equipoise info --warm-up`.

Modules that need Triton are imported inside the functions: Triton comes only with PyTorch for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..inputs import Input

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..arrays.triton_kernels import Variant

N = 4096  # points in recorded launches; the kernels do not depend on it
COLUMNS = (16, 32, 64, 128, 256, 512, 1024)  # of the tables whose kernels `prepare_all` compiles
NEIGHBORS = (32, 64, 128, 256)  # of the points whose kernels it compiles


def prepare_fit(data: Input, k: int, d: int) -> None:
    """Begin to compile the kernels of a map in d dimensions on a GPU, from k neighbours of each point."""
    from ..neighbors.gpu import FEW

    if data.on_device and data.n >= FEW:
        prepare_search(data.limit)
    prepare_perplexity(k)
    if d <= 3:
        prepare_descent(d)


def prepare_all() -> list[Future[Variant]]:
    """Begin to compile the kernels of maps in 1, 2 and 3 dimensions of tables with up to 1,024 columns."""
    found = [variant for d in (2, 1, 3) for variant in prepare_descent(d)]
    found += [variant for D in COLUMNS for variant in prepare_search(D)]
    return found + [variant for k in NEIGHBORS for variant in prepare_perplexity(k)]


def prepare_search(D: int) -> list[Future[Variant]]:
    """Begin to compile the kernels of a neighbour search among points with D columns."""
    from ..arrays.triton_kernels import prepare
    from ..neighbors import sieve_triton as sieve

    return prepare(("search", sieve.padded(D)), [lambda: sieve.launch_on_meta(D)])


def prepare_perplexity(k: int) -> list[Future[Variant]]:
    """Begin to compile the kernel that computes affinities of a given perplexity from k neighbours."""
    import torch

    from ..affinities import perplexity, perplexity_triton
    from ..arrays.triton_kernels import META, prepare

    d2 = torch.empty((N, k), device=META)
    launch = [lambda: perplexity_triton.conditional(d2, 30.0, perplexity.HALVINGS)]
    return prepare(("perplexity", perplexity_triton.padded(k)), launch)


def prepare_descent(d: int) -> list[Future[Variant]]:
    """Begin to compile the kernels of a descent in d = 1, 2 or 3 dimensions."""
    from ..arrays.triton_kernels import prepare

    return prepare(("descent", d), descent_launches(d))


def descent_launches(d: int) -> list[Callable[[], object]]:
    """Return functions that launch the kernels of a descent in d dimensions, for tensors without memory.

    They are roughly in the order in which a fit needs the kernels.
    """
    import torch

    from ..arrays import sums_triton as sums
    from ..arrays.triton_kernels import META
    from ..engines.base import LinearForce, StepPlan
    from ..engines.torch import fused
    from ..optimize import step_triton

    def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=META)

    def field(dtype: torch.dtype, charges: Any) -> None:
        mesh = SimpleNamespace(size=(8,) * d, half=[1.0] * d, h=0.5, copies=1, dtype=dtype, fixed_point=True)
        padded = fused.spread(mesh, Y, box, charges, number)
        fused.gather(mesh, Y, box, padded, number)

    def step(dtype: torch.dtype, momentum: Any) -> None:
        step_triton.step(empty(N, d, dtype=dtype), Y, Y, 0.1, momentum, 0.2, 0.8, 0.5, 0.01, 5.0)

    def planned_step(dtype: torch.dtype) -> None:
        force = LinearForce(A, None, None, 1.0, 1.0, 1.0)  # type: ignore[arg-type]
        plan = StepPlan(force, 0.1, 0.2, 0.8, 0.5, 0.01, 5.0, np.zeros(1))
        fused.advance((Y, Y, Y), (Y, empty(N, d, dtype=dtype), number), plan, empty(1), flag)

    Y, box, flag, number = empty(N, d), empty(2, d), empty(dtype=torch.int32), empty(1, dtype=torch.float64)
    rows = {"indptr": empty(N + 1, dtype=torch.int64), "indices": empty(N, dtype=torch.int32), "data": empty(N)}
    A = SimpleNamespace(shape=(N, N), **rows)
    table, rational = (
        SimpleNamespace(ends=(0.0, 1.0), scale=1.0, first=0, segments=empty(1, 4), rational=slope)
        for slope in (None, (1.0, 1.0))
    )
    precisions = torch.float64, torch.float32
    return [
        lambda: sums.centered(Y),
        lambda: fused.edges(Y, A, table, True),
        lambda: sums.total(empty(N)),
        lambda: sums.total(empty(N, dtype=torch.float64)),
        lambda: fused.bounding_box(Y),
        lambda: fused.direct(Y, Y, None, table, True),
        *(lambda dtype=dtype: field(dtype, None) for dtype in precisions),
        *(lambda dtype=dtype: planned_step(dtype) for dtype in precisions),
        *(lambda case=case: step(*case) for case in product(precisions, (0.5, number))),
        lambda: fused.edges(Y, A, rational, False),
        lambda: fused.flag_extent(box, flag, (1.0,) * d, 0.0),
        lambda: fused.accept_step(flag, flag, [Y, Y, Y, number], [Y, Y, Y, number]),
        lambda: fused.transpose_padded(empty(1, 2, 2, dtype=torch.complex64), 4),
        lambda: fused.edges(Y, A, table, False),
        lambda: fused.direct(Y, Y, empty(N, 2), table, True),
        *(lambda dtype=dtype: field(dtype, empty(N, 2)) for dtype in precisions),
    ]
