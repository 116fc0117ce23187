"""Inspect a run: the problem object, its forces, and a callback that stops it.

A problem holds the affinities and the loss; nothing is optimised yet. The printed lines check properties that hold for
any map: the two forces sum to minus the gradient, and neither moves the centre of the map.

look_inside.png shows t-SNE on 150 digits: the attraction (blue) and the repulsion (orange) on some of the points. When
early exaggeration ends, repulsion exceeds attraction and the map is about to expand. When the callback stops the run,
the two arrows of each point are equal and opposite.

Writes look_inside.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.views.style import new_figure


class StopWhenFlat:
    """Stop when the loss decreases by less than five percent between two reports; keep the map of every report."""

    def __init__(self):
        self.maps, self.last = {}, np.inf

    def __call__(self, iteration, loss, Y):
        self.maps[iteration] = Y.copy()
        flat = iteration > 150 and self.last - loss < 0.05 * loss
        self.last = loss
        return flat


def main(folder):
    X = data.load("digits").X[:150]
    problem = eq.TSNE(perplexity=10, random_state=0).problem(X)
    P, Y = problem.affinities, np.asarray(problem.Y, dtype=np.float64)
    print(f"affinities       {P.shape}, sum {P.sum(dtype=np.float64):.6f}, asymmetry {np.abs(P - P.T).max():.1g}")
    print(f"initial loss     {problem.loss(Y):.4f}")

    watch = StopWhenFlat()
    Y = problem.optimize(callbacks=[watch]).astype(np.float64)
    print(f"stopped by       {problem.stopped} after {problem.n_iter} iterations")
    print(f"final loss       {problem.loss(Y):.4f}")
    attraction, repulsion, gradient = problem.attraction(Y), problem.repulsion(Y), problem.gradient(Y)
    size = np.abs(attraction).max()
    print(f"balance          {np.abs(attraction + repulsion + gradient).max() / size:.1g} of the largest attraction")
    print(f"total attraction {np.abs(attraction.sum(axis=0)).max() / size:.1g} of the largest")
    print(f"net force        {np.abs(gradient).max() / size:.1%} of the largest attraction")

    figure = new_figure(figsize=(13, 4.5), dpi=150)
    early, late, curve = figure.subplots(1, 3)
    eq.plot(watch.maps[100], forces=problem, ax=early, title="forces after 100 iterations")
    eq.plot(Y, forces=problem, ax=late, title=f"forces after {problem.n_iter} iterations")
    curve.plot(*problem.loss_curve.T, color="black", marker="o", markersize=3)
    curve.axvspan(0, 100, color="#eeeeee", linewidth=0)
    curve.text(50, 0.1, "early exaggeration", ha="center")
    curve.set_xlim(0, None)
    curve.set_ylim(0, None)
    curve.set_xlabel("iteration")
    curve.set_title("loss")
    curve.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "look_inside.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
