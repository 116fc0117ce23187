"""Figure 3 of paper 001: attraction and repulsion as functions of distance."""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from experiment import Ledger, Task
from panels import save
from verdicts import Verdict

import equipoise as eq

TITLE = "Paper 001, Fig. 3: force laws"
METHODS = {
    "SNE": eq.SymmetricSNE(),
    "t-SNE": eq.TSNE(),
    "p-SNE": eq.PowerSNE(r0=0.01),
    "g-SNE, β = 2, η = 0.25": eq.GSNE(alpha=-1, beta=2, eta=0.25),
}
AT = np.array([0.1, 0.5, 1.0, 2.0, 4.0])


def table_1(r: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return both forces as given in Table 1 of the paper, for p = Z = 1."""
    beta, eta = 2, 0.25
    return {
        "SNE": (4 * r, 4 * r * np.exp(-(r**2))),
        "t-SNE": (4 * r / (1 + r**2), 4 * r / (1 + r**2) ** 2),
        "p-SNE": (2 * beta / r, 2 * beta / r ** (beta + 1)),
        "g-SNE, β = 2, η = 0.25": (
            2 * beta * r ** (beta - 1) / (eta + r**beta),
            2 * beta * r ** (beta - 1) / (eta + r**beta) ** 2,
        ),
    }


def measure(task: Task, ledger: Ledger) -> None:
    def run() -> dict[str, Any]:
        curves = eq.forces(*METHODS.values())
        save(curves.figure(), task.picture("fig3"))
        stated = table_1(AT)
        found = {}
        for name, method in METHODS.items():
            at = eq.forces(method, r=AT)
            ((attraction,), (repulsion,)) = at.attraction.values(), at.repulsion.values()
            off = max(np.abs(attraction / stated[name][0] - 1).max(), np.abs(repulsion / stated[name][1] - 1).max())
            found[name] = {"attraction": attraction.tolist(), "repulsion": repulsion.tolist(), "off": float(off)}
        return found

    ledger.get("forces", run)


def page(values: dict[str, Any], task: Task) -> list[str]:
    lines = ["For a pair with p = 1 and Z = 1. The last column is the largest relative difference from Table 1.", ""]
    rows = []
    for name, found in values["forces"].items():
        both = zip(found["attraction"], found["repulsion"], strict=True)
        rows.append([name, *(f"{a:.3f} / {b:.3f}" for a, b in both), f"{found['off']:.0e}"])
    head = ["attraction / repulsion", *(f"r = {r:g}" for r in AT), "difference from Table 1"]
    return [*lines, *common.table(head, rows), "", f"![Force laws]({task.folder.name}/fig3.png)"]


def verdicts(values: dict[str, Any], task: Task) -> list[Verdict]:
    off = max(found["off"] for found in values["forces"].values())
    evidence = f"largest relative difference {off:.0e}"
    return [Verdict("001 Table 1, Fig. 3", "the force laws", "yes" if off < 1e-6 else "no", evidence)]
