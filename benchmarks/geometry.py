"""What a map costs in other geometries: t-SNE in the plane, on the torus, in the hyperbolic plane and on the sphere.

Every fit runs in a fresh process, the geometries in turn. The table has the medians of the times, and of the last round
the loss and how often the nearest point on the map, by the distances of its geometry, has the same label.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np

GEOMETRIES = ("plane", "torus", "hyperbolic", "sphere")
JUDGED = 500  # points whose nearest neighbours on the map are looked at


def child(request: dict[str, Any]) -> dict[str, Any]:
    """Fit one map and return its times and scores."""
    import equipoise as eq

    data = common.load(request["data"], request["subset"])
    method = eq.TSNE(geometry=request["geometry"], random_state=0, n_jobs=request["threads"], n_iter=request["n_iter"])
    start = time.perf_counter()
    problem = method.problem(data.X)
    built = time.perf_counter() - start
    problem.optimize()
    seconds = time.perf_counter() - start
    rows = np.random.RandomState(0).permutation(len(data.X))[:JUDGED]
    right = [nearest_label(problem.geometry, problem.Y, data.labels, i) == data.labels[i] for i in rows]
    return {
        "seconds": seconds,
        "optimize": seconds - built,
        "loss": float(problem.loss_curve[-1, 1]),
        "engine": problem.engine_name,
        "right": float(np.mean(right)),
        "geometry": describe(problem.geometry),
    }


def nearest_label(geometry: Any, Y: np.ndarray, labels: np.ndarray, i: int) -> int:
    """Return the label of the point nearest to point i on the map."""
    d = geometry.distance(Y[i], Y)
    d[i] = np.inf
    return int(labels[d.argmin()])


def describe(geometry: Any) -> str:
    """Return the sizes of a geometry."""
    if hasattr(geometry, "period"):
        return f"period {geometry.period[0]:.0f}"
    return f"radius {geometry.radius:.0f}" if hasattr(geometry, "radius") else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=common.DATASETS, default="mnist")
    parser.add_argument("--subset", type=int, default=None, help="number of random rows; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n-iter", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/geometry.md"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child is not None:
        import json

        return common.answer(args.child, child(json.loads(args.child.read_text())))

    where = common.machine(args.threads, ["equipoise", "numpy", "scipy"])
    try:
        title = common.load(args.data, args.subset).title
    except FileNotFoundError as error:
        raise SystemExit(f"skipped: {error}") from None
    request = {"data": args.data, "subset": args.subset, "n_iter": args.n_iter, "threads": args.threads}
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in GEOMETRIES}
    for _ in range(args.rounds):
        for name in GEOMETRIES:
            results[name].append(common.run_child("geometry.py", {**request, "geometry": name}, args.threads))
            print(name, results[name][-1], flush=True)
    common.write(page(args, title, where, results), args.out)


def page(args: Any, title: str, where: dict[str, Any], results: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return the page of results."""
    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = (
        f"python benchmarks/geometry.py --data {args.data}{subset} --rounds {args.rounds} --n-iter {args.n_iter}"
        f" --threads {args.threads}"
    )
    whole, steps = ({n: median(r[key] for r in runs) for n, runs in results.items()} for key in ("seconds", "optimize"))
    rows = [
        [
            f'`TSNE(geometry="{name}")`',
            runs[-1]["geometry"],
            runs[-1]["engine"],
            f"{whole[name]:.1f} ({', '.join(format(r['seconds'], '.1f') for r in runs)})",
            f"{whole[name] / whole['plane']:.2f}",
            f"{steps[name]:.1f}",
            f"{steps[name] / steps['plane']:.2f}",
            f"{runs[-1]['loss']:.3f}",
            f"{runs[-1]['right']:.3f}",
        ]
        for name, runs in results.items()
    ]
    columns = ["", "size", "engine", "fit, s (runs)", "ratio", "optimisation, s", "ratio", "KL", "1-NN accuracy"]
    return [
        *common.header(f"Maps in other geometries: {title}", command, where),
        *common.table(columns, rows),
        "",
        f"Medians over {args.rounds} rounds of fresh processes, geometries in turn, {args.n_iter} iterations. Sizes",
        'are those of "auto", in kernel lengths. 1-NN accuracy: how often the nearest point on the map has the same',
        f"label, for {JUDGED} random points, by the distances of the geometry.",
    ]


if __name__ == "__main__":
    main()
