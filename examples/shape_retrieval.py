"""Shape retrieval: eleven poses of three animals, compared by their canonical forms and, for contrast, as they stand.

Two poses of an animal differ in space, but hardly in their geodesic distances, so their canonical forms agree. Each
shape is represented by 100 points, and two shapes are compared by the Gromov-Wasserstein distance of their points,
which needs no correspondence between them and is the same for rotated and reflected shapes; all shapes are scaled to
the same size. Each shape in turn is the query; the nearest other shape should be the same animal. Printed are the
fraction of queries for which it is, and the first tier: how many of the c − 1 nearest are the same animal, for an
animal with c poses.

Writes shape_retrieval.png to the folder given as argument, or to the current folder. Needs mesh_wolf.npz, mesh_cat.npz
and mesh_horse.npz, poses of the TOSCA shapes (Bronstein, Bronstein & Kimmel 2008), in the folder named by
EQUIPOISE_DATA, ../shared/data by default.
"""

import os
import sys
from pathlib import Path

import numpy as np

from equipoise.canonical import cloud_distances, distance_matrix, retrieve
from equipoise.views.style import hide_axes, new_figure

DATA = Path(os.environ.get("EQUIPOISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
ANIMALS = ("wolf", "cat", "horse")


def main(folder):
    shapes, names, labels = [], [], []
    for animal in ANIMALS:
        with np.load(DATA / f"mesh_{animal}.npz") as file:
            shapes += [(np.asarray(vertices, np.float64), file["faces"]) for vertices in file["vertices"]]
            names += file["poses"].tolist()
            labels += [animal] * len(file["poses"])

    found = {
        "vertices in space": cloud_distances([vertices for vertices, _ in shapes]),
        "canonical forms": distance_matrix(shapes),
    }
    figure = new_figure(figsize=(12, 7.4), dpi=110)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1, 3))
    for axes, (vertices, _), name in zip(top.subplots(1, len(shapes)), shapes, names, strict=True):
        _draw_shape(axes, vertices)
        axes.set_title(name, fontsize=9)
    for axes, (kind, D) in zip(bottom.subplots(1, 2), found.items(), strict=True):
        scores = retrieve(D, labels)
        print(f"{kind}: nearest is the same animal {scores.accuracy:.3f}, first tier {scores.first_tier:.3f}")
        _draw_distances(axes, D, names, scores.nearest, labels)
        axes.set_title(f"{kind}: {scores.accuracy:.0%} of the nearest are the same animal")
    figure.savefig(folder / "shape_retrieval.png")


def _draw_shape(axes, vertices):
    """Draw the vertices from the side, the nearest on top and darkest."""
    turn = np.deg2rad(35)
    right = np.sin(turn) * vertices[:, 0] + np.cos(turn) * vertices[:, 1]
    depth = np.cos(turn) * vertices[:, 0] - np.sin(turn) * vertices[:, 1]
    order = np.argsort(depth)
    axes.scatter(right[order], vertices[order, 2], c=-depth[order], cmap="Blues_r", s=0.4, linewidths=0)
    axes.set_aspect("equal")
    hide_axes(axes)


def _draw_distances(axes, D, names, nearest, labels):
    """Draw a matrix of distances, and mark the nearest shape of each row: a dot if right, a cross if wrong."""
    image = axes.imshow(np.where(np.eye(len(D), dtype=bool), np.nan, D), cmap="viridis")
    axes.figure.colorbar(image, ax=axes, shrink=0.75, label="Gromov-Wasserstein distance")
    for row, column in enumerate(nearest):
        right = labels[row] == labels[column]
        axes.plot(
            column, row, "o" if right else "x", color="white" if right else "red", markersize=7, markeredgewidth=2
        )
    axes.set_xticks(range(len(D)), names, rotation=60, ha="right")
    axes.set_yticks(range(len(D)), names)
    axes.tick_params(length=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
