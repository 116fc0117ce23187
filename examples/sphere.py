"""A map on a sphere: s-SNE places every digit on the unit sphere in three dimensions.

The figures show 500 digits, from both sides of the globe (sphere.png) and in Mollweide's projection
(sphere_unrolled.png). A sphere has no boundary: no class is pushed to an edge, and the left and right ends of the
projection are adjacent.

ρ sets the unit of length, (1−ρ)/√(3ρ/2), and thereby the size of the sphere relative to the map. At ρ = 0.8 the points
cover the whole sphere, and their mean is near the centre; at the default 0.95 the same points stay on one side.

Writes both to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.evaluate import neighbor_recall
from equipoise.views.style import COLORS, hide_axes, new_figure


def main(folder):
    digits = data.load("digits")
    X, labels = digits.X[:500], digits.labels[:500]
    Y = eq.SphericalSNE(rho=0.8, random_state=0).fit_transform(X)
    radius = np.linalg.norm(Y, axis=1)
    print(f"distance from the centre {radius.min():.6f} to {radius.max():.6f}")
    print(f"distance of their mean   {np.linalg.norm(Y.mean(axis=0)):.2f}")
    print(f"neighbours kept          {neighbor_recall(X, Y):.1%}")
    eq.plot(Y, labels, names=digits.classes, title="digits, SphericalSNE, Mollweide projection").savefig(
        folder / "sphere_unrolled.png"
    )

    figure = new_figure(figsize=(10, 5.4), dpi=150)
    for axes, side, title in zip(figure.subplots(1, 2), (1, -1), ("from the front", "from behind"), strict=True):
        axes.add_patch(_disk())
        seen = side * Y[:, 0] > 0
        axes.scatter(side * Y[seen, 1], Y[seen, 2], s=14, c=[COLORS[label] for label in labels[seen]], linewidths=0)
        for digit in range(10):
            y = Y[labels == digit].mean(axis=0)
            y /= np.linalg.norm(y)
            if side * y[0] > 0:
                axes.text(side * y[1], y[2], str(digit), ha="center", va="center", fontweight="bold", fontsize=13)
        axes.set_title(title)
        axes.set_aspect("equal")
        axes.set_xlim(-1.05, 1.05)
        axes.set_ylim(-1.05, 1.05)
        hide_axes(axes)
    figure.savefig(folder / "sphere.png")


def _disk():
    from matplotlib.patches import Circle

    return Circle((0, 0), 1, facecolor="#f4f4f4", edgecolor="#c0c0c0")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
