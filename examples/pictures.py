"""Pictures of maps: class labels, images instead of dots, forces, and an interactive page.

classes.png shows 1,797 digits by class on a dark background, with a label next to each class; images.png shows as many
of their images as fit on the same map without overlap (Lin et al. 2024, Fig. 8), framed in the colour of their class;
image_grid.png moves a third of them to the cells of a grid, where none is hidden;
forces_on_map.png shows the attraction and the repulsion on some of 300 digits, early in a run. digits.html is an
interactive page: hover over a digit, search, select some with the lasso and save them.

Writes all five to the folder given as argument, or to the current folder: `pictures.py docs/images`.
EQUIPOISE_QUICK=1 uses 200 digits, for the test.
"""

import os
import sys
from pathlib import Path

import equipoise as eq
from equipoise import data

QUICK = os.environ.get("EQUIPOISE_QUICK") == "1"


def main(folder):
    digits = data.load("digits")
    n = 200 if QUICK else len(digits.X)
    X, labels = digits.X[:n], digits.labels[:n]
    images = X.reshape(n, 8, 8) / 16
    Y = eq.TSNE(random_state=0).fit_transform(X)
    eq.plot(Y, labels, title=f"{n:,} digits", dark=True).savefig(folder / "classes.png", dpi=100)
    figure = eq.plot(Y, labels, images=images, title="the same map as images")
    print(f"{len(figure.axes[0].images)} of {n} images are shown")
    figure.savefig(folder / "images.png", dpi=100)
    some = slice(0, n, 3)
    cells = eq.grid_layout(Y[some])
    eq.plot(cells, labels[some], images=images[some], title=f"{len(cells)} digits in the cells of a grid").savefig(
        folder / "image_grid.png", dpi=100
    )

    problem = eq.TSNE(perplexity=15, random_state=0).problem(X[:300])
    early = problem.optimize(n_iter=110)
    eq.plot(early, forces=problem, title="forces after 110 iterations").savefig(folder / "forces_on_map.png", dpi=100)

    page = eq.page(Y, labels, table={"ink": X.mean(axis=1)}, images=images, title=f"{n:,} digits")
    page.save(folder / "digits.html")
    print(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
