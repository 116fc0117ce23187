"""One method for any loss F(k_x, k_y) of two kernels, and UMAP's sampling for each of them.

The figure shows 1200 digits. Upper row: the loss UMAP is meant to minimise and the squared difference of the kernels
(double-kernel PCA without centring), over all pairs and by UMAP's sampling (Draganov & Dohn 2024, eq. 3 and figure 4).
Over all pairs, points repel each other so much that the classes spread out over the plane; sampling weakens the
repulsion, and both losses give small islands. Lower row: the contrastive loss (Damrich et al. 2023), whose scale s
leads from a map like UMAP's to one like t-SNE's; the scale that is learned with the map comes closest to t-SNE. The
accuracy of a classifier by the ten nearest neighbours on each map is printed.

Writes pair_losses.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import equipoise as eq
from equipoise import data
from equipoise.pair_losses import BinaryCrossEntropy, Contrastive, LogLikelihood, SquaredDifference
from equipoise.views.style import COLORS, hide_axes, new_figure

SAMPLED = {"engine": "negative_sampling", "random_state": 0}
METHODS = {
    "cross-entropy, all pairs": eq.PairEmbedding(loss=BinaryCrossEntropy(), random_state=0),
    "cross-entropy, sampled": eq.PairEmbedding(loss=LogLikelihood(), **SAMPLED),
    "squared difference, all pairs": eq.PairEmbedding(loss=SquaredDifference(), random_state=0),
    "squared difference, sampled": eq.DKPCA(n_iter=500, **SAMPLED),
    "contrastive, s = 1": eq.PairEmbedding(loss=Contrastive(1.0), affinity="perplexity", **SAMPLED),
    "contrastive, s = 0.1": eq.PairEmbedding(loss=Contrastive(0.1), affinity="perplexity", **SAMPLED),
    "contrastive, s learned": eq.PairEmbedding(loss=Contrastive("learned"), affinity="perplexity", **SAMPLED),
    "t-SNE": eq.TSNE(init="spectral", random_state=0),
}


def main(folder):
    digits = data.load("digits")
    X, labels = digits.X[:1200], digits.labels[:1200]
    figure = new_figure(figsize=(12, 6.4), dpi=120)
    for axes, (title, method) in zip(figure.subplots(2, 4).flat, METHODS.items(), strict=True):
        Y = method.fit_transform(X)
        accuracy = cross_val_score(KNeighborsClassifier(10), Y, labels, cv=5).mean()
        print(f"{title:30s} accuracy {accuracy:.3f}   loss {method.loss_:10.2f}")
        axes.scatter(*Y.T, s=3, c=[COLORS[label] for label in labels], linewidths=0)
        axes.set_title(title)
        axes.set_aspect("equal", adjustable="datalim")
        hide_axes(axes)
    figure.savefig(folder / "pair_losses.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
