"""Time the neighbour search among mixed columns against that among numbers, and measure its recall.

Run: python benchmarks/mixed.py [--rows 100000] [--threads 2] [--out benchmarks/results/mixed.md]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from common import DATA, header, machine, table, write

import equipoise as eq
from equipoise.inputs import MixedTable

COLUMNS, K, SAMPLE, REPEATS = 40, 90, 1000, 3


def main() -> None:
    """Time the searches in turn, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    where = machine(args.threads, ["equipoise", "numpy", "pyarrow", "faiss-cpu"])
    tables = {
        "40 numbers (Euclidean)": (numbers(args.rows), "euclidean"),
        "20 numbers, 20 categories": (mixed(args.rows, gaps=0.0), "mixed"),
        "the same with 10 % gaps": (mixed(args.rows, gaps=0.1), "mixed"),
        "network connections": (connections(args.rows), "mixed"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in tables}
    recalls: dict[str, float] = {}
    for _ in range(REPEATS):
        for name, (X, metric) in tables.items():
            if X is None:
                continue
            start = time.perf_counter()
            graph = eq.neighbors.nearest_neighbors(X, K, metric, n_threads=args.threads)
            seconds[name].append(time.perf_counter() - start)
            if name not in recalls:
                recalls[name] = graph.recall if metric == "euclidean" else recall(X, graph)
    lines = header("Neighbour search among mixed columns", "python benchmarks/mixed.py", where)
    write([*lines, *page(args.rows, seconds, recalls)], args.out)


def page(rows: int, seconds: dict[str, list[float]], recalls: dict[str, float]) -> list[str]:
    """Return the lines of the page after its header."""
    numeric = seconds["40 numbers (Euclidean)"]
    shown = [
        [
            name,
            f"{median(times):.1f}",
            f"{median(t / s for t, s in zip(times, numeric, strict=True)):.2f}",
            f"{recalls[name]:.4f}",
        ]
        for name, times in seconds.items()
        if times
    ]
    return [
        f"{rows:,} rows, k = {K}: the {K} nearest neighbours of every row, by `neighbors.nearest_neighbors`; reading",
        f"the table is included. Medians of {REPEATS} runs in turn; the ratio is that to the search among numbers",
        f"of the same turn. The recall of the mixed tables was measured on {SAMPLE:,} rows against all distances in",
        "float64 (a neighbour at the same distance counts); that of the numbers is the search's own estimate.",
        "",
        *table(["table", "seconds", "ratio", "recall"], shown),
        "",
        "The numbers are standard normal; the categories have 2 to 12 levels of unequal frequency. The network",
        "connections are the first rows of `kddcup99_10pct.npz` (38 numbers, 3 categories), with the logarithm",
        "log(1 + x) of the numbers.",
    ]


def numbers(n: int) -> np.ndarray:
    """Return a table of standard normal numbers."""
    return np.random.default_rng(0).standard_normal((n, COLUMNS))


def mixed(n: int, gaps: float) -> pa.Table:
    """Return a table of half numbers, half categories, a fraction `gaps` of whose cells is missing."""
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {}
    for c in range(COLUMNS // 2):
        columns[f"number {c}"] = pa.array(rng.standard_normal(n), mask=rng.random(n) < gaps if gaps else None)
    for c in range(COLUMNS // 2):
        levels = 2 + c % 11
        codes = rng.choice(levels, n, p=rng.dirichlet(np.full(levels, 2.0)))
        names = np.array([f"level {level}" for level in range(levels)], dtype=object)
        columns[f"category {c}"] = pa.array(names[codes], mask=rng.random(n) < gaps if gaps else None)
    return pa.table(columns)


def connections(n: int) -> pa.Table | None:
    """Return network connections of numbers and categories; None if the file is missing."""
    path = DATA / "kddcup99_10pct.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        X, categories = np.log1p(file["X"][:n].astype(np.float64)), file["cat"][:n]
    columns = {f"number {c}": pa.array(X[:, c]) for c in range(X.shape[1]) if np.ptp(X[:, c]) > 0}
    return pa.table({**columns, **{f"category {c}": pa.array(v.astype(str)) for c, v in enumerate(categories.T)}})


def recall(X: Any, graph: Any) -> float:
    """Return the fraction of neighbours at most as far as the k-th nearest row, for a sample of rows."""
    data = MixedTable(X, "mixed")
    rows = np.random.default_rng(0).choice(data.n, min(SAMPLE, data.n), replace=False)
    found = 0.0
    for i in rows:
        D = data.block(np.array([i]))[0]
        D[i] = np.inf
        found += (D[graph.indices[i]] <= np.partition(D, K - 1)[K - 1]).mean()
    return found / len(rows)


if __name__ == "__main__":
    main()
