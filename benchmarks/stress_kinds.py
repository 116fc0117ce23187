"""The kinds of stress of MDS on one another's measures, and the worst case beside its lower bound.

    python benchmarks/stress_kinds.py [--threads 2] [--out benchmarks/results/stress_kinds.md]

The globe is 1,738 points of a golden spiral between 75° north and south, with their great-circle distances, the
digits are the first 500. Every map is measured in float64: root mean squares of the residuals d − δ, (d − δ)/δ and
log(d/δ) over all pairs, the largest |d − δ| and the largest of d/δ and δ/d. The azimuthal equidistant projection of the
globe is the projection with the smallest numbers among those of examples/tissot.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import common
import numpy as np
from scipy.spatial.distance import pdist, squareform

import equipoise as eq

KINDS = ("metric", "relative", "log", "max", "max_ratio")


def globe() -> np.ndarray:
    """Return the points (1738, 3) of the globe."""
    k = np.arange(1800) + 0.5
    z, turn = 1 - k / 900, np.pi * (1 + 5**0.5) * k
    X = np.column_stack([np.sqrt(1 - z**2) * np.cos(turn), np.sqrt(1 - z**2) * np.sin(turn), z])
    return X[np.abs(z) < np.sin(np.radians(75))]


def measures(Y: np.ndarray, delta: np.ndarray) -> list[str]:
    d = pdist(np.asarray(Y, dtype=np.float64))
    log = np.log(d / delta)
    squares = [np.sqrt(np.square(e).mean()) for e in (d - delta, (d - delta) / delta, log)]
    largest = [np.abs(d - delta).max(), np.exp(np.abs(log).max())]
    return [f"{x:.4g}" for x in (*squares, *largest)]


def rows(D: np.ndarray, threads: int, more: dict[str, int]) -> list[list[str]]:
    """Return a row of the table for each kind of stress; `more` maps kinds to another number of iterations."""
    delta, result = squareform(D, checks=False), []
    for kind in KINDS:
        for n_iter in (300, *([more[kind]] if kind in more else [])):
            method = eq.MDS(stress=kind, metric="precomputed", random_state=0, n_iter=n_iter, n_jobs=threads).fit(D)
            bound = f"{method.worst_case_bound_:.4g}" if kind.startswith("max") else ""
            name = f'`"{kind}"`' if n_iter == 300 else f'`"{kind}"`, {n_iter:,} iterations'
            result.append([name, *measures(method.embedding_, delta), bound, str(method.n_iter_)])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    where = common.machine(args.threads, ["equipoise", "numpy", "scipy"])
    lines = common.header("Kinds of stress", f"python benchmarks/stress_kinds.py --threads {args.threads}", where)
    S = globe()
    azimuth = np.arccos(S[:, 2:]) * S[:, :2] / np.sqrt(1 - S[:, 2:] ** 2)
    D = eq.spaces.Sphere(S).matrix()
    digits = squareform(pdist(common.load("digits").X[:500]))
    columns = [
        "d − δ",
        "(d − δ)/δ",
        "log(d/δ)",
        "largest abs(d − δ)",
        "largest ratio",
        "bound",
        "iterations",
    ]
    projection = [["azimuthal equidistant", *measures(azimuth, squareform(D, checks=False)), "", ""]]
    for title, table in (
        ("globe, 1,738 points", projection + rows(D, args.threads, {"max_ratio": 1500})),
        ("digits, 500 × 64", rows(digits, args.threads, {})),
    ):
        lines += [*common.table([title, *columns], table), ""]
    common.write(lines[:-1], args.out)


if __name__ == "__main__":
    main()
