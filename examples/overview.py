"""The first picture of the README: one data set by its classes, its images and its trust, and a map that is not flat.

From left to right: t-SNE of the 1,797 handwritten digits, with the name of each class; some of the images that the
points stand for; the same map, blue where the neighbours of a point are its neighbours in the data and red where they
are not; and a tree of 364 noisy nodes in the hyperbolic plane, which has room for its leaves. The trustworthiness of
both maps is printed.

Writes overview.png to the folder given as argument, or to the current folder.
EQUIPOISE_QUICK=1 uses 200 digits, for the test.
"""

import os
import sys
from pathlib import Path

from geometries import noisy_tree, save

import equipoise as eq
from equipoise import data
from equipoise.views.style import hide_axes, new_figure

QUICK = os.environ.get("EQUIPOISE_QUICK") == "1"


def draw_trust(axes, Y, trust):
    """Draw a map, each point coloured by the trustworthiness of its neighbours."""
    axes.scatter(*Y.T, c=trust, s=3, cmap="RdYlBu", vmin=0.85, vmax=1, linewidths=0)
    axes.set_aspect("equal", adjustable="datalim")
    hide_axes(axes)
    axes.set_title("can it be trusted?")


def main(folder):
    digits = data.load("digits")
    n = 200 if QUICK else len(digits.X)
    X, labels = digits.X[:n], digits.labels[:n]
    method = eq.TSNE(random_state=0).fit(X)
    tree, branch, edges = noisy_tree()
    disk = eq.TSNE(perplexity=15, geometry="hyperbolic", engine="exact", random_state=0).fit(tree)

    images = X.reshape(n, 8, 8) / 16
    figure = new_figure(figsize=(16, 4.4), dpi=100)
    first, second, third, fourth = figure.subplots(1, 4)
    eq.plot(method, labels, names=digits.classes, ax=first, size=3, title=f"t-SNE of {n:,} digits")
    eq.plot(method, labels, names=digits.classes, ax=second, images=images, title="what the points are")
    report = eq.evaluate(X, method, labels)
    draw_trust(third, method.embedding_, report.trust)
    eq.plot(disk, branch, ax=fourth, size=3, edges=edges, title="a tree")
    save(figure, folder / "overview.png")
    print(f"digits trustworthiness {report.trustworthiness:.3f}")
    print(f"tree trustworthiness {eq.evaluate(tree, disk).trustworthiness:.3f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
