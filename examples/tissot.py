"""Tissot's indicatrix: what flat maps of the globe do to small circles.

The data are 1,800 points spread evenly over the globe. Four flat maps of it are drawn with the ellipses that
`local_isometry` estimates from 8 neighbours of each point, without knowing the formula of the map: each is the image of
a small circle on the globe. Mercator's projection is conformal, so that circles remain circles, but areas grow towards
the poles; Lambert's cylindrical projection preserves areas and flattens circles. Both cut the globe, and the neighbours
on the two sides of the cut have long, thin ellipses. The azimuthal projection preserves distances from the pole and
stretches circles around it. The map of least relative stress presses the globe flat, and shrinks what lies at the rim.

A second figure shows a t-SNE map of the digits, and the pixels that move a digit along its axes are printed.

Writes tissot.png and tissot_digits.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.evaluate.figures.tissot_figure import draw_tissot
from equipoise.views.style import new_figure

N = 1800


def even_points(n):
    """Return points (n, 3) on a golden spiral (Fibonacci lattice)."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), z])


def main(folder):
    X = even_points(N)
    X = X[np.abs(X[:, 2]) < np.sin(np.radians(75))]  # Mercator's poles are at infinity
    longitude = np.arctan2(X[:, 1], X[:, 0])
    globe = eq.spaces.Sphere(X)
    maps = {
        "Mercator: conformal": np.column_stack([longitude, np.arctanh(X[:, 2])]),
        "Lambert: equal areas": np.column_stack([longitude, X[:, 2]]),
        "azimuthal equidistant": np.arccos(X[:, 2:]) * np.column_stack([np.cos(longitude), np.sin(longitude)]),
        "least relative stress": eq.MDS(stress="relative", random_state=0).fit_transform(globe),
    }
    figure = new_figure(figsize=(13, 12.5), dpi=90)
    for axes, (name, Y) in zip(figure.subplots(2, 2).ravel(), maps.items(), strict=True):
        found = eq.local_isometry(globe, Y, 8)
        print(f"{name}\n{found}\n")
        draw_tissot(axes, found, "area")
        axes.set_title(f"{name}\nanisotropy {np.median(found.anisotropy):.2f} at the median point", fontsize=12)
    figure.savefig(folder / "tissot.png")

    digits = eq.data.load("digits")
    Y = eq.TSNE(random_state=0).fit_transform(digits.X)
    found = eq.local_isometry(digits.X, Y)
    print(f"t-SNE of the digits\n{found}\n")
    found.plot("anisotropy", title="t-SNE of 1,797 digits").savefig(folder / "tissot_digits.png")
    names = [f"pixel {i // 8},{i % 8}" for i in range(64)]
    print("the ones:", eq.axis_loadings(digits.X, Y, np.asarray(digits.labels).astype(int) == 1, names=names), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
