"""Plans the mesh of a kernel for a device: how wide, with or without a near field, or direct sums instead of a mesh."""

from __future__ import annotations

import numpy as np

from ..._types import Array
from ...kernels import Kernel
from ..cpu import cached_by_kernel
from ..mesh.plan import Plan, cheapest, kink_radius, mesh_size, mesh_width, needs_float64, rungs_of, span_of

# Maximum number of nodes of a mesh. Beyond it, the FFT of the padded mesh would fill the memory, and direct sums are
# used instead. Chosen.
NODES = 2**24
PAIRS_PER_NODE = 4  # pairs of a direct sum that cost as much as a node of the mesh; chosen
# Costs in nanoseconds, measured on an H200: a node of the mesh, a pair of the near field, and what a near field costs
# besides its pairs, mostly for sorting the points into cells.
NODE, PAIR, SORTING = 0.12, 0.008, 1e5
# A mesh has room for the embedding to grow, in 1, 2 and 3 dimensions: up to ROOM times for a small embedding, less if a
# side would have more than SIDES nodes, but at least MIN_ROOM times. Chosen: a new mesh costs as much as 20 steps, a
# wider one makes each step slower.
ROOM, SIDES, MIN_ROOM = {1: 16.0, 2: 16.0, 3: 4.0}, {1: 4096, 2: 256, 3: 64}, 1.3
CELLS = 8  # minimum number of mesh cells along the widest side of an embedding; chosen
SHRUNK = 4  # factor by which an embedding may shrink before it gets a smaller mesh; chosen
RUNGS = 16  # lengths per octave to which the sides of a box are rounded up; chosen
DIRECT, SAMPLED = Plan(0.0, (), 0.0, np.float32), Plan(-1.0, (), 0.0, np.float32)  # used instead of a mesh


@cached_by_kernel(4096)
def device_plan(kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> Plan:
    """Return the cheapest plan for n points in a box with sides `span`: with or without a near field, or `DIRECT`.

    `error` is the maximum relative error of the force between two points.
    """
    d, widest = len(span), max(span)
    h, radius = _widths(kernel, error, n, span)
    if radius == 0:
        h = min(h, widest / CELLS / ROOM[d] / 2 ** (1 / RUNGS))
    if h == 0 or np.prod([s / h for s in span]) > NODES:  # if the embedding diverges, the size may overflow an integer
        return DIRECT
    size = mesh_size(h, span)
    nodes, pairs = float(np.prod(size)), float(n) ** 2
    if nodes > NODES or pairs < PAIRS_PER_NODE * nodes or (radius > 0 and pairs * PAIR < SORTING):
        return DIRECT
    return Plan(h, size, radius, np.float64 if needs_float64(kernel, n, span, size) else np.float32)


def _widths(kernel: Kernel, error: float, n: int, span: tuple[float, ...]) -> tuple[float, float]:
    """Return the width of the mesh, 0 if no mesh is fine enough, and the radius of the near field, 0 for none.

    A near field is used if no mesh resolves the kernel, or if a mesh that does costs twice what sorting does, or more.
    """
    h = mesh_width(kernel, error, len(span))
    plain = NODE * float(np.prod([s / h for s in span])) if h > 0 else np.inf
    if plain <= 2 * SORTING:
        return h, 0.0
    return cheapest(kernel, error, n, np.array(span), NODE, PAIR, kink_radius(kernel, error))


def rungs_with_room(kernel: Kernel, error: float, span: Array) -> tuple[int, ...]:
    """Return the sides, as rungs, of a box in which an embedding with sides `span` has room to grow."""
    d, widest = len(span), float(span.max())
    h = min(mesh_width(kernel, error, d), widest / CELLS)
    room = min(ROOM[d], max(MIN_ROOM, SIDES[d] * h / widest)) if h > 0 else MIN_ROOM
    return rungs_of(span, kernel.length, RUNGS, room)


def extent_limits(kernel: Kernel, error: float, rungs: tuple[int, ...]) -> tuple[tuple[float, ...], float]:
    """Return the maximum length of each side of the embedding, and the minimum length of its widest side.

    Outside these limits, the embedding needs another mesh: either it has no room left to grow, or it has shrunk by at
    least the factor SHRUNK since the mesh was planned. A denser embedding has more pairs in its near field.
    """
    sides = tuple(float(np.float32(side)) for side in span_of(rungs, kernel.length, RUNGS))
    d, widest = len(sides), max(sides)
    roomy = widest <= SIDES[d] * mesh_width(kernel, error, d) * 2 ** (2 / RUNGS)
    return sides, float(np.float32(widest / SHRUNK / (ROOM[d] if roomy else MIN_ROOM * 2 ** (1 / RUNGS))))
