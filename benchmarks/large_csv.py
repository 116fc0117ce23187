"""A large CSV file on the command line: time to read and to embed it, and memory relative to the size of its table.

    python benchmarks/large_csv.py [--rows 2340000] [--threads 2] [--file table.csv]
                                   [--method pca tsne] [--iterations 50] [--out benchmarks/results/large_csv.md]

The table has 50 columns of numbers with six digits, drawn from ten normal classes in 50 dimensions, and a column of
class names: 2,340,000 rows are 1.02 GB of text and 0.94 GB of numbers. The rows are the same every time, and all
different. An existing file is used unchanged. Each method is one `equipoise embed` in its own process.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common
import numpy as np

COLUMNS = 50
CLASSES = 10
BLOCK = 20_000  # rows written at once
SPREAD = 3.0  # standard deviation of the class centres; within a class it is 1


def make(path: Path, rows: int) -> None:
    """Write the table as CSV."""
    rng = np.random.default_rng(0)
    centres = SPREAD * rng.standard_normal((CLASSES, COLUMNS))
    line = ",".join(["%.6g"] * COLUMNS) + ",k%d\n"
    with path.open("w") as file:
        file.write(",".join(f"x{j}" for j in range(COLUMNS)) + ",kind\n")
        for start in range(0, rows, BLOCK):
            kind = rng.integers(CLASSES, size=min(BLOCK, rows - start))
            X = centres[kind] + rng.standard_normal((len(kind), COLUMNS))
            file.writelines(line % (*x, k) for x, k in zip(X.tolist(), kind.tolist(), strict=True))


@contextmanager
def watched(owner: Any, name: str, stages: dict[str, list[float]], stage: str) -> Iterator[None]:
    """Record the time and the CPU time of `owner.name` in seconds, and the peak memory at its end in MB."""
    original: Callable[..., Any] = getattr(owner, name)

    def call(*args: Any) -> Any:
        start, busy = time.perf_counter(), time.process_time()
        try:
            return original(*args)
        finally:
            seconds = time.perf_counter() - start, time.process_time() - busy
            stages[stage] = [*seconds, common.peak_memory()]

    setattr(owner, name, call)
    try:
        yield
    finally:
        setattr(owner, name, original)


def child(request: Path) -> None:
    """Run the command, and write the measurements of its stages."""
    from equipoise import methods
    from equipoise.cli import embed, main

    settings = json.loads(request.read_text())
    stages = {"start": [0.0, 0.0, common.peak_memory()]}
    method = {"pca": methods.PCA, "tsne": methods.TSNE, "umap": methods.UMAP}[settings["method"]]
    with TemporaryDirectory() as folder:
        arguments = ["embed", settings["file"], "--label", "kind", "--method", settings["method"]]
        arguments += ["--out", f"{folder}/map.npy"]
        arguments += [] if settings["method"] == "pca" else ["--n-iter", str(settings["iterations"])]
        with (
            watched(embed, "read_source", stages, "reading"),
            watched(method, "fit", stages, "embedding"),
            watched(embed, "_print_quality", stages, "quality"),
        ):
            status = main(arguments)
    if status:
        raise SystemExit(status)
    common.answer(request, stages)


def row(method: str, stages: dict[str, Any], size: float, table: float) -> list[str]:
    """Return the row of a method: seconds, and the memory added since the start, as multiples of the table."""
    if "failed" in stages:
        return [method, stages["failed"], *["–"] * 5]
    names = ("reading", "embedding", "quality")
    times = [f"{stages[name][0]:.0f} ({stages[name][1]:.0f})" for name in names]
    peaks = [f"{(stages[name][2] - stages['start'][2]) / table:.2f}" for name in names]
    rate = f"{size / stages['reading'][1]:.0f}"
    return [method, *times, rate, ", ".join(peaks), f"{stages['quality'][2] / 1e3:.2f} GB"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_340_000)
    parser.add_argument("--file", type=Path, default=None, help="file of the table; written if it does not exist")
    parser.add_argument("--method", nargs="+", choices=["pca", "tsne", "umap"], default=["pca", "tsne"])
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/large_csv.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        return child(args.child)

    where = common.machine(args.threads, ["equipoise", "numpy", "scipy", "pyarrow", "faiss-cpu"])
    with TemporaryDirectory() as folder:
        file = args.file or Path(folder) / "table.csv"
        if not file.exists():
            make(file, args.rows)
        size, table = file.stat().st_size / 1e6, args.rows * COLUMNS * 8 / 1e6
        rows = []
        for method in args.method:
            request = {"file": str(file), "method": method, "iterations": args.iterations}
            rows.append(row(method, common.run_child("large_csv.py", request, args.threads), size, table))
    command = f"python benchmarks/large_csv.py --rows {args.rows} --method {' '.join(args.method)}"
    command += f" --iterations {args.iterations} --threads {args.threads}"
    columns = ["method", "reading, s (CPU)", "embedding, s (CPU)", "quality, s (CPU)", "MB read per CPU second"]
    columns += ["memory, multiples of the table", "peak"]
    lines = [
        *common.header(f"A CSV of {size / 1e3:.2f} GB, whose table is {table / 1e3:.2f} GB", command, where),
        *common.table(columns, rows),
        "",
        f"{args.rows:,} rows of {COLUMNS} numbers and a class. t-SNE and UMAP: {args.iterations} iterations.",
        "Elapsed time; in brackets CPU time, summed over threads. Memory: the peak up to the end of reading, of",
        "embedding and of the whole command, minus the memory before reading, divided by the size of the table in",
        "float64. Peak: of the whole process.",
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()
