"""Double-kernel PCA from four starts: the loss has minima of very different quality.

The rows show a Swiss roll and digits, 700 points each; the columns the maps at which `DKPCA` ends from a small map,
from UMAP's map, from the Laplacian eigenmap of the neighbour graph spread over 10 kernel lengths, and from the
principal components spread over 3. From a small map it ends at kernel PCA. Which start has the lowest loss depends on
the data, so `DKPCA` tries all four for 100 iterations and continues from the best one or two; a star marks the map that
is kept. The final loss per point is printed.

Writes starts.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.views.style import COLORS, hide_axes, new_figure

POINTS = 700
STARTS = ("small map", "UMAP's map", "eigenmap, 10 lengths", "principal components, 3 lengths")


def main(folder):
    roll, digits = data.toys.swiss_roll(POINTS), data.load("digits")
    tables = {"Swiss roll": (roll.X, roll.labels), "digits": (digits.X[:POINTS], digits.labels[:POINTS])}
    figure = new_figure(figsize=(14, 7.2), dpi=110)
    grid = figure.subplots(2, 4)
    for axes, (name, (X, labels)) in zip(grid, tables.items(), strict=True):
        problem = eq.DKPCA(random_state=0).problem(X)
        problem.optimize()
        chosen = problem.loss_curve[-1, 1]
        for ax, start, Y0 in zip(axes, STARTS, (problem.Y0, *problem.further_starts), strict=True):
            Y = problem.optimize(Y0=Y0)
            loss = problem.loss_curve[-1, 1]
            print(f"{name}, {start}: loss per point {loss / POINTS:.2f}")
            ax.scatter(*Y.T, s=6, c=[COLORS[label] for label in labels], linewidths=0)
            star = " ★" if np.isclose(loss, chosen, rtol=1e-3) else ""
            ax.set_title(f"{name}, {start}\nloss per point {loss / POINTS:.2f}{star}", fontsize=10)
            ax.set_aspect("equal", adjustable="datalim")
            hide_axes(ax)
        print(f"{name}, chosen: loss per point {chosen / POINTS:.2f}")
    figure.savefig(folder / "starts.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
