"""Digests of a short run of a method: its map, transform, and saved file."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from concurrency.clusters import NEW, X, brief_on_clusters


def digest(values: Any) -> str:
    """Return a digest of an array or of bytes."""
    content = values if isinstance(values, bytes) else np.ascontiguousarray(values).tobytes()
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def run_digests(method: Any, table: Any = X, new: Any = NEW) -> dict[str, str]:
    """Return digests of the map, the loss and the transform of a method, before and after saving it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content, loaded = save_and_load(method.fit(table))
        after_loading = digest(loaded.transform(new))  # first, so that nothing is cached
        digests = {
            "map": digest(method.embedding_),
            "loss": digest(np.float64(method.loss_)),
            "transform": digest(method.transform(new)),
            "transform after loading": after_loading,
        }
        if not isinstance(method, eq.Parametric):  # PyTorch evaluates it by batches, and pickles it with storage keys
            digests["saved file"] = digest(content)
            rows = [loaded.transform(new[i : i + 1]) for i in range(len(new))]
            digests["rows one by one"] = digest(np.concatenate(rows))
    return digests


def save_and_load(method: Any) -> tuple[bytes, Any]:
    """Return a saved method as bytes, and the method loaded from them; `Parametric` is pickled."""
    if isinstance(method, eq.Parametric):
        content = pickle.dumps(method)
        return content, pickle.loads(content)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "method.eq"
        eq.save(method, path)
        return path.read_bytes(), eq.load(path)


def differing_repeats(Method: Any, repeats: int, **parameters: Any) -> list[str]:
    """Return which results of a method differ between runs, or between a method and its loaded copy."""
    runs = [run_digests(brief_on_clusters(Method, **parameters)) for _ in range(repeats)]
    return differing_digests(runs)


def differing_digests(runs: list[dict[str, str]]) -> list[str]:
    """Return the names of the digests that differ between runs, or within one where they must agree."""
    differing = [name for name in runs[0] if len({run[name] for run in runs}) > 1]
    for name in ("transform after loading", "rows one by one"):
        if any(run.get(name, run["transform"]) != run["transform"] for run in runs):
            differing.append(f"{name}, from the original")
    return differing
