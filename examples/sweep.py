"""Which perplexity? Maps at several values with their scores, two parameters at once, and t-SNE of toy shapes.

sweep.png shows 800 digits from perplexity 100 down to 3, each map starting from the previous one, with its scores
below; grid.png shows perplexity and exaggeration together. The advice is printed.

toys.png shows shapes with known structure, after Wattenberg, Viégas & Johnson 2016, and their maps. Sizes: of two
clusters, one ten times as wide as the other, the map shows equal widths. Distances: a cluster five times as far away
appears equally close. Noise: a single Gaussian appears evenly spread, and in clumps at perplexity 3; "spacing" is the
mean distance to the nearest point, divided by its value for uniformly random points: above 1 for evenly spread and
below 1 for clumped points (Clark & Evans 1954). Topology: a cluster inside another stays inside only at a large
perplexity, and linked rings or a knot are cut open.

Writes all three to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull, cKDTree

import equipoise as eq
from equipoise import data
from equipoise.views.small_map import class_colors, draw_map
from equipoise.views.style import COLORS, new_figure

SHAPES = ("two_sizes", "three_distances", "noise", "nested", "linked_rings", "trefoil")
PERPLEXITIES = (45, 15, 3)


def digits_at_several_values(folder):
    digits = data.load("digits")
    X, labels = digits.X[:800], digits.labels[:800]
    method = eq.TSNE()
    found = eq.sweep(method, X, {"perplexity": [100, 30, 10, 3]}, labels)
    print(found)
    found.figure(labels).savefig(folder / "sweep.png")
    found = eq.sweep(method, X[:400], {"exaggeration": [4, 1], "perplexity": [50, 15, 5]}, labels[:400])
    print(found)
    found.figure(labels[:400]).savefig(folder / "grid.png")


def toy_shapes(folder):
    figure = new_figure(figsize=(9, 12), dpi=120)
    grid = figure.subplots(len(SHAPES), 1 + len(PERPLEXITIES))
    for row, name in zip(grid, SHAPES, strict=True):
        shape = data.load(name)
        colors = COLORS[0] if shape.labels is None else class_colors(shape.labels)
        found = eq.sweep(eq.TSNE(), shape.X, {"perplexity": PERPLEXITIES})
        draw_map(row[0], shape.X, colors, f"{name}\n{describe(name, shape.X, shape)}")
        for axes, Y, perplexity in zip(row[1:], found.maps, PERPLEXITIES, strict=True):
            text = describe(name, Y, shape)
            print(f"{name:16s} perplexity {perplexity:2d}   {text}")
            draw_map(axes, Y, colors, f"perplexity {perplexity}\n{text}")
    figure.savefig(folder / "toys.png")


def describe(name, Y, shape):
    """Return the number that describes the shape, for the data or a map."""
    groups = [Y[shape.labels == label] for label in np.unique(shape.labels)] if shape.labels is not None else [Y]
    if name in ("two_sizes", "nested"):
        narrow, wide = (np.linalg.norm(group - group.mean(axis=0)) for group in groups)
        return f"widths 1 : {wide / narrow:.1f}"
    if name == "three_distances":
        a, b, c = (group.mean(axis=0) for group in groups)
        return f"distances 1 : {np.linalg.norm(c - b) / np.linalg.norm(b - a):.1f}"
    if name == "noise":
        return f"spacing {spacing(Y):.2f}" if Y.shape[1] == 2 else ""
    strands = groups if name == "linked_rings" else [Y]
    return f"cuts {sum(cuts(strand) for strand in strands)}"


def spacing(Y):
    """Return the mean distance to the nearest point over ½ (area/n)^½, its value for uniformly random points."""
    nearest = cKDTree(Y).query(Y, k=2)[0][:, 1].mean()
    return nearest / (0.5 * np.sqrt(ConvexHull(Y).volume / len(Y)))


def cuts(strand):
    """Return the number of cuts in a closed curve: steps more than eight times as long as the median."""
    steps = np.linalg.norm(np.roll(strand, -1, axis=0) - strand, axis=1)
    return int((steps > 8 * np.median(steps)).sum())


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
    digits_at_several_values(folder)
    toy_shapes(folder)
