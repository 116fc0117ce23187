"""The first fits on a GPU: with no compiled kernels, with those of an earlier process, and after `info --warm-up`.

python benchmarks/gpu_cold.py X.npy --out cold.json

Each process is fresh, and the folder of Triton's cache is a new one. X.npy is a table (n, D) with at least 50 columns.
benchmarks/gpu.py --cold cold.json puts the result on its page. This program does not import PyTorch: before two of the
processes, it asks the system to drop PyTorch's libraries from memory, so that they are read from disk.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

COLUMNS = ["process", "kernels on disk", "fit", "imports and context, s", "fit, s"]
FIRST = [("TSNE", 50), ("TSNE", 50), ("TSNE", 24), ("UMAP", 50), ("SNE", 50), ("TSNE in 1-D", 50), ("TSNE", 100)]
FRESH = [("TSNE", 50)], [("UMAP", 50)], [("TSNE", 100)], [("TSNE in 3-D", 50)]


def evict() -> None:
    """Ask the system to drop the libraries of PyTorch, CUDA and Triton from its memory."""
    for package in ("torch", "nvidia", "triton"):
        for file in (Path(sysconfig.get_path("purelib")) / package).rglob("*"):
            if file.is_file():
                with file.open("rb") as opened:
                    os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(table: str, fits: list[tuple[str, int]], process: str, kernels: str) -> list[list[str]]:
    """Return a row for each fit, all of them in one fresh process."""
    request = {"table": table, "fits": fits, "at": time.time()}
    result = common.run_child("gpu_cold.py", request, os.cpu_count() or 1)
    if "failed" in result:
        return [[process, kernels, str(fits), "failed", result["failed"]]]
    rows = []
    for i, ((name, D), took) in enumerate(zip(fits, result["took"], strict=True)):
        start = [process, kernels] if i == 0 else ["the same", ""]
        rows.append([*start, f"{name}, D = {D}", f"{result['begun']:.1f}" if i == 0 else "", f"{took:.2f}"])
    return rows


def child(table: str, fits: list[list[Any]], at: float) -> dict[str, Any]:
    """Return the seconds from the time `at`, when this process was started, to the first fit, and those of each fit."""
    import torch

    import equipoise as eq

    X = torch.from_numpy(np.load(table)[:, :50]).float().cuda()
    torch.cuda.synchronize()
    begun, took = time.time() - at, []
    for name, D in fits:
        wide = X[:, :D].contiguous() if D <= 50 else torch.cat([X, X[:, : D - 50]], dim=1)
        kind, _, d = name.partition(" in ")
        method = getattr(eq, kind)(int(d[0]) if d else 2, engine="torch", random_state=0)
        torch.cuda.synchronize()
        start = time.perf_counter()
        method.fit(wide)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    return {"begun": begun, "took": took}


def warm_up() -> list[str]:
    """Return a row for `equipoise info --warm-up`."""
    start = time.perf_counter()
    code = "import sys; from equipoise.cli import main; sys.exit(main(['info', '--warm-up']))"
    done = common.subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = (done.stdout.strip().splitlines() or [done.stderr[-100:]])[-1]
    return ["new", "none", "`equipoise info --warm-up`", "", f"{time.perf_counter() - start:.1f} in all; {last}"]


def rows(table: str) -> list[list[str]]:
    found: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/first"
        evict()
        found += measure(table, FIRST, "new, libraries on disk", "none")
        found += measure(table, FRESH[0], "new", "of the process above")
        evict()
        found += measure(table, FRESH[0], "new, libraries on disk", "of the process above")
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/second"
        found.append(warm_up())
        for fits in FRESH:
            found += measure(table, fits, "new", "of `info --warm-up`")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        common.answer(args.child, child(**json.loads(args.child.read_text())))
        return
    found = rows(args.table)
    print("\n".join(common.table(COLUMNS, found)))
    if args.out is not None:
        args.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
