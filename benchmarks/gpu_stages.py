"""The stages of a t-SNE fit on a GPU, timed beside a lower bound; benchmarks/gpu.py writes them to its page.

The floor of a stage is a lower bound on its time, the larger of two: the operations it must do, at the rate of a large
matrix product, and the bytes it must move (each input read once, each output written once), at the rate of a large
copy. Stages are timed by device events after a warm-up, short ones in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch

import equipoise as eq
from equipoise.affinities.perplexity import conditional_rows
from equipoise.arrays.device_csr import Rows
from equipoise.arrays.namespace import morton_order
from equipoise.inputs.device_table import DeviceTable
from equipoise.neighbors import search as neighbors
from equipoise.neighbors.gpu import search
from equipoise.optimize.rules import StepParameters, momentum_step

PERPLEXITY, K, ITERATIONS = 30, 90, 750
WIDTH = 64  # 50 columns are padded to this for the matrix units


REASONS = {
    "initial map": "fixed costs: an eigenproblem of 50 × 50, about 40 kernel launches",
    "neighbours": "loads of the points of both blocks, and lists of candidates, take longer than the matrix products",
    "perplexity": "arithmetic: 60 bisection steps per row, each with special functions worth two exponentials",
    "symmetrise": "a radix sort of 2 n k keys of 64 bits needs several passes",
    "order": "scattered writes, one entry at a time",
    "edges": "an entry reads the position of its other point: 32 bytes from the L2 cache for 8 that are needed",
    "spread": "36 atomic additions per point, which the L2 cache serialises",
    "convolve": "four transforms, two transpositions and a product, each through memory, padded axis by axis",
    "gather": "36 reads per point from the L2 cache",
    "step": "launch overhead: the step takes a few microseconds",
    "iteration": "its parts (edges and field run concurrently) and about 20 launches of a microsecond or two",
}
STAGES = ["stage", "took, ms", "must move, MB", "must compute, GFLOP", "floor, ms", "took ÷ floor", "why more than 3"]


class Stage(NamedTuple):
    """The time of a stage in milliseconds, and the operations and bytes it needs."""

    name: str
    took: float
    operations: float
    bytes: float


def events(function: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median time of a function in milliseconds, by device events, after a warm-up."""
    function()
    took = []
    for _ in range(repeats):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        function()
        last.record()
        torch.cuda.synchronize()
        took.append(first.elapsed_time(last))
    return median(took)


def replayed(function: Callable[[], Any], times: int = 20) -> float:
    """Return the time per call without launch gaps, from replays of a CUDA graph of `times` calls."""
    stream = torch.cuda.Stream(priority=-1)  # as in a fit
    with torch.cuda.stream(stream):
        function()
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(capture_error_mode="thread_local")
        for _ in range(times):
            function()
        graph.capture_end()
    torch.cuda.synchronize()
    return events(graph.replay) / times


def ceilings() -> tuple[float, float]:
    """Return bytes per second of a large copy, and operations per second of a large matrix product in tf32."""
    a = torch.randn(2**29, device="cuda")
    b = torch.empty_like(a)
    copied = 2 * a.nbytes / events(lambda: b.copy_(a)) * 1e3
    M, N = (torch.randn(8192, 8192, device="cuda") for _ in range(2))
    torch.backends.cuda.matmul.allow_tf32 = True
    product = 2 * 8192.0**3 / events(lambda: M @ N) * 1e3
    torch.backends.cuda.matmul.allow_tf32 = False
    return copied, product


def method(**settings: Any) -> eq.TSNE:
    """Return a t-SNE estimator without early stopping."""
    rule = eq.optimize.Momentum(min_loss_change=0, min_grad_norm=0)
    return eq.TSNE(perplexity=PERPLEXITY, n_iter=ITERATIONS, random_state=0, optimizer=rule, **settings)


def stages(X: torch.Tensor) -> list[Stage]:
    """Return the stages of a fit on a table; those of an iteration are timed on the final map."""
    data = DeviceTable(X, "euclidean")
    found = search(data._V, K, neighbors.MIN_RECALL)
    p = conditional_rows(found.d2, PERPLEXITY)

    def symmetrise() -> Rows:
        return Rows.of_neighbors(p, found.indices).symmetrized()

    P = symmetrise()
    fit = method(engine="torch").fit(X)
    order = morton_order(fit.embedding_)
    iteration = iteration_stages(fit, P, order)
    (n, D), rng = X.shape, np.random.RandomState(0)
    compared = n if found.recall == 1.0 else n * searched(data._V)
    return [
        Stage("initial map", events(lambda: data.principal(2, rng)), 2.0 * n * D * D, 4 * n * D + 8 * n),
        Stage(
            "neighbours",
            events(lambda: search(data._V, K, neighbors.MIN_RECALL), 3),
            2.0 * n * compared * WIDTH,
            4 * n * D + 8 * n * K,
        ),
        Stage("perplexity", events(lambda: conditional_rows(found.d2, PERPLEXITY)), 0.0, 8 * n * K),
        Stage("symmetrise", events(symmetrise), 0.0, 8 * n * K + 8 * P.nnz),
        Stage("order", events(lambda: P.permuted(order)), 0.0, 16 * P.nnz),
        *iteration,
    ]


def iteration_stages(fit: eq.TSNE, P: Rows, order: torch.Tensor) -> list[Stage]:
    """Return the parts of an iteration, and the whole, on a finished map with its points in Morton order."""
    problem = fit._problem
    engine, kernel = problem.engine, problem.objective.kernel
    Y, A = fit.embedding_[order].contiguous(), P.permuted(order)
    n, d = Y.shape
    source = engine._source(Y, None)
    mesh = engine._transform(kernel, source)
    grid = mesh._spread(source, None)
    phi = mesh._convolve(grid)
    nodes, base = prod(mesh.size), torch.zeros(1, dtype=torch.float64, device="cuda")
    velocity, gain, gradient = torch.zeros_like(Y), torch.ones_like(Y), torch.randn_like(Y)
    held = problem.objective.permuted(order)

    def step() -> None:
        momentum_step(gradient, velocity, gain, StepParameters(0.1, 0.9, 0.2, 0.8, 0.5, 0.01, 5.0))

    def iteration() -> None:
        held.balance(Y, engine, loss=False)
        step()

    engine._graph.recording = True  # so that no new mesh is planned
    engine._graph._flag, engine._graph._min_extent = torch.zeros((), dtype=torch.int32, device="cuda"), 0.0
    points = 4 * n * d
    short = {
        "edges": (lambda: engine.edges(Y, A, kernel, -1.0, potential=False), 10 * A.nnz, 8 * A.nnz + 2 * points),
        "spread": (lambda: mesh._spread(source, None), 80 * n, points + 4 * nodes),
        "convolve": (lambda: mesh._convolve(grid), 40 * nodes, 4 * nodes + 8 * nodes + 8 * nodes),
        "gather": (lambda: mesh._gather(Y, source.box, phi, base), 150 * n, 8 * nodes + 2 * points + 4 * n),
        "step": (step, 10 * n * d, 5 * points),
    }
    timed = [Stage(name, replayed(function), ops, moved) for name, (function, ops, moved) in short.items()]
    whole = Stage("iteration", replayed(iteration), sum(s.operations for s in timed), sum(s.bytes for s in timed))
    engine._graph.recording = False
    engine.stepper.free_buffers()
    return [*timed, whole]


def searched(V: torch.Tensor) -> float:
    """Return the fraction of all blocks that are searched for a block."""
    from equipoise.neighbors import gpu
    from equipoise.neighbors.gpu_blocks import Blocks, reach
    from equipoise.neighbors.gpu_scan import nearest

    blocks = Blocks(V - V.mean(dim=0))
    sample = gpu.sample_points(blocks, gpu.SAMPLE)
    true = nearest(blocks.X[sample], blocks.X, K + 1).indices
    return reach(blocks, sample, true, neighbors.MIN_RECALL + gpu.MARGIN) / len(blocks)


def stage_rows(of: list[Stage], copied: float, product: float) -> list[list[str]]:
    rows = []
    for stage in of:
        floor = 1e3 * max(stage.operations / product, stage.bytes / copied)
        ratio = stage.took / floor
        rows.append(
            [
                stage.name,
                f"{stage.took:.4g}",
                f"{stage.bytes / 1e6:.4g}",
                f"{stage.operations / 1e9:.4g}",
                f"{floor:.3g}",
                f"{ratio:.1f}",
                REASONS[stage.name] if ratio > 3 else "",
            ]
        )
    return rows
