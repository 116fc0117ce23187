"""How times fall with the number of threads: neighbours, affinities, an iteration and its parts, and whole fits.

    python benchmarks/cores.py [--threads 1 2 4 8 16] [--repeats 3] [--subset N] [--out benchmarks/results/cores.md]

Every fit runs in a fresh process, the numbers of threads in turn. The page has a digest of the maps, which must be the
same for all numbers of threads, and the time of a fit while other processes keep all cores busy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
from common import middle, show, timed, total
from fit_phases import PARTS, timed_phases

WARM, WINDOW, WINDOWS = 60, 100, 3  # iterations before timing, iterations per window, windows
BUSY_ROWS = 10_000  # rows of the fits on a busy machine
# What to reach with 16 threads: seconds and recall of the search, milliseconds of an iteration, seconds of a fit,
# milliseconds of an iteration outside parallel loops, and speed-ups of an iteration and of the search. Chosen.
TARGETS = {
    "search": 0.5,
    "recall": 0.99,
    "step": 3.2,
    "fit": 2,
    "serial": 0.4,
    "step speed-up": 9,
    "search speed-up": 8,
}
PHASES = {
    "neighbours, s": "neighbors_s",
    "affinities and start, s": "affinities_s",
    "t-SNE fit, s": "fit_s",
    "t-SNE fit of 300 iterations, s": "fit_300_s",
    "UMAP fit, s": "umap_s",
    "iteration with reports, ms": "whole_ms",
    "iteration between reports, ms": "iteration_ms",
    "edges, ms": "edges_ms",
    "field: spread, ms": "spread_ms",
    "field: convolve, ms": "convolve_ms",
    "field: gather, ms": "gather_ms",
    "step and the rest, ms": "step_ms",
    "serial remainder between reports, ms": "serial_ms",
    "serial remainder with reports, ms": "reports_ms",
}


def digest(Y: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(Y).tobytes(), digest_size=6).hexdigest()


def fit_tsne(X: np.ndarray, threads: int) -> tuple[Any, dict[str, Any]]:
    """Return the solved problem of a default t-SNE fit, and its times."""
    import equipoise as eq
    from equipoise.inputs import Table

    with timed_phases() as phases, phases.timed("rest of the fit"), timed(Table, "neighbors") as search:
        start = time.perf_counter()
        problem = eq.TSNE(random_state=0, n_jobs=threads).problem(X)
        built = time.perf_counter()
        Y = problem.optimize()
        end = time.perf_counter()
    found = total(search) or 0.0
    times = {"neighbors_s": found, "affinities_s": built - start - found, "fit_s": end - start}
    return problem, {**times, "tsne": digest(Y), "recall": problem.knn_recall, "phases": phases.plain()}


def seconds_of_iterations(X: np.ndarray, threads: int, n_iter: int) -> float:
    """Return the seconds of a t-SNE fit of `n_iter` iterations."""
    import equipoise as eq

    start = time.perf_counter()
    eq.TSNE(random_state=0, n_jobs=threads, n_iter=n_iter).fit(X)
    return time.perf_counter() - start


def fit_umap(X: np.ndarray, threads: int) -> dict[str, Any]:
    import equipoise as eq

    start = time.perf_counter()
    Y = eq.UMAP(random_state=0, n_jobs=threads).fit_transform(X)
    return {"umap_s": time.perf_counter() - start, "umap": digest(Y)}


def iteration(problem: Any, threads: int) -> dict[str, float]:
    """Return milliseconds per iteration on the finished map, with its points sorted as in the late phase.

    The serial remainder is the time outside parallel loops of the core: Python, and loops of a single chunk.
    """
    import equipoise as eq
    from equipoise import _core
    from equipoise.arrays.namespace import morton_order
    from equipoise.optimize.rules import Schedule
    from equipoise.problems.forces import ForceProblem

    order = morton_order(problem.Y)
    Y, objective = np.ascontiguousarray(problem.Y[order]), problem.objective.permuted(order)
    rule = eq.Momentum(min_loss_change=0, min_grad_norm=0)
    schedule = Schedule(WARM + WINDOWS * WINDOW, "auto", 1.0, 1.0)
    again = ForceProblem(objective, problem.geometry, problem.engine, Y, schedule, rule)
    descent = again.descent()
    descent.run(WARM)
    calls: list[tuple[float, float]] = []  # milliseconds per step, whole and serial, where a call took several
    fused = _core.mesh_steps

    def timed_steps(*arguments: Any) -> int:
        start, in_loops = time.perf_counter(), _core.loop_seconds()
        count = fused(*arguments)
        took, in_loops = time.perf_counter() - start, _core.loop_seconds() - in_loops
        if count > 1:
            calls.append((1e3 * took / count, 1e3 * (took - in_loops) / count))
        return count

    whole, serial = [], []
    _core.mesh_steps = timed_steps
    for window in range(WINDOWS):
        start, in_loops = time.perf_counter(), _core.loop_seconds()
        descent.run(WARM + (window + 1) * WINDOW)
        took = time.perf_counter() - start
        whole.append(1e3 * took / WINDOW)
        serial.append(1e3 * (took - (_core.loop_seconds() - in_loops)) / WINDOW)
    _core.mesh_steps = fused
    parts = iteration_parts(again, threads)
    steps, between = (median(column) for column in zip(*calls, strict=True))
    remainders = {"serial_ms": between, "reports_ms": median(serial), "whole_ms": median(whole)}
    return {"iteration_ms": steps, **remainders, **parts, "step_ms": steps - sum(parts.values())}


def iteration_parts(problem: Any, threads: int) -> dict[str, float]:
    """Return the milliseconds of the parts of the forces, called one by one."""
    from equipoise import _core
    from equipoise.arrays.csr import compiled_pattern, entry_values

    engine, kernel, A = problem.engine, problem.objective.kernel, problem.objective.weights
    Y = problem.Y
    n, d = Y.shape
    source = engine._source(Y, None)
    transform = engine._transform(kernel, source)
    mesh, nodes = transform.place(source.low, source.high), int(np.prod(transform.size))
    grid = np.zeros(nodes + _core.MESH_PADDING, transform.dtype)
    potential, half, force = np.empty((n, 1)), np.empty((n, 1, d)), np.empty((n, d))
    pattern, values, none = compiled_pattern(A), entry_values(A), np.empty(0)
    edges, at = engine.compiled_edges(kernel), Y.astype(transform.dtype, copy=False)
    calls: dict[str, Callable[[], Any]] = {
        "edges_ms": lambda: _core.edges_sparse(edges, -1.0, pattern, values, Y, none, force, threads),
        "spread_ms": lambda: _core.spread(mesh, at, source.charges, grid, threads),
        "convolve_ms": lambda: _core.convolve(mesh, transform.frequencies, grid[:nodes].reshape(1, nodes), threads),
        "gather_ms": lambda: _core.gather(mesh, at, grid, potential, half, threads),
    }
    return {name: 1e3 * typical(call) for name, call in calls.items()}


def typical(call: Callable[[], Any], repeats: int = 25) -> float:
    """Return the median time of a call in seconds, after one to warm up."""
    call()
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return median(took)


def child(file: Path) -> None:
    import equipoise  # noqa: F401  imports are not timed

    request = json.loads(file.read_text())
    data, threads = common.load("fashion", request["subset"]), request["threads"]
    problem, record = fit_tsne(data.X, threads)
    if not request["fit_only"]:
        record |= iteration(problem, threads) | fit_umap(data.X, threads)
        record["fit_300_s"] = seconds_of_iterations(data.X, threads, 300) if threads > 1 else None
    common.answer(file, record)


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """Keep as many processes busy as there are cores."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(1)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(threads: list[int], subset: int | None, repeats: int, fit_only: bool = False) -> dict[int, list[Any]]:
    """Return the records of each number of threads, measured in turn."""
    records: dict[int, list[Any]] = {count: [] for count in threads}
    for _ in range(repeats):
        for count in threads:
            request = {"threads": count, "subset": subset, "fit_only": fit_only}
            record = common.run_child("cores.py", request, count)
            if "failed" in record:
                raise RuntimeError(f"{count} threads: {record['failed']}")
            records[count].append(record)
            seen = {key: round(value, 3) for key, value in record.items() if isinstance(value, float)}
            print(count, "threads:", seen, file=sys.stderr, flush=True)
    return records


def phase_table(records: dict[int, list[Any]]) -> list[str]:
    """Return a table of medians, with the speed-up against the smallest number of threads in brackets."""
    base, rows = min(records), []
    for title, key in PHASES.items():
        times = {count: middle(records[count], key) for count in records}
        cells = []
        for count, took in times.items():
            faster = "" if count == base or not took or not times[base] else f" ({times[base] / took:.1f}×)"
            cells.append(show(took, ".3g") + faster)
        rows.append([title, *cells])
    return common.table(["", *(f"{count} thread" + "s" * (count > 1) for count in records)], rows)


def fit_table(records: dict[int, list[Any]]) -> list[str]:
    """Return a table of the phases of a fit in milliseconds, with their serial part in brackets."""
    rows = []
    for title in [*(title for title, _, _ in PARTS), "rest of the fit", "all"]:
        cells = []
        for of in records.values():
            kinds = [
                median(sum(v for t, v in record["phases"][kind].items() if title in (t, "all")) for record in of)
                for kind in ("seconds", "serial")
            ]
            cells.append("{:.1f} ({:.1f})".format(*(1e3 * value for value in kinds)))
        rows.append([title, *cells])
    heads = ["a default fit, ms", *(f"{count} thread" + "s" * (count > 1) for count in records)]
    return [
        "## The phases of a fit",
        "",
        "Milliseconds of a default t-SNE fit, and in brackets those outside the parallel loops of the core: Python,",
        "NumPy (partly on threads of its own) and serial code of the core. Each phase is without the others inside it.",
        "",
        *common.table(heads, rows),
        "",
    ]


def target_lines(records: dict[int, list[Any]]) -> list[str]:
    """Return what was measured with the largest number of threads, with TARGETS in brackets."""
    most, least = max(records), min(records)

    def at(key: str, count: int = most) -> float:
        return middle(records[count], key) or float("nan")

    steps, search = (at(key, least) / at(key) for key in ("iteration_ms", "neighbors_s"))
    recall = min(record["recall"] for of in records.values() for record in of)
    return [
        f"With {most} threads, and in brackets the targets for 16: neighbours {at('neighbors_s'):.2f} s",
        f"({TARGETS['search']}) at recall {recall:.4f} ({TARGETS['recall']}), an iteration {at('iteration_ms'):.2f} ms",
        f"({TARGETS['step']}), a fit {at('fit_s'):.2f} s ({TARGETS['fit']}), the serial remainder of an iteration",
        f"{at('serial_ms'):.2f} ms, or {at('reports_ms'):.2f} ms with reports ({TARGETS['serial']}). Speed-ups over",
        f"n_jobs={least}: iteration {steps:.1f} ({TARGETS['step speed-up']}), search {search:.1f}"
        f" ({TARGETS['search speed-up']}).",
        "",
    ]


def digest_lines(records: dict[int, list[Any]]) -> list[str]:
    """Return which digests the maps have, and whether they are the same for all numbers of threads."""
    lines = []
    for key, name in (("tsne", "t-SNE"), ("umap", "UMAP")):
        found = sorted({record[key] for of in records.values() for record in of})
        same = "the same bytes in all runs" if len(found) == 1 else "DIFFERENT BYTES"
        lines.append(f"- {name}: {same}, digest {', '.join(found)}")
    return lines


def busy_lines(cores: int, repeats: int) -> list[str]:
    """Return how long fits take on all threads and on one while other processes keep all cores busy."""
    with busy_cores(cores):
        load = os.getloadavg()[0]
        records = measure([1, cores], BUSY_ROWS, repeats, fit_only=True)
    one, all_cores = (middle(records[count], "fit_s") for count in (1, cores))
    assert one is not None and all_cores is not None
    same = len({record["tsne"] for of in records.values() for record in of}) == 1
    return [
        "",
        "## On a busy machine",
        "",
        f"t-SNE of {BUSY_ROWS:,} rows while {cores} other processes compute without pause (load average {load:.1f}",
        f"at the start): {all_cores:.3g} s with n_jobs={cores}, {one:.3g} s with 1: ratio {all_cores / one:.2f}.",
        f"The bytes of the maps are {'the same' if same else 'DIFFERENT'}. The ratio should be at most 1.3.",
    ]


def main() -> None:
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    powers = sorted({*(2**p for p in range(cores.bit_length())), *([3] if cores > 3 else [])})
    parser.add_argument(
        "--threads", type=int, nargs="+", default=powers, help="default: powers of two up to the cores, and 3"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--subset", type=int, default=None, help="number of random rows")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cores.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child)
    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = (
        f"python benchmarks/cores.py --threads {' '.join(map(str, args.threads))} --repeats {args.repeats}{subset}"
    )
    where = common.machine(max(args.threads), ["equipoise", "numpy", "scipy", "faiss-cpu"])
    lines = common.header("Times by number of threads", command, where)
    runs = f"medians of {args.repeats} runs" if args.repeats > 1 else "one run of each"
    lines += [
        f"Fashion-MNIST, {args.subset or 70000:,} × 50, default settings, seed 0: {runs} in",
        "fresh processes, one after the other, in brackets the speed-up. An iteration is one of the late phase on the",
        "finished map; its parts are also called one by one. The serial remainder is the time of an iteration outside",
        "the parallel loops of the core; with reports, it includes the loss every 50 iterations, tolerance checks",
        "and new meshes. On a machine with other work, long intervals contain it and short ones, the parts, do not.",
        "",
    ]
    records = measure(args.threads, args.subset, args.repeats)
    lines += [*phase_table(records), "", *target_lines(records), *digest_lines(records), "", *fit_table(records)]
    common.write(lines, args.out)  # already now, because the rest takes long on a busy machine
    busy = [*busy_lines(cores, args.repeats), "", f"Load average at the end: {os.getloadavg()[0]:.2f}."]
    print("\n".join(busy))
    args.out.write_text("\n".join([*lines, *busy]) + "\n")


if __name__ == "__main__":
    main()
