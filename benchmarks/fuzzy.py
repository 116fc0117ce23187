"""UMAP by its effective loss and by negative sampling, compared with umap-learn: time, trustworthiness and accuracy.

    python benchmarks/fuzzy.py [--data mnist] [--subset N] [--threads 2] [--runs 1] [--out benchmarks/results/umap.md]

Defaults throughout. Every fit runs in a fresh process, the tools in alternation. umap-learn gets no seed, because a
seed disables its threads; its very first call runs with nothing compiled yet.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

OURS = ("effective", "sampled")
PEER = "umap-learn"
K = 15  # neighbours for trustworthiness
NEIGHBORS = 10  # for the class vote
SAMPLE = 2000  # points over which trustworthiness is averaged; ranks are among all points


def child(file: Path) -> None:
    """Fit one tool, twice unless this is the first call ever, and save the last map in the folder of the data."""
    request = json.loads(file.read_text())
    folder, name, threads = Path(request["folder"]), request["method"], request["threads"]
    module = importlib.import_module("umap" if name == PEER else "equipoise")
    if name != PEER:
        importlib.import_module("faiss")  # imports are not timed
    X = np.load(folder / "X.npy")
    record: dict[str, Any] = {}
    for call in ("first_s", "later_s"):
        start = time.perf_counter()
        if name == PEER:
            Y = module.UMAP(n_jobs=threads).fit_transform(X)
        else:
            engine = "negative_sampling" if name == "sampled" else "auto"
            problem = module.UMAP(engine=engine, random_state=0, n_jobs=threads).problem(X)
            record["build_s"] = time.perf_counter() - start
            Y = problem.optimize()  # fit() is these two steps
        record[call] = time.perf_counter() - start
        if request["ever"]:
            break
    np.save(folder / "Y.npy", Y)
    common.answer(file, record)


def trustworthiness(X: np.ndarray, near: np.ndarray) -> float:
    """Return 1 − 2/(s k (2n − 3k − 1)) Σ_ij max(0, rank_ij − k) over the k nearest in the map (Venna & Kaski 2001)."""
    n, rows = len(X), np.random.RandomState(0).permutation(len(X))[:SAMPLE]
    norms, excess = (X**2).sum(axis=1), 0
    for i in rows:
        d2 = norms - 2 * X @ X[i]
        d2[i] = -np.inf
        excess += int(np.maximum((d2[:, None] < d2[near[i]]).sum(axis=0) - K, 0).sum())
    return 1 - 2 * excess / (len(rows) * K * (2 * n - 3 * K - 1))


def score(Y: np.ndarray, data: common.Data, threads: int) -> dict[str, float]:
    from score import map_neighbors, one_nn_error  # imports equipoise, which the child process of the peer must not

    near = map_neighbors(Y, K, threads)
    votes = data.labels[near[:, :NEIGHBORS]]
    counts = np.stack([(votes == c).sum(axis=1) for c in range(int(data.labels.max()) + 1)])
    return {
        "trust": trustworthiness(data.X, near),
        "accuracy": float((counts.argmax(axis=0) == data.labels).mean()),
        "one_nn": 1 - one_nn_error(Y, data.labels, threads),
    }


def summary_row(name: str, records: list[dict[str, Any]], ever: float | None) -> list[str]:
    """Return the medians of the runs of a method; `ever` is the time of the peer's first call with nothing compiled."""
    middles = {key: common.middle(records, key) for key in records[0]}
    return [
        name if name == PEER else f"equipoise, {name}",
        common.show(middles.get("build_s"), ".2f"),
        common.show(ever if name == PEER else middles["first_s"], ".2f"),
        common.show(middles["later_s"], ".2f"),
        common.show(middles["trust"], ".4f"),
        common.show(middles["accuracy"], ".4f"),
        common.show(middles["one_nn"], ".4f"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=common.DATASETS, default="mnist")
    parser.add_argument("--subset", type=int, default=None)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--child", type=Path, default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        return child(args.child)

    where = common.machine(args.threads, ["equipoise", PEER, "numpy", "scipy", "faiss-cpu", "numba", "pynndescent"])
    data = common.load(args.data, args.subset)
    names = [*OURS, *([PEER] if common.installed(PEER) else [])]
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    ever: float | None = None
    with tempfile.TemporaryDirectory() as compiled, tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", data.X)
        turns = [(-1, name) for name in names if name == PEER] + [(r, name) for r in range(args.runs) for name in names]
        for run, name in turns:
            request = {"method": name, "folder": folder, "threads": args.threads, "ever": run < 0}
            record = common.run_child("fuzzy.py", request, args.threads, Path(compiled))
            if "failed" in record:
                raise SystemExit(f"{name} failed: {record['failed']}")
            if run < 0:
                ever = record["first_s"]
                continue
            records[name].append(record | score(np.load(Path(folder) / "Y.npy"), data, args.threads))
            print(f"{name}: {records[name][-1]}", flush=True)

    rows = [summary_row(name, records[name], ever) for name in names]
    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = f"python benchmarks/fuzzy.py --data {args.data}{subset} --threads {args.threads} --runs {args.runs}"
    columns = ["", "build, s", "first call ever, s", "later call, s", f"trustworthiness, k = {K}"]
    columns += [f"{NEIGHBORS}-NN accuracy", "1-NN accuracy"]
    lines = [
        *common.header("UMAP", command, where),
        f"## {data.title}",
        "",
        *common.table(columns, rows),
        "",
        "Medians over the runs, with defaults; every fit in its own process, the tools in alternation; imports are not",
        "timed. **Build** is the neighbour search, the affinities and the spectral start. **First call ever** runs",
        "with nothing compiled yet, **later call** is a second fit in one process. Trustworthiness is averaged over",
        f"{SAMPLE} points, with ranks among all points; accuracies are leave-one-out in the map, over all points.",
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()
