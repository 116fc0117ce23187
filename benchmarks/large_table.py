"""A table larger than memory, embedded over ranks: time of each part, and the memory of all ranks together.

    python benchmarks/large_table.py [--rows 1000000] [--columns 2000] [--ranks 2] [--limit 6] [--iterations 60]
                                     [--folder FOLDER] [--out benchmarks/results/large_table.md]

The table is a Zarr array in float32 with shards, written block by block: a mixture of Gaussians in 50 dimensions,
multiplied by random loadings, plus noise. By default it has 8 GB. Each rank is a process with one thread whose private
memory (RLIMIT_DATA) may not exceed its share of the limit, so that a fit that needs more fails.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common
import numpy as np
from rank_processes import Outcome, run_ranks

LATENT = 50  # dimensions of the mixture, and principal components that are kept
COMPONENTS = 30
NOISE = 0.5  # standard deviation; the signal has about 1.8 in each column
CHUNK, SHARD = 1024, 16384  # rows
TIMEOUT = 1800.0  # seconds of a collective: ranks of a busy machine wait for one another


def make(path: Path, rows: int, columns: int) -> None:
    """Write the table, a shard at a time."""
    import zarr

    rng = np.random.default_rng(0)
    centres = 1.5 * rng.standard_normal((COMPONENTS, LATENT), dtype=np.float32)
    loadings = rng.standard_normal((LATENT, columns), dtype=np.float32) / np.float32(np.sqrt(LATENT))
    array = zarr.create_array(
        str(path), shape=(rows, columns), chunks=(CHUNK, columns), shards=(SHARD, columns), dtype="float32",
        compressors=None,
    )  # fmt: skip
    for start in range(0, rows, SHARD):
        m = min(SHARD, rows - start)
        latent = centres[rng.integers(COMPONENTS, size=m)] + rng.standard_normal((m, LATENT), dtype=np.float32)
        block = latent @ loadings
        block += NOISE * rng.standard_normal((m, columns), dtype=np.float32)
        array[start : start + m] = block


@contextmanager
def spans(owner: Any, name: str, part: str, found: dict[str, list[float]]) -> Iterator[None]:
    """Record when `owner.name` starts and ends."""
    original = getattr(owner, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.time()
        try:
            return original(*args, **kwargs)
        finally:
            found[part] = [start, time.time()]

    setattr(owner, name, call)
    try:
        yield
    finally:
        setattr(owner, name, original)


def child(file: Path) -> None:
    """Fit and write the map as one rank."""
    request = json.loads(file.read_text())
    share = int(request["limit"])
    resource.setrlimit(resource.RLIMIT_DATA, (share, share))
    import equipoise as eq
    from equipoise.distributed import current_group, rank_affinities, rank_map
    from equipoise.distributed import rank_fit as fitting
    from equipoise.distributed.rank_problem import SharedProblem

    method = eq.TSNE(perplexity=10, n_iter=request["iterations"], random_state=0, n_jobs=1)
    found: dict[str, list[float]] = {}
    with current_group(timeout=TIMEOUT) as group, ExitStack() as stack:
        for owner, name, part in (
            (fitting, "Principal", "principal axes"),
            (fitting, "find_neighbors", "neighbours"),
            (rank_affinities.Joint, "loss", "affinities"),
            (fitting, "_initial_map", "initial map"),
            (SharedProblem, "optimize", "descent"),
            (rank_map, "write_rows", "writing"),
        ):
            stack.enter_context(spans(owner, name, part, found))
        result = fitting.fit(method, request["table"], group=group, n_columns=LATENT)
        result.write(request["map"])
        record = {
            "parts": found, "loss": result.loss, "n_iter": result.n_iter, "recall": result.knn_recall,
            "peak_mb": common.peak_memory(),
        }  # fmt: skip
    common.answer(file, record)


def part_rows(outcome: Outcome) -> list[list[str]]:
    """Return a row for each part: its seconds on rank 0, and the most memory of all ranks during it."""
    rows = []
    for part, (start, end) in outcome.results[0]["parts"].items():
        peak = max((mb for at, mb in outcome.memory if start <= at <= end), default=0.0)
        rows.append([part, f"{end - start:.1f}", f"{peak / 1e3:.2f}"])
    return rows


def page(args: argparse.Namespace, where: dict[str, Any], outcome: Outcome, checked: str) -> list[str]:
    command = f"python benchmarks/large_table.py --rows {args.rows} --columns {args.columns} --ranks {args.ranks}"
    command += f" --limit {args.limit:g} --iterations {args.iterations}"
    size = args.rows * args.columns * 4 / 1e9
    lines = common.header(f"A table of {size:.1f} GB under a limit of {args.limit:g} GB", command, where)
    if outcome.failed is not None:
        return [*lines, f"Failed: {outcome.failed}"]
    first, peak = outcome.results[0], max(mb for _, mb in outcome.memory) / 1e3
    sum_of_peaks = sum(result["peak_mb"] for result in outcome.results) / 1e3
    return [
        *lines,
        f"**Peak memory of all {args.ranks} ranks together: {peak:.2f} GB** (limit {args.limit:g} GB; sum of the"
        f" largest resident sizes of the ranks, whenever they occurred: {sum_of_peaks:.2f} GB). Time with start:"
        f" {outcome.seconds:.0f} s.",
        "",
        *common.table(["part", "seconds", "peak of all ranks, GB"], part_rows(outcome)),
        "",
        f"{args.rows:,} rows and {args.columns:,} columns in float32, a Zarr array in chunks of {CHUNK:,} rows and",
        f"shards of {SHARD:,} rows, without compression. `TSNE(perplexity=10, n_iter={args.iterations})` on"
        f" {LATENT} principal",
        f"components (`n_columns={LATENT}`), {args.ranks} gloo ranks with one thread each on this machine. The map is"
        " written as Zarr.",
        f"The limit is set in the kernel: RLIMIT_DATA of each rank is {args.limit / args.ranks:g} GB. Memory is the"
        " proportional set size of",
        "all ranks, sampled 20 times per second; pages of files that the system caches are not part of it.",
        f"Recall of the search {first['recall']:.3f}; loss {first['loss']:.3f} after {first['n_iter']} iterations."
        f" {checked}",
    ]  # fmt: skip


def check_map(path: Path, rows: int) -> str:
    """Return a sentence about the map that was written; raise if it is not complete and finite."""
    import zarr

    Y = zarr.open(str(path), mode="r")[:]
    if Y.shape != (rows, 2) or not np.isfinite(Y).all():
        raise SystemExit(f"the map has shape {Y.shape} and is not finite everywhere")
    return f"The map has {rows:,} finite rows."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=2_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--limit", type=float, default=6.0, help="GB of memory of all ranks together")
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=None, help="where the table is written; removed afterwards")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/large_table.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        return child(args.child)

    size = args.rows * args.columns * 4
    where = common.machine(args.ranks, ["equipoise", "numpy", "scipy", "zarr", "torch"])
    with TemporaryDirectory(dir=args.folder) as folder:
        free = shutil.disk_usage(folder).free
        if free < 1.2 * size:
            raise SystemExit(f"the table needs {1.2 * size / 1e9:.0f} GB in {folder}, {free / 1e9:.0f} GB are free")
        table, result = Path(folder) / "table.zarr", Path(folder) / "map.zarr"
        start = time.perf_counter()
        make(table, args.rows, args.columns)
        print(f"table of {size / 1e9:.2f} GB written in {time.perf_counter() - start:.0f} s", flush=True)
        request = {"table": str(table), "map": str(result), "iterations": args.iterations}
        request["limit"] = int(args.limit * 1e9 / args.ranks)
        outcome = run_ranks("large_table.py", request, args.ranks)
        checked = "" if outcome.failed else check_map(result, args.rows)
    common.write(page(args, where, outcome, checked), args.out)
    if outcome.failed or max(mb for _, mb in outcome.memory) > args.limit * 1e3:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
