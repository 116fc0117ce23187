"""Figure 7 of paper 002: maps of the last convolutional layer of a network during its training on MNIST."""

from __future__ import annotations

from typing import Any

import common
import double_kernel_runs
import numpy as np
from experiment import Ledger, Task
from panels import draw_maps
from sklearn.metrics import silhouette_score
from verdicts import Verdict, joined, lower, mean_error

import equipoise as eq

TITLE = "Paper 002, Fig. 7: a network in training"
TRAINING, MAPPED = 4000, 1000
RATE, BATCH = 0.01, 32  # plain stochastic descent, slow enough that accuracies around 70 % are seen
STEPS = (40, 70, 100, 125, 150, 200, 500)  # batches after which the layer is mapped
DRAWN = (40, 70, 125, 500)
SEEDS = (0, 1, 2, 3, 4)  # networks, each with other images
FAIR = 0.72  # accuracy of the poor network in the paper's figure
METHODS = {"UMAP": eq.UMAP(random_state=0), "t-SNE": eq.TSNE(random_state=0), "DK-LLE": eq.DKLLE(random_state=0)}


def images(task: Task, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return square images from 0 to 1 and their classes; no image is in two draws."""
    if task.short:
        rows = task.source.draw("mnist-14k", seed)
        return rows.images / 255, rows.labels
    with np.load(common.DATA / "mnist.npz") as file:
        rows = np.random.RandomState(0).permutation(60_000).reshape(-1, TRAINING + MAPPED)[seed]
        return file["X"][rows].reshape(-1, 28, 28) / 255, file["y"][rows].astype(np.int64)


def train(X: np.ndarray, y: np.ndarray, mapped: int, seed: int) -> list[tuple[float, np.ndarray]]:
    """Return, after each number of batches in STEPS, the accuracy on the last `mapped` images and their last
    convolutional layer."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for before, after in ((1, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    features = nn.Sequential(*layers, nn.Flatten())
    inputs, labels = torch.as_tensor(X[:, None], dtype=torch.float32), torch.as_tensor(y)
    classify = nn.Linear(features(inputs[:1]).shape[1], 10)
    descent = torch.optim.SGD([*features.parameters(), *classify.parameters()], lr=RATE, momentum=0.9)
    found = []
    for step in range(1, STEPS[-1] + 1):
        batch = torch.randint(len(X) - mapped, (BATCH,))
        loss = nn.functional.cross_entropy(classify(features(inputs[batch])), labels[batch])
        descent.zero_grad()
        loss.backward()
        descent.step()
        if step in STEPS:
            with torch.no_grad():
                latent = features(inputs[-mapped:])
                right = (classify(latent).argmax(dim=1) == labels[-mapped:]).double().mean().item()
            found.append((right, latent.numpy().astype(np.float64)))
    return found


def measure(task: Task, ledger: Ledger) -> None:
    if not common.installed("torch"):
        print("skipped: PyTorch is not installed")
        return

    def run(seed: int) -> dict[str, Any]:
        X, y = images(task, seed)
        mapped = min(MAPPED, len(X) // 2)
        found: dict[str, Any] = {}
        titled = []
        for step, (right, latent) in zip(STEPS, train(X, y, mapped, seed), strict=True):
            scored: dict[str, Any] = {"network": right}
            for name, method in METHODS.items():
                Y = method.set_params(n_jobs=task.threads).fit_transform(latent)
                silhouette = float(silhouette_score(Y, y[-mapped:]))
                scored[name] = {"accuracy": double_kernel_runs.accuracy(Y, y[-mapped:]), "silhouette": silhouette}
                if step in DRAWN:
                    titled.append((f"{name}, network {right:.0%}", Y))
            found[str(step)] = scored
        if seed == SEEDS[0]:
            ordered = [titled[i] for m in range(len(METHODS)) for i in range(m, len(titled), len(METHODS))]
            draw_maps(ordered, [y[-mapped:]] * len(ordered), task.picture("002_fig7"), columns=len(DRAWN))
        return found

    for seed in task.few(SEEDS, 1):
        ledger.get(str(seed), lambda seed=seed: run(seed))


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Not the paper's VGG11: a network of three convolutional layers, trained here by stochastic descent on"
        f" {TRAINING} images of MNIST; its last convolutional layer on {MAPPED} others is mapped during training."
        f" {len(SEEDS)} networks, with disjoint sets of images; mean ± standard error; pictures of the first. The"
        " paper: separation in the map does not show which network is the bad one; its authors asked colleagues, which"
        " is not repeated. Accuracy of a 10-nearest-neighbour classifier on the map, tenfold, and silhouette of the"
        " classes in the map. The verdicts compare the map of a fair network, at the stop with an accuracy nearest"
        f" to the {FAIR:.0%} of the paper's poor one, with that of the network after {STEPS[-1]} batches.",
        "",
    ]
    rows = []
    for step in map(str, STEPS):
        at = [found[step] for found in values.values()]
        cells = [mean_error([one["network"] for one in at], ".3f")]
        for name in METHODS:
            right, wide = ([one[name][score] for one in at] for score in ("accuracy", "silhouette"))
            cells.append(f"{mean_error(right, '.3f')} / {mean_error(wide)}")
        rows.append([step, *cells])
    head = ["batches", "accuracy of the network", *(f"{name}: accuracy / silhouette" for name in METHODS)]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/002_fig7.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    runs = [list(found.values()) for found in values.values()]
    poor = [min(run, key=lambda one: one["network"]) for run in runs]
    fair = [min(run, key=lambda one: abs(one["network"] - FAIR)) for run in runs]
    best = [run[-1] for run in runs]
    of = {"poorest": poor, "fair": fair, "best": best}
    stated = {name: f"{name} {mean_error([one['network'] for one in ones])}" for name, ones in of.items()}
    found = []
    words, parts = {}, []
    for name in METHODS:
        words[name] = lower([100 * (one["network"] - one[name]["accuracy"]) for one in poor], "accuracy")
        parts.append(f"{name} {mean_error([one[name]['accuracy'] for one in poor])}")
    evidence = (
        f"{len(runs)} small networks; accuracy: {stated['poorest']}; 10-NN accuracy on its map {', '.join(parts)}"
    )
    claim = "a map of a layer can look well separated while the network is poor (its map is the more accurate)"
    found.append(Verdict("002 Fig. 7", claim, joined(words), evidence))
    for score, scale in (("accuracy", 100), ("silhouette", 1)):
        words, parts = {}, []
        for name in METHODS:
            words[name] = lower(
                [scale * (b[name][score] - f[name][score]) for b, f in zip(best, fair, strict=True)], score
            )
            pair = (mean_error([one[name][score] for one in ones]) for ones in (fair, best))
            parts.append(f"{name} {' and '.join(pair)}")
        evidence = (
            f"{len(runs)} small networks; accuracy: {stated['fair']}, {stated['best']}; on the map {', '.join(parts)}"
        )
        claim = f"the map of a fair network is at least as well separated as that of a good one ({score})"
        found.append(Verdict("002 Fig. 7", claim, joined(words), evidence))
    return found
