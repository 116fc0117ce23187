"""Any metric space as input: a mesh, a graph, a distance matrix and points on a sphere.

Every method takes a metric space in place of a table and asks it for distances; `transform` places new points of the
space. The figure shows four spaces, and a map of each below it, in the same colours:

- a rolled-up sheet, as a triangle mesh. t-SNE of its geodesic distances unrolls it; t-SNE of its coordinates mixes the
  turns of the roll. Rings are vertices that were left out of the fit and placed by `transform`.
- a maze, as a graph. t-SNE of path lengths: cells on both sides of a wall are far apart.
- sequences of letters, as a matrix of Hamming distances; they are the steps of mutations along the branches of a tree.
  UMAP finds the tree. Colours are branches, grey the inner ones.
- points on a sphere, with great-circle distances. Isomap needs three dimensions, with equal eigenvalues, and finds a
  sphere again, here turned to show the same side. In two dimensions it would project one half onto the other.

For the roll and the maze, the fraction of the 10 nearest neighbours along the surface or the paths that a map keeps is
printed.

Writes any_space.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

import equipoise as eq
from equipoise.evaluate import neighbor_recall, one_nn_error
from equipoise.procrustes import fit_similarity
from equipoise.spaces import GraphGeodesic, MeshGeodesic, Precomputed, Restriction, Sphere
from equipoise.views.isoline_drawing import draw_surface
from equipoise.views.style import COLORS, LIGHT, hide_axes, new_figure

INNER = ("0.15", "0.15", "0.6", "0.6", "0.6", "0.6")  # greys of the inner branches of the tree


def main(folder):
    figure = new_figure(figsize=(16, 8.4), dpi=85)
    above, below = figure.subplots(2, 4)
    rng = np.random.default_rng(0)
    for show, space_axes, map_axes in zip((_roll, _maze, _sequences, _globe), above, below, strict=True):
        show(space_axes, map_axes, rng)
        for axes in (space_axes, map_axes):
            hide_axes(axes)
    figure.savefig(folder / "any_space.png")


def _roll(space_axes, map_axes, rng):
    from matplotlib import colormaps

    vertices, faces, along = _rolled_sheet()
    mesh = MeshGeodesic(vertices, faces, "exact")
    order = rng.permutation(mesh.n)
    rest, kept = order[:30], np.sort(order[30:])
    tsne = eq.TSNE(perplexity=80, random_state=0).fit(Restriction(mesh, kept))
    Y, placed = tsne.embedding_, tsne.transform(rest)
    straight = eq.TSNE(perplexity=80, random_state=0).fit_transform(vertices[kept])
    D = mesh.distances(kept, kept)
    for name, found in (("geodesic distances", Y), ("coordinates", straight)):
        print(f"roll, t-SNE of {name}: neighbours kept {neighbor_recall(D, found, metric='precomputed'):.1%}")
    nearest = kept[((placed[:, None] - Y) ** 2).sum(axis=2).argmin(axis=1)]
    steps = mesh.distances(rest, nearest).diagonal()
    print(f"roll, new vertices: median distance to the nearest point of the map {np.median(steps):.2f}")
    paint = colormaps["viridis"](along[faces].mean(axis=1))[:, :3]
    turn, tilt = np.deg2rad(20), np.deg2rad(25)
    view = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    view = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]]) @ view
    draw_surface(space_axes, vertices @ view, faces, 0.25 + 0.75 * paint, [])
    space_axes.set_title("a mesh")
    map_axes.scatter(*Y.T, s=7, c=along[kept], cmap="viridis", linewidths=0)
    map_axes.scatter(*placed.T, s=34, facecolors="none", edgecolors=LIGHT.text, linewidths=1)
    _title(map_axes, "geodesic t-SNE; rings: new vertices")


def _rolled_sheet(rows=9, columns=66):
    """Return the vertices and faces of a tightly rolled sheet, and the position of vertices along it.

    The turns are 0.8 apart, closer than adjacent vertices.
    """
    a = np.sqrt(np.linspace(25.0**2, 39.0**2, columns))  # vertices at nearly equal distances
    angle, h = np.meshgrid(a, np.arange(float(rows)), indexing="ij")
    radius = 0.8 * angle / (2 * np.pi)
    vertices = np.stack([radius * np.cos(angle), h, radius * np.sin(angle)], axis=-1).reshape(-1, 3)
    number = np.arange(columns * rows).reshape(columns, rows)
    p, q, r, s = (part.ravel() for part in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    along = np.repeat(np.linspace(0, 1, columns), rows)
    return vertices, np.concatenate([np.column_stack([p, q, r]), np.column_stack([p, r, s])]), along


def _maze(space_axes, map_axes, rng):
    from matplotlib.collections import LineCollection

    side = 22
    graph, places = _random_maze(side, rng)
    space = GraphGeodesic(graph)
    steps = space.distances([0])[0]
    Y = eq.TSNE(perplexity=12, random_state=0).fit_transform(space)
    print(
        f"maze, t-SNE of path lengths: neighbours kept {neighbor_recall(space.matrix(), Y, metric='precomputed'):.1%}"
    )
    ways = np.column_stack(graph.nonzero())
    for axes, at, width in ((space_axes, places, 5), (map_axes, Y, 1)):
        colors = LIGHT.missing if at is Y else [_viridis(steps[i] / steps.max()) for i, _ in ways]
        axes.add_collection(LineCollection(at[ways], colors=colors, linewidths=width, capstyle="round", zorder=0))
        axes.autoscale_view()
        axes.set_aspect("equal")
    map_axes.scatter(*Y.T, s=14, c=steps, cmap="viridis", linewidths=0)
    space_axes.set_title("a graph")
    _title(map_axes, "t-SNE of path lengths")


def _random_maze(side, rng):
    """Return the graph of a maze of side × side cells, a random spanning tree of the grid, and its cells (n, 2)."""
    cells = np.arange(side * side).reshape(side, side)
    i = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    j = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    grid = sparse.csr_matrix((1 + rng.random(len(i)), (i, j)), shape=(side**2, side**2))
    tree = sparse.csgraph.minimum_spanning_tree(grid)
    tree.data[:] = 1.0
    return sparse.csr_matrix(tree), np.column_stack([cells.ravel() % side, cells.ravel() // side])


def _sequences(space_axes, map_axes, rng):
    from matplotlib.colors import to_rgb

    sequences, branch = _grown_tree(rng)
    D = (sequences[:, None] != sequences).mean(axis=2)
    umap = eq.UMAP(random_state=0).fit(Precomputed(D))
    paint = np.array([to_rgb(color) for color in (*INNER, *COLORS[:8])])[branch]
    strips = np.ones((len(D), 24, 3))
    strips[:, :16] = paint[:, None]
    gray = np.repeat(1 - D[:, :, None] / D.max(), 3, axis=2)
    space_axes.imshow(np.hstack([strips, gray]), interpolation="nearest")
    space_axes.set_title("a matrix of distances between sequences")
    map_axes.scatter(*umap.embedding_.T, s=12, c=paint, linewidths=0)
    _title(map_axes, "UMAP of these distances")
    error = one_nn_error(umap.embedding_, branch)
    print(f"sequences, UMAP: 1-NN branch error {float(error):.1%}")


def _grown_tree(rng, letters=300, rate=0.03, lengths=(20, 25, 35)):
    """Return the sequences of a binary tree of mutations with eight leaves, and their branches.

    Along a branch each sequence is the one before with some letters replaced. Branches 0 to 5 are the inner ones, and 6
    to 13 those of the leaves.
    """
    sequences, branches = [], []

    def grow(sequence, depth, number):
        for child in (2 * number, 2 * number + 1):
            last = sequence
            for _ in range(lengths[depth]):
                last = np.where(rng.random(letters) < rate, rng.integers(4, size=letters), last)
                sequences.append(last)
                branches.append(2 ** (depth + 1) - 2 + child)
            if depth + 1 < len(lengths):
                grow(last, depth + 1, child)

    grow(rng.integers(4, size=letters), 0, 0)
    return np.array(sequences), np.array(branches)


def _globe(space_axes, map_axes, rng):
    k = np.arange(1200) + 0.5
    z, turn = 1 - 2 * k / len(k), np.pi * (1 + 5**0.5) * k
    U = np.column_stack([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z])
    isomap = eq.Isomap(3, n_neighbors=10).fit(Sphere(U))
    Y, values = isomap.embedding_, isomap.eigenvalues_
    colors = (U + 1) / 2  # red, green and blue are the three coordinates
    seen = U[:, 1] < 0
    space_axes.scatter(U[seen, 0], U[seen, 2], s=22, c=colors[seen], linewidths=0)
    turned = fit_similarity(Y, U)(Y)
    near = turned[:, 1] < 0
    map_axes.scatter(turned[near, 0], turned[near, 2], s=22, c=colors[near], linewidths=0)
    _title(space_axes, "points on a sphere")
    _title(map_axes, "Isomap of great-circle distances, in 3-D")
    radius = np.linalg.norm(Y, axis=1)
    print(
        f"sphere, Isomap: radius {radius.min():.2f} to {radius.max():.2f}, eigenvalue ratio {values[2] / values[0]:.3f}"
    )


def _title(axes, text):
    axes.set_title(text)
    axes.set_aspect("equal", adjustable="datalim")


def _viridis(value):
    from matplotlib import colormaps

    return colormaps["viridis"](value)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
