"""A metric that learns which columns matter: three informative columns among twenty of noise.

Distances over all columns drown the three that tell the classes apart, so that the map mixes the classes.
`LearnedMetric` learns a weight for every column, either from the classes of the training rows (Goldberger et al. 2005)
or, without any labels, together with the map. The figure shows the map of the training rows for each, and the weights.
New rows, which had no part in the learning, are placed by `transform`; the error of their nearest neighbours in the map
is printed.

Writes learned_metric.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.views.style import COLORS, hide_axes, new_figure

INFORMATIVE, NOISE = 3, 20


def make_table(n, rng):
    """Return a table whose columns all have variance 1, and its classes."""
    labels = rng.integers(0, 3, n)
    X = rng.normal(size=(n, INFORMATIVE + NOISE))
    X[:, :INFORMATIVE] = (3 * np.eye(3)[labels] + 0.8 * X[:, :INFORMATIVE]) / np.sqrt(2 + 0.8**2)
    return X, labels


def nearest_error(Y, labels, Y_new, new_labels):
    """Return how often the fitted point nearest to a new point has another class."""
    nearest = ((Y_new[:, None] - Y) ** 2).sum(axis=2).argmin(axis=1)
    return (labels[nearest] != new_labels).mean()


def main(folder):
    rng = np.random.default_rng(0)
    (X, labels), (X_new, new_labels) = make_table(500, rng), make_table(300, rng)
    figure = new_figure(figsize=(12, 6.4), dpi=120)
    cases = {
        "Euclidean": (None, None),
        "learned with the map, no labels": (eq.LearnedMetric(), None),
        "learned from classes": (eq.LearnedMetric(), labels),
    }
    for (top, bottom), (name, (h, y)) in zip(figure.subplots(2, 3).T, cases.items(), strict=True):
        method = eq.TSNE(h=h, random_state=0).fit(X, y)
        weights = np.ones(X.shape[1]) if h is None else method.metric_tensor_.diagonal()
        error = nearest_error(method.embedding_, labels, method.transform(X_new), new_labels)
        print(f"{name:32s} 1-NN error of new rows {error:.1%}")
        top.scatter(*method.embedding_.T, s=5, c=[COLORS[label] for label in labels], linewidths=0)
        top.set_title(f"{name}\n1-NN error of new rows {error:.1%}")
        top.set_aspect("equal", adjustable="datalim")
        hide_axes(top)
        kinds = np.arange(X.shape[1]) < INFORMATIVE
        bottom.bar(np.arange(X.shape[1]), weights, color=np.where(kinds, "0.2", "0.7"))
        bottom.set(xlabel="column (the first three are informative)", ylabel="weight", ylim=(0, 5))
        bottom.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "learned_metric.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
