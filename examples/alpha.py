"""The same data, six divergences: g-SNE with t-SNE's kernel (β = 2, η = 1) and α from −2 to 0.6.

The figure shows 400 digits. Small α spreads each class out; large α contracts it and leaves wide gaps, as in Lin, Tseng
& Chien 2024, Fig. 12. α = −1 is t-SNE. The losses are values of different divergences and cannot be compared; compare
the maps, and the printed share of the ten nearest neighbours that each map keeps.

All maps are made without early exaggeration: it multiplies the attraction by exaggeration^((1−α)/2), so the same value
would have a different effect at each α.

Writes alpha.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import equipoise as eq
from equipoise import data
from equipoise.evaluate import neighbor_recall
from equipoise.views.style import COLORS, hide_axes, new_figure

ALPHAS = (-2, -1.5, -1, -0.5, 0, 0.6)


def main(folder):
    digits = data.load("digits")
    X, labels = digits.X[:400], digits.labels[:400]
    figure = new_figure(figsize=(10, 7), dpi=150)
    for axes, alpha in zip(figure.subplots(2, 3).flat, ALPHAS, strict=True):
        method = eq.GSNE(alpha=alpha, beta=2, eta=1, early_exaggeration=1, random_state=0).fit(X)
        kept = neighbor_recall(X, method.embedding_)
        print(f"alpha = {alpha:4}   loss {method.loss_:.4f}   neighbours kept {kept:.1%}")
        axes.scatter(*method.embedding_.T, s=8, c=[COLORS[label] for label in labels], linewidths=0)
        axes.set_title(f"α = {alpha},  loss {method.loss_:.2f}".replace("-", "−"))
        axes.set_aspect("equal", adjustable="datalim")
        hide_axes(axes)
    figure.savefig(folder / "alpha.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
