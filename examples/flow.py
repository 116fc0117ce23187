"""PCA, classical MDS and Isomap by attraction and repulsion: random points converge to the closed form.

The figure shows, for 1,797 digits and every fifth step, the loss above its minimum and the distance of the map from the
eigenvector solution (1 − R² of Procrustes); below, the map of PCA at several steps. Plain gradient descent (thin lines)
converges too, in several times as many steps as with momentum (thick lines). After Draganov & Dohn 2024, Fig. 2, who
use L1 distances for MDS.

Writes flow.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.spatial import procrustes

import equipoise as eq
from equipoise import data
from equipoise.views.style import COLORS, hide_axes, new_figure

METHODS = {
    "PCA": eq.PCA,
    "classical MDS, L1": lambda **p: eq.ClassicalMDS(metric="manhattan", **p),
    "Isomap": eq.Isomap,
}
MOMENTS = (0, 5, 15, 60)


def flow(method, X, rule, moments=()):
    """Return the steps, the relative losses, the distances from the closed form, and the maps at the given steps."""
    closed = method().fit(X)
    problem = method(random_state=0).problem(X)
    problem.rule = rule
    steps, losses, away, maps = [], [], [], {}

    def watch(step, loss, Y):
        steps.append(step)
        losses.append(loss - closed.loss_)
        away.append(procrustes(closed.embedding_, Y)[2])
        if step in moments:
            maps[step] = Y.copy()

    problem.optimize(n_iter=300, callbacks=[watch])
    return np.array(steps), np.array(losses) / closed.loss_, np.array(away), maps


def main(folder):
    digits = data.load("digits")
    figure = new_figure(figsize=(11, 7), dpi=150)
    grid = figure.add_gridspec(2, 4)
    loss_axes, away_axes = figure.add_subplot(grid[0, :2]), figure.add_subplot(grid[0, 2:])
    for color, (name, method) in zip(COLORS[::2], METHODS.items(), strict=False):
        for rule, width in ((eq.Accelerated(every=5), 2.2), (eq.GradientDescent(every=5, min_loss_change=0.0), 0.8)):
            moments = MOMENTS if name == "PCA" and width > 1 else ()
            steps, losses, away, maps = flow(method, digits.X, rule, moments)
            label = name if width > 1 else None
            loss_axes.semilogy(steps, np.maximum(losses, 1e-13), color=color, lw=width, label=label)
            away_axes.semilogy(steps, np.maximum(away, 1e-13), color=color, lw=width, label=label)
            kind = "momentum" if width > 1 else "plain"
            print(f"{name:18s} {kind:9s} steps {steps[-1]:4d}   R2 {1 - away[-1]:.8f}")
            for c, (step, Y) in enumerate(maps.items()):
                axes = figure.add_subplot(grid[1, c])
                axes.scatter(*Y.T, s=3, c=[COLORS[label] for label in digits.labels], linewidths=0)
                axes.set_title(f"step {step}")
                axes.set_aspect("equal", adjustable="datalim")
                hide_axes(axes)
    loss_axes.set_title("relative excess of the loss over its minimum")
    away_axes.set_title("1 − R² to the closed form")
    for axes in (loss_axes, away_axes):
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    away_axes.legend(frameon=False)
    figure.savefig(folder / "flow.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
