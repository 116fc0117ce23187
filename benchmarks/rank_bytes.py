"""The same bytes over ranks on real data: maps of 1 to 4 gloo ranks compared with one another and with one process.

    python benchmarks/rank_bytes.py [--data hesc] [--iterations 300] [--iterations-3d 30] [--ranks 1 2 3 4]
                                    [--out benchmarks/results/rank_bytes.md]

TSNE, GSNE, UMAP and DKLLE in two and three dimensions. Each rank is a process with one thread. The last loss is
compared with that of the plain engine, fitted to the same table with the same settings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common
import numpy as np
from rank_processes import run_ranks

ROWS = 20_000  # of images, which have more columns
METHODS = ("TSNE", "GSNE", "UMAP", "DKLLE")
SETTINGS: dict[str, dict[str, Any]] = {"GSNE": {"alpha": -0.5, "beta": 2.5}}


def table(name: str) -> np.ndarray:
    """Return the rows: all cells of the time course, or images reduced to 50 principal components."""
    path = {"hesc": "flow_hesc_timecourse", "fashion": "fashion_mnist"}[name]
    X = np.load(common.ROOT.parent / "shared" / "data" / f"{path}.npz")["X"]
    if name == "hesc":
        return np.ascontiguousarray(X, dtype=np.float32)
    import equipoise as eq

    return eq.PCA(50).fit_transform(X[:ROWS].astype(np.float64)).astype(np.float32)


def child(file: Path) -> None:
    """Fit all methods as one rank, or on the plain engine, and answer with losses and digests of the maps."""
    request = json.loads(file.read_text())
    import equipoise as eq
    from equipoise.distributed import SingleProcess, current_group, fit

    X, records = np.load(request["table"], mmap_mode="r"), []
    with SingleProcess() if request["plain"] else current_group() as group:
        for name, d, iterations in request["fits"]:
            settings = {"n_iter": iterations, "random_state": 0, "n_jobs": 1, "engine": "grid"}
            method = getattr(eq, name)(n_components=d, **SETTINGS.get(name, {}), **settings)
            start, digest = time.perf_counter(), ""
            if request["plain"]:
                loss = method.fit(np.array(X)).loss_
            else:
                result = fit(method, X, group=group)
                loss, Y, curve = result.loss, result.gather(), np.ascontiguousarray(result.loss_curve)
                digest = "" if Y is None else hashlib.blake2b(Y.tobytes() + curve.tobytes(), digest_size=8).hexdigest()
            records.append({"loss": loss, "digest": digest, "seconds": time.perf_counter() - start})
    common.answer(file, {"fits": records})


def fit_all(request: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """Return the record of rank 0 for each fit."""
    start, outcome = time.perf_counter(), run_ranks("rank_bytes.py", request, size, sampled=1.0)
    if outcome.failed is not None:
        raise SystemExit(f"{size} ranks: {outcome.failed}")
    how = "plain engine" if request["plain"] else f"{size} ranks"
    print(f"{how}: {time.perf_counter() - start:.0f} s", flush=True)
    records: list[dict[str, Any]] = outcome.results[0]["fits"]
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["hesc", "fashion"], default="hesc")
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--iterations-3d", type=int, default=30)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rank_bytes.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        return child(args.child)
    where = common.machine(1, ["equipoise", "numpy", "scipy", "torch"])
    rows, equal, worst = [], True, 0.0
    fits = [(name, d, n_iter) for d, n_iter in ((2, args.iterations), (3, args.iterations_3d)) for name in METHODS]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.npy"
        X = table(args.data)
        np.save(path, X)
        request = {"table": str(path), "fits": fits, "plain": False}
        found = [fit_all(request, size) for size in args.ranks]
        plain = fit_all({**request, "plain": True}, 1)
    for f, (name, d, iterations) in enumerate(fits):
        digests, loss, other = {records[f]["digest"] for records in found}, found[0][f]["loss"], plain[f]["loss"]
        equal, worst = equal and len(digests) == 1, max(worst, abs(loss / other - 1))
        seconds = ", ".join(f"{records[f]['seconds']:.0f}" for records in (*found, plain))
        digest = f"`{digests.pop()}`" if len(digests) == 1 else "different"
        rows.append([
            name, str(d), str(iterations), digest, f"{loss:.5g}", f"{other:.5g}", f"{loss / other - 1:+.3%}", seconds,
        ])  # fmt: skip
    sizes = ", ".join(map(str, args.ranks))
    command = f"python benchmarks/rank_bytes.py --data {args.data} --iterations {args.iterations}"
    command += f" --iterations-3d {args.iterations_3d} --ranks {sizes.replace(',', '')}"
    columns = ["method", "d", "iterations", f"digest of {sizes} ranks", "loss over ranks", "loss, plain engine",
               "difference", "seconds, each number of ranks and plain"]  # fmt: skip
    lines = [
        *common.header("The same bytes for any number of ranks", command, where),
        f"**{'All maps and loss curves have' if equal else 'Not all maps have'} the same bytes for {sizes} ranks; the"
        f" loss differs from that of the plain engine by at most {worst:.2%}.**",
        "",
        *common.table(columns, rows),
        "",
        f"{X.shape[0]:,} rows and {X.shape[1]} columns of `{args.data}`. Each rank is a process with one thread,"
        f" connected by gloo, on {os.cpu_count()} cores;",
        "seconds include waiting for cores if there are more ranks. The digest is of all positions and of the loss",
        'curve. Methods have their default settings but for n_iter, `GSNE(alpha=-0.5, beta=2.5)`, and engine="grid".',
    ]
    common.write(lines, args.out)
    if not equal or worst > 0.005:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
