"""The GPU engine: primitives against the float64 reference, stages against a lower bound, whole fits, and the CPU.

python benchmarks/gpu_cold.py X.npy --out cold.json
python benchmarks/gpu.py [--table NAME X.npy labels.npy …] [--n 1000000 5000000] [--cpu NAME …] [--methods NAME …]
                         [--cells NAME X.npy COLUMNS …] [--n-cells 1000000 …] [--cold cold.json]

gpu_stages.py times the stages, gpu_methods.py fits other methods than t-SNE in the plane, gpu_cold.py times first fits,
and gpu_cells.py makes large tables from the cells of `--cells`. The rates of a large copy and of a large matrix product
are measured first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import common
import gpu_methods
import numpy as np
import torch
from gpu_cells import NOISE, PHASES, phase_row, resampled
from gpu_cold import COLUMNS as COLD
from gpu_stages import ITERATIONS, PERPLEXITY, STAGES, K, Stage, ceilings, method, stage_rows, stages
from scaling import COMPONENTS, DIMENSION, SEPARATION

import equipoise as eq
from equipoise import kernels
from equipoise.engines import Reference
from equipoise.engines.torch.engine import Torch
from equipoise.neighbors import search as neighbors
from equipoise.neighbors.gpu import search

FITS = [
    "data", "first fit, s", "later fits, s (least to most)", "loss", "recall", "1-NN error", "GPU memory, GB",
    "same bytes",
]  # fmt: skip
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
benchmarks/scaling.py at decay 0.5: {COMPONENTS} Gaussians in {DIMENSION} dimensions. **Cells** are rows of a table of
cytometry cells, drawn with replacement, with noise of {NOISE} standard deviations per column. The losses of the CPU and
the GPU are each on their own neighbours, found by comparing all pairs. An **iteration** among the stages is both forces
and the step of the optimiser, without adding the step to the map and centring it.
"""
COLD_NOTES = """
Each process is fresh, and begins with no compiled kernels, those of an earlier process, or those of `equipoise info
--warm-up`. The fits have the default parameters, and X on the device. **Libraries on disk**: before the process, the
system was asked to drop the libraries of PyTorch, CUDA and Triton from memory. **Imports and context** is the time from
the start of the process to the fit: imports, the context of the GPU, and X.
"""
KERNELS = [
    kernels.StudentT(),
    kernels.StudentT(0.5),
    kernels.Gaussian(),
    kernels.RegularizedPowerLaw(3.0, 0.1),
    kernels.PowerLaw(),
    kernels.NonMembership(1.58, 0.9),
]


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


def fits(
    X: torch.Tensor, labels: np.ndarray | None, repeats: int, make: Callable[..., eq.TSNE] = method, **settings: Any
) -> dict[str, Any]:
    """Return the time of the first fit, the median time of later ones, and their results."""
    took, maps = [], []
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    for _ in range(1 + repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        fit = make(engine="torch", **settings).fit(X)
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


class Page:
    """The page of results, written again after each measurement.

    Parameters
    ----------
    head : list of str
        Its first lines.
    rates : tuple of float
        Bytes per second of a copy, and operations per second of a matrix product.
    out : Path
    """

    def __init__(self, head: list[str], rates: tuple[float, float], out: Path):
        self.head, self.rates, self.out = head, rates, out
        self.fits: list[list[str]] = []
        self.agreement: list[list[str]] = []
        self.stages: dict[str, list[Stage]] = {}
        self.phases: list[list[str]] = []
        self.checks: list[list[str]] = []
        self.cold: list[list[str]] = []
        self.methods: dict[str, list[list[str]]] = {}

    def write(self) -> None:
        lines = [*self.head, *common.table(FITS, self.fits), "", *NOTES.strip().splitlines()]
        if self.cold:
            lines += ["", "## First fits", "", *common.table(COLD, self.cold), "", *COLD_NOTES.strip().splitlines()]
        if self.agreement:
            lines += ["", "## CPU and GPU", "", *common.table(AGREEMENT, self.agreement)]
        if self.phases:
            lines += ["", "## Phases of a fit to cells", "", *common.table(PHASES, self.phases)]
        for name, rows in self.methods.items():
            lines += ["", f"## Other methods, {name}", "", *common.table(gpu_methods.COLUMNS, rows)]
            lines += ["", *gpu_methods.NOTES.strip().splitlines()]
        for name, of in self.stages.items():
            lines += ["", f"## Stages, {name}", "", *common.table(STAGES, stage_rows(of, *self.rates))]
        if self.checks:
            lines += ["", "## Both primitives against the float64 reference", "", *common.table(CHECKS, self.checks)]
        common.write(lines, self.out)

    def add_table(self, name: str, X: torch.Tensor, labels: np.ndarray, repeats: int, cpu: bool) -> None:
        """Measure fits on a table with labels, their stages, and with `cpu` the same fit on the CPU."""
        of = fits(X, labels, repeats)
        self.fits.append(fit_row(f"{name}, {len(X):,} × {X.shape[1]}", of))
        default = fits(X, labels, repeats, eq.TSNE, random_state=0)
        self.fits.append(fit_row(f"{name}, default n_iter and stopping", default))
        self.fits.append(fit_row(f"{name}, deterministic=False", fits(X, labels, repeats, deterministic=False)))
        self.stages[f"{name}, {len(X):,}"] = stages(X)
        if cpu:
            self.agreement.append(agreement_row(name, on_cpu(X.cpu().numpy().astype(np.float64), labels), of))
        self.write()

    def add_mixture(self, n: int) -> None:
        """Measure fits on n points of a mixture, and up to two million their stages."""
        X = mixture(n)
        self.fits.append(fit_row(f"mixture, {n:,} × {DIMENSION}", fits(X, None, 0 if n > 2e6 else 2)))
        if n <= 2e6:
            self.fits.append(fit_row(f"mixture, {n:,}, deterministic=False", fits(X, None, 2, deterministic=False)))
            self.stages[f"mixture, {n:,}"] = stages(X)
        self.write()

    def add_cells(self, name: str, cells: torch.Tensor, columns: int, n: int) -> None:
        """Measure a fit on n resampled cells, repeated once up to five million, and the phases of the last fit."""
        X = resampled(cells, n, None if columns == cells.shape[1] else columns)
        of = fits(X, None, 1 if n <= 5e6 else 0)
        name = f"cells, {name}, {n:,} × {X.shape[1]}"
        self.fits.append(fit_row(name, of))
        self.phases.append(phase_row(name, X, of["later"]))
        self.write()


def agreement_row(name: str, cpu: dict[str, Any], gpu: dict[str, Any]) -> list[str]:
    return [
        name,
        f"{cpu['loss']:.4f}",
        f"{gpu['loss']:.4f}",
        f"{gpu['loss'] / cpu['loss'] - 1:+.2%}",
        f"{cpu['error']:.2%}",
        f"{gpu['error']:.2%}",
        f"{100 * (gpu['error'] - cpu['error']):+.2f}",
        f"{cpu['took']:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs=3, action="append", default=[], metavar=("NAME", "X", "LABELS"))
    parser.add_argument("--n", type=int, nargs="*", default=[1_000_000, 5_000_000], help="sizes of mixtures")
    parser.add_argument("--cells", nargs=3, action="append", default=[], metavar=("NAME", "X", "COLUMNS"))
    parser.add_argument("--n-cells", type=int, nargs="*", default=[1_000_000, 5_000_000, 10_000_000])
    parser.add_argument("--cpu", nargs="*", default=[], help="names of tables to embed on the CPU too")
    parser.add_argument("--cold", type=Path, default=None, help="file written by gpu_cold.py")
    parser.add_argument("--methods", nargs="*", default=[], help="names of tables to embed by other methods too")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--commit", default=None, help="commit to print, for machines without git")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gpu.md"))
    args = parser.parse_args()

    where = common.machine(common.os.cpu_count() or 1, ["equipoise", "torch", "triton", "numpy", "scipy"])
    where["commit"] = args.commit or where["commit"]
    where["cpu"] = f"{torch.cuda.get_device_name()} and {where['cpu']}"
    names = " ".join(f"--table {name} {Path(X).name} {Path(y).name}" for name, X, y in args.table)
    names += "".join(f" --cells {name} {Path(X).name} {columns}" for name, X, columns in args.cells)
    names += f" --n-cells {' '.join(map(str, args.n_cells))}" if args.cells else ""
    command = f"python benchmarks/gpu.py {names} --n {' '.join(map(str, args.n))} --cpu {' '.join(args.cpu)}"
    command += "" if args.cold is None else f" --cold {args.cold.name}"
    command += f" --methods {' '.join(args.methods)}" if args.methods else ""
    copied, product = ceilings()
    head = [
        *common.header("t-SNE on a GPU", command, where),
        f"Perplexity {PERPLEXITY}, k = {K}, {ITERATIONS} iterations without early stopping; X on the device as float32."
        f" A copy moves {copied / 1e12:.2f} TB/s, a matrix product in tf32 does {product / 1e12:.0f} TFLOP/s.",
        "",
        "## Whole fits",
        "",
    ]
    page = Page(head, (copied, product), args.out)
    page.cold = [] if args.cold is None else json.loads(args.cold.read_text())
    tables = {name: (torch.tensor(np.load(X)).float().cuda(), np.load(y)) for name, X, y in args.table}
    for name, (X, labels) in tables.items():
        page.add_table(name, X, labels, args.repeats, name in args.cpu)
        if name in args.methods:
            of = page.methods.setdefault(f"{name}, {len(X):,} × {X.shape[1]}", [])
            for row in gpu_methods.rows(X, args.repeats, name in args.cpu):
                of.append(row)
                page.write()
    for n in args.n:
        page.add_mixture(n)
    for name, path, columns in args.cells:
        cells = torch.from_numpy(np.load(path)).float().cuda()
        for n in args.n_cells:
            page.add_cells(name, cells, int(columns), n)
    page.checks = checks()
    page.write()


if __name__ == "__main__":
    main()
