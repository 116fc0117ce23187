"""Maps in other geometries: data with two periods on a flat torus, and a tree in the hyperbolic plane.

A torus of data, given by the cosines and sines of two angles, has to be cut open in the plane; on a torus, t-SNE
places it without a cut. A tree that doubles with every level runs out of room in the plane: symmetric SNE folds its
branches. In the hyperbolic plane the room grows as fast as the tree; lines are geodesics.

Writes torus.png and tree.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle, Rectangle
from scipy import sparse

import equipoise as eq
from equipoise import spaces
from equipoise.views.style import hide_axes, new_figure

LEVELS = 8


def torus_data(n, rng):
    """Return angles (n, 2) and their cosines and sines (n, 4)."""
    angles = rng.uniform(0, 2 * np.pi, (n, 2))
    return angles, np.hstack([np.cos(angles), np.sin(angles)])


def binary_tree(levels):
    """Return the parent of every node but the root of a complete binary tree, and the level of every node."""
    child = np.arange(1, 2**levels - 1)
    return (child - 1) // 2, np.log2(np.arange(1, 2**levels)).astype(int)


def kept(D, geometry, Y, k=10):
    """Return the fraction of the k nearest points in the data that are among the k nearest on the map."""
    E = geometry.distance(Y[:, None], Y[None])
    nearest = [np.argsort(A + np.diag(np.full(len(A), np.inf)), axis=1)[:, :k] for A in (D, E)]
    return np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(*nearest, strict=True)])


def draw_torus(folder):
    angles, X = torus_data(1000, np.random.default_rng(0))
    figure = new_figure(figsize=(10, 5.7), dpi=150)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    for axes, geometry in zip(figure.subplots(1, 2), ("plane", eq.geometry.Torus(45.0)), strict=True):
        method = eq.TSNE(geometry=geometry, init="random", n_iter=1000, random_state=0).fit(X)
        Y = method.embedding_
        axes.scatter(*Y.T, s=9, c=angles[:, 0], cmap="twilight", linewidths=0)
        name = "plane" if geometry == "plane" else "torus"
        print(f"torus of data, {name:10} KL {method.loss_:.3f}, neighbours kept {kept(D, method.geometry_, Y):.1%}")
        if name == "torus":
            axes.add_patch(Rectangle((0, 0), 45, 45, facecolor="none", edgecolor="#c0c0c0"))
        axes.set_title("two periods in the plane" if name == "plane" else "on a flat torus: opposite sides meet")
        axes.set_aspect("equal")
        hide_axes(axes)
    figure.savefig(folder / "torus.png")


def draw_tree(folder):
    parents, levels = binary_tree(LEVELS)
    children = np.arange(1, len(levels))
    graph = sparse.coo_matrix((np.ones(len(parents)), (parents, children)), shape=(len(levels),) * 2).tocsr()
    space = spaces.GraphGeodesic(graph + graph.T)
    D = space.matrix()
    figure = new_figure(figsize=(10, 5.7), dpi=150)
    for axes, geometry in zip(figure.subplots(1, 2), ("plane", eq.geometry.Hyperbolic(0.5)), strict=True):
        method = eq.SymmetricSNE(geometry=geometry, perplexity=60, n_iter=1000, random_state=0).fit(space)
        Y, name = method.embedding_, "plane" if geometry == "plane" else "hyperbolic plane"
        print(f"tree, {name:17} KL {method.loss_:.3f}, neighbours kept {kept(D, method.geometry_, Y):.1%}")
        paths = [method.geometry_.geodesic(Y[i], Y[j]) for i, j in zip(parents, children, strict=True)]
        axes.add_collection(LineCollection(paths, colors="#a0a0a0", linewidths=0.6))
        if name != "plane":
            axes.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor="#c0c0c0"))
        axes.scatter(*Y.T, s=12, c=levels, cmap="viridis", linewidths=0, zorder=2)
        axes.set_title(f"a tree of {LEVELS} levels in the {name}")
        axes.set_aspect("equal")
        hide_axes(axes)
    figure.savefig(folder / "tree.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
    draw_torus(target)
    draw_tree(target)
