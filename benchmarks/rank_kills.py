"""One of several ranks is killed at a random moment: when the job ends, what remains, and whether resuming it works.

    python benchmarks/rank_kills.py [--trials 20] [--seed 0] [--out benchmarks/results/rank_kills.md]

Each trial starts `equipoise embed X.npy --ranks 3 --checkpoint run.eqc`, kills one of the ranks by SIGKILL, waits for
the end of the command, looks for processes that remain, resumes with a random number of ranks, and compares the map
with that of a run without interruption. The trials are those of `python -m tests.faults --kills 20`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common

sys.path.insert(0, str(common.ROOT))
from tests.faults import rank_kills

LIMIT = 300  # seconds of a collective, the default


def page(args: argparse.Namespace, where: dict[str, Any], found: list[Any]) -> list[str]:
    command = f"python benchmarks/rank_kills.py --trials {args.trials} --seed {args.seed}"
    problems = [problem for kill in found for problem in kill.problems]
    verdict = (
        f"{len(problems)} problems, see the table"
        if problems
        else "every job ended by itself, no process remained, and every resumed map has the bytes of the whole run"
    )
    rows = [
        [
            str(t + 1), str(kill.victim), f"{kill.moment:.1f}", kill.stage, f"{kill.took:.1f}",
            "yes" if kill.saved else "no", str(kill.resumed), "; ".join(kill.problems) or "same bytes",
        ]
        for t, kill in enumerate(found)
    ]  # fmt: skip
    columns = ["trial", "rank killed", "after, s", "stage", "end, s later", "checkpoint", "ranks that resumed", "map"]
    return [
        *common.header("One rank is killed", command, where),
        f"**{len(found)} trials: {verdict}. The longest time from the signal to the end of the job was"
        f" {max(kill.took for kill in found):.1f} s; the time limit of a collective is {LIMIT} s.**",
        "",
        *common.table(columns, rows),
        "",
        f"`TSNE(perplexity=10, n_iter={rank_kills.ITERATIONS})` of {rank_kills.ROWS:,} rows and {rank_kills.COLUMNS}"
        f" columns over {rank_kills.RANKS} gloo ranks, started by `equipoise embed --ranks {rank_kills.RANKS}`.",
        "The rank and the moment are random, from the start of the command to nearly the end of an undisturbed run.",
        "The stage is the one that the error names; unknown, if the rank was killed before it had connected, or",
        "between stages. Processes that remain are those the command had started, and all whose command line names the",
        "files of the trial.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rank_kills.md"))
    args = parser.parse_args()
    where = common.machine(1, ["equipoise", "numpy", "scipy", "torch"])
    found = []
    with TemporaryDirectory() as folder:
        for kill in rank_kills.kills(args.trials, args.seed, Path(folder) / "kills"):
            found.append(kill)
            print(kill, flush=True)
    common.write(page(args, where, found), args.out)
    if any(kill.problems for kill in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
