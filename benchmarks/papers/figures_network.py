"""Figure 7 of paper 002: maps of the last convolutional layer of a network during its training on MNIST."""

from __future__ import annotations

from typing import Any

import common
import double_kernel
import numpy as np
from experiment import Ledger, Task
from panels import draw_maps
from sklearn.metrics import silhouette_score
from verdicts import Verdict

import equipoise as eq

TITLE = "Paper 002, Fig. 7: a network in training"
TRAINING, MAPPED = 4000, 1000
RATE, BATCH = 0.01, 32  # plain stochastic descent, slow enough that accuracies around 70 % are seen
STEPS = (40, 70, 125, 500)  # batches after which the layer is mapped
METHODS = {"UMAP": eq.UMAP(random_state=0), "t-SNE": eq.TSNE(random_state=0), "DK-LLE": eq.DKLLE(random_state=0)}


def images(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return square images from 0 to 1 and their classes."""
    if task.short:
        rows = task.source.draw("mnist-14k", 0)
        return rows.images / 255, rows.labels
    with np.load(common.DATA / "mnist.npz") as file:
        rows = np.random.RandomState(0).permutation(60_000)[: TRAINING + MAPPED]
        return file["X"][rows].reshape(-1, 28, 28) / 255, file["y"][rows].astype(np.int64)


def train(X: np.ndarray, y: np.ndarray, mapped: int, stops: tuple[int, ...]) -> list[tuple[float, np.ndarray]]:
    """Return, after each number of batches in `stops`, the accuracy on the last `mapped` images and their last
    convolutional layer."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before, after in ((1, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    features = nn.Sequential(*layers, nn.Flatten())
    inputs, labels = torch.as_tensor(X[:, None], dtype=torch.float32), torch.as_tensor(y)
    classify = nn.Linear(features(inputs[:1]).shape[1], 10)
    descent = torch.optim.SGD([*features.parameters(), *classify.parameters()], lr=RATE, momentum=0.9)
    found = []
    for step in range(1, stops[-1] + 1):
        batch = torch.randint(len(X) - mapped, (BATCH,))
        loss = nn.functional.cross_entropy(classify(features(inputs[batch])), labels[batch])
        descent.zero_grad()
        loss.backward()
        descent.step()
        if step in stops:
            with torch.no_grad():
                latent = features(inputs[-mapped:])
                right = (classify(latent).argmax(dim=1) == labels[-mapped:]).double().mean().item()
            found.append((right, latent.numpy().astype(np.float64)))
    return found


def measure(task: Task, ledger: Ledger) -> None:
    if not common.installed("torch"):
        print("skipped: PyTorch is not installed")
        return

    def run() -> dict[str, Any]:
        X, y = images(task)
        mapped = min(MAPPED, len(X) // 2)
        found: dict[str, Any] = {}
        titled = []
        for step, (right, latent) in zip(STEPS, train(X, y, mapped, STEPS), strict=True):
            scored: dict[str, Any] = {"network": right}
            for name, method in METHODS.items():
                Y = method.set_params(n_jobs=task.threads).fit_transform(latent)
                silhouette = float(silhouette_score(Y, y[-mapped:]))
                scored[name] = {"accuracy": double_kernel.accuracy(Y, y[-mapped:]), "silhouette": silhouette}
                titled.append((f"{name}, network {right:.0%}", Y))
            found[str(step)] = scored
        ordered = [titled[i] for m in range(len(METHODS)) for i in range(m, len(titled), len(METHODS))]
        draw_maps(ordered, [y[-mapped:]] * len(ordered), task.picture("002_fig7"), columns=len(STEPS))
        return found

    ledger.get("network", run)


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = [
        "Not the paper's VGG11: a network of three convolutional layers, trained here by stochastic descent on"
        f" {TRAINING} images of MNIST; its last convolutional layer on {MAPPED} others is mapped during training. The"
        " paper: separation in the map does not show which network is the bad one; its authors asked colleagues, which"
        " is not repeated. Accuracy of a 10-nearest-neighbour classifier on the map, tenfold, and silhouette of the"
        " classes in the map.",
        "",
    ]
    rows = []
    for step, found in values["network"].items():
        cells = [f"{found[name]['accuracy']:.3f} / {found[name]['silhouette']:+.2f}" for name in METHODS]
        rows.append([step, f"{found['network']:.3f}", *cells])
    head = ["batches", "accuracy of the network", *(f"{name}: accuracy / silhouette" for name in METHODS)]
    return [*lines, *common.table(head, rows), "", f"![Maps]({task.folder.name}/002_fig7.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    found = list(values["network"].values())
    worst = min(found, key=lambda one: one["network"])
    best = max(found, key=lambda one: one["network"])
    parts = [f"{name} {worst[name]['accuracy']:.2f} and {best[name]['accuracy']:.2f}" for name in METHODS]
    hidden = all(worst[name]["accuracy"] > worst["network"] + 0.05 for name in METHODS)
    evidence = (
        f"networks of accuracy {worst['network']:.2f} and {best['network']:.2f} have maps with 10-NN accuracy"
        f" {', '.join(parts)} (one network, three layers, not VGG11)"
    )
    claim = "a map of a layer can look well separated while the network is poor"
    return [Verdict("002 Fig. 7", claim, "yes" if hidden else "no", evidence)]
