"""Canonical forms: three poses of one horse, each reduced to a form without pose by its geodesic distances.

Distances along the surface of a horse are nearly the same in every pose. The canonical form places the vertices so that
straight distances approximate these as well as possible (metric MDS in three dimensions): the pose is gone, and the
legs, the neck and the tail stick straight out. Colours mark corresponding parts of the surface. The disagreement of two
shapes is the fraction of their variance left after the best shift, rotation, reflection and scaling (Procrustes); it is
smaller for the canonical forms (below) than for the poses (above). It does not vanish, because the poses are only
nearly isometric; their dilation is printed.

Writes canonical_forms.png to the folder given as argument, or to the current folder. Needs mesh_horse.npz, three poses
of the TOSCA shapes (Bronstein, Bronstein & Kimmel 2008), in the folder named by EQUIPOISE_DATA, ../shared/data by
default.
"""

import os
import sys
from pathlib import Path

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes

import equipoise as eq
from equipoise.spaces import MeshGeodesic, Restriction, summarize_distortion
from equipoise.views.isoline_drawing import draw_surface
from equipoise.views.style import new_figure

DATA = Path(os.environ.get("EQUIPOISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
POSES = ("horse0", "horse10", "horse15")
LANDMARKS = 100


def main(folder):
    with np.load(DATA / "mesh_horse.npz") as file:
        faces, chosen = file["faces"], [list(file["poses"]).index(pose) for pose in POSES]
        shapes = [np.asarray(file["vertices"][pose], np.float64) for pose in chosen]
    forms = [eq.canonical_form(shape, faces, n_landmarks=LANDMARKS, random_state=0) for shape in shapes]

    sample = np.linspace(0, len(shapes[0]) - 1, 50).astype(int)
    first = Restriction(MeshGeodesic(shapes[0], faces), sample)
    titles = []
    for name, shape, form in zip(POSES[1:], shapes[1:], forms[1:], strict=True):
        apart = procrustes(shapes[0], shape)[2], procrustes(forms[0], form)[2]
        found = summarize_distortion(first, Restriction(MeshGeodesic(shape, faces), sample))
        print(
            f"{POSES[0]} and {name}: disagreement of the shapes {apart[0]:.4f}, of their canonical forms {apart[1]:.4f}"
        )
        print(f"  geodesic dilation, 90 % of the pairs: {found.dilation.quantiles[0.05]:.2f}", end=" ")
        print(f"to {found.dilation.quantiles[0.95]:.2f}")
        titles.append(apart)

    figure = new_figure(figsize=(12, 7), dpi=130)
    paint = _paint(faces, shapes[0][:, 1])  # from tail to head
    rows = ((shapes, "pose", 0), ([_align(form, shapes[0]) for form in forms], "canonical form", 1))
    for line, (row, kind, which) in zip(figure.subplots(2, 3), rows, strict=True):
        for k, (axes, vertices) in enumerate(zip(line, row, strict=True)):
            draw_surface(axes, vertices @ VIEW, faces, paint)
            more = f"\ndisagreement with the first: {titles[k - 1][which]:.4f}" if k else "\n"
            axes.set_title(f"{kind} of {POSES[k]}{more}", fontsize=11)
    figure.savefig(folder / "canonical_forms.png")


# Columns: right, up, and towards the viewer, for shapes whose vertical axis is z and that face along y; 35° from the
# side.
TURN = np.deg2rad(35)
VIEW = np.array([[np.sin(TURN), 0, np.cos(TURN)], [np.cos(TURN), 0, -np.sin(TURN)], [0, 1, 0]])


def _align(form, target):
    """Return the form, centred and rotated to fit the target best (orthogonal Procrustes)."""
    form, target = form - form.mean(axis=0), target - target.mean(axis=0)
    return form @ orthogonal_procrustes(form, target)[0]


def _paint(faces, height):
    """Return a colour for each triangle by the height of its corners."""
    from matplotlib import colormaps

    level = (height[faces].mean(axis=1) - height.min()) / np.ptp(height)
    return colormaps["viridis"](level)[:, :3]


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
