"""The pictures of the README: digits.png, family.png and forces.png.

digits.png is t-SNE of the 1,797 digits, the map that `equipoise embed digits` makes. family.png shows 400 of the digits
by six methods, with the share of the ten nearest neighbours that each map keeps. forces.png shows force laws.

Writes all three to the folder given as argument, or to the current folder: `readme_pictures.py docs/images`.
EQUIPOISE_QUICK=1 uses 120 digits for every map, for the test.
"""

import os
import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.evaluate import neighbor_recall
from equipoise.views.style import COLORS, hide_axes, new_figure

QUICK = os.environ.get("EQUIPOISE_QUICK") == "1"
FAMILY = (eq.SNE(), eq.SymmetricSNE(), eq.TSNE(), eq.PowerSNE(), eq.GSNE(), eq.SphericalSNE(rho=0.8))


def digits_picture(digits, folder):
    n = 120 if QUICK else len(digits.X)
    Y = eq.TSNE(random_state=0).fit_transform(digits.X[:n])
    title = f"t-SNE of {n:,} handwritten digits"
    eq.plot(Y, digits.labels[:n], names=digits.classes, title=title).savefig(folder / "digits.png")


def family_picture(digits, folder):
    n = 120 if QUICK else 400
    X, labels = digits.X[:n], digits.labels[:n]
    figure = new_figure(figsize=(10, 7), dpi=150)
    for place, method in enumerate(FAMILY, start=1):
        Y = method.set_params(random_state=0).fit_transform(X)
        name = str(method.set_params(random_state=None))
        kept = neighbor_recall(X, Y)
        print(f"{name:23s} loss {method.loss_:8.4f}   neighbours kept {kept:.1%}")
        if Y.shape[1] == 3:
            axes = figure.add_subplot(2, 3, place, projection="mollweide")
            axes.set_axisbelow(True)
            axes.grid(True, color="#e0e0e0")
            axes.set_xticklabels([])
            axes.set_yticklabels([])
            Y = np.column_stack([np.arctan2(Y[:, 1], Y[:, 0]), np.arcsin(np.clip(Y[:, 2], -1, 1))])
        else:
            axes = figure.add_subplot(2, 3, place)
            axes.set_aspect("equal", adjustable="datalim")
            hide_axes(axes)
        axes.scatter(*Y.T, s=8, c=[COLORS[label] for label in labels], linewidths=0)
        axes.set_title(f"{name}\nneighbours kept {kept:.0%}", fontsize=11)
    figure.savefig(folder / "family.png")


def forces_picture(folder):
    methods = (eq.SymmetricSNE(), eq.TSNE(), eq.PowerSNE(r0=0.01), eq.GSNE(alpha=-1, beta=2, eta=0.25))
    eq.forces(*methods).figure().savefig(folder / "forces.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
    digits = data.load("digits")
    forces_picture(folder)
    family_picture(digits, folder)
    digits_picture(digits, folder)
