"""Fits over ranks on a machine with one GPU: bytes, losses and times, compared with the engine of one process.

    python benchmarks/gpu_ranks.py X.npy [--n 20000] [--iterations 250] [--seconds 85] [--device cuda]

Each fit runs in processes of its own: the plain engine; one rank without a group; one rank over NCCL; two ranks that
share the GPU over gloo; and two ranks that ask for NCCL, which must be refused. The maps of the ranks must have the
same bytes. Their loss is compared with that of the plain engine, whose initial map has other last digits. The output
ends with one line for each part. If the time is not up, the parts run again with all rows of X. With --device cpu, the
same code runs on the CPU, without NCCL.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

PARTS: dict[str, tuple[int, str]] = {  # number of ranks and how they communicate
    "plain engine": (1, "plain"),
    "1 rank": (1, "none"),
    "1 rank, NCCL": (1, "nccl"),
    "2 ranks, gloo": (2, "auto"),
    "2 ranks, NCCL asked for": (2, "nccl"),
}
ALLOWED = 0.005  # relative difference of the losses


def child(request: dict[str, Any]) -> dict[str, Any]:
    """Fit as one rank or with the plain engine, and return the measurements."""
    import torch

    import equipoise as eq

    start = time.perf_counter()
    X = np.ascontiguousarray(np.load(request["table"], mmap_mode="r")[: request["n"]], dtype=np.float32)
    device = request["device"]
    sync = torch.cuda.synchronize if device == "cuda" else lambda: None
    method = eq.TSNE(n_iter=request["iterations"], random_state=0, engine="torch", device=device, verbose=0)
    record: dict[str, Any] = {"torch": torch.__version__, "gpu": device == "cuda" and torch.cuda.get_device_name(0)}
    clock: dict[str, float] = defaultdict(float)
    if request["how"] == "plain":
        problem = method.problem(X)
        sync()
        clock["build"] = time.perf_counter() - start
        problem.optimize()
        sync()
        clock["descent"] = time.perf_counter() - start - clock["build"]
        curve = problem.loss_curve
        return {**record, "loss": float(curve[-1, 1]), "curve": curve[:4].tolist(), "clock": clock, "hash": "-"}
    record |= over_ranks(method, X, request["how"], clock, sync)
    clock["total"] = time.perf_counter() - start
    return {**record, "clock": clock}


def over_ranks(method: Any, X: np.ndarray, how: str, clock: dict[str, float], sync: Any) -> dict[str, Any]:
    from equipoise.distributed import SingleProcess, TorchGroup, fit
    from equipoise.distributed.rank_problem import SharedProblem
    from equipoise.distributed.tensor_exchange import TensorExchange

    def timed(owner: Any, name: str, label: str) -> None:
        function = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            sync()
            start = time.perf_counter()
            result = function(*args, **options)
            sync()
            clock[label] += time.perf_counter() - start
            return result

        setattr(owner, name, call)

    timed(SharedProblem, "optimize", "descent")
    for name in ("add", "minimum", "swap"):
        timed(TensorExchange, name, f"of it: {name}")
    with SingleProcess() if how == "none" else TorchGroup(timeout=40.0, backend=how) as group:
        result = fit(method, X, group=group)
        Y = result.gather()
        place = str(getattr(group, "device", "-"))
        record = {
            "loss": result.loss, "curve": result.loss_curve[:4].tolist(), "messages": place, "own": len(result.rows)
        }  # fmt: skip
        if Y is not None:
            record |= {"hash": hashlib.sha256(Y.tobytes()).hexdigest()[:12], "finite": bool(np.isfinite(Y).all())}
        return record


def run_part(request: dict[str, Any], ranks: int, limit: float) -> list[dict[str, Any]]:
    """Run one part in processes, print what they wrote, and return their records; raise if one failed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        processes, files = [], []
        for rank in range(ranks):
            files.append(Path(folder, f"{rank}.json"))
            threads = 1 if request["device"] == "cpu" else max(1, (os.cpu_count() or 1) // ranks)
            numbers = {
                "RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "MASTER_PORT": port, "OMP_NUM_THREADS": threads
            }  # fmt: skip
            environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", **{k: str(v) for k, v in numbers.items()}}
            if request["how"] in ("plain", "none"):
                environment = {k: v for k, v in environment.items() if k not in ("RANK", "WORLD_SIZE")}
            command = [sys.executable, __file__, "--child", json.dumps(request), str(files[-1])]
            log = open(Path(folder, f"{rank}.log"), "w+")  # noqa: SIM115
            processes.append((subprocess.Popen(command, env=environment, stdout=log, stderr=log), log))
        stop, failed = time.monotonic() + limit, ""
        for rank, (process, log) in enumerate(processes):
            try:
                process.wait(max(0.1, stop - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                failed += f" rank {rank} was stopped after {limit:.0f} s;"
            log.seek(0)
            if text := log.read().strip():
                lines = text.splitlines()[-1:] if request["refused"] else text.splitlines()[-60:]
                print(f"--- output of rank {rank}:", *lines, sep="\n", flush=True)
            log.close()
            if process.returncode:
                failed += f" rank {rank} ended with code {process.returncode};"
        if failed:
            raise RuntimeError(failed.strip())
        return [json.loads(file.read_text()) for file in files]


def report(name: str, records: list[dict[str, Any]]) -> None:
    for rank, record in enumerate(records):
        clock = ", ".join(f"{label} {seconds:.2f} s" for label, seconds in record.pop("clock").items())
        print(f"{name}, rank {rank}: {clock}\n    {record}", flush=True)


def run_parts(table: str, n: int, iterations: int, device: str, stop: float) -> list[str]:
    """Run all parts on n rows and return a line for each."""
    lines, losses, hashes = [], {}, {}
    for name, (ranks, how) in PARTS.items():
        left = stop - time.monotonic()
        if left < 8:
            lines.append(f"{name}: not run, no time left")
            continue
        print(f"\n=== {name} (n = {n:,}, {iterations} iterations, {left:.0f} s left)", flush=True)
        refused = name.endswith("asked for") or (device == "cpu" and how == "nccl")
        start = time.monotonic()
        try:
            request = {
                "table": table, "n": n, "iterations": iterations, "device": device, "how": how, "refused": refused
            }  # fmt: skip
            records = run_part(request, ranks, min(left - 2, 45))
            losses[name], hashes[name] = records[0]["loss"], records[0]["hash"]
            took = records[0]["clock"]["descent"]
            report(name, records)
            line = f"loss {losses[name]:.6f}, map {hashes[name]}, {1e3 * took / iterations:.2f} ms per iteration"
        except Exception:
            text = traceback.format_exc()
            line = "refused, as expected: see above" if refused else f"FAILED: {text.strip().splitlines()[-1]}"
            if not refused:
                print(text, flush=True)
        lines.append(f"{name}: {line} ({time.monotonic() - start:.1f} s in all)")
    maps = {name: found for name, found in hashes.items() if found != "-"}
    lines.append(f"same bytes for {', '.join(maps)}: {'YES' if len(set(maps.values())) == 1 else 'NO'}")
    if "plain engine" in losses:
        true = losses.pop("plain engine")
        worst = max((abs(loss / true - 1) for loss in losses.values()), default=np.nan)
        lines.append(f"largest difference of the loss: {worst:.2%}: {'FINE' if worst < ALLOWED else 'TOO LARGE'}")
    return [f"n = {n:,}: {line}" for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?")
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--iterations", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=85.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        record = child(json.loads(options.child[0]))
        Path(options.child[1]).write_text(json.dumps(record))
        return
    stop = time.monotonic() + options.seconds
    rows = len(np.load(options.table, mmap_mode="r"))
    lines: list[str] = []
    for n in dict.fromkeys((min(options.n, rows), rows)):
        if stop - time.monotonic() > 25 or not lines:
            lines += run_parts(options.table, n, options.iterations, options.device, stop)
    print("\n" + "\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
