"""A map as a mechanical system: points with mass, forces from the loss, with friction and without.

Lin et al. 2024 (eq. 15-17) read the loss of an embedding as the potential energy of points that move by Newton's law.
The figure lets 600 digits do so from t-SNE's initial map. Without friction the total energy is conserved: the potential
energy of the start becomes motion, classes form and fly apart, and nothing comes to rest. With friction the points
settle where attraction and repulsion balance. The change of the total energy and the final losses are printed.

Writes dynamics.png to the folder given as argument, or to the current folder.
"""

import sys
from pathlib import Path

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.views.style import COLORS, hide_axes, new_figure

STEPS = 300
SHOWN = (30, 60, STEPS)  # iterations whose maps are drawn
RULES = {
    "without friction": eq.Dynamics(friction=0, time_step=0.15, every=1),
    "with friction": eq.Dynamics(friction=0.2, time_step=0.15, every=1),
}


def move(X, rule):
    """Return the energies (m, 4) and the maps at SHOWN."""
    maps = {}

    def keep(iteration, loss, Y):
        if iteration in SHOWN:
            maps[iteration] = np.array(Y)

    method = eq.TSNE(early_exaggeration=1, optimizer=rule, n_iter=STEPS, random_state=0, callbacks=[keep]).fit(X)
    return method.energy_curve_, maps


def main(folder):
    digits = data.load("digits")
    X, colors = digits.X[:600], [COLORS[label] for label in digits.labels[:600]]
    figure = new_figure(figsize=(12, 6.4), dpi=120)
    for row, (name, rule) in zip(figure.subplots(2, 1 + len(SHOWN)), RULES.items(), strict=True):
        energy, maps = move(X, rule)
        drift = np.abs(energy[:, 3] - energy[0, 3]).max() / energy[0, 3]
        print(f"{name:17s} loss {energy[-1, 2]:.3f}, total energy changed by {drift:.2%}")
        axes = row[0]
        lines = (("kinetic", "-", COLORS[1]), ("potential", "-", COLORS[0]), ("total", "--", "0.25"))
        for values, (label, style, color) in zip(energy[:, 1:].T, lines, strict=True):
            axes.plot(energy[:, 0], values, style, label=label, color=color)
        axes.set(title=f"{name}: energy", xlabel="iteration", ylim=(-0.1, 1.1 * energy[0, 3]))
        axes.legend(frameon=False, loc="center right")
        axes.spines[["top", "right"]].set_visible(False)
        for axes, (iteration, Y) in zip(row[1:], maps.items(), strict=True):
            axes.scatter(*Y.T, s=3, c=colors, linewidths=0)
            axes.set_title(f"iteration {iteration}, {np.ptp(Y, axis=0).max():.3g} wide")
            axes.set_aspect("equal", adjustable="datalim")
            hide_axes(axes)
    figure.savefig(folder / "dynamics.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("."))
