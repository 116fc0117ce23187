"""Check that results keep their bytes: digests of maps, losses and transforms of many short runs.

    python benchmarks/golden.py --write golden.json    # before a change
    python benchmarks/golden.py --check golden.json    # after it

Digests hold on one machine and one set of installed packages: other processors round differently. The cases use public
names only, so that the script also runs on versions with other module paths.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

for _library in ("OPENBLAS", "MKL"):  # before NumPy is imported
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import golden_tools  # noqa: E402, F401  adds its cases
from golden_cases import CASES  # noqa: E402


def digest(thing: Any) -> str:
    """Return a digest of the type, shape and bytes of a result."""
    if isinstance(thing, str | bytes):
        return _hash("text", thing if isinstance(thing, bytes) else thing.encode())
    if sparse.issparse(thing):
        thing = thing.tocsr()
        parts = (thing.data, thing.indices.astype(np.int64), thing.indptr.astype(np.int64))
        return _hash(f"csr {thing.shape}", *(digest(part).encode() for part in parts))
    if hasattr(thing, "detach"):
        thing = thing.detach().cpu().numpy()
    array = np.ascontiguousarray(thing)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a result must be numbers or text, got {type(thing).__name__} of {array.dtype}")
    return _hash(f"{array.dtype.str} {np.shape(thing)}", array.tobytes())


def _hash(header: str, *parts: bytes) -> str:
    state = hashlib.blake2b(header.encode(), digest_size=12)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def run_case(name: str) -> dict[str, str]:
    """Return the digest of each result of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {item: digest(value) for item, value in CASES[name]().items()}


def find_differences(found: dict[str, str], expected: dict[str, str]) -> str:
    """Return in words which items differ or are missing; empty if none."""
    groups = {
        "differs": [item for item in found if item in expected and found[item] != expected[item]],
        "missing": [item for item in expected if item not in found],
    }
    return "; ".join(f"{what}: {', '.join(items)}" for what, items in groups.items() if items)


def run_all(names: list[str], expected: dict[str, dict[str, str]] | None, show_times: bool) -> tuple[dict, list[str]]:
    """Run the cases, print what is wrong, and return all digests and the names of the cases that failed."""
    found, failed = {}, []
    for name in names:
        start = time.perf_counter()
        try:
            found[name] = run_case(name)
        except (Exception, SystemExit) as error:
            print(f"FAILED  {name}: raised {type(error).__name__}: {' '.join(str(error).split())}", flush=True)
            failed.append(name)
            continue
        seconds = time.perf_counter() - start
        if show_times:
            print(f"{seconds:6.2f} s  {name}", flush=True)
        if expected is None:
            continue
        if new := [item for item in found[name] if item not in expected.get(name, ())]:
            print(f"new     {name}: not in the file: {', '.join(new)}", flush=True)
        if problem := find_differences(found[name], expected.get(name, {})):
            print(f"FAILED  {name}: {problem}", flush=True)
            failed.append(name)
    return found, failed


def main() -> int:
    """Write or check the digests; return 1 if a case fails."""
    parser = argparse.ArgumentParser(description="Check that results keep their bytes.")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the digests of this version")
    parser.add_argument("--check", metavar="FILE", type=Path, help="compare with the digests in a file")
    parser.add_argument("--only", metavar="PATTERN", help='cases whose name contains it, or matches it: "TSNE*grid"')
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--times", action="store_true", help="print the time of each case")
    args = parser.parse_args()
    names = list(CASES)
    if args.only:
        names = [name for name in names if args.only in name or fnmatch.fnmatch(name, args.only)]
    if args.list:
        print("\n".join(names))
        return 0
    if not names or (args.write is None) == (args.check is None):
        parser.error("give --write FILE or --check FILE" if names else f"no case matches {args.only!r}")
    expected = None if args.check is None else json.loads(args.check.read_text(encoding="utf-8"))
    start = time.perf_counter()
    found, failed = run_all(names, expected, args.times)
    if args.write is not None:
        args.write.write_text(json.dumps(found, indent=1), encoding="utf-8")
    unknown = [] if expected is None or args.only else [name for name in expected if name not in CASES]
    for name in unknown:
        print(f"FAILED  {name}: in the file, but not a case of this script")
    failed += unknown
    print(f"{len(names) - len(failed)} of {len(names)} cases passed in {time.perf_counter() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
