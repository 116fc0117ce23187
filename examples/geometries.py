"""Data that do not fit in the plane: two angles on a torus, a tree in the hyperbolic plane, directions on a sphere.

Each figure compares the map in the plane with the map in the space of the data, and prints the share of the 15 nearest
neighbours that both keep, and the rank correlation of all distances. Distances in the maps are those of their spaces.

- Two independent angles, measured by 20 sensors: the plane must cut the torus open, or fold it.
- A tree with three branches at each node, with noise: the hyperbolic plane has room for exponentially many leaves.
- Directions, measured by 60 sensors, each of which responds to a preferred direction: the plane must tear the sphere.

The sizes of the torus and of the sphere are chosen so that the map closes up: with "auto" there is more room than these
data need, the map is a patch, and it is as good as in the plane. The initial map on the sphere surrounds it
(`Directions`), and weak early exaggeration does not fold it. Two more lines are printed for maps of other sizes: the
tree at a smaller radius, and the directions at the radius "auto".

Writes geometry_torus.png, geometry_hyperbolic.png and geometry_sphere.png to the folder given as argument, or to the
current folder.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import equipoise as eq
from equipoise.geometry import Directions, Hyperbolic, Sphere, Torus
from equipoise.views.style import new_figure


def two_angles(n=700):
    """Return data (n, 20) that depend on two angles, and the first angle as one of eight sectors."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 2 * np.pi, (2, n))
    basis = np.linalg.qr(rng.normal(size=(20, 4)))[0].T
    X = np.column_stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)]) @ basis + rng.normal(0, 0.02, (n, 20))
    return X, np.array([f"{45 * sector}°" for sector in (4 * a / np.pi).astype(int)])


def noisy_tree(depth=5, branches=3, dimension=60):
    """Return the nodes of a tree (n, dimension), their branches at the root, and the edges (n − 1, 2)."""
    rng = np.random.default_rng(0)
    X, branch, edges, level = [np.zeros(dimension)], ["root"], [], [0]
    for _ in range(depth):
        children = []
        for parent in level:
            for _ in range(branches):
                child = len(X)
                X.append(X[parent] + rng.normal(0, 1 / np.sqrt(dimension), dimension))
                branch.append(f"branch {child}" if parent == 0 else branch[parent])
                edges.append((parent, child))
                children.append(child)
        level = children
    return np.array(X), np.array(branch), np.array(edges)


def directions(n=700, sensors=60):
    """Return responses (n, sensors) to random directions, and the hemisphere and quarter of each direction."""
    rng = np.random.default_rng(0)
    preferred, u = _unit_vectors(rng, sensors), _unit_vectors(rng, n)
    X = np.exp(2 * (u @ preferred.T - 1)) + rng.normal(0, 0.01, (n, sensors))
    quarter = 90 * (np.arctan2(u[:, 1], u[:, 0]) // (np.pi / 2)).astype(int) % 360 + 45
    return X, np.array([f"{'N' if z > 0 else 'S'} {q}°" for z, q in zip(u[:, 2], quarter, strict=True)])


def _unit_vectors(rng, n):
    v = rng.normal(size=(n, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def best_fit(method, X, starts):
    """Return the fit with the lowest loss of `starts` random seeds: on a torus, more runs end in a folded map."""
    fits = [eq.TSNE(**{**method.get_params(), "random_state": seed}).fit(X) for seed in range(starts)]
    return min(fits, key=lambda fit: fit.loss_)


def judge(X, fit, name):
    """Print how faithful a map of X is."""
    report = eq.evaluate(X, fit)
    print(f"{name:26}  neighbours kept {report.recall:.1%}, distances {report.shepard.correlation:.2f}")


def compare(X, color, method, names, starts=1, edges=None):
    """Draw maps of X in the plane and in the space of `method`, and print how faithful they are."""
    figure = new_figure(figsize=(9, 5), dpi=110)
    flat = eq.TSNE(**{**method.get_params(), "geometry": "plane"})
    for i, (one, name) in enumerate(zip((flat, method), names, strict=True)):
        fit = best_fit(one, X, starts)
        judge(X, fit, name)
        projection = "mollweide" if isinstance(one.geometry, Sphere) else None
        axes = figure.add_subplot(1, 2, i + 1, projection=projection)
        eq.plot(fit, color, ax=axes, title=name, size=3, edges=edges)
    return figure


def save(figure, path):
    """Write a figure as a PNG file with a palette of 64 colours, which is about a third as large."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    Image.fromarray(np.ascontiguousarray(pixels)).quantize(64).save(path, optimize=True)


def main(folder):
    X, sector = two_angles()
    torus = eq.TSNE(perplexity=100, init="random", early_exaggeration=4, geometry=Torus(24.0))
    save(compare(X, sector, torus, ("two angles, plane", "two angles, torus"), starts=5), folder / "geometry_torus.png")
    X, branch, edges = noisy_tree()
    disk = eq.TSNE(perplexity=15, geometry=Hyperbolic(), engine="exact")
    figure = compare(X, branch, disk, ("tree, plane", "tree, hyperbolic plane"), edges=edges)
    save(figure, folder / "geometry_hyperbolic.png")
    judge(X, eq.TSNE(perplexity=15, geometry=Hyperbolic(3.0), engine="exact", random_state=0).fit(X), "tree, radius 3")
    X, part = directions()
    globe = eq.TSNE(perplexity=100, early_exaggeration=4, geometry=Directions(8.0))
    save(compare(X, part, globe, ("directions, plane", "directions, sphere")), folder / "geometry_sphere.png")
    judge(X, eq.TSNE(perplexity=100, geometry="sphere", random_state=0).fit(X), 'directions, radius "auto"')


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
