"""Write the files in this folder. Run it with Equipoise 0.1.0 only: they show that later versions read old files.

    python tests/saved_by_0_1_0/make.py

Later versions import the data and the methods from here, and never write. The data are multiples of 1/64 and the
affinities of the checkpoints are equal on all edges, so that every processor computes the same fingerprints from them.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import equipoise as eq

FOLDER = Path(__file__).resolve().parent

N, NEW = 24, 4
TABLE = np.round(np.random.RandomState(0).standard_normal((N + NEW, 4)) * [160, 128, 64, 64]) / 64
X, X_NEW = TABLE[:N], TABLE[N:]
DISTANCES = np.abs(TABLE[:, None] - X[None]).sum(axis=2)  # city-block: exact
D, D_NEW = DISTANCES[:N], DISTANCES[N:]
KNOWN = sparse.csr_matrix(np.where(D < 9, D, 0))
COUNTS = sparse.csr_matrix(np.maximum(np.round(TABLE), 0))
SPARSE, SPARSE_NEW = COUNTS[:N], COUNTS[N:]
AFFINITIES = 1 / (1 + DISTANCES)
P, P_NEW = AFFINITIES[:N] - np.eye(N), AFFINITIES[N:]
START = np.round(np.random.RandomState(1).standard_normal((N, 2)) * 64) / 64
NEAR = np.argsort(DISTANCES + np.diag(np.full(N + NEW, 1e9))[:, :N], axis=1, kind="stable")[:, :15]
NEAR_D = np.take_along_axis(DISTANCES, NEAR, axis=1)
WEIGHTS = sparse.csr_matrix(np.where(D < 9, 1.0, 0.0))


def short(Method: Any, **parameters: Any) -> Any:
    """Return a method with settings that suit few points."""
    known = Method().get_params()
    settings = {"random_state": 0, "n_iter": 20, "perplexity": 5, "n_neighbors": 6, "n_jobs": 1, **parameters}
    if known.get("solver") == "eigen":
        del settings["n_iter"]
    return Method(**{name: value for name, value in settings.items() if name in known})


Case = tuple[Callable[[], Any], Any, Any]  # an unfitted method, the data, and new rows or None
SINGLE, SINGLE_NEW = X.astype(np.float32), X_NEW.astype(np.float32)
MODELS: dict[str, Case] = {
    "tsne_exact": (lambda: short(eq.TSNE, engine="exact"), X, X_NEW),
    "tsne_grid": (lambda: short(eq.TSNE, engine="grid", init=START), SINGLE, SINGLE_NEW),
    "tsne_uniform": (lambda: short(eq.TSNE, affinity="uniform", perplexity=[4, 6], metric="cosine"), X, X_NEW),
    "tsne_tensors": (
        lambda: short(eq.TSNE, h=np.diag([1.0, 2, 3, 4]), g=np.array([[2, 1], [1, 2.0]]), dof=2.0),
        X,
        X_NEW,
    ),
    "tsne_distances": (lambda: short(eq.TSNE, metric="precomputed"), D, D_NEW),
    "tsne_affinities": (lambda: short(eq.TSNE, affinity="precomputed", engine="exact"), P, P_NEW),
    "tsne_sparse_table": (lambda: short(eq.TSNE, optimizer=eq.GradientDescent(every=5)), SPARSE, SPARSE_NEW),
    "tsne_sparse_reduced": (lambda: short(eq.TSNE, engine="grid"), SPARSE, SPARSE_NEW),
    "tsne_neighbors": (
        lambda: short(eq.TSNE, metric="precomputed", engine="grid", init="random"),
        (NEAR[:N], NEAR_D[:N]),
        (NEAR[N:], NEAR_D[N:]),
    ),
    "tsne_torch": (lambda: short(eq.TSNE, engine="torch", device="cpu"), SINGLE, SINGLE_NEW),
    "sne_reference": (lambda: short(eq.SNE, engine="reference", optimizer=eq.Accelerated()), X, X_NEW),
    "sne_affinities": (lambda: short(eq.SNE, affinity="precomputed", init="random"), P, P_NEW),
    "symmetric_alpha": (
        lambda: short(eq.SymmetricSNE, kernel=eq.kernels.Gaussian(), divergence=eq.divergences.Alpha(0.5)),
        X,
        X_NEW,
    ),
    "symmetric_chi_square": (
        lambda: short(
            eq.SymmetricSNE,
            kernel=eq.kernels.StudentT(2.0),
            divergence=eq.divergences.ChiSquare(),
            optimizer=eq.Momentum(every=5),
        ),
        X,
        None,
    ),
    "power": (lambda: short(eq.PowerSNE, engine="grid"), X, X_NEW),
    "gsne_sampled": (lambda: short(eq.GSNE, engine="sampled", n_components=4), X, X_NEW),
    "spherical": (lambda: short(eq.SphericalSNE), X, X_NEW),
    "umap": (lambda: short(eq.UMAP), X, X_NEW),
    "umap_intended": (lambda: short(eq.UMAP, loss="intended", metric="manhattan"), X, X_NEW),
    "umap_sampled": (lambda: short(eq.UMAP, engine="sampled"), X, X_NEW),
    "dklle": (lambda: short(eq.DKLLE, bandwidth="local"), X, X_NEW),
    "dkpca": (lambda: short(eq.DKPCA), X, X_NEW),
    "mds_table": (lambda: short(eq.MDS), X, X_NEW),
    "mds_distances": (lambda: short(eq.MDS, metric="precomputed"), D, D_NEW),
    "mds_known_pairs": (lambda: short(eq.MDS, metric="precomputed"), KNOWN, None),
    "mds_space": (lambda: short(eq.MDS), eq.spaces.PNorm(X, 1), None),
    "mds_weights": (lambda: short(eq.MDS, weights=WEIGHTS), SINGLE, SINGLE_NEW),
    "pca": (lambda: short(eq.PCA, n_components=3), X, X_NEW),
    "pca_sparse_table": (lambda: short(eq.PCA), SPARSE, SPARSE_NEW),
    "classical_mds": (lambda: short(eq.ClassicalMDS, metric="manhattan"), X, X_NEW),
    "classical_mds_landmarks": (lambda: short(eq.ClassicalMDS, n_landmarks=10), X, X_NEW),
    "classical_mds_space": (lambda: short(eq.ClassicalMDS), eq.spaces.PNorm(X, 1), None),
    "isomap": (lambda: short(eq.Isomap), X, X_NEW),
    "isomap_landmarks": (lambda: short(eq.Isomap, n_landmarks=12), X, X_NEW),
    "isomap_torch": (lambda: short(eq.Isomap, engine="torch", device="cpu"), X, X_NEW),
    "lle": (lambda: short(eq.LLE), X, X_NEW),
    "laplacian_eigenmaps": (lambda: short(eq.LaplacianEigenmaps, affinity="gaussian"), X, X_NEW),
}
NEEDS_TORCH = ("tsne_torch", "isomap_torch", "parametric")

# Checkpoints. A ring in which each point has its 8 nearest as neighbours, all with the same weight.
RING_N = 32
GAPS = np.abs(np.arange(RING_N)[:, None] - np.arange(RING_N))
GAPS = np.minimum(GAPS, RING_N - GAPS)
RING = np.where((GAPS > 0) & (GAPS <= 4), 1.0, 0.0)
RING_START = np.round(np.random.RandomState(2).standard_normal((RING_N, 2)) * 64) / 64
# Four groups of nine points: the 8 nearest of each are the others of its group.
GROUPS = np.round(np.random.RandomState(3).standard_normal((36, 3)) * 16) / 64
GROUPS[:, 0] += 8.0 * np.repeat(np.arange(4), 9)


def iterated(Method: Any, **parameters: Any) -> Any:
    """Return an iterative method, with the checkpoint's callbacks still to be set."""
    return Method(random_state=0, n_jobs=1, **parameters)


def encoder() -> Any:
    """Return a small network with fixed weights."""
    import torch

    layers = torch.nn.Sequential(torch.nn.Linear(3, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
    with torch.no_grad():
        for number, weights in enumerate(layers.parameters()):
            values = np.round(np.random.RandomState(number).standard_normal(tuple(weights.shape)) * 16) / 64
            weights.copy_(torch.tensor(values))
    return layers


GIVEN = {"affinity": "precomputed", "init": RING_START}
RULE = eq.Momentum(every=10, min_loss_change=0.0)
RUNS: dict[str, tuple[Callable[[], Any], Any, int]] = {  # an unfitted method, the data, and where it was interrupted
    "tsne_exact": (lambda: iterated(eq.TSNE, engine="exact", n_iter=40, optimizer=RULE, **GIVEN), RING, 30),
    "tsne_grid": (
        lambda: iterated(eq.TSNE, engine="grid", n_iter=40, optimizer=RULE, **GIVEN),
        sparse.csr_matrix(RING),
        30,
    ),
    "gsne": (lambda: iterated(eq.GSNE, alpha=0.0, n_iter=40, optimizer=eq.GradientDescent(), **GIVEN), RING, 30),
    "umap": (lambda: iterated(eq.UMAP, n_iter=40, optimizer=RULE, **GIVEN), RING, 30),
    "umap_sampled": (lambda: iterated(eq.UMAP, engine="sampled", n_iter=40, **GIVEN), RING, 30),
    "mds": (lambda: iterated(eq.MDS, metric="precomputed", init=RING_START, n_iter=24), 1.0 * GAPS, 12),
    "mds_starts": (
        lambda: iterated(eq.MDS, metric="precomputed", init=RING_START, n_init=2, n_iter=8, stress="ordinal"),
        1.0 * GAPS,
        12,
    ),
    "parametric": (
        lambda: eq.Parametric(
            eq.TSNE(affinity="uniform", perplexity=8),
            encoder=encoder(),
            epochs=6,
            batch_size=18,
            device="cpu",
            random_state=0,
            n_jobs=1,
        ),
        GROUPS,
        3,
    ),
}
EVERY = {"mds": 6, "mds_starts": 2, "parametric": 1}  # iterations between writings; 10 for the others
COMMAND = ("--method", "pca", "--standardize", "--pca", "3", "--plot", "none")
NAMES = ("height", "width", "depth", "mass")


def interrupt(name: str) -> None:
    """Run a method until it is interrupted, and leave its checkpoint."""
    make, rows, last = RUNS[name]
    calls = []

    def stop(iteration: int, loss: float, Y: Any) -> None:
        calls.append(iteration)
        if (iteration if name != "mds_starts" else len(calls)) >= last:
            raise KeyboardInterrupt

    keep = eq.Checkpoint(FOLDER / f"{name}.eqc", every=EVERY.get(name, 10))
    try:
        make().set_params(callbacks=[keep, stop]).fit(rows)
    except KeyboardInterrupt:
        return
    raise RuntimeError(f"{name} ended before it was interrupted; its callbacks came at {calls}")


@contextlib.contextmanager
def reduced_search(rank: int = 3) -> Iterator[None]:
    """Let 0.1.0 search every sparse table in its leading singular vectors, which it does with very large ones only."""
    from equipoise.inputs import sparse_table

    before = sparse_table.RANK, sparse_table.SEARCH_WORK
    sparse_table.RANK, sparse_table.SEARCH_WORK = rank, 0
    try:
        yield
    finally:
        sparse_table.RANK, sparse_table.SEARCH_WORK = before


def write_table(path: Path, rows: Any) -> None:
    """Write rows as CSV under the names of the columns."""
    np.savetxt(path, rows, fmt="%.6f", delimiter=",", header=",".join(NAMES), comments="")


def run_command(*words: Any) -> None:
    """Run the command line, which must succeed."""
    from equipoise.cli import main

    with contextlib.redirect_stdout(io.StringIO()):
        if main([str(word) for word in words]):
            raise RuntimeError(f"failed: {words}")


def find_objects(value: Any) -> set[str]:
    """Return the names of the objects in the JSON of a file."""
    if isinstance(value, dict):
        own = {value["object"]} if isinstance(value.get("object"), str) else set()
        return own.union(*map(find_objects, value.values()))
    return set().union(*map(find_objects, value)) if isinstance(value, list) else set()


def require_every_class() -> None:
    """Raise unless the files hold an object of every class that 0.1.0 can save."""
    from equipoise import store

    found: set[str] = set()
    for path in FOLDER.glob("*.eqz"):
        with zipfile.ZipFile(path) as archive:
            found |= find_objects(json.loads(archive.read("content.json")))
    known = {f"{kind.__module__}.{kind.__qualname__}".removeprefix("equipoise.") for kind in store.CLASSES}
    if missing := (known | set(store.ON_DEVICE)) - found:
        raise RuntimeError(f"no file holds {', '.join(sorted(missing))}")


def main() -> None:
    """Write all files."""
    if eq.__version__ != "0.1.0":
        raise SystemExit(f"run this with Equipoise 0.1.0, not {eq.__version__}")
    import torch

    torch.set_num_threads(1)
    expected, losses = {}, []
    for name, (make, rows, new) in MODELS.items():
        with reduced_search() if name == "tsne_sparse_reduced" else contextlib.nullcontext():
            method = make().fit(rows)
        eq.save(method, FOLDER / f"{name}.eqz")
        expected[f"{name} map"] = method.embedding_
        losses.append(method.loss_)
        if new is not None:
            expected[f"{name} transform"] = method.transform(new)
    expected["losses"] = np.array(losses)
    for name, (make, rows, _) in RUNS.items():
        interrupt(name)
        method = make().fit(rows)
        expected[f"resumed {name} map"], expected[f"resumed {name} curve"] = method.embedding_, method.loss_curve_
    kernel = eq.kernels.Membership.fitted(0.1, 1.0)
    expected["membership"] = np.array([kernel.a, kernel.b])
    np.savez(FOLDER / "table.npz", X=X)
    write_table(FOLDER / "table.csv", X)
    write_table(FOLDER / "new.csv", X_NEW)
    model, places = FOLDER / "command.eqz", FOLDER / "places.npy"
    run_command("embed", FOLDER / "table.csv", *COMMAND, "--out", places, "--save", model)
    expected["command map"] = np.load(places)
    run_command("transform", model, FOLDER / "new.csv", "--out", places)
    expected["command transform"] = np.load(places)
    places.unlink()
    require_every_class()
    np.savez_compressed(FOLDER / "expected.npz", **expected)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
