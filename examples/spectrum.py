"""One parameter from Laplacian eigenmaps via UMAP to t-SNE: `exaggeration`, the factor on the attraction.

The figure shows 1200 digits under t-SNE's loss with the attraction multiplied by 20, 10, 4, 2, 1 and 0.5, after Böhm,
Berens & Kobak 2022, between Laplacian eigenmaps, which is attraction alone under a constraint, and UMAP. Strong
attraction preserves continuous structure and stretches classes into arms; strong repulsion gives every class its own
island, and an exaggeration below 1 fills a disk. UMAP lies in between: its islands are as far apart as with an
exaggeration of 2. Every map starts from the previous one, from strong to weak attraction. The share of the ten nearest
neighbours that each map keeps is printed.

Writes spectrum.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.evaluate import neighbor_recall
from equipoise.initialize.spectral import spectral
from equipoise.views.style import COLORS, hide_axes, new_figure

EXAGGERATIONS = (20, 10, 4, 2, 1, 0.5)


def maps(X):
    problem = eq.TSNE(random_state=0).problem(X)
    Y = spectral(problem.affinities, 2, np.random.RandomState(0))
    yield "Laplacian eigenmaps", Y
    Y = 1e-4 * Y
    for exaggeration in EXAGGERATIONS:
        method = eq.TSNE(exaggeration=exaggeration, n_iter=300, random_state=0)
        Y = method.fit_transform(X, init=Y)
        yield f"exaggeration {exaggeration}", Y
    yield "UMAP", eq.UMAP(random_state=0).fit_transform(X)


def main(folder):
    digits = data.load("digits")
    X, labels = digits.X[:1200], digits.labels[:1200]
    figure = new_figure(figsize=(12, 6.4), dpi=120)
    for axes, (title, Y) in zip(figure.subplots(2, 4).flat, maps(X), strict=True):
        print(f"{title:20s} neighbours kept {neighbor_recall(X, Y):.1%}")
        axes.scatter(*Y.T, s=3, c=[COLORS[label] for label in labels], linewidths=0)
        axes.set_title(title)
        axes.set_aspect("equal", adjustable="datalim")
        hide_axes(axes)
    figure.savefig(folder / "spectrum.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
