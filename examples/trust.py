"""Can a map be trusted? Three maps of 1,000 digits, evaluated, and the report on one of them as a page.

The figure shows the digits by PCA, t-SNE and UMAP, each point coloured by its trustworthiness: blue if the points
around it are its neighbours in the data, red if they are not. The plane of PCA overlays digits that are far apart in
the 62 dimensions it omits. t-SNE and UMAP have few false neighbours. But the distances between their islands, their
sizes and their densities say little about the data, and the printed report on t-SNE says so. Of the three maps PCA
preserves distances best.

trust.html is that report as a page: click a point to see its false and its missing neighbours. It needs no network.

Writes trust.png and trust.html to the folder given as argument, or to the current folder. The page needs Bokeh:
`pip install "equipoise[pages]"`.
"""

import sys
from pathlib import Path

import equipoise as eq
from equipoise import data


def main(folder):
    digits = data.load("digits")
    X, labels = digits.X[:1000], digits.labels[:1000]
    methods = {
        "PCA": eq.PCA(n_components=2),
        "t-SNE": eq.TSNE(random_state=0),
        "UMAP": eq.UMAP(random_state=0),
    }
    found = eq.compare(X, {name: method.fit_transform(X) for name, method in methods.items()}, labels)
    print(found, end="\n\n")
    print(found["t-SNE"])
    found.figure().savefig(folder / "trust.png")
    found["t-SNE"].to_html(folder / "trust.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
