"""Can this picture be trusted? Three maps of 1,000 digits, measured, and the second of them as a page.

One sees the digits by PCA, t-SNE and UMAP, each point coloured by its trust: blue where the points around it are its
neighbours in the data, red where it stands among strangers. The plane of PCA lays digits over each other that are far
apart in the 62 dimensions it leaves out. t-SNE and UMAP have few strangers. But how far apart their islands lie, how
large they are and how dense says little about the data, and the report on t-SNE, which is printed, says so. Of the
three PCA has the distances best.

trust.html is that report as a page: click a point to see its false and its missing neighbours. It needs no network.

Writes trust.png and trust.html into the folder given as argument, or into the current one. The page takes Bokeh,
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
