"""Pictures of maps: names, images in place of dots, forces, and a page to explore.

classes.png shows 1,797 digits by class on dark paper, each class with its name beside it; images.png the same map
by its images, as many as fit without overlap (Lin et al. 2024, Fig. 8), framed in the colour of their class;
forces_on_map.png the attraction and the repulsion on some of 300 digits, early in a run. digits.html is the page: point
at a digit, search, draw around some with the lasso and save them.

Writes all four into the folder given as argument, or into the current one: `pictures.py docs/images`.
EQUIPOISE_QUICK=1 takes 200 digits, for the test.
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
    figure = eq.plot(Y, labels, images=images, title="the same by their images")
    print(f"{len(figure.axes[0].images)} of {n} images are shown")
    figure.savefig(folder / "images.png", dpi=100)

    problem = eq.TSNE(perplexity=15, random_state=0).problem(X[:300])
    early = problem.optimize(n_iter=110)
    eq.plot(early, forces=problem, title="forces after 110 iterations").savefig(folder / "forces_on_map.png", dpi=100)

    page = eq.page(Y, labels, table={"ink": X.mean(axis=1)}, images=images, title=f"{n:,} digits")
    page.save(folder / "digits.html")
    print(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
