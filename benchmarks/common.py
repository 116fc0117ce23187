"""Helpers of the benchmarks: data, timing, memory, child processes and a description of the machine.

Only the standard library and NumPy are imported here, so that a child process imports only the tool it measures.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
IMAGES = {"mnist": "mnist.npz", "fashion": "fashion_mnist.npz"}
CLASSES = {
    "fashion": ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"],
}
DATASETS = ("digits", *IMAGES)
COMPONENTS = 50
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Data:
    """A table X (n, D) in float64 and a class per row."""

    name: str
    X: np.ndarray
    labels: np.ndarray

    @property
    def title(self) -> str:
        n, D = self.X.shape
        return f"{self.name}, {n:,} × {D}"

    @property
    def classes(self) -> list[str]:
        return CLASSES.get(self.name, [str(value) for value in np.unique(self.labels)])


def load(name: str, subset: int | None = None) -> Data:
    """Return a data set: the digits unchanged, or the first 50 principal components of images scaled to [0, 1].

    A subset is drawn before the components are computed, with a fixed seed.
    """
    X, labels = read(name)
    if subset is not None and subset < len(X):
        rows = np.sort(np.random.RandomState(0).permutation(len(X))[:subset])
        X, labels = X[rows], labels[rows]
    if name in IMAGES:
        X = principal_components(X / 255.0)(X / 255.0)
    return Data(name, np.ascontiguousarray(X, dtype=np.float64), labels.astype(np.int64))


def read(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return raw rows and classes. Raises FileNotFoundError if the file of the images is missing."""
    if name == "digits":
        from sklearn.datasets import load_digits

        X, labels = load_digits(return_X_y=True)
        return X, labels
    path = DATA / IMAGES[name]
    if not path.exists():
        raise FileNotFoundError(f"../shared/data/{IMAGES[name]} not found")
    with np.load(path, allow_pickle=False) as file:
        return file["X"], file["y"]


def principal_components(X: np.ndarray, count: int = COMPONENTS) -> Callable[[np.ndarray], np.ndarray]:
    """Return the projection onto the first principal components of X, each signed by its largest loading."""
    mean = X.mean(axis=0)
    centred = X - mean
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, ::-1][:, :count]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return lambda rows: (rows - mean) @ axes


@contextmanager
def timed(owner: Any, name: str) -> Iterator[list[float]]:
    """Collect the duration of each call of `owner.name`, in seconds; an empty list if there is no such function."""
    seconds: list[float] = []
    original = getattr(owner, name, None)
    if original is None:
        yield seconds
        return

    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            seconds.append(time.perf_counter() - start)

    setattr(owner, name, call)
    try:
        yield seconds
    finally:
        setattr(owner, name, original)


def total(seconds: list[float]) -> float | None:
    """Return the sum, or None if nothing was timed."""
    return sum(seconds) if seconds else None


def peak_memory() -> float:
    """Return the peak resident memory of this process so far, in MB.

    On Linux ru_maxrss of a child process starts at the value of its parent, so VmHWM is read instead.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def run_child(script: str, request: dict[str, Any], threads: int, numba_cache: Path | None = None) -> dict[str, Any]:
    """Run `script --child FILE` in a fresh process limited to `threads` threads and return its result.

    The file contains the request; the child overwrites it with its result (see `answer`). Code compiled by numba is
    cached in `numba_cache`. If the child fails, the result is {"failed": last line of its error output}.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "request.json"
        file.write_text(json.dumps(request))
        environment = {
            **os.environ,
            **{name: str(threads) for name in THREAD_LIMITS},
            "NUMBA_CACHE_DIR": folder if numba_cache is None else str(numba_cache),
            "MPLBACKEND": "Agg",
        }
        command = [sys.executable, str(ROOT / "benchmarks" / script), "--child", str(file)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            return {"failed": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
        answered: dict[str, Any] = json.loads(file.read_text())
        return answered


def answer(file: Path, result: dict[str, Any]) -> None:
    """Write the result of a child process for its parent."""
    file.write_text(json.dumps(result))


def machine(threads: int, packages: list[str]) -> dict[str, Any]:
    """Return the machine, the versions and the commit of a benchmark."""
    versions = {name: metadata.version(name) for name in packages if installed(name)}
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": _system(),
        "python": platform.python_version(),
        "versions": versions,
        "commit": _commit(),
        "date": date.today().isoformat(),
        "threads": threads,
        "load": round(os.getloadavg()[0], 2),
        "first": os.sched_getscheduler(0) != os.SCHED_OTHER,
    }


def installed(package: str) -> bool:
    """Return whether a distribution is installed."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def header(title: str, command: str, where: dict[str, Any]) -> list[str]:
    """Return the first lines of a page of results."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    # Real-time processes run before all others, so that other work on the machine takes none of their time.
    priority = "; real-time priority (`chrt -r 5`)" if where.get("first") else ""
    return [
        f"# {title}",
        "",
        f"Command: `{command}`; commit {where['commit']}; {where['date']}.  ",
        f"Machine: {where['cpu']}, {where['cores']} cores, {where['memory']}, {where['system']};"
        f" {where['threads']} threads; load average {where['load']} at the start{priority}.  ",
        f"Python {where['python']}; {versions}.",
        "",
    ]


def table(columns: list[str], rows: list[list[str]]) -> list[str]:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def write(lines: list[str], out: Path | None) -> None:
    """Print a page, and write it to `out` if given."""
    print("\n".join(lines))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("\n".join(lines) + "\n")


def middle(records: list[dict[str, Any]], key: str) -> float | None:
    """Return the median of a key over the records that have it; None if no record has."""
    values = [r[key] for r in records if r.get(key) is not None]
    return median(values) if values else None


def show(value: float | None, form: str) -> str:
    """Return a formatted number, or a dash for None."""
    return "–" if value is None else format(value, form)


def map_file(folder: Path, data: str, method: str) -> Path:
    """Return the file of a tool's map."""
    return folder / f"{data}-{method.replace(', ', '-').replace(' ', '_')}.npz"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
    return f"{name}, {platform.system()} {platform.release()}"


def _commit() -> str:
    """Return the commit, with "-dirty" if any file outside benchmarks/results differs from it."""
    try:
        commit, changed = (
            subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True).stdout.strip()
            for command in (
                ["rev-parse", "--short=7", "HEAD"],
                ["status", "--porcelain", "--", ".", ":!benchmarks/results"],
            )
        )
    except FileNotFoundError:
        return "unknown"
    return (commit + "-dirty" * bool(changed)) or "unknown"
