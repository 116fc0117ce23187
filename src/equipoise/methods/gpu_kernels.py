"""Compiles the Triton kernels of a fit on a GPU while the fit begins, or all of them for `equipoise info --warm-up`.

Modules that need Triton are imported inside the functions: Triton comes only with PyTorch for GPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..inputs import Input

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..arrays.triton_kernels import Variant

Part = tuple[str, Callable[[], None]]  # the name of some kernels, and a function that launches them, for `prepare`
N = 4096  # points in recorded launches; the kernels do not depend on it
COLUMNS = (15, 16, 31, 32, 63, 64, 127, 128)  # every kind of table for `search`, for `compile_all`
NEIGHBORS = (15, 32, 64, 128, 256)  # of the points whose kernels it compiles
RULE = 0.1, 0.2, 0.8, 0.5, 0.01, 5.0  # numbers of a rule in recorded launches


def start() -> None:
    """Begin to start Triton for a fit on a GPU."""
    from ..arrays import triton_kernels

    triton_kernels.start()


def prepare_fit(data: Input, k: int, d: int) -> None:
    """Begin to compile the kernels of a map in d dimensions on a GPU, from k neighbours of each point."""
    from ..arrays.triton_kernels import prepare
    from ..neighbors.gpu import FEW, MOST

    if data.on_device and data.n >= FEW and k <= MOST:
        prepare(*search(data.limit, k))
    prepare(*perplexity_of(k))
    if d <= 3:
        prepare(*descent(d))


def compile_all() -> list[Future[Variant]]:
    """Begin to compile the kernels of maps in 1, 2 and 3 dimensions, of tables with any number of columns."""
    from ..arrays.triton_kernels import compile_recorded

    searches = [search(D, k) for D in COLUMNS for k in NEIGHBORS]
    parts = [*map(descent, (2, 1, 3)), *searches, *map(perplexity_of, NEIGHBORS), *map(near_field, (2, 1, 3))]
    return [variant for part in parts for variant in compile_recorded(*part)]


def search(D: int, k: int) -> Part:
    """Return the kernels of a search for k neighbours among points with D columns.

    They depend on whether D is padded, on whether it is padded to 16, 32, 64 or more, and on the room for neighbours.
    """
    from ..neighbors import blocks_triton, centers_triton
    from ..neighbors.gpu import PRECISIONS
    from ..neighbors.gpu_blocks import BLOCK, padded

    def launch() -> None:
        centers_triton.launch_on_meta(D)
        blocks_triton.launch_on_meta(columns, k, BLOCK, PRECISIONS[0])

    columns, room = padded(D), blocks_triton.room_for(k)
    kind = f"{min(columns, 128)} {'whole' if columns == D else 'padded'} columns"
    return f"search among {kind} for {room} neighbours", launch


def perplexity_of(k: int) -> Part:
    """Return the kernels that compute affinities of a given perplexity from k neighbours."""
    from ..affinities import perplexity_triton

    width = perplexity_triton.padded(k)
    return f"perplexity of {width} neighbours", lambda: launch_perplexity(width)


def descent(d: int) -> Part:
    """Return the kernels of a descent in d = 1, 2 or 3 dimensions."""
    return f"descent in {d} dimensions", lambda: launch_descent(d)


def near_field(d: int) -> Part:
    """Return the kernels of a near field in d = 1, 2 or 3 dimensions."""
    return f"near field in {d} dimensions", lambda: launch_near_field(d)


def launch_perplexity(k: int) -> None:
    """Launch the kernel that computes affinities from k neighbours, for `prepare`."""
    import torch

    from ..affinities import perplexity, perplexity_triton
    from ..arrays.triton_kernels import META

    perplexity_triton.conditional(torch.empty((N, k), device=META), 30.0, perplexity.HALVINGS)


def launch_descent(d: int) -> None:
    """Launch the kernels of a descent in d dimensions, for `prepare`, in about the order in which a fit needs them."""
    import torch

    from ..arrays import sums_triton as sums
    from ..arrays.triton_kernels import META
    from ..engines.base import LinearForce, StepPlan
    from ..engines.torch import fused
    from ..optimize import step_triton

    def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device=META)

    Y, box, flag, number = empty(N, d), empty(2, d), empty(dtype=torch.int32), empty(1, dtype=torch.float64)
    rows = {"indptr": empty(N + 1, dtype=torch.int64), "indices": empty(N, dtype=torch.int32), "data": empty(N)}
    A = SimpleNamespace(shape=(N, N), **rows)
    table, rational = (
        SimpleNamespace(ends=(0.0, 1.0), scale=1.0, first=0, segments=empty(1, 4), rational=slope)
        for slope in (None, (1.0, 1.0))
    )

    def field(dtype: torch.dtype, charges: Any) -> None:
        mesh = SimpleNamespace(size=(8,) * d, half=[1.0] * d, h=0.5, copies=1, dtype=dtype, fixed_point=True)
        fused.gather(mesh, Y, box, fused.spread(mesh, Y, box, charges, number), number)

    def steps(dtype: torch.dtype) -> None:
        fused.advance((Y, Y, Y), (Y, empty(N, d, dtype=dtype), number), plan, empty(1), flag)
        for momentum in (0.5, number):
            step_triton.step(empty(N, d, dtype=dtype), Y, Y, RULE[0], momentum, *RULE[1:])

    force = LinearForce(A, None, None, 1.0, 1.0, 1.0)  # type: ignore[arg-type]
    plan = StepPlan(force, *RULE, np.zeros(1))
    sums.centered(Y)
    fused.edges(Y, A, table, True)
    for dtype in (torch.float64, torch.float32):
        sums.total(empty(N, dtype=dtype))
    fused.bounding_box(Y)
    fused.direct(Y, Y, None, table, True)
    field(torch.float32, None)
    steps(torch.float32)
    fused.edges(Y, A, rational, False)
    fused.flag_extent(box, flag, (1.0,) * d, 0.0)
    fused.accept_step(flag, flag, [Y, Y, Y, number], [Y, Y, Y, number])
    fused.transpose_padded(empty(1, 2, 2, dtype=torch.complex64), 4)
    # What only some fits need: losses with a table for edges, charges, and meshes in float64.
    fused.edges(Y, A, table, False)
    fused.direct(Y, Y, empty(N, 2), table, True)
    field(torch.float32, empty(N, 2))
    field(torch.float64, None)
    steps(torch.float64)
    field(torch.float64, empty(N, 2))


def launch_near_field(d: int) -> None:
    """Launch the kernels of a near field in d dimensions, for `prepare`: in small and large meshes, without charges."""
    import torch

    from ..arrays.triton_kernels import META
    from ..engines.torch import near_triton

    Y, box, counts = (torch.empty(shape, device=META) for shape in ((N, d), (2, d), (1, 4)))
    whole = torch.empty(N, dtype=torch.int64, device=META)
    look = SimpleNamespace(ends=(0.0, 1.0), scale=1.0, first=0, segments=counts)
    cells = SimpleNamespace(Y=Y, amounts=None, start=whole.int(), rank=whole)
    for dtype in (torch.int16, torch.int32):
        near = SimpleNamespace(half=[1.0] * d, sides=(8,) * d, radius=1.0, dtype=dtype, lookup=look)
        near_triton.sums(near, cells, None, near_triton.cells(near, Y, box))
