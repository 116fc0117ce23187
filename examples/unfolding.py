"""Two ways to flatten what PCA and Isomap cannot: parallel transport around a hole, and a kernel for nested rings.

Above: a Swiss roll with a rectangular hole. Shortest paths go around the hole, so that Isomap's distances across it are
too long and the hole bulges. `spaces.ParallelTransport` unfolds each path into a plane and takes the straight line
between its ends; classical scaling of these distances finds the sheet with its rectangular hole. The disagreement with
the true sheet is printed.

Below: two rings, one inside the other. PCA, a rotation, leaves them nested; kernel PCA with k = exp(−γ d²) separates
them along one axis.

Writes unfolding.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.procrustes import disagreement, fit_similarity
from equipoise.spaces import ParallelTransport
from equipoise.views.style import COLORS, hide_axes, new_figure


def main(folder):
    figure = new_figure(figsize=(13.5, 8), dpi=85)
    above, below = figure.subplots(2, 3)
    rng = np.random.default_rng(0)
    X, sheet = roll_with_hole(1500, rng)
    above[0].scatter(X[:, 0], X[:, 2] + 0.3 * X[:, 1], s=9, c=sheet[:, 0], cmap="viridis", linewidths=0)
    above[0].set_title("a Swiss roll with a hole")
    maps = {
        "Isomap": eq.Isomap(n_neighbors=10).fit_transform(X),
        "classical scaling of parallel transport": eq.ClassicalMDS().fit_transform(ParallelTransport(X)),
    }
    for axes, (name, Y) in zip(above[1:], maps.items(), strict=True):
        print(f"roll, {name}: disagreement {disagreement(Y, sheet):.3f}")
        axes.scatter(*fit_similarity(Y, sheet)(Y).T, s=9, c=sheet[:, 0], cmap="viridis", linewidths=0)
        axes.set_title(name)
    angle, ring = rng.uniform(0, 2 * np.pi, 400), np.arange(400) % 2
    rings = (1 + 2 * ring + 0.1 * rng.standard_normal(400))[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    flat = {
        "two rings": rings,
        "PCA": eq.PCA().fit_transform(rings),
        "kernel PCA, γ = 0.5": eq.PCA(kernel="rbf", gamma=0.5).fit_transform(rings),
    }
    for axes, (name, Y) in zip(below, flat.items(), strict=True):
        axes.scatter(*Y.T, s=10, c=[COLORS[r] for r in ring], linewidths=0)
        axes.set_title(name)
        gap = max(Y[ring == a].min(axis=0)[c] - Y[ring == 1 - a].max(axis=0)[c] for a in (0, 1) for c in (0, 1))
        print(f"rings, {name}: gap along an axis {gap:.2f}")
    for axes in figure.axes:
        axes.set_aspect("equal")
        hide_axes(axes)
    figure.savefig(folder / "unfolding.png")


def roll_with_hole(n, rng):
    """Return n points on a Swiss roll with a rectangular hole, and their coordinates on the unrolled sheet."""
    t = np.linspace(1.5 * np.pi, 4.5 * np.pi, 2000)
    arc = np.concatenate([[0], np.cumsum(np.hypot(np.diff(t * np.cos(t)), np.diff(t * np.sin(t))))])
    u, h = rng.random(3 * n) * arc[-1], rng.random(3 * n) * 30
    outside = ~((np.abs(u - arc[-1] / 2) < arc[-1] / 5) & (np.abs(h - 15) < 8))
    u, h = u[outside][:n], h[outside][:n]
    at = np.interp(u, arc, t)
    return np.column_stack([at * np.cos(at), h, at * np.sin(at)]), np.column_stack([u, h])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
