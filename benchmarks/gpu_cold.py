"""The first fits on a GPU: with no compiled kernels, with those of an earlier process, and after `info --warm-up`.

python benchmarks/gpu_cold.py X.npy [--seconds 60] --out cold.json

Each process is fresh, and the folder of Triton's cache is a new one. X.npy is a table (n, D) with at least 50 columns.
Each row is printed, and the file written, as soon as it is measured; what does not fit into the time is left out.
benchmarks/gpu.py --cold cold.json puts the result on its page. This program does not import PyTorch: before the first
process, it asks the system to drop PyTorch's libraries from memory, so that they are read from disk.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import common
import numpy as np

COLUMNS = ["process", "kernels on disk", "fit", "imports and context, s", "fit, s"]
# Process, kernels on disk, and fits as method:columns, or None for `equipoise info --warm-up` with a new folder.
PROCESSES: list[tuple[str, str, list[str] | None]] = [
    ("new, libraries on disk", "none", ["TSNE:50", "TSNE:50"]),
    ("new", "of the process above", ["TSNE:50", "TSNE:24", "UMAP:50", "SNE:50", "TSNE:100"]),
    ("new", "none", None),
    ("new", "of `info --warm-up`", ["UMAP:50", "TSNE:24", "TSNE in 3-D:50"]),
]


def evict() -> None:
    """Ask the system to drop the libraries of PyTorch, CUDA and Triton from its memory."""
    for package in ("torch", "nvidia", "triton"):
        for file in (Path(sysconfig.get_path("purelib")) / package).rglob("*.so*"):
            with file.open("rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def child(table: str, fits: list[str]) -> None:
    """Print the time of day when the first fit begins, and the seconds of each fit, one per line."""
    import torch

    import equipoise as eq

    X = torch.from_numpy(np.load(table)[:, :50]).float().cuda()
    torch.cuda.synchronize()
    print(time.time(), flush=True)
    for fit in fits:
        name, D = fit.split(":")
        wide = X[:, : int(D)].contiguous() if int(D) <= 50 else torch.cat([X, X[:, : int(D) - 50]], dim=1)
        kind, _, d = name.partition(" in ")
        method = getattr(eq, kind)(int(d[0]) if d else 2, engine="torch", random_state=0)
        torch.cuda.synchronize()
        start = time.perf_counter()
        method.fit(wide)
        torch.cuda.synchronize()
        print(time.perf_counter() - start, flush=True)


class Rows:
    """The rows measured so far, printed and written to a file after each."""

    def __init__(self, out: Path | None):
        self.out, self.rows = out, list[list[str]]()
        print("\n".join(common.table(COLUMNS, [])), flush=True)

    def add(self, *row: str) -> None:
        self.rows.append(list(row))
        print("| " + " | ".join(row) + " |", flush=True)
        if self.out is not None:
            self.out.write_text(json.dumps(self.rows))

    def measure(self, table: str, process: str, kernels: str, fits: list[str], left: float) -> None:
        """Add a row for each fit that a fresh process completes within `left` seconds."""
        at, lines = time.time(), SimpleQueue[str]()

        def read() -> None:
            assert running.stdout is not None
            for line in running.stdout:
                lines.put(line)
            lines.put("")

        command = [sys.executable, __file__, table, "--child", *fits]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            Thread(target=read, daemon=True).start()
            begun = ""
            for i, fit in enumerate(["", *fits]):
                try:
                    line = lines.get(timeout=max(0.0, at + left - time.time()))
                except Empty:
                    line = ""
                name = fit.replace(":", ", D = ")
                if not line:
                    running.kill()
                    self.add(
                        process, kernels, f"{name or fits[0]}: not completed", "", f"> {time.time() - at:.0f} in all"
                    )
                    return
                if i == 0:
                    begun = f"{float(line) - at:.1f}"
                    continue
                start = [process, kernels] if i == 1 else ["the same", ""]
                self.add(*start, name, begun if i == 1 else "", f"{float(line):.2f}")

    def warm_up(self, process: str, kernels: str, left: float) -> None:
        """Add a row for `equipoise info --warm-up`."""
        start = time.perf_counter()
        code = "import sys; from equipoise.cli import main; sys.exit(main(['info', '--warm-up']))"
        try:
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=max(1.0, left))
            last = (done.stdout.strip().splitlines() or [done.stderr[-200:]])[-1]
        except subprocess.TimeoutExpired:
            last = "not completed"
        self.add(
            process, kernels, "`equipoise info --warm-up`", "", f"{time.perf_counter() - start:.1f} in all; {last}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--seconds", type=float, default=60, help="when to stop")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        child(args.table, args.child)
        return
    end, rows = time.time() + args.seconds, Rows(args.out)
    evict()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = f"{folder}/first"
        for process, kernels, fits in PROCESSES:
            left = end - time.time()
            if left < 8:  # less than the imports take
                break
            if fits is None:
                os.environ["TRITON_CACHE_DIR"] = f"{folder}/second"
                rows.warm_up(process, kernels, left)
            else:
                rows.measure(args.table, process, kernels, fits, left)


if __name__ == "__main__":
    main()
