"""Affinities without a perplexity: one width for all points, an own function p(d), and random walks between landmarks.

A perplexity gives every point a width of its own. With one width σ for all points, `FixedWidth(sigma)`, dense parts of
the data have many neighbours and sparse parts few: with a small σ, nothing attracts the points in sparse parts (their
number is printed), and repulsion spreads them evenly; with a large σ the groups are loose. Any decreasing function p(d)
works in the same way, here exp(−d/4). Random walks use all 1,797 digits to find how close 300 landmarks are, map these,
and place the others by the landmarks they meet first.

Writes input_kernels.png to the folder given as argument, or to the current folder.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.affinities import FixedWidth, random_walk
from equipoise.evaluate import one_nn_error
from equipoise.views.style import new_figure


def main(folder):
    digits = data.load("digits")
    X, labels = digits.X[:700], digits.labels[:700]
    figure = new_figure(figsize=(15, 9.6), dpi=85)
    axes = iter(figure.subplots(2, 3).ravel())
    affinities = {
        "perplexity 30": "gaussian",
        "one width, σ = 3": FixedWidth(3.0),
        "one width, σ = 6": FixedWidth(6.0),
        "one width, σ = 12": FixedWidth(12.0),
        "p(d) = exp(−d/4)": lambda d: np.exp(-d / 4),
    }
    for title, affinity in affinities.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # points without affinity to others, which the figure shows
            tsne = eq.TSNE(affinity=affinity, engine="exact", random_state=0).fit(X)
        P, Y = tsne.affinities_, tsne.embedding_
        alone = int((P.sum(axis=1) < 1e-3 / len(X)).sum())
        print(f"{title}: 1-NN error {one_nn_error(Y, labels):.1%}, points without neighbours {alone}")
        _draw(next(axes), Y, labels, digits.classes, title)
    walk = random_walk(digits.X, 300)
    Y = walk.embed(eq.TSNE(affinity="precomputed", random_state=0))
    print(f"random walks between {len(walk.landmarks)} landmarks: 1-NN error {one_nn_error(Y, digits.labels):.1%}")
    last = next(axes)
    _draw(last, Y, digits.labels, digits.classes, "random walks between 300 landmarks (rings)")
    last.scatter(*Y[walk.landmarks].T, s=16, facecolors="none", edgecolors="#1d2230", linewidths=0.5)
    figure.savefig(folder / "input_kernels.png")


def _draw(axes, Y, labels, classes, title):
    """Draw a map in the frame of its inner 98 %, so that points that left it do not shrink the others."""
    eq.plot(Y, labels, names=classes, ax=axes, title=title)
    center = np.median(Y, axis=0)
    reach = 1.1 * np.quantile(np.abs(Y - center).max(axis=1), 0.98)
    axes.set_xlim(center[0] - reach, center[0] + reach)
    axes.set_ylim(center[1] - reach, center[1] + reach)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
