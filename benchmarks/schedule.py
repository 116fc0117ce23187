"""How the default schedule was chosen: losses after 300 to 750 iterations, for several optimisers and methods.

    python benchmarks/schedule.py [--data digits fashion] [--subset 10000] [--out benchmarks/results/schedule.md]

Nothing is timed: the losses do not depend on the speed of the machine.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from unittest import mock

import common

import equipoise as eq
from equipoise.optimize.rules import Schedule

# Name: optimiser, iterations of early exaggeration. The first has the momenta of van der Maaten & Hinton 2008 and 250
# early iterations, like openTSNE.
RULES = {
    "0.5, then 0.8; any reversal; 250 early": (eq.Momentum(momentum=(0.5, 0.8), friction=0, turned=0), 250),
    "0.5, then 0.8; any reversal; 100 early": (eq.Momentum(momentum=(0.5, 0.8), friction=0, turned=0), 100),
    "0.8, then 0.95; any reversal; 100 early": (eq.Momentum(friction=0, turned=0), 100),
    "t/(t+10) to 0.8, then 0.95; any reversal; 100 early": (eq.Momentum(turned=0), 100),
    "**t/(t+10) to 0.8, then 0.95; reversal of 0.5; 100 early**": (eq.Momentum(), 100),
    "t/(t+10) to 0.8, then 0.95; reversal of 1; 100 early": (eq.Momentum(turned=1), 100),
    "t/(t+10) to 0.8, then 0.95; reversal of 0.5; 250 early": (eq.Momentum(), 250),
}
METHODS = {
    "digits": [eq.TSNE(), eq.GSNE(), eq.PowerSNE(), eq.SphericalSNE(), eq.SymmetricSNE(), eq.SNE()],
    "fashion": [eq.TSNE()],
    "mnist": [eq.TSNE()],
}
READINGS = (300, 400, 500, 750)


def losses(problem: eq.Problem, rule: eq.Momentum, early: int) -> list[str]:
    """Return the loss at each reading of one run."""
    problem.rule = replace(rule, min_loss_change=0.0, min_grad_norm=0.0)
    with mock.patch.object(Schedule, "EARLY", early):
        problem.optimize(n_iter=READINGS[-1])
    curve = dict(problem.loss_curve)
    return [f"{curve[reading]:.4f}" for reading in READINGS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=METHODS, default=["digits", "fashion"])
    parser.add_argument("--subset", type=int, default=None, help="number of random rows of each data set")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/schedule.md"))
    args = parser.parse_args()
    subset = "" if args.subset is None else f" --subset {args.subset}"
    command = f"python benchmarks/schedule.py --data {' '.join(args.data)}{subset} --threads {args.threads}"
    lines = common.header("Loss by schedule", command, common.machine(args.threads, ["equipoise", "numpy"]))
    lines += [
        "One run each from the same start, seed 0, without stopping rules; the loss is that of the method, as computed",
        "by its engine. A schedule is named by its early and late momentum, by the fraction of the last step that the",
        "gradient must reverse to reduce a gain, and by its iterations of early exaggeration. The default is in bold.",
    ]
    for name in args.data:
        data = common.load(name, args.subset)
        for method in METHODS[name]:
            problem = method.set_params(random_state=0, n_jobs=args.threads).problem(data.X)
            rows = [[rule, *losses(problem, *setting)] for rule, setting in RULES.items()]
            lines += ["", f"## {type(method).__name__}, {data.title}", ""]
            lines += common.table(["momentum", *(f"{reading} iterations" for reading in READINGS)], rows)
            common.write(lines, args.out)


if __name__ == "__main__":
    main()
