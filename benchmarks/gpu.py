"""The GPU engine: primitives against the float64 reference, stages against a lower bound, whole fits, and the CPU.

python benchmarks/gpu.py [--table NAME X.npy labels.npy …] [--n 1000000 5000000] [--cpu NAME …]

The floor of a stage is a lower bound on its time, the larger of two: the operations it must do, at the rate of a large
matrix product, and the bytes it must move (each input read once, each output written once), at the rate of a large
copy. Both rates are measured first. Stages are timed by device events after a warm-up, short ones in a CUDA graph.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import common
import numpy as np
import torch
from scaling import COMPONENTS, DIMENSION, SEPARATION

import equipoise as eq
from equipoise import kernels
from equipoise.affinities.perplexity import conditional_rows
from equipoise.arrays.device_csr import Rows
from equipoise.arrays.namespace import morton_order
from equipoise.engines import Reference
from equipoise.engines.torch.engine import Torch
from equipoise.inputs.device_table import DeviceTable
from equipoise.neighbors import search as neighbors
from equipoise.neighbors.gpu import search
from equipoise.optimize.step_torch import momentum_step

PERPLEXITY, K, ITERATIONS = 30, 90, 750
KERNELS = [
    kernels.StudentT(),
    kernels.StudentT(0.5),
    kernels.Gaussian(),
    kernels.RegularizedPowerLaw(3.0, 0.1),
    kernels.PowerLaw(),
    kernels.NonMembership(1.58, 0.9),
]
WIDTH = 64  # 50 columns are padded to this for the matrix units

REASONS = {
    "initial map": "fixed costs: an eigenproblem of 50 × 50, about 40 kernel launches",
    "neighbours": "selecting candidates below a bound takes longer than the matrix products that set the floor",
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


def mixture(n: int, decay: float = 0.5) -> torch.Tensor:
    """Return n points of the mixture of benchmarks/scaling.py, drawn on the device."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    centers = SEPARATION * torch.randn(COMPONENTS, DIMENSION, device="cuda", generator=generator)
    label = torch.randint(COMPONENTS, (n,), device="cuda", generator=generator)
    X = centers[label] + torch.randn(n, DIMENSION, device="cuda", generator=generator)
    return X * torch.arange(1, DIMENSION + 1, device="cuda").float() ** -decay


def error(found: Any, true: Any) -> float:
    """Return ‖found − true‖/‖true‖, or ‖found‖ if `true` is zero."""
    return float(np.linalg.norm(np.asarray(found) - true) / (np.linalg.norm(true) or 1.0))


def checks() -> list[list[str]]:
    """Return the relative errors of both primitives for several kernels, charges and dimensions."""
    from scipy import sparse

    rng, n, rows = np.random.default_rng(0), 3000, []
    A = sparse.random(n, n, 0.01, format="csr", dtype=np.float32, rng=rng)
    for kernel in KERNELS:
        for d in (1, 2, 3):
            for extent in (0.05, 8.0):
                Y = (extent * kernel.length * rng.standard_normal((n, d))).astype(np.float32)
                charges = rng.random((n, 2))
                engine, truth = Torch(1, 0.01, "cuda"), Reference()
                plain, charged = engine.field(Y, kernel), engine.field(Y, kernel, charges)
                _, force = engine.edges(Y, A, kernel, -1.0, potential=False)
                errors = (
                    error(plain.gradient, truth.field(Y, kernel).gradient),
                    error(charged.gradient, truth.field(Y, kernel, charges).gradient),
                    error(force, truth.edges(Y, A, kernel, -1.0, potential=False)[1]),
                )
                rows.append([str(kernel), str(d), f"{extent:g}", *(f"{value:.1e}" for value in errors)])
    return rows


def method(**settings: Any) -> eq.TSNE:
    """Return a t-SNE estimator without early stopping."""
    rule = eq.optimize.Momentum(min_loss_change=0, min_grad_norm=0)
    return eq.TSNE(perplexity=PERPLEXITY, n_iter=ITERATIONS, random_state=0, optimizer=rule, **settings)


def stages(X: torch.Tensor) -> list[Stage]:
    """Return the stages of a fit on a table, timed on the final map."""
    n, D = X.shape
    data = DeviceTable(X, "euclidean")
    V = data._V
    found = search(V, K, neighbors.MIN_RECALL)
    compared = n if found.recall == 1.0 else n * searched(V)
    p = conditional_rows(found.d2, PERPLEXITY)

    def symmetrise() -> Rows:
        return Rows.of_neighbors(p, found.indices).symmetrized()

    P = symmetrise()
    fit = method(engine="torch").fit(X)
    problem = fit._problem
    engine, kernel = problem.engine, problem.objective.kernel
    order = morton_order(fit.embedding_)
    Y, A = fit.embedding_[order].contiguous(), P.permuted(order)
    d = Y.shape[1]
    source = engine._source(Y, None)
    mesh = engine._transform(kernel, source)
    grid = mesh._spread(source, None)
    phi = mesh._convolve(grid)
    nodes, base = prod(mesh.size), torch.zeros(1, dtype=torch.float64, device="cuda")
    velocity, gain, gradient = torch.zeros_like(Y), torch.ones_like(Y), torch.randn_like(Y)
    held = problem.objective.permuted(order)

    def step() -> None:
        momentum_step(gradient, velocity, gain, 0.1, 0.9, 0.2, 0.8, 0.5, 0.01, 5.0)

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
    rng = np.random.RandomState(0)
    return [
        Stage("initial map", events(lambda: data.principal(2, rng)), 2.0 * n * D * D, 4 * n * D + 8 * n),
        Stage(
            "neighbours",
            events(lambda: search(V, K, neighbors.MIN_RECALL), 3),
            2.0 * n * compared * WIDTH,
            4 * n * D + 8 * n * K,
        ),
        Stage("perplexity", events(lambda: conditional_rows(found.d2, PERPLEXITY)), 0.0, 8 * n * K),
        Stage("symmetrise", events(symmetrise), 0.0, 8 * n * K + 8 * P.nnz),
        Stage("order", events(lambda: P.permuted(order)), 0.0, 16 * P.nnz),
        *timed,
        whole,
    ]


def searched(V: torch.Tensor) -> float:
    """Return the fraction of all points that lie in the blocks searched for a row."""
    from equipoise.neighbors import gpu
    from equipoise.neighbors.gpu_blocks import Blocks, reach
    from equipoise.neighbors.gpu_scan import nearest

    sample = torch.randperm(len(V), generator=torch.Generator().manual_seed(0))[: gpu.SAMPLE].to(V.device)
    blocks = Blocks(V - V.mean(dim=0))
    true = nearest(V[sample] - V.mean(dim=0), V - V.mean(dim=0), K + 1).indices
    return reach(blocks, sample, true, neighbors.MIN_RECALL + gpu.MARGIN) / len(blocks.centers)


def fits(X: torch.Tensor, labels: np.ndarray | None, repeats: int, **settings: Any) -> dict[str, Any]:
    """Return the time of the first fit, the median time of later ones, and their results."""
    took, maps = [], []
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    for _ in range(1 + repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fit = method(engine="torch", **settings).fit(X)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
        maps = [*maps[-1:], fit.embedding_]
    return {
        "first": took[0],
        "later": median(took[1:]) if repeats else took[0],
        "range": (min(took[1:]), max(took[1:])) if repeats else (took[0], took[0]),
        "loss": fit.loss_,
        "recall": fit.knn_recall_,
        "memory": (torch.cuda.max_memory_allocated() - before) / 1e9,
        "error": None if labels is None else one_nn_error(fit.embedding_, labels),
        "same": bool((maps[0] == maps[-1]).all()) if repeats else None,
    }


def one_nn_error(Y: torch.Tensor, labels: np.ndarray) -> float:
    """Return the fraction of points whose nearest neighbour in the map has another class."""
    nearest = search(Y.float(), 1, 1.0).indices[:, 0].cpu().numpy()
    return float((labels[nearest] != labels).mean())


def on_cpu(X: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Return time and results of the same fit with engine="grid", on exact neighbours."""
    neighbors.EXACT_WORK = np.inf
    start = time.perf_counter()
    fit = method(engine="grid").fit(X)
    took = time.perf_counter() - start
    return {"took": took, "loss": fit.loss_, "error": one_nn_error(torch.from_numpy(fit.embedding_).cuda(), labels)}


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


STAGES = ["stage", "took, ms", "must move, MB", "must compute, GFLOP", "floor, ms", "took ÷ floor", "why more than 3"]
FITS = [
    "data", "first fit, s", "later fits, s (least to most)", "loss", "recall", "1-NN error", "GPU memory, GB",
    "same bytes",
]  # fmt: skip


def fit_row(name: str, of: dict[str, Any]) -> list[str]:
    low, high = of["range"]
    return [
        name,
        f"{of['first']:.2f}",
        "–" if of["same"] is None else f"{of['later']:.3f} ({low:.3f} to {high:.3f})",
        f"{of['loss']:.4f}",
        f"{of['recall']:.4f}",
        "–" if of["error"] is None else f"{of['error']:.2%}",
        f"{of['memory']:.2f}",
        {True: "yes", False: "no", None: "–"}[of["same"]],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs=3, action="append", default=[], metavar=("NAME", "X", "LABELS"))
    parser.add_argument("--n", type=int, nargs="*", default=[1_000_000, 5_000_000], help="sizes of mixtures")
    parser.add_argument("--cpu", nargs="*", default=[], help="names of tables to embed on the CPU too")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--commit", default=None, help="commit to print, for machines without git")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu.md"))
    args = parser.parse_args()

    where = common.machine(common.os.cpu_count() or 1, ["equipoise", "torch", "triton", "numpy", "scipy"])
    where["commit"] = args.commit or where["commit"]
    where["cpu"] = f"{torch.cuda.get_device_name()} and {where['cpu']}"
    names = " ".join(f"--table {name} {Path(X).name} {Path(y).name}" for name, X, y in args.table)
    command = f"python benchmarks/gpu.py {names} --n {' '.join(map(str, args.n))} --cpu {' '.join(args.cpu)}"
    copied, product = ceilings()
    page = common.header("t-SNE on a GPU", command, where)
    page += [
        f"Perplexity {PERPLEXITY}, k = {K}, {ITERATIONS} iterations without early stopping; X on the device as float32."
        f" A copy moves {copied / 1e12:.2f} TB/s, a matrix product in tf32 does {product / 1e12:.0f} TFLOP/s.",
        "",
        "## Whole fits",
        "",
    ]
    tables = {name: (torch.tensor(np.load(X)).float().cuda(), np.load(y)) for name, X, y in args.table}
    rows, parts, agreement = [], {}, []

    def write_page() -> None:
        lines = [*page, *common.table(FITS, rows), "", *NOTES.strip().splitlines()]
        if agreement:
            lines += ["", "## CPU and GPU", "", *common.table(AGREEMENT, agreement)]
        for name, of in parts.items():
            lines += ["", f"## Stages, {name}", "", *common.table(STAGES, stage_rows(of, copied, product))]
        if checked:
            lines += ["", "## Both primitives against the float64 reference", "", *common.table(CHECKS, checked)]
        common.write(lines, args.out)

    checked: list[list[str]] = []
    for name, (X, labels) in tables.items():
        of = fits(X, labels, args.repeats)
        rows.append(fit_row(f"{name}, {len(X):,} × {X.shape[1]}", of))
        rows.append(fit_row(f"{name}, deterministic=False", fits(X, labels, args.repeats, deterministic=False)))
        parts[f"{name}, {len(X):,}"] = stages(X)
        if name in args.cpu:
            cpu = on_cpu(X.cpu().numpy().astype(np.float64), labels)
            agreement.append(
                [
                    name,
                    f"{cpu['loss']:.4f}",
                    f"{of['loss']:.4f}",
                    f"{of['loss'] / cpu['loss'] - 1:+.2%}",
                    f"{cpu['error']:.2%}",
                    f"{of['error']:.2%}",
                    f"{100 * (of['error'] - cpu['error']):+.2f}",
                    f"{cpu['took']:.1f}",
                ]
            )
        write_page()
    for n in args.n:
        X = mixture(n)
        rows.append(fit_row(f"mixture, {n:,} × {DIMENSION}", fits(X, None, 0 if n > 2e6 else 2)))
        if n <= 2e6:
            rows.append(fit_row(f"mixture, {n:,}, deterministic=False", fits(X, None, 2, deterministic=False)))
            parts[f"mixture, {n:,}"] = stages(X)
        del X
        write_page()
    checked += checks()
    write_page()


AGREEMENT = [
    "data", "loss, CPU", "loss, GPU", "GPU over CPU", "1-NN error, CPU", "1-NN error, GPU", "difference, points",
    "CPU, s",
]  # fmt: skip
CHECKS = [
    "kernel", "d", "standard deviation, lengths", "field, relative error", "field of 2 charges", "edges",
]  # fmt: skip
NOTES = f"""
The **first fit** of a process compiles kernels, or reads them from Triton's cache on disk. **GPU memory** is the peak
allocated by PyTorch during the fits, without X. The recall is the one reported by the fit, measured on a sample; 1.0000
if all pairs were compared. **Same bytes**: whether the last two fits gave identical maps. Mixtures are those of
benchmarks/scaling.py at decay 0.5: {COMPONENTS} Gaussians in {DIMENSION} dimensions. The losses of the CPU and the GPU
are each on their own neighbours, found by comparing all pairs. An **iteration** among the stages is both forces and the
step of the optimiser, without adding the step to the map and centring it.
"""


if __name__ == "__main__":
    main()
