"""Two builds of equipoise on the same work, in turn, in one run: is the later one as fast?

    pip install --target BEFORE . ; ... ; pip install --target AFTER .
    python benchmarks/before_after.py BEFORE AFTER [--images X.npy] [--trees TREE_BEFORE TREE_AFTER]
                                      [--rounds 5] [--threads 2] [--out FILE]

Each measurement comes from a fresh process that imports one of the two builds. Cases: the import, t-SNE and MDS of
digits (1,797 × 64), and, with `--images` (an array (n, D), such as the first 50 principal components of
Fashion-MNIST), t-SNE, `transform` of 1,000 rows and UMAP. With `--trees`, the source trees of the two builds, each
round also runs each tree's own `benchmarks/peers.py` on digits and MNIST, without peers. Builds alternate in
every round; the table shows the best and the median time of each, their ratios, and whether the two maps have the same
bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import common

CHILD = """
import json, sys, time
start = time.perf_counter()
import equipoise as eq
seconds = {"import": time.perf_counter() - start}
import hashlib, numpy as np
from sklearn.datasets import load_digits
case, images, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
digest = lambda Y: hashlib.blake2b(np.ascontiguousarray(Y).tobytes(), digest_size=8).hexdigest()
digests = {}

def measure(name, function):
    start = time.perf_counter()
    result = function()
    seconds[name] = time.perf_counter() - start
    digests[name] = digest(result)

if case == "digits":
    X = load_digits().data
    eq.TSNE(n_iter=5, random_state=0, n_jobs=threads).fit(X[:300])  # loads libraries
    measure("t-SNE of digits", lambda: eq.TSNE(random_state=0, n_jobs=threads).fit_transform(X))
    measure("MDS of digits", lambda: eq.MDS(random_state=0, n_jobs=threads).fit_transform(X))
elif case == "images":
    X = np.load(images)
    eq.TSNE(n_iter=5, random_state=0, n_jobs=threads).fit(X[:2000])  # loads libraries
    method = eq.TSNE(random_state=0, n_jobs=threads)
    measure("t-SNE of images", lambda: method.fit_transform(X[1000:]))
    measure("transform of 1,000 images", lambda: method.transform(X[:1000]))
    measure("UMAP of images", lambda: eq.UMAP(random_state=0, n_jobs=threads).fit_transform(X[1000:]))
print(json.dumps({"seconds": seconds, "digests": digests}))
"""


def run_child(build: Path, case: str, images: str, threads: int) -> dict[str, dict[str, object]]:
    """Return the times and digests of one case, measured in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(build), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-c", CHILD, case, images, str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_peers(build: Path, tree: Path, threads: int) -> dict[str, float]:
    """Return the total seconds of equipoise on each data set of the tree's own benchmarks/peers.py."""
    environment = {**os.environ, "PYTHONPATH": str(build)}
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "peers.md"
        command = [sys.executable, "benchmarks/peers.py", "--data", "digits", "mnist", "--runs", "1", "--peers"]
        command += ["--threads", str(threads), "--out", str(page)]
        subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=True)
        report = json.loads(page.with_suffix(".json").read_text())
    return {f"peers.py, {result['name']}": result["records"][0]["total_s"] for result in report["results"]}


def measure(args: argparse.Namespace) -> tuple[dict[str, dict[str, list[float]]], dict[str, dict[str, str]]]:
    """Return the seconds of every round, by case and build, and the digests of the last maps."""
    builds = {"before": args.before.resolve(), "after": args.after.resolve()}
    cases = ["import", "digits", *(["images"] if args.images else [])]
    times: dict[str, dict[str, list[float]]] = {}
    maps: dict[str, dict[str, str]] = {}
    for number in range(args.rounds):
        order = list(builds) if number % 2 == 0 else list(builds)[::-1]
        for case in cases:
            for name in order:
                result = run_child(builds[name], case, args.images, args.threads)
                for what, seconds in result["seconds"].items():
                    if (what == "import") == (case == "import"):
                        times.setdefault(what, {}).setdefault(name, []).append(float(seconds))
                for what, digest in result["digests"].items():
                    maps.setdefault(what, {})[name] = str(digest)
        for name in order if args.trees else []:
            tree = args.trees[list(builds).index(name)]
            for what, seconds in run_peers(builds[name], tree, args.threads).items():
                times.setdefault(what, {}).setdefault(name, []).append(seconds)
    return times, maps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="folder of the earlier build")
    parser.add_argument("after", type=Path, help="folder of the later build")
    parser.add_argument("--images", default="", help="a table (n, D) in a .npy file")
    parser.add_argument("--trees", nargs=2, type=Path, default=None, help="source trees of the two builds")
    parser.add_argument("--names", nargs=2, default=["before", "after"], help="what to call the builds: their commits")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()

    times, maps = measure(args)
    rows = []
    for what, by_build in times.items():
        before, after = by_build["before"], by_build["after"]
        same = {True: "yes", False: "no"}[maps[what]["before"] == maps[what]["after"]] if what in maps else ""
        rows.append(
            [
                what,
                f"{min(before):.3f} ({median(before):.3f})",
                f"{min(after):.3f} ({median(after):.3f})",
                f"{min(after) / min(before):.3f} ({median(after) / median(before):.3f})",
                same,
            ]
        )
    options = f"--rounds {args.rounds} --threads {args.threads}{' --images X.npy' if args.images else ''}"
    options += " --trees TREE_BEFORE TREE_AFTER" if args.trees else ""
    lines = [
        *common.header(
            "Before and after",
            f"python benchmarks/before_after.py BEFORE AFTER {options}",
            common.machine(args.threads, ["numpy", "scipy", "scikit-learn", "faiss-cpu"]),
        ),
        f"Seconds, best of {args.rounds} rounds (median in brackets); builds alternate.",
        "",
        *common.table(["", *args.names, "ratio", "same bytes"], rows),
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()
