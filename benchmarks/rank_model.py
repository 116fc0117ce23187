"""A model of the time of an iteration over ranks, fitted to measurements, and its prediction for many GPUs.

    python benchmarks/rank_model.py benchmarks/results/ranks.json

The file is what benchmarks/ranks.py saves; its page has these sections too.
An iteration of a rank with E edges, m own points, a mesh of M nodes and h halo points takes

    T = e E + p m + c M + (reduction of 8 M bytes) + (exchange of 8 h bytes) + latency of all collectives,

because every rank convolves the whole mesh, which the ranks add up as int64, and each halo point has two float32.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import numpy as np

Found = dict[tuple[int, int], list[dict[str, Any]]]
DIMENSIONS = 2


@dataclass(frozen=True)
class Rates:
    """What an iteration costs, in seconds.

    Attributes
    ----------
    edge, point, node : float
        Per edge; per own point (spreading, gathering, step, checks, rest); per node of the mesh (convolution).
    reduced, exchanged : float
        Per byte of the mesh that is reduced, and per byte of the halo that is exchanged.
    latency : float
        Per collective.
    """

    edge: float
    point: float
    node: float
    reduced: float
    exchanged: float
    latency: float

    def iteration(self, edges: float, own: float, nodes: float, halo: float, collectives: float) -> dict[str, float]:
        """Return the seconds of the terms of an iteration of one rank; halo is a number of points."""
        return {
            "edges": self.edge * edges,
            "points": self.point * own,
            "convolution": self.node * nodes,
            "mesh reduction": self.reduced * 8 * nodes,
            "halo": self.exchanged * 4 * DIMENSIONS * halo,
            "latency": self.latency * collectives,
        }


@dataclass(frozen=True)
class CostModel:
    """Rates fitted to measurements of ranks on this machine."""

    rates: Rates

    @classmethod
    def fitted(cls, found: Found) -> CostModel:
        """Fit each rate to its own part, by least squares over all runs and ranks."""

        def rate(parts: tuple[str, ...], key: str) -> float:
            pairs = [
                (sum(r["clock"].get(part, 0.0) for part in parts) / r["n_iter"], r[key])
                for records in found.values()
                for r in records
            ]
            seconds, amount = np.array(pairs, dtype=float).T
            return float(seconds @ amount / (amount @ amount)) if amount.any() else 0.0

        reduced, exchanged, latency = 0.0, 0.0, 0.0
        several = [records[0]["collectives"] for records in found.values() if "collectives" in records[0]]
        if several:
            (reduced, first), (exchanged, second) = (
                _line([pair for one in several for pair in one[name]]) for name in ("all_reduce", "all_to_all")
            )
            latency = (first + second) / 2
        return cls(Rates(
            rate(("edges",), "edges"),
            rate(("spreading", "gathering", "step", "checks of the tolerance", "rest"), "own"),
            rate(("convolution",), "nodes"), reduced, exchanged, latency,
        ))  # fmt: skip

    def lines(self, found: Found) -> list[str]:
        """Return the rates, and the predicted and measured times of the runs."""
        r, rows = self.rates, []
        for (n, size), records in found.items():
            terms = [self._terms(record, size) for record in records]
            predicted = 1e3 * max(sum(term.values()) for term in terms)
            measured = 1e3 * max(record["clock"]["descent"] / record["n_iter"] for record in records)
            rows.append([f"{n:,}", str(size), f"{predicted:.1f}", f"{measured:.1f}", f"{predicted / measured:.2f}"])
        return [
            "## Cost model",
            "",
            f"Fitted to the runs above, for one thread: {1e9 * r.edge:.2f} ns per edge, {1e9 * r.point:.0f} ns per"
            f" own point, {1e9 * r.node:.1f} ns per node of the mesh.",
            f"Fitted to collectives of 1 kB to 16 MB between the ranks: {1e9 * r.reduced:.2f} ns per byte reduced,"
            f" {1e9 * r.exchanged:.2f} ns per byte exchanged, {1e6 * r.latency:.0f} µs per collective.",
            "",
            *common.table(["n", "ranks", "predicted, ms", "measured, ms", "ratio"], rows),
            "",
            "The model does not know how long ranks wait for one another before a collective.",
        ]

    def _terms(self, record: dict[str, Any], size: int) -> dict[str, float]:
        calls = sum(record["calls"].values()) / record["n_iter"] if size > 1 else 0.0
        halo = record["sent"].get("halo exchange", 0) / record["n_iter"] / (4 * DIMENSIONS)
        terms = self.rates.iteration(record["edges"], record["own"], record["nodes"], halo, calls)
        return terms if size > 1 else {**terms, "mesh reduction": 0.0, "halo": 0.0}


def _line(pairs: list[list[float]]) -> tuple[float, float]:
    """Return slope and constant of seconds over bytes, fitted to relative deviations, both at least 0."""
    size, seconds = np.array(pairs).T
    A = np.column_stack([size, np.ones_like(size)]) / seconds[:, None]
    slope, constant = np.linalg.lstsq(A, np.ones_like(seconds), rcond=None)[0]
    return max(float(slope), 0.0), max(float(constant), 0.0)


@dataclass(frozen=True)
class Cluster:
    """GPUs and their network, by their specifications and by benchmarks/results/gpu.md.

    Attributes
    ----------
    edge, point, node : float
        Seconds, as in `Rates`.
    per_machine : int
        GPUs that NVLink connects; beyond, InfiniBand.
    inside, between : float
        Bytes per second that a GPU sends to others of its machine, and to other machines.
    latency : float
        Seconds of a collective, per doubling of the number of ranks.
    collectives : float
        Per iteration.
    """

    edge: float
    point: float
    node: float
    per_machine: int = 8
    inside: float = 450e9
    between: float = 50e9
    latency: float = 10e-6
    collectives: float = 6.0

    def rates(self, size: int) -> Rates:
        """Return the rates for a number of GPUs: a ring sends every reduced byte twice, over its slowest link."""
        bandwidth = self.inside if size <= self.per_machine else self.between
        ring = 2 * (size - 1) / size / bandwidth
        return Rates(self.edge, self.point, self.node, ring, 1 / bandwidth, self.latency * np.log2(max(size, 2)))


# An H200 at 1,000,000 points, benchmarks/results/gpu.md: edges 0.6569 ms for 1.441 GFLOP at 10 per entry; spread,
# gather and step 0.3911 + 0.02223 + 0.01732 ms; convolve 0.08554 ms for 18.43 MB at 20 bytes per node.
H200 = Cluster(0.6569e-3 / 144.1e6, (0.3911 + 0.02223 + 0.01732) * 1e-9, 0.08554e-3 / (18.43e6 / 20))
GPU_NODES = 18.43e6 / 20 / 1e6  # nodes per point there
GPU_MEMORY = 141  # GB of an H200
ITERATIONS = 750


def prediction_lines(found: Found) -> list[str]:
    """Return the prediction for many points and GPUs, with its assumptions."""
    whole = next(records[0] for records in found.values() if len(records) == 1 and "halo_shares" in records[0])
    edges, shares = whole["edges"] / whole["own"], {int(p): s for p, s in whole["halo_shares"].items()}
    rows = []
    for n in (10**7, 10**8, 10**9):
        for size in (8, 16, 32, 64):
            own, nodes = n / size, GPU_NODES * n
            terms = H200.rates(size).iteration(edges * own, own, nodes, shares[size] * own, H200.collectives)
            total = sum(terms.values())
            memory = (edges * own * 8 + own * 60 + nodes * (8 + 4 * 8)) / 1e9
            rows.append([
                f"{n:,}", str(size), *(f"{1e3 * terms[name]:.2f}" for name in terms), f"{1e3 * total:.1f}",
                f"{total * ITERATIONS:.0f}", f"{memory:.0f}" + " (too much)" * (memory > GPU_MEMORY),
            ])  # fmt: skip
    columns = ["n", "GPUs", "edges", "points", "convolution", "mesh reduction", "halo", "latency", "iteration, ms",
               f"{ITERATIONS} iterations, s", "memory of a GPU, GB"]  # fmt: skip
    return [
        "## Prediction for GPUs",
        "",
        "Predicted, not measured: the time on several GPUs, with the kernels of the single-GPU engine, without the",
        "search for neighbours and the affinities. Assumptions:",
        f"{1e12 * H200.edge:.2f} ps per edge, {1e9 * H200.point:.2f} ns per point and {1e12 * H200.node:.0f} ps per"
        " node on an H200 (stages at 1,000,000 points in",
        f"benchmarks/results/gpu.md); {edges:.0f} edges per point as here; {GPU_NODES:.2f} nodes per point as there,"
        " since the area of a map grows like n; halo points",
        "per own point as counted here when the positions are divided among as many ranks ("
        + ", ".join(f"{s:.2f} for {p}" for p, s in shares.items())
        + ");",
        f"a ring of NVLink within {H200.per_machine} GPUs ({H200.inside / 1e9:.0f} GB/s each way), and of"
        f" InfiniBand beyond ({H200.between / 1e9:.0f} GB/s for each GPU); {1e6 * H200.latency:.0f} µs",
        f"for each doubling of the ranks and {H200.collectives:.0f} collectives per iteration; nothing overlaps."
        " Memory: 8 bytes per edge, 60 per own",
        "point, and the mesh as int64 with a padded transform in float32. Terms in ms.",
        "",
        *common.table(columns, rows),
        "",
        "Every rank convolves and adds up the whole mesh, which does not get cheaper with more ranks: beyond one",
        "machine the reduction over InfiniBand takes longer than everything else. It would take a mesh that is divided",
        "among the ranks to use them.",
    ]


def model_lines(found: Found) -> list[str]:
    """Return the model fitted to measurements, and its prediction for GPUs."""
    return [*CostModel.fitted(found).lines(found), "", *prediction_lines(found)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurements", type=Path, help="JSON file that benchmarks/ranks.py has written")
    saved = json.loads(parser.parse_args().measurements.read_text())
    found: Found = {(n, size): records for n, size, records in saved["runs"]}
    lines = common.header("The cost of ranks", saved["command"], saved["where"])
    common.write([*lines, *model_lines(found)], None)


if __name__ == "__main__":
    main()
