"""The tools that are compared, each called as in its documentation, with its defaults.

Only NumPy is imported at the top, so that a process imports only the tool it measures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from common import timed, total

OURS = "equipoise"
SHORT = "equipoise, n_iter=300"
MANY = 10_000  # points above which the default of n_iter is 500 instead of 300
SAME_P = "openTSNE, P of equipoise"


@dataclass
class Fit:
    """A finished map (n, 2), seconds per phase if the tool has phases, and the neighbours it used."""

    Y: Any
    neighbors_s: float | None = None  # the search alone
    build_s: float | None = None  # search, affinities, initial map
    optimise_s: float | None = None
    search: str = "–"  # how it searched
    found: Callable[[], Any] = lambda: None  # (n, k) neighbours, without the point itself; called after the timing
    details: dict[str, Any] = field(default_factory=dict)


def fit_equipoise(X: np.ndarray, threads: int, n_iter: int | None = None) -> Fit:
    import faiss  # noqa: F401  imports are not timed, those of peers neither

    import equipoise as eq
    from equipoise.inputs import Table, make_input

    start = time.perf_counter()
    with timed(Table, "neighbors") as search:
        problem = eq.TSNE(perplexity=30, n_iter=n_iter, random_state=0, n_jobs=threads).problem(X)
    built = time.perf_counter()
    Y = problem.optimize()  # fit() is these two steps
    end = time.perf_counter()

    def found() -> Any:
        k = min(len(X) - 1, 90)
        return make_input(X, "euclidean", None).neighbors(k, threads)[0].indices.reshape(len(X), k)

    details = {
        "engine": problem.engine.traits.name,
        "n_iter": problem.n_iter,
        "own_loss": float(problem.loss_curve[-1, 1]),
    }
    fit = Fit(Y, total(search), built - start, end - built, details=details)
    if problem.engine.traits.needs_sparse_P:
        fit.search, fit.found = "faiss", found
        details["own_recall"] = problem.knn_recall
    else:
        fit.search = "all pairs"
    return fit


def fit_opentsne(X: np.ndarray, threads: int, P: Any = None) -> Fit:
    import openTSNE
    from openTSNE import nearest_neighbors

    tsne = openTSNE.TSNE(n_jobs=threads, random_state=0)
    given = None if P is None else openTSNE.affinity.PrecomputedAffinities(P)
    index = nearest_neighbors.Annoy if len(X) >= 1000 else nearest_neighbors.Sklearn  # its "auto"
    start = time.perf_counter()
    with timed(index, "build") as search, timed(openTSNE.TSNE, "prepare_initial") as prepare:
        Y = tsne.fit(X, affinities=given)
    seconds = time.perf_counter() - start

    def found() -> Any:
        held = vars(Y.affinities)
        return next((value for name, value in held.items() if name.endswith("__neighbors")), None)

    details = {"n_iter": tsne.early_exaggeration_iter + tsne.n_iter, "own_loss": float(Y.kl_divergence)}
    build = total(prepare)
    optimise = None if build is None else seconds - build
    return Fit(Y, total(search), build, optimise, search=index.__name__.lower(), found=found, details=details)


def fit_opentsne_same_p(X: np.ndarray, threads: int) -> Fit:
    """Run openTSNE on the P of equipoise's mesh engine; only the optimisation can be compared."""
    import equipoise as eq

    P = eq.TSNE(perplexity=30, random_state=0, n_jobs=threads, engine="grid").problem(X).affinities
    fit = fit_opentsne(X, threads, P.astype(np.float64))
    return Fit(fit.Y, optimise_s=fit.optimise_s, search="as equipoise", details=fit.details)


def fit_sklearn(X: np.ndarray, threads: int) -> Fit:
    from sklearn.manifold import TSNE

    tsne = TSNE(n_jobs=threads, random_state=0)
    Y = tsne.fit_transform(X)
    return Fit(Y, search="exact", details={"n_iter": int(tsne.n_iter_), "own_loss": float(tsne.kl_divergence_)})


def fit_umap(X: np.ndarray, threads: int) -> Fit:
    """Run umap-learn without a seed, as by default: a seed would disable its threads."""
    from umap import UMAP, umap_

    umap = UMAP(n_jobs=threads)
    with timed(umap_, "nearest_neighbors") as search, timed(umap_, "simplicial_set_embedding") as optimise:
        Y = umap.fit_transform(X)

    def found() -> Any:
        near = getattr(umap, "_knn_indices", None)
        return None if near is None else near[:, 1:]  # the first is the point itself

    return Fit(Y, total(search), optimise_s=total(optimise), search="pynndescent" if search else "all pairs",
               found=found if search else lambda: None)  # fmt: skip


def fit_pacmap(X: np.ndarray, threads: int) -> Fit:
    """Run PaCMAP without a seed, as by default: a seed would limit its search to one thread."""
    from pacmap import PaCMAP, pacmap

    with timed(pacmap, "compute_nearest_neighbors") as search, timed(pacmap, "pacmap") as optimise:
        Y = PaCMAP().fit_transform(X)
    return Fit(Y, total(search), optimise_s=total(optimise), search="faiss HNSW")


@dataclass(frozen=True)
class Method:
    """A tool: its distribution, the module imported before timing, its fit function, and what can be compared."""

    package: str
    module: str
    fit: Callable[[np.ndarray, int], Fit]
    kl: bool = True  # whether KL(P ‖ Q) is its loss
    compiles: bool = False  # whether the first call compiles; the first call ever and a later one are then timed too
    whole: bool = True  # whether total time and memory are those of a complete call
    also: str = ""  # a module that the tool imports during a fit; imported before timing instead


METHODS = {
    OURS: Method("equipoise", "equipoise", fit_equipoise),
    SHORT: Method("equipoise", "equipoise", partial(fit_equipoise, n_iter=300)),
    # openTSNE imports pynndescent to see whether it is installed, which compiles for seconds and is not needed here.
    "openTSNE": Method("openTSNE", "openTSNE", fit_opentsne, also="pynndescent"),
    SAME_P: Method("openTSNE", "openTSNE", fit_opentsne_same_p, whole=False, also="pynndescent"),
    "scikit-learn": Method("scikit-learn", "sklearn.manifold", fit_sklearn),
    "umap-learn": Method("umap-learn", "umap", fit_umap, kl=False, compiles=True),
    "PaCMAP": Method("pacmap", "pacmap", fit_pacmap, kl=False, compiles=True),
}
PEERS = [name for name in METHODS if name not in (OURS, SHORT, SAME_P)]
