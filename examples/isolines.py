"""Isolines of geodesic distance: on a surface, on a graph, and on two maps of the same data.

Each isoline joins points at the same distance from a reference point (Rodolà, "Geodesic isolines"). On a surface they
are the wave fronts that spread from the point; on a torus they meet again on the far side, with a kink where two
shortest paths end. In a neighbour graph they are points on its edges; the fronts go through the door between two
rooms. On a map they show what the map does to the distances of the data: in the Isomap map of a Swiss roll the isolines
of geodesic distance are nearly round and evenly spaced, in its t-SNE map they are bent and torn, and their spacing
varies. The spacing is printed: the distance between neighbouring isolines in the map along the steepest direction,
90 % quantile over 10 % quantile.

Writes isolines.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

import equipoise as eq
from equipoise.spaces import GraphGeodesic, MeshGeodesic, isolines
from equipoise.views.isoline_drawing import draw_crossings, draw_surface
from equipoise.views.style import LIGHT, hide_axes, new_figure

POINTS, LEVELS = 1500, 12


def main(folder):
    figure = new_figure(figsize=(12, 10), dpi=85)
    (mesh, graph), maps = figure.subplots(2, 2)
    _draw_torus(mesh)
    _draw_rooms(graph)
    X, source = _swiss_roll(np.random.default_rng(0))
    space = GraphGeodesic.from_table(X, 8)
    values = space.distances([source])[0]
    methods = {"Isomap": eq.Isomap(n_neighbors=8), "t-SNE": eq.TSNE(perplexity=40, random_state=0)}
    for axes, (name, method) in zip(maps, methods.items(), strict=True):
        Y = method.fit_transform(X)
        lines = isolines(space, source, LEVELS, Y=Y)
        eq.plot(Y, values, ax=axes, isolines=lines, title=f"{name} map of a Swiss roll")
        axes.plot(*Y[source], "*", color=LIGHT.colors[2], markersize=14, zorder=5)
        print(f"{name}: spacing {_spacing_ratio(lines):.1f}")
    figure.savefig(folder / "isolines.png")


def _torus(rows=60, columns=120):
    """Return the vertices and triangles of a torus."""
    u, v = np.meshgrid(np.arange(columns) * 2 * np.pi / columns, np.arange(rows) * 2 * np.pi / rows)
    ring = 2 + 0.9 * np.cos(v)
    vertices = np.stack([ring * np.cos(u), ring * np.sin(u), 0.9 * np.sin(v)], axis=-1)
    number = np.arange(rows * columns).reshape(rows, columns)
    right, up = np.roll(number, -1, axis=1), np.roll(number, -1, axis=0)
    both = np.roll(up, -1, axis=1)
    faces = np.concatenate([np.stack([number, right, both], -1), np.stack([number, both, up], -1)]).reshape(-1, 3)
    return vertices.reshape(-1, 3), faces


def _draw_torus(axes):
    from matplotlib import colormaps

    vertices, faces = _torus()
    source = int((vertices @ [0.6, -1, 0.9]).argmax())
    found = isolines(MeshGeodesic(vertices, faces, "exact"), source, 24)
    tilt = np.deg2rad(50)
    view = np.array([[1, 0, 0], [0, np.sin(tilt), -np.cos(tilt)], [0, np.cos(tilt), np.sin(tilt)]])
    paint = colormaps["viridis"](found.values[faces].mean(axis=1) / found.values.max())[:, :3]
    lines = [line @ view for level in found.lines for line in level]
    draw_surface(axes, vertices @ view, faces, 0.45 + 0.55 * paint, lines)
    axes.plot(*(vertices[source] @ view)[:2], "*", color=LIGHT.colors[2], markersize=14, zorder=5)
    axes.set_title("a torus: 24 levels of exact geodesic distance")
    closed = sum(np.array_equal(line[0], line[-1]) for level in found.lines for line in level)
    print(f"torus: {sum(map(len, found.lines))} lines, of which {closed} are closed")


def _draw_rooms(axes):
    from matplotlib.collections import LineCollection

    rng = np.random.default_rng(1)
    X = rng.uniform((0, 0), (2, 1.6), size=(2600, 2))
    X = X[(np.abs(X[:, 0] - 1) > 0.06) | (np.abs(X[:, 1] - 1.2) < 0.15)]  # a wall with a door
    X = _spread(X, 0.028)
    space = GraphGeodesic.from_table(X, 8)
    source = int(((X - [0.3, 0.35]) ** 2).sum(axis=1).argmin())
    found = isolines(space, source, LEVELS)
    edges = space.graph.tocoo()
    axes.add_collection(LineCollection(X[np.stack([edges.row, edges.col], 1)], colors="#dddddd", linewidths=0.5))
    draw_crossings(axes, found.crossings(X), found.level, found.levels)
    axes.plot(*X[source], "*", color=LIGHT.colors[2], markersize=14, zorder=5)
    axes.set_aspect("equal")
    axes.margins(0.02)
    hide_axes(axes)
    axes.set_title(f"a neighbour graph of two rooms: {LEVELS} levels, crossings on edges")
    print(f"rooms: {len(found.t):,} crossings")


def _spread(X, gap):
    """Return the rows of X, without those closer than `gap` to a row before."""
    keep = np.ones(len(X), bool)
    for i, j in sorted(cKDTree(X).query_pairs(gap)):
        keep[j] &= ~keep[i]
    return X[keep]


def _swiss_roll(rng):
    turn, height = np.pi * (1.5 + 2 * np.sqrt(rng.uniform(0.1, 1, POINTS))), rng.uniform(0, 25, POINTS)
    X = np.column_stack([turn * np.cos(turn), height, turn * np.sin(turn)])
    middle = (turn - np.median(turn)) ** 2 + (height - 12.5) ** 2 / 25
    return X, int(middle.argmin())


def _spacing_ratio(found):
    """Return how unevenly isolines are spaced: 90 % over 10 % quantile of 1/|gradient| over the triangles."""
    a, b, c = (found.positions[found.triangles[:, k]] for k in range(3))
    va, vb, vc = (found.values[found.triangles[:, k]] for k in range(3))
    sides = np.stack([b - a, c - a], axis=1)
    flat = np.abs(np.linalg.det(sides)) > 1e-9 * np.square(sides).sum(axis=(1, 2))
    slope = np.linalg.solve(sides[flat], np.stack([vb - va, vc - va], axis=1)[flat][:, :, None])[:, :, 0]
    low, high = np.quantile(1 / np.maximum(np.linalg.norm(slope, axis=1), 1e-12), (0.1, 0.9))
    return high / low


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
