"""Reproduce the tables and figures of the two papers behind the library with one command.

    python benchmarks/papers/run.py [--short] [--only table2 …] [--resume] [--threads 1]
        [--out benchmarks/results/papers.md]

Paper 001 is Lin, Tseng & Chien 2024, paper 002 Draganov & Dohn 2024. Every section writes its results to a JSON file
and its pictures next to it, in a folder with the name of the page; the page contains all sections found there. --only
runs some sections, --resume keeps the results of an interrupted run. --short uses scikit-learn's digits instead of
every data set. If openTSNE is installed, Table 2 has a column for it; section `network` needs PyTorch.
"""

from __future__ import annotations

import argparse
import json
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
import figures_network
import figures_parameters
import figures_program
import figures_sizes
import table2
import table3
import tuning
import verdicts
from experiment import Ledger, Task, read_values

SECTIONS: dict[str, ModuleType] = {
    "tuning": tuning,
    "table2": table2,
    "program": figures_program,
    "table3": table3,
    "forces": figures_forces,
    "family": figures_family,
    "images": figures_images,
    "parameters": figures_parameters,
    "eta": figures_eta,
    "sizes": figures_sizes,
    "flow": figures_flow,
    "double_pca": figures_double_pca,
    "network": figures_network,
}
PACKAGES = ["equipoise", "openTSNE", "numpy", "scipy", "scikit-learn", "faiss-cpu"]
ELSEWHERE = [
    "## Reproduced elsewhere",
    "",
    "- Paper 002, Fig. 1 (changes that UMAP misses, and spurious ones that it shows): examples/stability.py.",
    "- Paper 002, Fig. 4, 5, 6 and 8 (double-kernel LLE and UMAP): [double_kernel.md](double_kernel.md).",
    "- Paper 002, Fig. 7 has a small network instead of VGG11, and its single cells are another set.",
    "- Paper 001, Fig. 1 and 2 are diagrams.",
]


def page(task: Task, command: str) -> list[str]:
    """Return the page with the verdicts on all claims, and all sections whose results are in the folder."""
    lines: list[str] = []
    found: list[verdicts.Verdict] = []
    newest: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        file = task.folder / f"{name}.json"
        if not file.exists():
            continue
        where, values = read_values(file)
        newest = max(newest, where, key=lambda place: place.get("date", ""))
        found += section.verdicts(values, task)
        ran = f"Section `{name}`; commit {where['commit']}; {where['date']}; {where['threads']} threads."
        lines += [f"## {section.TITLE}", "", ran, "", *section.page(values, task), ""]
    if (other := task.folder.parent / "double_kernel.json").exists():
        found += [verdicts.Verdict(*row) for row in json.loads(other.read_text())]
    head = common.header("The papers, reproduced", command, newest)
    summary = ["## Verdicts", "", verdicts.RULE, "", *verdicts.table(found), ""]
    return [*head, *summary, *lines, *ELSEWHERE]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="use the digits instead of every data set")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--resume", action="store_true", help="keep existing results")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="page (default benchmarks/results/papers.md; with --short in build/)")
    args = parser.parse_args(arguments)
    results = common.ROOT / ("build" if args.short else "benchmarks/results")
    out: Path = results / "papers.md" if args.out is None else args.out
    if not args.short and not common.DATA.exists():
        raise SystemExit("skipped: ../shared/data not found; --short does not need it")
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
