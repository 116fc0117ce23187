"""Equipoise compared with other installed tools on the same data: time, memory, loss and quality of the map.

    python benchmarks/peers.py [--data digits mnist fashion] [--runs 3] [--threads 2] [--peers openTSNE umap-learn]
                               [--out benchmarks/results/peers.md]

Every fit runs in a fresh process, the tools in alternation. All maps are scored by score.py. The raw numbers are saved
in a JSON file next to the page, from which `--render` writes the page again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np
from common import Data, map_file, middle, show
from tools import MANY, METHODS, OURS, PEERS, SAME_P, SHORT, Fit, Method

SLOW = 20_000  # points beyond which scikit-learn runs only with --slow
PACKAGES = [
    "equipoise", "openTSNE", "umap-learn", "scikit-learn", "pacmap",
    "numpy", "scipy", "faiss-cpu", "numba", "pynndescent",
]  # fmt: skip


# Child process: one tool, one data set.


def child(file: Path) -> None:
    """Fit one tool to the data of the request; save the map and its neighbours in the folder of the data."""
    request = json.loads(file.read_text())
    method, folder, threads = METHODS[request["method"]], Path(request["folder"]), request["threads"]
    start = time.perf_counter()
    importlib.import_module(method.module)
    imported = time.perf_counter() - start
    if method.also and importlib.util.find_spec(method.also):
        importlib.import_module(method.also)
    X = np.load(folder / "X.npy")
    before = common.peak_memory()

    seconds, fit = _call(method, X, threads)
    peak = common.peak_memory()
    later = _call(method, X, threads)[0] if method.compiles and not request["ever"] else None
    np.save(folder / "Y.npy", np.asarray(fit.Y, dtype=np.float64))
    found = fit.found()
    if found is not None:
        np.save(folder / "found.npy", np.asarray(found))
    record = {
        "neighbors_s": fit.neighbors_s,
        "build_s": fit.build_s,
        "optimise_s": fit.optimise_s,
        "total_s": seconds if method.whole else None,
        "later_s": later,
        "import_s": imported,
        "peak_mb": peak if method.whole else None,
        "before_mb": before if method.whole else None,
        "search": fit.search,
        **fit.details,
    }
    common.answer(file, record)


def _call(method: Method, X: np.ndarray, threads: int) -> tuple[float, Fit]:
    start = time.perf_counter()
    fit = method.fit(X, threads)
    return time.perf_counter() - start, fit


# Parent process: run the tools in alternation, score the maps, write the page.


def compare(data: Data, names: list[str], args: argparse.Namespace, add: Callable[[dict[str, Any]], None]) -> None:
    """Run the tools in alternation, `args.runs` times each, and call `add` with a record of each fit.

    Tools that compile at run time are run once before that with an empty cache, as after their installation.
    """
    from score import Truth  # imports equipoise, which child processes must not

    truth = Truth(data.X, args.threads)
    turns = [(-1, name) for name in names if METHODS[name].compiles]
    turns += [(run, name) for run in range(args.runs) for name in names]
    with tempfile.TemporaryDirectory() as compiled:
        for run, name in turns:
            with tempfile.TemporaryDirectory() as folder:
                np.save(Path(folder) / "X.npy", data.X)
                request = {"method": name, "folder": folder, "threads": args.threads, "ever": run < 0}
                cache = Path(compiled) / METHODS[name].package  # one numba cache per tool
                record = {"method": name, "run": run, **common.run_child("peers.py", request, args.threads, cache)}
                if "failed" not in record:
                    record |= score(Path(folder), data, truth, METHODS[name].kl)
                    if run == 0 and args.maps is not None:
                        args.maps.mkdir(parents=True, exist_ok=True)
                        Y = np.load(Path(folder) / "Y.npy")
                        np.savez(map_file(args.maps, data.name, name), Y=Y, labels=data.labels)
            add(record)
            print(f"{data.name}, {f'run {run + 1}' if run >= 0 else 'first ever'}: {name}: {brief(record)}", flush=True)


def score(folder: Path, data: Data, truth: Any, kl: bool) -> dict[str, Any]:
    """Return the scores of the map that a child process saved."""
    from score import one_nn_error

    Y = np.load(folder / "Y.npy")
    scores: dict[str, Any] = {
        "kl": truth.kl(Y) if kl else None,
        "one_nn_error": one_nn_error(Y, data.labels, truth.threads),
        "kept": truth.kept(Y),
    }
    if (folder / "found.npy").exists():
        found = np.load(folder / "found.npy")
        scores |= {"recall": truth.recall(found), "k": found.shape[1]}
    return scores


def brief(record: dict[str, Any]) -> str:
    if "failed" in record:
        return f"failed: {record['failed']}"
    seconds = record["total_s"] or record["optimise_s"]
    loss = "" if record["kl"] is None else f", KL {record['kl']:.4f}"
    return f"{seconds:.2f} s{loss}, 1-NN error {record['one_nn_error']:.2%}, 10-NN kept {record['kept']:.1%}"


def chosen(args: argparse.Namespace, n: int) -> tuple[list[str], list[str]]:
    """Return the tools to run on n points, ours first, and a line for each tool that is omitted."""
    names, skipped = [OURS] if n <= MANY else [OURS, SHORT], []
    wanted = [name for name in METHODS if name in args.peers or (name == SAME_P and args.same_p)]
    for name in wanted:
        if not common.installed(METHODS[name].package):
            skipped.append(f"{name} is not installed.")
        elif name == "scikit-learn" and n > SLOW and not args.slow:
            skipped.append(f"{name} is omitted beyond {SLOW:,} points, where it is much slower; `--slow` includes it.")
        else:
            names.append(name)
    return names, skipped


# The page.

COLUMNS = [
    "", "neighbours, s", "build, s", "optimise, s", "total, s (range)", "total ÷ ours", "later call, s",
    "first call ever, s", "import, s", "peak memory, MB (of it the fit)", "KL", "1-NN error", "10-NN kept",
    "recall of its search",
]  # fmt: skip
NOTES = """
Medians over the runs. Every fit runs in a fresh process, the tools in alternation; imports are not timed. Defaults
throughout, at perplexity 30 for t-SNE; umap-learn and PaCMAP get no seed, because a seed disables their threads.
**Build** is the neighbour search, the affinities and the initial map; **total** is the whole call. For tools that
compile at run time, total is the first call in a process with a filled numba cache on disk, **later call** a second
fit in the same process, and **first call ever** a single call with nothing compiled yet. **Peak memory** is the largest
resident size up to the end of the first call; in brackets, the part added by the fit to imports and data. **KL** is
KL(P ‖ Q) on the same P for all tools (exact 90 nearest neighbours, perplexity 30), summed over all pairs in float64; it
is not the loss of umap-learn and PaCMAP. **1-NN error** is leave-one-out in the map, **10-NN kept** the share of the 10
nearest neighbours in the data that are among the 10 nearest in the map; both are exact and over all points. **Recall**
is that of the neighbours used by the tool, compared with the exact ones, over all points; in brackets the value that
equipoise reports. openTSNE imports pynndescent during a fit if it is installed; here it is imported before, so that
this time is not counted.
""".strip().splitlines()


def render(report: dict[str, Any]) -> list[str]:
    """Return the page of a report."""
    lines = common.header("Equipoise and its peers", report["command"], report["machine"])
    for result in report["results"]:
        lines += [f"## {result['title']}", ""]
        done = [r for r in result["records"] if "failed" not in r]
        if done:
            names = [name for name in METHODS if any(r["method"] == name for r in done)]
            groups = {name: [r for r in done if r["method"] == name] for name in names}
            lines += [*common.table(COLUMNS, [row(name, groups) for name in names if warm(groups[name])]), ""]
        failures = {f"{r['method']} failed: {r['failed']}" for r in result["records"] if "failed" in r}
        lines += [f"- {line}" for line in (*result["skipped"], *sorted(failures))]
        lines += [""] if result["skipped"] or failures else []
    return [*lines, *NOTES]


def row(name: str, groups: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return one row of the table: medians of the records of a tool."""
    records, ours = warm(groups[name]), warm(groups.get(OURS, []))
    ever = [record for record in groups[name] if record["run"] < 0]
    recall = middle(records, "recall")
    if recall is None:
        search = records[0]["search"]
    else:
        own = middle(records, "own_recall")
        search = f"{recall:.4f} at k = {records[0]['k']}" + ("" if own is None else f" ({own:.4f})")
    peak, before = middle(records, "peak_mb"), middle(records, "before_mb")
    return [
        name,
        *(show(middle(records, key), ".2f") for key in ("neighbors_s", "build_s", "optimise_s")),
        spread(records, "total_s"),
        ratio(records, ours),
        show(middle(records, "later_s"), ".2f"),
        f"{ever[0]['total_s']:.2f} + {ever[0]['import_s']:.1f} import" if ever else "–",
        show(middle(records, "import_s"), ".1f"),
        "–" if peak is None or before is None else f"{peak:.0f} ({peak - before:.0f})",
        show(middle(records, "kl"), ".4f"),
        show(middle(records, "one_nn_error"), ".2%"),
        show(middle(records, "kept"), ".1%"),
        search,
    ]


def warm(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records without the first call ever."""
    return [record for record in records if record["run"] >= 0]


def ratio(records: list[dict[str, Any]], ours: list[dict[str, Any]]) -> str:
    """Return the ratio to our total time, also for the later call; of the optimisation if only that is comparable."""
    if not ours:
        return "–"
    mine, theirs, later = middle(ours, "total_s"), middle(records, "total_s"), middle(records, "later_s")
    if mine is not None and theirs is not None:
        return f"{theirs / mine:.2f}" + ("" if later is None else f" (later {later / mine:.2f})")
    mine, theirs = middle(ours, "optimise_s"), middle(records, "optimise_s")
    return "–" if mine is None or theirs is None else f"optimise {theirs / mine:.2f}"


def spread(records: list[dict[str, Any]], key: str) -> str:
    values = [r[key] for r in records if r.get(key) is not None]
    return f"{median(values):.2f} ({min(values):.2f}–{max(values):.2f})" if values else "–"


# The command line.


def main() -> None:
    args = parse()
    if args.child is not None:
        child(args.child)
        return
    from picture import draw_maps

    raw = args.out.with_suffix(".json")
    if args.render:
        report = json.loads(raw.read_text())
        common.write(render(report), args.out)
        if args.plot is not None and args.maps is not None:
            draw_maps(report, args.maps, args.plot)
        return
    with tempfile.TemporaryDirectory() as folder:
        args.maps = Path(folder) if args.maps is None and args.plot is not None else args.maps
        report = benchmark(args, raw)
        common.write(render(report), args.out)
        if args.plot is not None:
            draw_maps(report, args.maps, args.plot)


def benchmark(args: argparse.Namespace, raw: Path) -> dict[str, Any]:
    """Run all comparisons; the report is saved after every fit."""
    report: dict[str, Any] = {
        "command": command(args),
        "machine": common.machine(args.threads, PACKAGES),
        "results": [],
    }
    raw.parent.mkdir(parents=True, exist_ok=True)

    def keep() -> None:
        raw.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")

    for name in args.data:
        result: dict[str, Any] = {"name": name, "title": name, "classes": [], "skipped": [], "records": []}
        report["results"].append(result)
        try:
            data = common.load(name, args.subset)
        except FileNotFoundError as error:
            result["skipped"] = [f"skipped: {error}."]
            print(f"{name}: skipped: {error}", flush=True)
            continue
        names, skipped = chosen(args, len(data.X))
        for line in skipped:
            print(f"{name}: {line}", flush=True)
        result.update(title=data.title, classes=data.classes, skipped=skipped)

        def add(record: dict[str, Any], records: list[dict[str, Any]] = result["records"]) -> None:
            records.append(record)
            keep()

        compare(data, names, args, add)
    keep()
    return report


def command(args: argparse.Namespace) -> str:
    """Return the command that reproduces these numbers, without output paths."""
    words = ["python", "benchmarks/peers.py", "--data", *args.data, "--runs", str(args.runs)]
    words += ["--threads", str(args.threads)]
    words += ["--peers", *args.peers] if args.peers != PEERS else []
    words += ["--subset", str(args.subset)] if args.subset is not None else []
    return shlex.join([*words, *(["--same-p"] if args.same_p else []), *(["--slow"] if args.slow else [])])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=common.DATASETS, default=list(common.DATASETS))
    parser.add_argument("--runs", type=int, default=3, help="number of runs (default 3)")
    parser.add_argument("--threads", type=int, default=2, help="threads of every tool (default 2)")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, help="default: all that are installed")
    parser.add_argument("--same-p", action="store_true", help="also time openTSNE's optimisation on equipoise's P")
    parser.add_argument("--slow", action="store_true", help=f"run scikit-learn beyond {SLOW:,} points too")
    parser.add_argument("--subset", type=int, default=None, help="number of random rows of each data set")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/peers.md"), help="page; JSON next to it")
    parser.add_argument("--render", action="store_true", help="only write the page again, from the JSON file")
    parser.add_argument("--maps", type=Path, default=None, help="folder for the maps of the first run (.npz)")
    parser.add_argument("--plot", type=Path, default=None, help="picture of these maps (.png)")
    parser.add_argument("--child", type=Path, default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
