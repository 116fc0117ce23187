"""Force laws: attraction and repulsion of a pair as functions of distance (Lin, Tseng & Chien 2024, Table 1, Fig. 3).

force_laws.png shows the attraction and the repulsion of four methods for one pair with p = 1, Z = 1. In symmetric SNE
the attraction grows with distance, like a spring; in the others it decays. That of the power law diverges at 0.

net_force.png shows repulsion minus attraction with t-SNE's kernel for a pair with affinity p = 0.1 and several α. Every
curve crosses zero where Q = P, here at r = 3, with the same slope: the divergence does not change the equilibrium of an
isolated pair. It changes the restoring force: a small α attracts more strongly at large distances, a large α repels
more strongly at small ones.

Writes both to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise.views.style import COLORS, new_figure

P = 0.1  # with Z = 1 and k = 1/(1 + r²), Q = P at r = 3
ALPHAS = (-3, -2, -1, 0, 0.6)


def four_methods(folder):
    methods = (eq.SymmetricSNE(), eq.TSNE(), eq.PowerSNE(r0=0.01), eq.GSNE(alpha=-1, beta=2, eta=0.25))
    curves = eq.forces(*methods)
    for name, attraction in curves.attraction.items():
        print(f"{name:35s} attraction at r = 1: {np.interp(1, curves.r, attraction):.3f},", end=" ")
        print(f"repulsion: {np.interp(1, curves.r, curves.repulsion[name]):.3f}")
    curves.figure().savefig(folder / "force_laws.png")


def net_force(folder):
    figure = new_figure(figsize=(7, 4.5), dpi=150)
    axes = figure.subplots()
    for alpha, color in zip(ALPHAS, COLORS, strict=False):
        method = eq.GSNE(alpha=alpha, beta=2, eta=1)
        curves = eq.forces(method, r=np.linspace(1.5, 8, 500), p=P)
        ((name, attraction),) = curves.attraction.items()
        net = curves.repulsion[name] - attraction
        balance = curves.r[np.abs(net).argmin()]
        print(f"alpha = {alpha:4}: the forces balance at r = {balance:.2f}")
        axes.plot(curves.r, net, color=color, linewidth=2, label=f"α = {alpha}".replace("-", "−"))
    axes.axhline(0, color="black", linewidth=0.8)
    axes.axvline(3, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlim(1.5, 8)
    axes.set_ylim(-0.2, 0.4)
    axes.set_xlabel("distance r in the map")
    axes.set_ylabel("repulsion − attraction")
    axes.set_title("net force of a pair with p = 0.1, Z = 1, k = 1/(1 + r²)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(folder / "net_force.png")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(".")
    four_methods(folder)
    net_force(folder)
