"""Two builds of equipoise on the same work, in turn, in one run: is the later one as fast?

    pip install --target BEFORE . ; ... ; pip install --target AFTER .
    python benchmarks/before_after.py BEFORE AFTER [--images X.npy] [--trees TREE_BEFORE TREE_AFTER]
                                      [--rounds 10] [--threads 2] [--out FILE]

In every round, one new process per build waits for work, and the two work in turn, so that each pair of times is taken
within seconds and no build has better luck with its memory than the other.
Cases: t-SNE and MDS of digits (1,797 × 64), and, with `--images` (an array (n, D), such as the first 50 principal
components of MNIST), t-SNE, `transform` of 1,000 rows and UMAP. Short cases are repeated more often than `--rounds`
says. The import is measured in processes of its own. With `--trees`, the source trees of the two builds, each round
also runs each tree's own `benchmarks/peers.py` on digits and MNIST, without peers.

The table shows the median time of each build, the median over the rounds of the ratio after / before (in a round, the
ratio of the medians) with an interval that contains the true median with a probability of 95 %, and whether the two
maps have the same bytes.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import common
from scipy.stats import binom

SERVER = """
import hashlib, json, sys, time
images, threads = sys.argv[1], int(sys.argv[2])
import numpy as np, equipoise as eq
from sklearn.datasets import load_digits
digits = load_digits().data
X = np.load(images) if images else None
options = {"random_state": 0, "n_jobs": threads}
eq.TSNE(n_iter=5, **options).fit(digits[:300])  # loads libraries
fitted = None

def embed_images():
    global fitted
    fitted = eq.TSNE(**options)
    return fitted.fit_transform(X[1000:])

cases = {
    "t-SNE of digits": lambda: eq.TSNE(**options).fit_transform(digits),
    "MDS of digits": lambda: eq.MDS(**options).fit_transform(digits),
    "t-SNE of images": embed_images,
    "transform of 1,000 images": lambda: fitted.transform(X[:1000]),
    "UMAP of images": lambda: eq.UMAP(**options).fit_transform(X[1000:]),
}
print(eq.__file__, flush=True)
for line in sys.stdin:
    if "transform" in line and fitted is None:
        embed_images()
    start = time.perf_counter()
    Y = cases[line.strip()]()
    seconds = time.perf_counter() - start
    digest = hashlib.blake2b(np.ascontiguousarray(Y).tobytes(), digest_size=8).hexdigest()
    print(json.dumps([seconds, digest]), flush=True)
"""
DIGITS = ["t-SNE of digits", "MDS of digits"]
IMAGES = ["t-SNE of images", "transform of 1,000 images", "UMAP of images"]
IMPORT = "import time; start = time.perf_counter(); import equipoise; print(time.perf_counter() - start)"
REPEATS = {"import": 2, "t-SNE of digits": 4, "MDS of digits": 10, "transform of 1,000 images": 4}  # per round


class Build:
    """A build of equipoise and the process that computes with it."""

    def __init__(self, folder: Path, tree: Path | None, images: str, threads: int) -> None:
        compileall.compile_dir(folder, quiet=1)
        self.folder, self.tree, self.images, self.threads = folder, tree, images, threads
        self.digests: dict[str, str] = {}
        self.environment = {**os.environ, "PYTHONPATH": str(folder.resolve()), "OMP_NUM_THREADS": str(threads)}

    def start(self) -> None:
        """Start the process, and check that it imports this build, not one that is installed in editable mode."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, self.images, str(self.threads)],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        imported = Path(self.answer().strip())
        if self.folder.resolve() not in imported.resolve().parents:
            raise SystemExit(f"the build in {self.folder} is hidden by {imported}; uninstall that one first")

    def answer(self) -> str:
        """Return the next line the process prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a measuring process ended early; its error is printed above")
        return line

    def seconds(self, case: str) -> float:
        """Return how long one case took, and keep the digest of its map."""
        if case == "import":
            done = subprocess.run(
                [sys.executable, "-c", IMPORT], env=self.environment, capture_output=True, text=True, check=True
            )
            return float(done.stdout)
        assert self.process.stdin is not None
        print(case, file=self.process.stdin, flush=True)
        taken, self.digests[case] = json.loads(self.answer())
        return float(taken)

    def peers(self) -> dict[str, float]:
        """Return the total seconds of equipoise on each data set of the tree's own benchmarks/peers.py."""
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "peers.md"
            command = [sys.executable, "benchmarks/peers.py", "--data", "digits", "mnist", "--runs", "1", "--peers"]
            command += ["--threads", str(self.threads), "--out", str(page)]
            subprocess.run(command, cwd=self.tree, env=self.environment, capture_output=True, check=True)
            report = json.loads(page.with_suffix(".json").read_text())
        return {f"peers.py, {result['name']}": result["records"][0]["total_s"] for result in report["results"]}

    def end(self) -> None:
        """End the process."""
        self.process.communicate()


def measure(builds: list[Build], cases: list[str], rounds: int) -> dict[str, list[list[list[float]]]]:
    """Return, by case, a list of rounds; a round is a list of seconds for each build."""
    times: dict[str, list[list[list[float]]]] = {}
    turn = 0

    def pair(run: Callable[[Build], dict[str, float]], number: int) -> None:
        nonlocal turn
        turn += 1
        for k in (0, 1) if turn % 2 else (1, 0):
            for case, seconds in run(builds[k]).items():
                rounds_of_case = times.setdefault(case, [[[], []] for _ in range(rounds)])
                rounds_of_case[number][k].append(seconds)

    for number in range(rounds):
        for build in builds:
            build.start()
        for case in cases:
            for _ in range(REPEATS.get(case, 1)):
                pair(lambda build, case=case: {case: build.seconds(case)}, number)
        for build in builds:
            build.end()
        if builds[0].tree is not None:
            pair(Build.peers, number)
    return times


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return order statistics of the ratios between which the true median lies with a probability of 95 % or more."""
    n = len(ratios)
    first = int(binom.ppf(0.025, n, 0.5))  # from 1; 0 if all ratios are too few
    if first == 0:
        return 0.0, float("inf")
    ordered = sorted(ratios)
    return ordered[first - 1], ordered[n - first]


def row(case: str, rounds: list[list[list[float]]], builds: list[Build]) -> list[str]:
    """Return one row of the table."""
    before, after = ([seconds for times in rounds for seconds in times[k]] for k in (0, 1))
    ratios = [median(times[1]) / median(times[0]) for times in rounds]
    low, high = interval(ratios)
    digests = [build.digests.get(case) for build in builds]
    same = "" if digests[0] is None else "yes" if digests[0] == digests[1] else "no"
    times_seen = [f"{median(before):.3f}", f"{median(after):.3f}"]
    return [case, str(len(before)), *times_seen, f"{median(ratios):.3f} ({low:.3f} to {high:.3f})", same]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="folder of the earlier build")
    parser.add_argument("after", type=Path, help="folder of the later build")
    parser.add_argument("--images", default="", help="a table (n, D) in a .npy file")
    parser.add_argument("--trees", nargs=2, type=Path, default=[None, None], help="source trees of the two builds")
    parser.add_argument("--names", nargs=2, default=["before", "after"], help="what to call the builds: their commits")
    parser.add_argument("--cases", nargs="+", choices=["import", *DIGITS, *IMAGES], help="measure only these cases")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()

    cases = args.cases or ["import", *DIGITS, *(IMAGES if args.images else [])]
    builds = [
        Build(folder, tree, args.images, args.threads)
        for folder, tree in zip((args.before, args.after), args.trees, strict=True)
    ]
    times = measure(builds, cases, args.rounds)
    options = f"--rounds {args.rounds} --threads {args.threads}{' --images X.npy' if args.images else ''}"
    options += " --trees TREE_BEFORE TREE_AFTER" if args.trees[0] else ""
    options += " --cases " + " ".join(f'"{case}"' for case in args.cases) if args.cases else ""
    lines = [
        *common.header(
            "Before and after",
            f"python benchmarks/before_after.py BEFORE AFTER {options}",
            common.machine(args.threads, ["numpy", "scipy", "scikit-learn", "faiss-cpu"]),
        ),
        f"Median seconds, and the median ratio of {args.rounds} rounds (95 % interval of that median).",
        "",
        *common.table(["", "pairs", *args.names, "ratio", "same bytes"], [row(c, t, builds) for c, t in times.items()]),
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()
