"""Runs of UMAP, double-kernel LLE and PCA, and t-SNE behind figures 4, 5, 6 and 8 of paper 002, on 1000 points each."""

from __future__ import annotations

import warnings
from typing import Any

import common
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

import equipoise as eq

SETS = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "usps": "USPS",
    "ionosphere": "Ionosphere",
    "seeds": "Seeds",
    "abalone": "Abalone",
    "diabetes": "Diabetes",
    "scrna_worm_neurons": "Single cells",
}
TABLES = ("ionosphere", "seeds", "abalone", "diabetes")
N = 1000
SEEDS = (0, 1, 2, 3, 4)
BASELINE = (5, 6, 7, 8, 9)  # further seeds of UMAP, compared with the first ones
SIZES = (250, 500, 1000, 2000, 4000)  # of draws of MNIST, for conjecture 5.1
EPOCHS = (0, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 400, 500)  # umap-learn makes 500 on so few points
RATES = (1.0, 0.3, 0.1)  # of plain descent
RANGES = ((2, 5), (5, 10), (10, 20), (20, 40), (40, 80))  # l and m of eq. (9)
SAMPLED = "DK-PCA by UMAP's sampling"
METHODS = {
    SAMPLED: lambda seed: eq.DKPCA(engine="negative_sampling", n_iter=EPOCHS[-1], random_state=seed),
    "DK-LLE": lambda seed: eq.DKLLE(random_state=seed),
    "DK-LLE, local bandwidth": lambda seed: eq.DKLLE(bandwidth="local", random_state=seed),
    "t-SNE": lambda seed: eq.TSNE(random_state=seed),
}


def load(name: str, draw: int = 0, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows, or all if there are fewer, and their classes; no row is in two draws of the same size."""
    if name == "diabetes":
        X, progression = load_diabetes(return_X_y=True)
        y = (progression > np.median(progression)).astype(int)
    else:
        with np.load(common.DATA / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float64), file["y"]
    if name in TABLES:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    elif X.max() > 1 and not name.startswith("scrna"):
        X /= 255
    rows = np.random.RandomState(0).permutation(len(X))[draw * n : (draw + 1) * n]
    return np.ascontiguousarray(X[rows]), y[rows]


def accuracy(Y: np.ndarray, y: np.ndarray) -> float:
    """Return the accuracy of a 10-nearest-neighbour classifier, by tenfold cross-validation."""
    split = KFold(10, shuffle=True, random_state=0)
    return float(cross_val_score(KNeighborsClassifier(10), Y, y, cv=split).mean())


def preserved(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return B(X, Y; k), the share of points whose k-th neighbour is the same in both, for k = 1 to 80."""
    k = RANGES[-1][1]
    near = [NearestNeighbors(n_neighbors=k).fit(V).kneighbors(return_distance=False) for V in (X, Y)]
    return np.asarray((near[0] == near[1]).mean(axis=0))


def ratios(X: np.ndarray, maps: list[np.ndarray]) -> list[float]:
    """Return eq. (9) for each range, with B averaged over the maps."""
    B = np.mean([preserved(X, Y) for Y in maps], axis=0)
    return [float(B[low - 1 : high].sum() / (high - low) / B[0]) for low, high in RANGES]


Snapshots = list[tuple[int, np.ndarray]]  # epochs and maps


def umap_learn_run(X: np.ndarray, seed: int, rate: float = 1.0) -> tuple[np.ndarray, Snapshots]:
    """Return umap-learn's map, and the maps at EPOCHS; `rate` is the learning rate, by default 1."""
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that a seed disables its threads
        model = umap.UMAP(n_epochs=list(EPOCHS), learning_rate=rate, random_state=seed).fit(X)
    return model.embedding_, list(zip(EPOCHS, model.embedding_list_, strict=True))


def own_run(X: np.ndarray, seed: int, rate: float = 1.0) -> tuple[np.ndarray, Snapshots]:
    """Return the map of equipoise's UMAP by negative sampling, the scheme of umap-learn, and the maps on the way."""
    method = eq.UMAP(engine="negative_sampling", learning_rate=rate, random_state=seed, n_jobs=1)
    start = eq.LaplacianEigenmaps(n_neighbors=15).fit_transform(X)
    start = start * (10 / np.abs(start).max())  # extent and noise of umap-learn's start
    start = start + np.random.RandomState(seed).normal(scale=1e-4, size=start.shape)
    run: Snapshots = [(0, start)]
    problem = method.problem(X)
    problem.optimize(
        n_iter=EPOCHS[-1], Y0=start, callbacks=[lambda step, _, Y: run.append((step, np.array(Y, dtype=np.float64)))]
    )
    run = [*(pair for pair in run if pair[0] < EPOCHS[-1]), (EPOCHS[-1], np.array(problem.Y, dtype=np.float64))]
    return run[-1][1], run


RUNS = {"umap-learn": umap_learn_run, "equipoise": own_run}


def without_exaggeration(threads: int) -> dict[str, Any]:
    return {"random_state": 0, "n_jobs": threads, "early_exaggeration": 1.0, "optimizer": eq.Momentum(every=10)}


def curves(X: np.ndarray, snapshots: Snapshots, slower: Snapshots, threads: int) -> dict[str, np.ndarray]:
    """Return the DK-LLE loss during runs of UMAP and of DK-LLE from the same map, each as (step, loss).

    The steps of umap-learn are random: at its default learning rate they move points by more than the distance between
    neighbours until they have become small. So its run is repeated with a tenth of the learning rate, and our `UMAP`
    minimises the loss that these steps follow on average (Damrich & Hamprecht 2021), from the same map, without
    sampling.
    """
    plain = without_exaggeration(threads)
    problem = eq.DKLLE(**plain).problem(X)
    found = {}
    for name, run in {"UMAP": snapshots, "UMAP, learning rate 0.1": slower}.items():
        found[name] = np.array([(epoch, problem.loss(Y)) for epoch, Y in run])
    expected: list[tuple[int, float]] = []
    umap = eq.UMAP(**plain).problem(X)
    umap.optimize(
        n_iter=EPOCHS[-1],
        Y0=snapshots[0][1],
        callbacks=[lambda step, _, Y: expected.append((step, problem.loss(Y)))],
    )
    problem.optimize(n_iter=EPOCHS[-1], Y0=snapshots[0][1])
    found |= {"UMAP without sampling": np.array(expected), "DK-LLE": problem.loss_curve}
    for rate in RATES:
        descent = {**plain, "optimizer": eq.GradientDescent(every=10, min_loss_change=0.0), "learning_rate": rate}
        slow = eq.DKLLE(**descent).problem(X)
        slow.optimize(n_iter=EPOCHS[-1], Y0=snapshots[0][1])
        found[f"DK-LLE, plain descent, rate {rate:g}"] = slow.loss_curve
    return found


def factors(X: np.ndarray, maps: list[np.ndarray], lowest: float, threads: int) -> list[float]:
    """Return the DK-LLE loss of each map divided by the lowest loss known."""
    problem = eq.DKLLE(**without_exaggeration(threads)).problem(X)
    return [float(problem.loss(Y)) / lowest for Y in maps]


def factors_by_size(umap: str, threads: int) -> dict[int, list[float]]:
    """Return the factor of conjecture 5.1 on draws of MNIST of several sizes, for three seeds of UMAP."""
    found = {}
    for n in SIZES:
        X, _ = load("mnist", 0, n)
        runs = [RUNS[umap](X, seed) for seed in SEEDS[:3]]
        problem = eq.DKLLE(**without_exaggeration(threads)).problem(X)
        problem.optimize(n_iter=2 * EPOCHS[-1], Y0=runs[0][1][0][1])
        found[n] = factors(X, [run[0] for run in runs], problem.loss_curve[:, 1].min(), threads)
    return found


def measure(name: str, umap: str, threads: int) -> dict[str, Any]:
    """Return all results on one data set."""
    X, y = load(name)
    runs = [RUNS[umap](X, seed) for seed in SEEDS]
    maps = {"UMAP": [run[0] for run in runs]}
    losses = curves(X, runs[0][1], RUNS[umap](X, SEEDS[0], 0.1)[1], threads)
    for method, make in METHODS.items():
        maps[method] = [make(seed).set_params(n_jobs=threads).fit_transform(X) for seed in SEEDS]
    lowest = min(curve[:, 1].min() for curve in losses.values())
    preservation = {method: ratios(X, made) for method, made in maps.items()}
    again = ratios(X, [RUNS[umap](X, seed)[0] for seed in BASELINE])
    ours = factors(X, maps["UMAP"], lowest, threads)
    return {
        "n": len(X),
        "y": y,
        "maps": {method: made[:1] for method, made in maps.items()},
        "accuracy": {method: [accuracy(Y, y) for Y in made] for method, made in maps.items()},
        "curves": losses,
        "ratios": {**preservation, "UMAP, other seeds": again},
        "factors": ours,
        "ends": [factor * lowest / losses["UMAP"][0, 1] for factor in ours],
    }
