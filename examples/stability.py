"""Stability: Draganov & Dohn 2024, Fig. 1, with numbers, and eight maps of the digits.

figure_1.png shows six sets of points in three dimensions and four maps of each. On the left the data change: a plane,
the plane with a vertical line through it, and the plane with heavy-tailed noise in its third dimension (Pareto,
α = 1.5). On the right they hardly do: a Swiss roll, and the same with 10 and 20 more points on it. "moved" is the
disagreement, after Procrustes alignment, with the first map on the points that all three share: 0 for no change, 1 for
unrelated positions. The number above the first map is the effect of another seed alone. PCA and Isomap follow the
change on the left and stay the same on the right. UMAP draws the plane with heavy tails much like the plane. On the
right UMAP without sampling stays the same too; with umap-learn's sampling the map changes.

stability.png shows eight t-SNE maps of 600 digits, each of a different 80 % of them, aligned: groups stay together, and
some of them change places. The effects of other seeds, from random starts and from principal components, and of noise
on the pixels are printed.

Writes both to the folder given as argument, or to the current folder.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone

import equipoise as eq
from equipoise import data
from equipoise.data import toys
from equipoise.procrustes import disagreement, fit_similarity
from equipoise.views.small_map import class_colors, draw_map
from equipoise.views.style import new_figure

SETS = {
    "a": {"plane": toys.plane(), "and a line": toys.plane_and_line(), "and heavy tails": toys.plane_with_tails()},
    "b": {f"Swiss roll + {added}": toys.swiss_roll(added=added) for added in (0, 10, 20)},
}
METHODS = {
    "PCA": eq.PCA(),
    "Isomap": eq.Isomap(),
    "UMAP": eq.UMAP(random_state=0),
    "UMAP, sampled": eq.UMAP(engine="negative_sampling", random_state=0),
}


def figure_1(folder):
    figure = new_figure(figsize=(13, 11), dpi=120)
    grid = figure.add_gridspec(1 + len(METHODS), 6)
    for block, sets in enumerate(SETS.values()):
        for c, (name, shape) in enumerate(sets.items()):
            axes = figure.add_subplot(grid[0, 3 * block + c], projection="3d")
            axes.scatter(*shape.X.T, s=2, c=class_colors(shape.labels), linewidths=0)
            axes.set_title(name, fontsize=10)
            axes.set_aspect("equal")
            axes.set_axis_off()
        for row, (method_name, method) in enumerate(METHODS.items()):
            draw_row(figure, grid, 1 + row, 3 * block, method_name, method, sets)
    figure.savefig(folder / "figure_1.png")


def draw_row(figure, grid, row, column, method_name, method, sets):
    first = None
    for c, (name, shape) in enumerate(sets.items()):
        Y = fit(method, shape.X)
        if first is None:
            first, shared, what = Y, len(Y), "another seed"
            moved = disagreement(fit(clone(method).set_params(random_state=1), shape.X), Y)
        else:
            what, moved = name, disagreement(Y[:shared], first)
            Y = fit_similarity(Y[:shared], first)(Y)
        title = f"another seed {moved:.2f}" if Y is first else f"moved {moved:.2f}"
        print(f"{method_name:14s} {what:16s} moved {moved:.3f}")
        axes = figure.add_subplot(grid[row, column + c])
        draw_map(axes, Y, class_colors(shape.labels), title)
        if c == 0:
            axes.set_ylabel(method_name, fontsize=10)


def fit(method, X):
    with warnings.catch_warnings():
        # Outliers of the heavy tail are components of their own; the method connects them.
        warnings.filterwarnings("ignore", "the neighbour graph has")
        return method.fit_transform(X)


def digits_again(folder):
    digits = data.load("digits")
    X, labels = digits.X[:600], digits.labels[:600]
    found = eq.stability(eq.TSNE(), X, subsample=0.8)
    print(found)
    found.figure(labels).savefig(folder / "stability.png")
    for cause, other in {
        "seeds, random starts": eq.stability(eq.TSNE(init="random"), X, runs=4),
        "seeds, from PCA": eq.stability(eq.TSNE(), X, runs=4),
        "noise of 0.1": eq.stability(eq.TSNE(), X, runs=4, noise=0.1),
    }.items():
        print(f"{cause:20s} median variation {np.median(other.variation):.3f}, kept {other.kept.mean():.1%}")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
    figure_1(folder)
    digits_again(folder)
