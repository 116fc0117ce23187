"""Four points on a sphere that cannot be embedded in any flat space (Rodolà, "Non-embeddability of the sphere").

x₃ and x₄ are the poles, x₁ and x₂ lie a quarter turn apart on the equator; a quarter turn has length 1. The distances
satisfy all axioms of a metric. But d(x₃, x₁) + d(x₁, x₄) = 1 + 1 = d(x₃, x₄): in a flat space x₁ would be the midpoint
of x₃ and x₄, and so would x₂. Then x₁ = x₂, which contradicts d(x₁, x₂) = 1. More dimensions do not help.

Classical scaling shows the same: of the eigenvalues of −½ C D² C, whose square roots are the extents of the map along
its axes, one is negative. The figure shows the points on the sphere, and the map of least stress in the plane with the
dilation of every pair; with a third and a fourth dimension the stress is the same, and `embeddability` proves that no
map in any dimension has a smaller one.

Writes four_points.png to the folder given as argument, or to the current folder.
"""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.spaces import Sphere, check_metric, dilation, embeddability, is_isometry, summarize_distortion
from equipoise.views.style import COLORS, hide_axes, new_figure

RADIUS = 2 / np.pi  # a quarter of the equator has length 1
POINTS = RADIUS * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -1]])
NAMES = ("x₁", "x₂", "x₃", "x₄")


def main(folder):
    space = Sphere(POINTS, RADIUS)
    print(f"axioms of a metric: {check_metric(space)}")
    D = space.matrix()
    C = np.eye(4) - 1 / 4
    print("eigenvalues:", *(f"{value:.3f}" for value in np.linalg.eigvalsh(-C @ D**2 @ C / 2)))
    print(embeddability(space))
    maps = {}
    for dimension in (1, 2, 3, 4):
        Y = eq.MDS(n_components=dimension, metric="precomputed", random_state=0).fit_transform(D)
        maps[dimension] = Y
        found = summarize_distortion(space, Y)
        print(
            f"{dimension} dimensions: stress {found.stress:.3f}, dilation {found.dilation.min:.3f} to"
            f" {found.dilation.max:.3f}, isometry: {is_isometry(space, Y, tol=1e-3)}"
        )

    figure = new_figure(figsize=(10, 4.8), dpi=150)
    _draw_sphere(figure.add_subplot(1, 2, 1, projection="3d"))
    _draw_map(figure.add_subplot(1, 2, 2), maps[2], dilation(space, maps[2]))
    figure.savefig(folder / "four_points.png")


def _arc(p, q):
    t = np.linspace(0, np.pi / 2, 40)[:, None]
    return np.cos(t) * p + np.sin(t) * q


def _draw_sphere(axes):
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 60), np.linspace(0, np.pi, 30))
    ball = 0.985 * RADIUS * np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)])
    axes.computed_zorder = False  # draw everything on top of the sphere, x₄ included
    axes.set_proj_type("ortho")
    axes.plot_surface(*ball, color="#dcdce6", shade=False, alpha=1, linewidth=0, antialiased=False, zorder=0)
    for i, j in combinations(range(4), 2):
        if (i, j) != (2, 3):  # the poles are two quarter turns apart, through x₁ or through x₂
            axes.plot(*_arc(POINTS[i], POINTS[j]).T, color=COLORS[0], linewidth=2, zorder=1)
    for name, point in zip(NAMES, POINTS, strict=True):
        axes.scatter(*point, color=COLORS[2], s=45, depthshade=False, zorder=2)
        axes.text(*(1.18 * point), name, fontsize=13, ha="center", va="center", zorder=3)
    axes.view_init(12, 45)
    axes.set_box_aspect((1, 1, 1), zoom=1.4)
    axes.set_axis_off()
    axes.set_title("on the sphere: each of the five arcs has length 1")


def _draw_map(axes, Y, ratio):
    for i, j in combinations(range(4), 2):
        axes.plot(*Y[[i, j]].T, color=COLORS[0] if ratio[i, j] <= 1 else COLORS[4], linewidth=1.5, zorder=1)
        axes.text(
            *(0.35 * Y[i] + 0.65 * Y[j]),
            f"× {ratio[i, j]:.2f}",
            ha="center",
            va="center",
            backgroundcolor="white",
            fontsize=10,
        )
    axes.scatter(*Y.T, color=COLORS[2], s=45, zorder=2)
    for name, y in zip(NAMES, Y, strict=True):
        axes.text(*(y + 0.12 * y / np.linalg.norm(y)), name, fontsize=13, ha="center", va="center")
    axes.set_aspect("equal")
    axes.margins(0.15)
    hide_axes(axes)
    axes.set_title("in the plane, at least stress: dilation of each pair", pad=20)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
