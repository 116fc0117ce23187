"""The cartographer's problem: a sphere cannot be mapped to the plane without distortion (Rodolà).

The data are 800 points spread evenly over the globe, with their great-circle distances. Five flat maps are compared:
four projections that cartographers use, and the map of least stress, `MDS` of the distances. Every map is scaled to
minimise its stress. The figure shows the triangles between the points, their edges coloured by how much the map
stretches (red) or shrinks (blue) them; edges stretched to more than three times their length are omitted. A sphere must
be cut or folded to lie flat. The projections cut it, along a meridian or at a pole, and separate neighbours there. The
map of least stress folds it: the two halves of the globe lie on top of each other, so that points on opposite sides
coincide, and the stress is lowest.

Writes cartographer.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.spatial import ConvexHull

import equipoise as eq
from equipoise.spaces import Sphere, dilation, summarize_distortion
from equipoise.views.style import COLORS, hide_axes, new_figure

N = 800
TORN = 3.0


def even_points(n):
    """Return points (n, 3) on a golden spiral (Fibonacci lattice): none at a pole, none on the cut."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    r = np.sqrt(1 - z**2)
    return np.column_stack([r * np.cos(turn), r * np.sin(turn), z])


def projections(X):
    longitude, latitude = np.arctan2(X[:, 1], X[:, 0]), np.arcsin(X[:, 2])
    around = np.column_stack([np.cos(longitude), np.sin(longitude)])
    colatitude = np.pi / 2 - latitude
    return {
        "equirectangular": np.column_stack([longitude, latitude]),
        "Mercator": np.column_stack([longitude, np.arctanh(X[:, 2])]),
        "azimuthal equidistant": colatitude[:, None] * around,
        "azimuthal equal-area": 2 * np.sin(colatitude / 2)[:, None] * around,
    }


def scale_to_fit(D, Y):
    """Return Y scaled to minimise its stress against the distances D: d Σ (s d_Y − d_X)² / ds = 0."""
    own = np.linalg.norm(Y[:, None] - Y[None], axis=2)
    return Y * (D * own).sum() / (own**2).sum()


def main(folder):
    X = even_points(N)
    globe = Sphere(X)
    D = globe.matrix()
    maps = {name: scale_to_fit(D, Y) for name, Y in projections(X).items()}
    maps["least stress (MDS)"] = eq.MDS(n_components=2, metric="precomputed", random_state=0).fit_transform(D)

    faces = ConvexHull(X).simplices
    edges = np.unique(np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1), axis=0)
    figure = new_figure(figsize=(12, 7.8), dpi=90)
    *panels, last = figure.subplots(2, 3).ravel()
    share = np.linspace(0, 1, N * (N - 1) // 2)
    for color, axes, (name, Y) in zip(COLORS, panels, maps.items(), strict=False):
        found = summarize_distortion(globe, Y)
        print(f"{name:22s} stress {2 * found.stress / (D**2).sum():.3f}, {found}")
        ratio = dilation(globe, Y)
        drawn = _draw(axes, Y, edges, ratio[edges[:, 0], edges[:, 1]])
        axes.set_title(f"{name}\nabsolute distortion {found.absolute.mean:.2f} on average", fontsize=11)
        last.plot(share, np.sort(ratio[np.triu_indices(N, 1)]), color=color, linewidth=1.8, label=name)
    figure.colorbar(drawn, ax=panels, location="bottom", shrink=0.5, aspect=40, label="dilation of an edge").set_ticks(
        np.log([1 / 3, 1 / 2, 1, 2, 3]), labels=["1/3", "1/2", "1", "2", "3"]
    )
    last.axhline(1, color="black", linewidth=0.8)
    last.set_yscale("log")
    last.set_ylim(0.2, 5)
    last.set_yticks([0.25, 0.5, 1, 2, 4], labels=["1/4", "1/2", "1", "2", "4"], minor=False)
    last.set_yticks([], minor=True)
    last.set_xlabel("share of the pairs")
    last.set_title("dilation of all pairs, in order", fontsize=11)
    last.spines[["top", "right"]].set_visible(False)
    last.legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(folder / "cartographer.png")


def _draw(axes, Y, edges, ratio):
    from matplotlib.collections import LineCollection

    kept = ratio <= TORN
    lines = LineCollection(Y[edges[kept]], array=np.log(ratio[kept]), cmap="coolwarm", linewidths=1.2)
    lines.set_clim(-np.log(TORN), np.log(TORN))
    axes.add_collection(lines)
    axes.set_aspect("equal")
    axes.autoscale()
    hide_axes(axes)
    return lines


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
