"""The files that are damaged, and how each is read: models, checkpoints, neighbours and a table."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.saving import neighbors_cache

from ..saved_by_0_1_0.make import FOLDER, NEEDS_TORCH, RUNS

X = data.load("iris").X[:60] + np.random.RandomState(0).standard_normal((60, 4)) / 100
SETTINGS = {"random_state": 0, "n_jobs": 1}
MODELS: dict[str, Callable[[], Any]] = {
    "tsne": lambda: eq.TSNE(n_iter=5, engine="grid", perplexity=5, **SETTINGS),
    "exact": lambda: eq.SNE(n_iter=5, perplexity=5, **SETTINGS),
    "umap": lambda: eq.UMAP(n_iter=5, n_neighbors=5, **SETTINGS),
    "mds": lambda: eq.MDS(n_iter=5, tol=0, **SETTINGS),
    "sampled": lambda: eq.TSNE(n_iter=5, engine="sampled", n_components=4, perplexity=5, **SETTINGS),
    "pca": lambda: eq.PCA(n_components=2),
    "isomap": lambda: eq.Isomap(n_landmarks=20),
    "lle": lambda: eq.LLE(n_neighbors=8),
    "dklle": lambda: eq.DKLLE(n_iter=5, **SETTINGS),
}
FITS = {
    "tsne": lambda: eq.TSNE(n_iter=8, engine="grid", perplexity=5, **SETTINGS),
    "umap": lambda: eq.UMAP(n_iter=8, n_neighbors=5, engine="negative_sampling", **SETTINGS),
    "mds": lambda: eq.MDS(n_iter=8, tol=0, n_init=2, init="random", **SETTINGS),
}
OLD_RUNS = [name for name in RUNS if name not in {*NEEDS_TORCH, "parametric"}]


@dataclass(frozen=True)
class Source:
    """A file to damage, and the function that reads a damaged copy and returns bytes of its content."""

    data: bytes
    suffix: str
    read: Callable[[Path], bytes]


def load_model(path: Path) -> bytes:
    """Load a model and use it: the display and new rows must not end the process, whatever they raise."""
    method = eq.load(path)
    if not isinstance(method, tuple(eq.methods.ALL)) or method.embedding_.ndim != 2:
        raise AssertionError("load returned something else than a fitted method")
    try:
        repr(method)
        method.transform(X[:3])
    except Exception:  # a valid file may contain another model than the one that was saved
        pass
    return bytes(method.embedding_.tobytes())


def resume(make: Callable[[], Any], rows: Any, path: Path) -> bytes:
    """Resume a run from a checkpoint; a state that diverges is a valid one of another run."""
    try:
        return bytes(make().set_params(callbacks=[eq.Checkpoint(path, every=10**6, resume=True)]).fit(rows).embedding_)
    except FloatingPointError:
        return b""


def resume_with_neighbors(checkpoint: bytes, path: Path) -> bytes:
    """Resume a run whose neighbours are read from `path`."""
    run = path.with_suffix("")
    run.write_bytes(checkpoint)
    return resume(FITS["tsne"], X, run)


def read_table(path: Path) -> bytes:
    """Read a table."""
    return bytes(np.asarray(data.read(path).X).tobytes())


def rounds_differently(read: Callable[[Path], bytes], saved: Path, path: Path) -> bool:
    """Return whether a copy of a checkpoint of UMAP at `path` is refused only because its loss differs.

    On a machine that rounds differently, the fitted kernel of the loss differs from that in the file (docs/runs.md).
    """
    shutil.copy(saved, path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except ValueError as error:
        if "is a checkpoint of another run: it differs in loss;" in str(error):
            return True
        raise
    return False


def make_corpus(folder: Path) -> dict[str, Source]:
    """Return the files by name: written now, and written by version 0.1.0."""
    neighbors_cache.MIN_POINTS = 0
    sources: dict[str, Source] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in MODELS.items():
            eq.save(make().fit(X), folder / "model.eqz")
            sources[f"{name}.eqz"] = Source((folder / "model.eqz").read_bytes(), "eqz", load_model)
        for name, make in FITS.items():
            make().set_params(callbacks=[eq.Checkpoint(folder / "run.eqc", every=3)]).fit(X)
            saved = (folder / "run.eqc").read_bytes()
            sources[f"{name}.eqc"] = Source(saved, "eqc", lambda path, make=make: resume(make, X, path))
            if name == "tsne":
                near = (folder / "run.eqc.neighbors").read_bytes()
                read = lambda path, saved=saved: resume_with_neighbors(saved, path)  # noqa: E731
                sources["tsne.neighbors"] = Source(near, "eqc.neighbors", read)
    for path in sorted(FOLDER.glob("*.eqz")):
        if path.stem not in NEEDS_TORCH:
            sources[f"0.1.0 {path.name}"] = Source(path.read_bytes(), "eqz", load_model)
    for name in OLD_RUNS:
        make_old, rows, _ = RUNS[name]
        read = lambda path, make=make_old, rows=rows: resume(make, rows, path)  # noqa: E731
        if name.startswith("umap") and rounds_differently(read, FOLDER / f"{name}.eqc", folder / "old.eqc"):
            print(f"0.1.0 {name}.eqc is left out: this machine rounds its loss differently", file=sys.stderr)
            continue
        sources[f"0.1.0 {name}.eqc"] = Source((FOLDER / f"{name}.eqc").read_bytes(), "eqc", read)
    sources["0.1.0 table.npz"] = Source((FOLDER / "table.npz").read_bytes(), "npz", read_table)
    return sources
