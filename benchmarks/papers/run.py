"""The tables and figures of the two papers behind the library, from one command.

    python benchmarks/papers/run.py [--short] [--only table2 …] [--resume] [--threads 1]
        [--out benchmarks/results/papers.md]

Paper 001 is Lin, Tseng & Chien 2024, paper 002 Draganov & Dohn 2024. Every section writes its numbers to a JSON file
and its pictures beside it, in the folder named as the page; the page is made of all sections that are there. --only
runs some of them, --resume keeps the numbers that a stopped run has left. --short puts scikit-learn's digits in the
place of every data set. openTSNE, if it is installed, gets a column of Table 2.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common
import figures_double_pca
import figures_eta
import figures_family
import figures_flow
import figures_forces
import figures_images
import figures_parameters
import figures_sizes
import table2
import table3
import tuning
from experiment import Ledger, Task, read_values

SECTIONS: dict[str, ModuleType] = {
    "tuning": tuning,
    "table2": table2,
    "table3": table3,
    "forces": figures_forces,
    "family": figures_family,
    "images": figures_images,
    "parameters": figures_parameters,
    "eta": figures_eta,
    "sizes": figures_sizes,
    "flow": figures_flow,
    "double_pca": figures_double_pca,
}
PACKAGES = ["equipoise", "openTSNE", "numpy", "scipy", "scikit-learn", "faiss-cpu"]
ELSEWHERE = [
    "## Made elsewhere",
    "",
    "- Paper 002, Fig. 1 (what UMAP does not see, and what it sees that is not there): examples/stability.py.",
    "- Paper 002, Fig. 4, 5, 6 and 8 (double-kernel LLE beside UMAP): [double_kernel.md](double_kernel.md).",
    "- Paper 002, Fig. 7 (a network in training) and its single-cell data are not made again: no such data here.",
    "- Paper 001, Fig. 1 and 2 are diagrams.",
]


def page(task: Task, command: str) -> list[str]:
    """Return the page, of all sections whose numbers are in the folder."""
    lines: list[str] = []
    for name, section in SECTIONS.items():
        file = task.folder / f"{name}.json"
        if not file.exists():
            continue
        where, values = read_values(file)
        if not lines:
            lines = common.header("The papers, made again", command, where)
        ran = f"Section `{name}`; commit {where['commit']}; {where['date']}; {where['threads']} threads."
        lines += [f"## {section.TITLE}", "", ran, "", *section.page(values, task), ""]
    return [*lines, *ELSEWHERE]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="digits in the place of every data set")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--resume", action="store_true", help="keep the numbers that are there")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the page; without it benchmarks/results/papers.md, short: build/")
    args = parser.parse_args(arguments)
    results = common.ROOT / ("build" if args.short else "benchmarks/results")
    out: Path = results / "papers.md" if args.out is None else args.out
    if not args.short and not common.DATA.exists():
        raise SystemExit("skipped: ../shared/data is not there; --short needs none of it")
    task = Task(args.short, args.threads, out.with_suffix(""))
    task.folder.mkdir(parents=True, exist_ok=True)
    where: dict[str, Any] = common.machine(args.threads, PACKAGES)
    for name in SECTIONS:
        if name in args.only:
            print(f"{name} …", flush=True)
            SECTIONS[name].measure(task, Ledger(task.folder / f"{name}.json", where, args.resume))
    command = f"python benchmarks/papers/run.py{' --short' if args.short else ''} --threads {args.threads}"
    common.write(page(task, command), out)


if __name__ == "__main__":
    main()
