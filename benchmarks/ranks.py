"""Fits over ranks: strong and weak scaling, the overhead of one rank, bytes sent, and a model of the cost.

    python benchmarks/ranks.py [--n 200000] [--ranks 1 2] [--iterations 150] [--repeats 3] [--decay 0.5]
                               [--out benchmarks/results/ranks.md]
    python benchmarks/ranks.py --n 1000000 --ranks 1 2 4 8 16 --iterations 30 --repeats 1 --no-overhead --budget 480

Each rank is a process with one thread on this machine; they communicate through gloo. The data are the mixtures of
benchmarks/scaling.py. Strong scaling: n points on every number of ranks. Weak scaling: n points for each rank of the
largest number, so that the points of a rank stay the same. The overhead is that of one rank over the plain engine with
n_jobs=1, in turn. All measurements are saved as JSON beside the page, for rank_model.py, which fits a model of the cost
and predicts times on GPUs. The second command is for a machine with 16 cores and takes at most about 9 minutes:
runs that would exceed the budget are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import common
import numpy as np
from rank_model import model_lines
from rank_processes import run_ranks
from rank_timers import PARTS, TALK, WORK, Timers, halo_shares, measure_collectives
from scaling import mixture

TIMEOUT = 900.0  # seconds of a collective
NAME = "TSNE(perplexity=30)"
SLOWER = 1.5  # most by which ranks are expected to be slower than the work divided by their number
SHARED = 250_000  # largest map whose halos are counted for other numbers of ranks, which takes memory and time


def child(file: Path) -> None:
    """Fit as one rank, or on the plain engine, and answer with the measurements."""
    request = json.loads(file.read_text())
    import equipoise as eq

    X = np.load(request["table"], mmap_mode="r")[: request["n"]]
    method = eq.TSNE(perplexity=30, n_iter=request["iterations"], random_state=0, n_jobs=1, engine="grid")
    common.answer(file, plain(method, X) if request["plain"] else over_ranks(method, X))


def plain(method: Any, X: np.ndarray) -> dict[str, Any]:
    timers = Timers()
    with timers.part("build"):
        problem = method.problem(np.array(X))
    with timers.part("descent"):
        problem.optimize()
    return {"clock": timers.clock, "processor": timers.processor, "n_iter": problem.n_iter}


def over_ranks(method: Any, X: np.ndarray) -> dict[str, Any]:
    from equipoise.distributed import current_group
    from equipoise.distributed import rank_fit as fitting
    from equipoise.distributed.rank_affinities import Joint

    kept: list[Any] = []
    loss, timers = Joint.loss, Timers()

    def keep(*args: Any) -> Any:
        kept.append(loss(*args))
        return kept[0]

    Joint.loss = keep  # type: ignore[method-assign]
    with current_group(timeout=TIMEOUT) as group:
        group.barrier()
        start = time.perf_counter()
        with timers.measuring(group):
            result = fitting.fit(method, X, group=group)
        seconds = time.perf_counter() - start
        halo, A = kept[0].halo, kept[0].symmetric
        record = {
            "clock": timers.clock, "processor": timers.processor, "calls": timers.calls, "sent": timers.sent,
            "nodes": round(timers.nodes / result.n_iter), "seconds": seconds, "n_iter": result.n_iter,
            "loss": result.loss,
            "own": len(result.rows), "halo": int(halo.size - len(result.rows)), "edges": int(A.nnz),
            "peak_mb": common.peak_memory(), "recall": result.knn_recall,
        }  # fmt: skip
        if group.size == 1 and len(X) <= SHARED:
            record["halo_shares"] = halo_shares(halo.globalized(A))
        elif group.size > 1:
            record["collectives"] = measure_collectives(group)
    return record


def run(request: dict[str, Any], size: int, repeats: int) -> list[list[dict[str, Any]]]:
    """Return the records of all ranks for each of several runs, fastest first."""
    runs = []
    for _ in range(repeats):
        outcome = run_ranks("ranks.py", request, size, sampled=1.0)
        if outcome.failed is not None:
            raise SystemExit(f"{size} ranks, n = {request['n']:,}: {outcome.failed}")
        runs.append(outcome.results)
    return sorted(runs, key=lambda records: records[0]["clock"]["descent"])


def middle(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the run with the median time of descent."""
    return runs[len(runs) // 2]


def scaling_table(found: dict[tuple[int, int], list[dict[str, Any]]]) -> list[str]:
    """Return the seconds of each part, the slowest rank of each, for runs by (n, ranks)."""
    rows = []
    first = next(iter(found.values()))
    each = max(r["seconds"] for r in first) * len(first) / sum(r["own"] for r in first)  # rank seconds per point
    for (n, size), records in found.items():
        slowest = {part: max(record["clock"][part] for record in records) for part in PARTS}
        per = 1e3 * slowest["descent"] / records[0]["n_iter"]
        total = max(record["seconds"] for record in records)
        rows.append([
            f"{n:,}", str(size), *(f"{slowest[part]:.2f}" for part in PARTS), f"{per:.1f}", f"{total:.1f}",
            f"{each * n / total / size:.2f}", f"{max(r['peak_mb'] for r in records):.0f}",
        ])  # fmt: skip
    columns = ["n", "ranks", *(f"{part}, s" for part in PARTS), "ms per iteration", "total, s", "efficiency",
               "peak of a rank, MB"]  # fmt: skip
    return common.table(columns, rows)


def iteration_table(found: dict[tuple[int, int], list[dict[str, Any]]]) -> list[str]:
    """Return the milliseconds of the parts of an iteration, means over ranks and iterations."""
    rows = []
    for (n, size), records in found.items():
        count = records[0]["n_iter"]
        parts = (*WORK, *TALK, "rest", "descent")
        mean = [1e3 * np.mean([r["clock"].get(part, 0.0) for r in records]) / count for part in parts]
        rows.append([f"{n:,}", str(size), *(f"{ms:.2f}" for ms in mean)])
    return common.table(["n", "ranks", *WORK, *TALK, "rest", "whole"], rows)


def traffic_table(found: dict[tuple[int, int], list[dict[str, Any]]]) -> list[str]:
    """Return what a rank sends in an iteration, and the sizes of its part."""
    rows = []
    for (n, size), records in found.items():
        record, count = records[0], records[0]["n_iter"]
        sent = [f"{record['sent'].get(part, 0) / count / 1e3:.1f}" for part in TALK]
        calls = f"{sum(record['calls'].values()) / count:.1f}"
        sizes = [f"{record[key]:,}" for key in ("own", "halo", "edges", "nodes")]
        rows.append([f"{n:,}", str(size), *sizes, *sent, calls])
    columns = ["n", "ranks", "own points", "halo points", "edges", "mesh nodes", *(f"{part}, kB" for part in TALK),
               "collectives"]  # fmt: skip
    return common.table(columns, rows)


def overhead_table(runs: dict[str, list[dict[str, Any]]]) -> tuple[list[str], float]:
    """Return medians of the plain engine and of one rank with their ratios, and that of whole fits by the clock."""
    rows, ratios = [], {}
    for kind in ("clock", "processor"):
        for part, plainly, ranked in (
            ("build", ["build"], PARTS[:-1]),
            ("descent", ["descent"], PARTS[-1:]),
            ("whole fit", ["build", "descent"], PARTS),
        ):
            before, after = (
                median(sum(record[kind][p] for p in parts) for record in runs[name])
                for name, parts in (("plain", plainly), ("ranks", ranked))
            )
            ratios[part, kind] = after / before
            rows.append([f"{part}, {kind}", f"{before:.2f}", f"{after:.2f}", f"{after / before:.3f}"])
    return common.table(["part", "plain engine, s", "one rank, s", "ratio"], rows), ratios["whole fit", "clock"]


def overhead_lines(args: argparse.Namespace, overhead: dict[str, list[dict[str, Any]]]) -> list[str]:
    lines, ratio = overhead_table(overhead)
    return [
        f"## One rank and the plain engine, n = {args.n:,}", "",
        f"**A whole fit of one rank takes {ratio:.3f} of the time of the plain engine.**", "", *lines, "",
        f"Medians of {args.repeats} runs in turn, with n_jobs=1. The build is everything before the descent. Ranks",
        "search in other batches than the plain engine, which keeps all points in memory, and sum in fixed blocks.", "",
    ]  # fmt: skip


def measure_overhead(table: Path, n: int, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Run the plain engine and one rank in turn."""
    runs: dict[str, list[dict[str, Any]]] = {"plain": [], "ranks": []}
    for _ in range(args.repeats):
        for name, records in runs.items():
            request = {"table": str(table), "n": n, "iterations": args.iterations, "plain": name == "plain"}
            records += middle(run(request, 1, 1))
    return runs


def notes(args: argparse.Namespace) -> list[str]:
    cores, largest = os.cpu_count(), max(args.ranks)
    more = f"; more than {largest} ranks were not measured" if largest < 16 else ""
    return f"""
`{NAME}` with n_iter={args.iterations} and engine="grid"; mixtures of 30 Gaussians in 50 dimensions
(benchmarks/scaling.py, decay {args.decay:g}), float32, read from an NPY file through a memory map. Times of a part are
those of the slowest rank, in the run with the median time of descent out of {args.repeats}; reading is done by the
search and is not in the column of neighbours. **Efficiency** is time × ranks per point in the first row, divided by
that of this row. Times of collectives include waiting for other ranks. The loss and the tolerance of the mesh, which
are evaluated every 50 iterations, are part of an iteration. All ranks were on one machine with {cores} cores{more},
and NCCL was not run: what networks or GPUs would do is predicted, not measured.
""".strip().splitlines()


def measure(args: argparse.Namespace) -> tuple[dict[Any, Any], dict[str, list[dict[str, Any]]]]:
    """Return the median runs by (n, ranks) and the runs of the overhead, if any; print as they come."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    begin, each, largest = time.perf_counter(), 0.0, max(args.ranks)
    per_rank, few, many = args.n // largest, sorted(args.ranks), sorted(args.ranks, reverse=True)
    wanted = [(args.n, largest), (per_rank, 1), (args.n, few[0]), *((args.n, p) for p in many)]
    with TemporaryDirectory() as folder:
        table = Path(folder) / "table.npy"
        np.save(table, mixture(args.n, args.decay)[0])
        overhead = measure_overhead(table, args.n, args) if args.overhead else {}
        for n, size in [*wanted, *((per_rank * p, p) for p in few)]:
            expected = each * n * (1 if size == 1 else SLOWER / size)
            if (n, size) in found or time.perf_counter() - begin + expected > args.budget:
                continue
            request = {"table": str(table), "n": n, "iterations": args.iterations, "plain": False}
            start = time.perf_counter()
            found[n, size] = middle(run(request, size, args.repeats))
            each = (time.perf_counter() - start) / n if size == 1 else each  # of one rank, with its start
            parts = ", ".join(f"{part} {max(r['clock'][part] for r in found[n, size]):.2f}" for part in PARTS)
            print(f"n = {n:,}, {size} ranks: {found[n, size][0]['seconds']:.1f} s: {parts}", flush=True)
    return found, overhead


def command_of(args: argparse.Namespace) -> str:
    """Return the command that repeats the measurements."""
    command = f"python benchmarks/ranks.py --n {args.n} --ranks {' '.join(map(str, args.ranks))}"
    command += f" --iterations {args.iterations} --repeats {args.repeats} --decay {args.decay:g}"
    command += ("" if args.overhead else " --no-overhead") + (
        f" --budget {args.budget:g}" if args.budget < np.inf else ""
    )
    return command


def left_out(args: argparse.Namespace, strong: dict[Any, Any]) -> list[str]:
    """Return a line with the numbers of ranks that the budget did not allow, if there are any."""
    sizes = [str(p) for p in args.ranks if (args.n, p) not in strong]
    return [f"{' and '.join(sizes)} ranks were not run: the time was up."] if sizes else []


def page(args: argparse.Namespace, where: dict[str, Any], found: dict[Any, Any], overhead: Any) -> list[str]:
    per_rank = args.n // max(args.ranks)
    found = dict(sorted(found.items(), key=lambda item: (item[0][1], item[0][0])))  # by ranks
    strong = {key: found[key] for key in ((args.n, p) for p in args.ranks) if key in found}
    weak = {key: found[key] for key in ((per_rank * p, p) for p in args.ranks) if key in found}
    return [
        *common.header("Fits over ranks", command_of(args), where),
        *notes(args), *left_out(args, strong), "", "## Strong scaling", "", *scaling_table(strong),
        "", "## Weak scaling", "", *scaling_table(weak),
        "", "## Within an iteration, ms", "", *iteration_table(found),
        "", "## What a rank holds, and sends in an iteration", "", *traffic_table(found),
        "", *(overhead_lines(args, overhead) if overhead else []), *model_lines(found),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200_000)
    cores = os.cpu_count() or 1
    parser.add_argument("--ranks", type=int, nargs="+", default=[p for p in (1, 2, 4, 8, 16) if p <= cores])
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--decay", type=float, default=0.5)
    parser.add_argument("--overhead", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--budget", type=float, default=np.inf, help="seconds; runs that would take longer are left out"
    )
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ranks.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        return child(args.child)
    where = common.machine(1, ["equipoise", "numpy", "scipy", "torch"])
    found, overhead = measure(args)
    common.write(page(args, where, found, overhead), args.out)
    runs = [[*key, records] for key, records in found.items()]
    saved = {"command": command_of(args), "where": where, "runs": runs}
    args.out.with_suffix(".json").write_text(json.dumps(saved) + "\n")


if __name__ == "__main__":
    main()
