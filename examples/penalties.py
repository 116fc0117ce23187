"""What a divergence punishes, and what a heavy tail does.

penalties.png shows the penalty of one pair as a function of its affinity q in the map, on the left for two neighbours
in the data, on the right for two distant points. KL(P ‖ Q), the loss of SNE and t-SNE, punishes neighbours that are far
apart in the map (p large, q small) far more than distant points that are close (p small, q large): it keeps
neighbours and lets strangers crowd. KL(Q ‖ P) does the reverse. The Jensen-Shannon divergence treats both alike.

heavy_tail.png shows the Gaussian kernel of SNE and the Cauchy kernel of t-SNE. To match a small affinity, the Cauchy
kernel needs a larger distance, which leaves room between clusters.

Writes both to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.divergences import Alpha, JensenShannon
from equipoise.views.style import COLORS, new_figure

NEAR, FAR = 0.5, 0.005  # affinity of two neighbours in the data, and of two distant points
DIVERGENCES = {
    "KL(P ‖ Q), recall": Alpha(-1.0),
    "KL(Q ‖ P), precision": Alpha(1.0),
    "Jensen-Shannon": JensenShannon(),
}


def penalty(divergence, p, q):
    """Return p f(q/p), which is 0 at q = p."""
    return p * divergence.value(q / p)


def penalties(folder):
    figure = new_figure(figsize=(10, 4.2), dpi=150)
    q = np.geomspace(0.5 * FAR, 1, 400)
    titles = {NEAR: f"neighbours in the data, p = {NEAR}", FAR: f"distant points in the data, p = {FAR}"}
    for axes, p in zip(figure.subplots(1, 2, sharey=True), (NEAR, FAR), strict=True):
        for (name, divergence), color in zip(DIVERGENCES.items(), COLORS, strict=False):
            axes.plot(q, penalty(divergence, p, q), label=name, color=color, linewidth=2)
        axes.axvline(p, color="#5b6172", linewidth=0.8, linestyle=":")
        axes.annotate("q = p", (p, 2.6), xytext=(4, 0), textcoords="offset points", color="#5b6172")
        axes.set_xscale("log")
        axes.set_xlim(q[0], q[-1])
        axes.set_ylim(0, 2.8)
        axes.set_xlabel("affinity q in the map: far apart ← → close")
        axes.set_title(titles[p])
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("penalty of the pair")
    figure.axes[0].legend(frameon=False, loc="upper center")
    figure.savefig(folder / "penalties.png")
    for name, divergence in DIVERGENCES.items():
        missed, false = penalty(divergence, NEAR, np.array([FAR]))[0], penalty(divergence, FAR, np.array([NEAR]))[0]
        print(f"{name:22s} missed neighbour {missed:.3f}, false neighbour {false:.3f}")


def heavy_tail(folder):
    curves = eq.similarities(eq.SNE(), eq.TSNE(), p=0.1)
    print(curves)
    curves.figure().savefig(folder / "heavy_tail.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
    penalties(folder)
    heavy_tail(folder)
