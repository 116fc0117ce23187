"""The cases of golden.py: short runs of every method, engine and kind of input, through public names only.

Each case is a function without arguments that returns named results: arrays, sparse matrices, numbers or text.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform

import equipoise as eq
from equipoise import data

Results = dict[str, Any]
CASES: dict[str, Callable[[], Results]] = {}

DIGITS = data.load("digits")
X, LABELS, NEW = DIGITS.X[:150], DIGITS.labels[:150], DIGITS.X[150:158]
RNG = np.random.RandomState(0)
SMALL = RNG.standard_normal((60, 5)) * [3, 2, 1, 1, 1]
SMALL_NEW = RNG.standard_normal((6, 5))
START = RNG.standard_normal((150, 2))
D, D_NEW = squareform(pdist(SMALL)), cdist(SMALL_NEW, SMALL)
W = RNG.uniform(0.2, 3, D.shape)
W = np.triu(W, 1) + np.triu(W, 1).T
NEAR = np.argsort(D, axis=1, kind="stable")[:, 1:31]
NEAR_D = np.take_along_axis(D, NEAR, axis=1)
NEAR_NEW = np.argsort(D_NEW, axis=1, kind="stable")[:, :30]
SPARSE_D = sparse.csr_matrix((NEAR_D.ravel(), NEAR.ravel(), np.arange(0, 1801, 30)), shape=(60, 60))
SPARSE_D = SPARSE_D.maximum(SPARSE_D.T).tocsr()
MISSING = np.where(np.triu(RNG.uniform(size=D.shape) < 0.2, 1), np.nan, D)
MISSING = np.where(np.isnan(MISSING + MISSING.T), np.nan, D)
TENSOR = np.array([[2.0, 1.0], [1.0, 2.0]])


class Loop(eq.kernels.Kernel):
    """A user's kernel, in NumPy."""

    def value(self, d2: Any) -> Any:
        return (1 + d2) ** -1.5

    def slope(self, d2: Any) -> Any:
        return -1.5 * (1 + d2) ** -2.5


class City:
    """A user's metric space: the rows of a table under the city-block distance."""

    n = len(SMALL)

    def distances(self, i: Any = None, j: Any = None) -> Any:
        rows, columns = (SMALL if k is None else SMALL[k] for k in (i, j))
        return np.abs(rows[:, None] - columns[None]).sum(axis=2)


def case(name: str) -> Callable[[Callable[[], Results]], Callable[[], Results]]:
    """Add a function to the cases."""

    def add(function: Callable[[], Results]) -> Callable[[], Results]:
        assert name not in CASES, name
        CASES[name] = function
        return function

    return add


def brief(Method: Any, **parameters: Any) -> Any:
    """Return a method with settings for a short run on one thread."""
    known = Method().get_params()
    settings = {"random_state": 0, "n_iter": 30, "perplexity": 10, "n_neighbors": 8, "n_jobs": 1, "epochs": 2}
    if known.get("solver") == "eigen" and parameters.get("solver") != "flow":
        del settings["n_iter"]
    if "optimizer" in known and parameters.get("engine") != "sampled":
        settings["optimizer"] = eq.Momentum(every=10)
    return Method(**{name: value for name, value in {**settings, **parameters}.items() if name in known})


def results(method: Any, new: Any = None) -> Results:
    """Return the attributes of a fitted method, and the positions of new rows."""
    names = ("embedding_", "loss_", "loss_curve_", "n_iter_", "n_epochs_", "stress_1_", "eigenvalues_", "affinities_")
    found = {name: getattr(method, name) for name in names if getattr(method, name, None) is not None}
    return found if new is None else {**found, "transform": method.transform(new)}


def fit(name: str, Method: Any, rows: Any = X, new: Any = None, y: Any = None, **parameters: Any) -> None:
    """Add the case of one fit, and of the transform of new rows if given."""

    @case(name)
    def run() -> Results:
        if parameters.get("device") == "cpu" or callable(parameters.get("g")) or Method is eq.Parametric:
            one_torch_thread()
        method = brief(Method, **parameters)
        return results(method.fit(rows) if y is None else method.fit(rows, y), new)


def one_torch_thread() -> Any:
    """Return torch, limited to one thread: its sums depend on the number of threads."""
    import torch

    torch.set_num_threads(1)
    return torch


def bend(Y: Any) -> Any:
    """A metric tensor at each point of the map, for PyTorch."""
    torch = one_torch_thread()
    return (1 + 0.01 * (Y**2).sum(dim=1))[:, None, None] * torch.eye(2, dtype=Y.dtype)


def stretch(rows: Any) -> Any:
    """A metric tensor at each row of the data."""
    return (1 + 10 / (1 + (rows**2).mean(axis=1)))[:, None, None] * np.eye(rows.shape[1])


def chessboard(a: Any, b: Any) -> float:
    """A user's metric."""
    return float(np.abs(a - b).max())


# The SNE family on every engine.
FAMILY = (eq.SNE, eq.SymmetricSNE, eq.TSNE, eq.PowerSNE, eq.GSNE, eq.SphericalSNE)
for Method in FAMILY:
    for engine in ("reference", "exact", "grid", "sampled", "torch"):
        on = {"engine": engine, **({"device": "cpu"} if engine == "torch" else {})}
        fit(f"{Method.__name__} {engine}", Method, X, NEW, **on)
for d in (1, 3, 5):
    for engine in ("exact", "grid", "sampled", "torch"):
        if d == 5 and engine in ("grid", "torch"):
            continue  # not supported: a mesh has at most 3 dimensions
        on = {"engine": engine, **({"device": "cpu"} if engine == "torch" else {})}
        few = {"n_iter": 8} if d == 3 and engine in ("grid", "torch") else {}
        fit(f"TSNE {engine} {d}-D", eq.TSNE, X, NEW, n_components=d, **on, **few)
for alpha in (-2.0, 0.0, 1.0, 3.0):
    fit(f"GSNE alpha {alpha:g}", eq.GSNE, X, NEW if alpha < 1 else None, alpha=alpha, engine="exact")
fit("GSNE alpha 0 grid", eq.GSNE, X, NEW, alpha=0.0, beta=2.0, eta=1.0, engine="grid")
fit("GSNE alpha 0 torch", eq.GSNE, X, NEW, alpha=0.0, engine="torch", device="cpu")
fit("SymmetricSNE ChiSquare", eq.SymmetricSNE, X, divergence=eq.divergences.ChiSquare())
fit(
    "SymmetricSNE StudentT Alpha",
    eq.SymmetricSNE,
    X,
    NEW,
    kernel=eq.kernels.StudentT(2.0),
    divergence=eq.divergences.Alpha(0.5),
)
for engine in ("exact", "grid", "sampled"):
    fit(f"user kernel {engine}", eq.SymmetricSNE, X, NEW, kernel=Loop(), engine=engine)
fit("TSNE auto", eq.TSNE, X, NEW, perplexity="auto")
fit("TSNE dof", eq.TSNE, X, NEW, dof=0.5, engine="grid")
fit("TSNE scales", eq.TSNE, X, NEW, perplexity=[5, 20])
fit("TSNE uniform", eq.TSNE, X, NEW, affinity="uniform", engine="grid")
fit("TSNE random start", eq.TSNE, X, NEW, init="random", exaggeration=2.0, learning_rate=50.0)
fit("TSNE spectral start", eq.TSNE, X, NEW, init="spectral")
fit("TSNE given start", eq.TSNE, X, NEW, init=START)
fit("TSNE gradient descent", eq.TSNE, X, NEW, optimizer=eq.GradientDescent(every=7))
fit("TSNE until it stops", eq.TSNE, SMALL, SMALL_NEW, n_iter=400, engine="exact")
fit("TSNE grid until it stops", eq.TSNE, SMALL, SMALL_NEW, n_iter=250, engine="grid")

# Every kind of input.
COUNTS = sparse.csr_matrix(np.where(X > 8, X, 0.0))
COUNTS_NEW = sparse.csr_matrix(np.where(NEW > 8, NEW, 0.0))
fit("TSNE float32", eq.TSNE, X.astype(np.float32), NEW.astype(np.float32))
fit("TSNE sparse table", eq.TSNE, COUNTS, COUNTS_NEW)
fit("TSNE distances", eq.TSNE, D, D_NEW, metric="precomputed")
fit("TSNE sparse distances", eq.TSNE, SPARSE_D, metric="precomputed")
fit("TSNE neighbours", eq.TSNE, (NEAR, NEAR_D), metric="precomputed", engine="grid")
fit("TSNE affinities", eq.TSNE, np.exp(-D), np.exp(-D_NEW), affinity="precomputed")
fit("SNE sparse affinities", eq.SNE, sparse.csr_matrix(np.exp(-D) * (D < 4)), affinity="precomputed", engine="grid")
for metric in ("cosine", "manhattan", "inner_product", chessboard):
    fit(f"TSNE {getattr(metric, '__name__', metric)}", eq.TSNE, SMALL, SMALL_NEW, metric=metric)
fit("TSNE cosine torch", eq.TSNE, X, NEW, metric="cosine", engine="torch", device="cpu")
fit("TSNE tensors", eq.TSNE, SMALL, SMALL_NEW, h=np.diag([1.0, 2, 3, 4, 5]), g=TENSOR)
fit("TSNE h function", eq.TSNE, SMALL, SMALL_NEW, h=stretch)
fit("TSNE g function", eq.TSNE, SMALL, g=bend)
fit("SNE g function", eq.SNE, SMALL, g=bend)
fit("GSNE g function torch", eq.GSNE, SMALL, g=bend, engine="torch", device="cpu")

# UMAP.
for loss in ("effective", "intended"):
    for engine in ("reference", "exact", "grid", "sampled", "torch"):
        on = {"engine": engine, **({"device": "cpu"} if engine == "torch" else {})}
        fit(f"UMAP {loss} {engine}", eq.UMAP, X, NEW, loss=loss, **on)
fit("UMAP classes", eq.UMAP, X, NEW, y=LABELS, target_weight=0.7)
fit("UMAP graph", eq.UMAP, np.exp(-D), affinity="precomputed")
fit("UMAP distances sampled 3-D", eq.UMAP, D, D_NEW, metric="precomputed", engine="sampled", n_components=3)

# Two kernels.
for Method in (eq.DKPCA, eq.DKLLE):
    for engine in ("reference", "exact", "grid", "torch"):
        on = {"engine": engine, **({"device": "cpu"} if engine == "torch" else {})}
        fit(f"{Method.__name__} {engine}", Method, X[:100], NEW, **on)
fit("DKLLE local", eq.DKLLE, SMALL, SMALL_NEW, bandwidth="local", metric="cosine")
fit("DKPCA global distances", eq.DKPCA, D, D_NEW, bandwidth="global", metric="precomputed")

# Closed forms and their flows.
CLASSICAL = (eq.PCA, eq.ClassicalMDS, eq.Isomap, eq.LLE, eq.LaplacianEigenmaps)
for Method in CLASSICAL:
    name = Method.__name__
    fit(f"{name} eigen", Method, X, NEW)
    fit(f"{name} flow", Method, SMALL, SMALL_NEW, solver="flow", n_iter=200)
    fit(f"{name} eigen torch", Method, X, NEW, engine="torch", device="cpu")
    fit(f"{name} flow torch", Method, SMALL, SMALL_NEW, solver="flow", n_iter=100, engine="torch", device="cpu")
    fit(f"{name} sparse table", Method, COUNTS, COUNTS_NEW, n_components=3)
for Method in (eq.PCA, eq.ClassicalMDS, eq.Isomap):
    fit(f"{Method.__name__} landmarks", Method, X, NEW, n_landmarks=40)
for Method in (eq.ClassicalMDS, eq.Isomap, eq.LLE, eq.LaplacianEigenmaps):
    fit(f"{Method.__name__} distances", Method, D, D_NEW, metric="precomputed")
fit("ClassicalMDS manhattan", eq.ClassicalMDS, SMALL, SMALL_NEW, metric="manhattan")
fit("ClassicalMDS space", eq.ClassicalMDS, eq.spaces.PNorm(SMALL, 3))
fit("LaplacianEigenmaps gaussian", eq.LaplacianEigenmaps, X, NEW, affinity="gaussian")

# Stress.
for engine in ("stored", "recomputed", "sampled", "torch"):
    on = {"engine": engine, **({"device": "cpu"} if engine == "torch" else {})}
    for solver in ("lbfgs", "smacof"):
        fit(f"MDS {solver} {engine}", eq.MDS, X, NEW, solver=solver, **on)
fit("MDS sampled large", eq.MDS, DIGITS.X[:700], NEW, engine="sampled", n_iter=5)
fit("MDS ordinal", eq.MDS, SMALL, stress="ordinal")
fit("MDS relative", eq.MDS, SMALL, stress="relative")
fit("MDS log", eq.MDS, SMALL, stress="log")
fit("MDS max", eq.MDS, SMALL, stress="max", n_iter=60)
fit("MDS descent", eq.MDS, SMALL, solver="descent")
fit("MDS weights", eq.MDS, SMALL, weights=W, n_components=3)
fit("MDS sparse weights", eq.MDS, SMALL, SMALL_NEW, weights=sparse.csr_matrix(np.where(W > 1, W, 0)))
fit("MDS known pairs", eq.MDS, SPARSE_D, metric="precomputed")
fit("MDS gaps", eq.MDS, MISSING, metric="precomputed")
fit("MDS distances torch", eq.MDS, D, D_NEW, metric="precomputed", engine="torch", device="cpu")
fit("MDS space", eq.MDS, City())
fit("MDS starts", eq.MDS, SMALL, SMALL_NEW, n_init=3, init="random", metric="manhattan")

# Networks.
fit("Parametric TSNE", eq.Parametric, X, NEW, device="cpu", batch_size=64)
fit("Parametric UMAP", eq.Parametric, X, NEW, method=eq.UMAP(n_neighbors=8), device="cpu", batch_size=64)
fit("Parametric SphericalSNE", eq.Parametric, X, NEW, method=eq.SphericalSNE(perplexity=10), device="cpu")


@case("LossProblem")
def loss_problem() -> Results:
    torch = one_torch_thread()
    target = torch.tensor(D[:40, :40])

    def loss(Y: Any) -> Any:
        return ((torch.sqrt(((Y[:, None] - Y[None]) ** 2).sum(dim=2) + 1e-3) - target) ** 2).sum()

    problem = eq.LossProblem(loss, START[:40], n_iter=30, device="cpu")
    return {"map": problem.optimize(), "curve": problem.loss_curve, "gradient": problem.gradient(START[:40])}


def forces_case(name: str, method: Any, rows: Any, Y: Any) -> None:
    """Add the case of the loss and the forces of a problem at a given map, without optimising."""

    @case(f"problem {name}")
    def run() -> Results:
        problem = method.problem(rows)
        found = {what: getattr(problem, what)(Y) for what in ("loss", "gradient", "attraction", "repulsion")}
        P = getattr(problem, "affinities", None)
        return found if P is None else {**found, "affinities": P}


for Method in (*FAMILY[:5], eq.UMAP, eq.DKPCA, eq.DKLLE):
    for engine in ("reference", "exact", "grid"):
        forces_case(f"{Method.__name__} {engine}", brief(Method, engine=engine), X, START)
for Method in CLASSICAL:
    forces_case(f"{Method.__name__} flow", brief(Method, solver="flow"), X, START)
forces_case("MDS stored", brief(eq.MDS, engine="stored"), X, START)
forces_case("MDS recomputed", brief(eq.MDS, engine="recomputed"), X, START)


@case("locality 4500 points grid")
def locality() -> Results:
    rows = data.toys.swiss_roll(4500).X
    return results(brief(eq.TSNE, engine="grid", n_iter=8, perplexity=5).fit(rows))


@case("two threads")
def two_threads() -> Results:
    """Return maps made with two threads, after checking that one thread gives the same bytes."""
    found = {}
    for name, method in {
        "grid": brief(eq.TSNE, engine="grid"),
        "exact": brief(eq.GSNE, engine="exact"),
        "umap": brief(eq.UMAP, engine="sampled"),
        "mds": brief(eq.MDS),
        "lle": brief(eq.LLE),
    }.items():
        maps = [method.set_params(n_jobs=n_jobs).fit(X).embedding_ for n_jobs in (1, 2)]
        if maps[0].tobytes() != maps[1].tobytes():
            raise AssertionError(f"{name}: the maps of one and of two threads differ")
        found[name] = maps[1]
    return found


@case("callbacks")
def callbacks() -> Results:
    seen: list[tuple[int, float]] = []

    def watch(iteration: int, loss: float, Y: Any) -> bool:
        seen.append((iteration, loss))
        return iteration >= 20

    return {**results(brief(eq.TSNE, callbacks=[watch]).fit(X)), "seen": np.array(seen)}


def resumed(name: str, Method: Any, rows: Any = X, stop: int = 3, **parameters: Any) -> None:
    """Add the case of a run that is interrupted at a callback and then resumed from its checkpoint."""

    @case(f"resumed {name}")
    def run() -> Results:
        if Method is eq.Parametric:
            one_torch_thread()
        calls: list[int] = []

        def interrupt(iteration: int, loss: float, Y: Any) -> None:
            calls.append(iteration)
            if len(calls) == stop:
                raise KeyboardInterrupt

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.eqc"
            with contextlib.suppress(KeyboardInterrupt):
                brief(Method, callbacks=[eq.Checkpoint(path, every=1), interrupt], **parameters).fit(rows)
            assert path.exists() and len(calls) == stop
            return results(
                brief(Method, callbacks=[eq.Checkpoint(path, every=10, resume=True)], **parameters).fit(rows)
            )


resumed("TSNE grid", eq.TSNE, engine="grid")
resumed("SphericalSNE exact", eq.SphericalSNE, engine="exact")
resumed("UMAP sampled", eq.UMAP, engine="sampled", stop=2, n_iter=120)
resumed("MDS lbfgs", eq.MDS)
resumed("Isomap flow", eq.Isomap, SMALL, solver="flow", n_iter=200)
resumed("Parametric", eq.Parametric, device="cpu", batch_size=64, stop=1)


@case("save and load")
def saved() -> Results:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for Method in (*FAMILY, eq.UMAP, eq.DKPCA, eq.DKLLE, *CLASSICAL, eq.MDS):
            path = Path(folder) / f"{Method.__name__}.eqz"
            eq.save(brief(Method).fit(SMALL), path)
            method = eq.load(path)
            found[f"{Method.__name__} map"] = method.embedding_
            found[f"{Method.__name__} transform"] = method.transform(SMALL_NEW)
    return found
