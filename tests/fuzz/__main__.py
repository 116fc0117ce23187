"""The command `python -m tests.fuzz`: run cases, print a table of verdicts and write the bad cases to a file."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))  # tests/support

from fuzz.cases import draw_case  # noqa: E402
from fuzz.corpus import CORPUS, read_corpus  # noqa: E402
from fuzz.pool import run_cases  # noqa: E402

VERDICTS = ("finite", "clear error", "not built", "bad")


def main() -> int:
    """Run the fuzzer and return the exit code: 1 if a case is bad."""
    args = _arguments()
    cases = [] if args.no_corpus else list(read_corpus(args.replay))
    numbers = range(args.first, args.first + args.cases)
    cases += [draw_case(args.seed, number) for number in numbers]
    start, bad, shown = time.monotonic(), [], 0
    counts: Counter[tuple[str, str]] = Counter()
    numeric: Counter[str] = Counter()
    with args.out.open("w", encoding="utf-8") as out:
        for case, verdict in run_cases(
            cases, workers=args.workers, time_limit=args.time_limit, memory_limit=int(args.memory * 2**30)
        ):
            counts[_label(case), verdict["verdict"]] += 1
            numeric.update(verdict.get("warnings", ()))
            if verdict["verdict"] == "bad":
                bad.append((case, verdict))
                out.write(json.dumps({"case": case, **verdict}) + "\n")
                out.flush()
            done = counts.total()
            if done >= shown + 200 or done == len(cases):
                shown = done
                print(f"{done:6d} of {len(cases)}, {len(bad)} bad, {time.monotonic() - start:.0f} s", flush=True)
    _print_summary(counts, bad, numeric)
    print(f"{len(bad)} bad cases" + f" in {args.out}" * bool(bad))
    return 1 if bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="number of cases (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases (default: 0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default: 0)")
    parser.add_argument("--workers", type=int, default=2, help="number of processes (default: 2)")
    parser.add_argument("--time-limit", type=float, default=60, help="seconds per case (default: 60)")
    parser.add_argument("--memory", type=float, default=8, help="GiB of address space per process (default: 8)")
    parser.add_argument("--replay", type=Path, default=CORPUS, help="file of past failures, run first")
    parser.add_argument("--no-corpus", action="store_true", help="run new cases only")
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures.jsonl"), help="file for the bad cases")
    return parser.parse_args()


def _label(case: dict[str, Any]) -> str:
    """Return what a case calls, for the table."""
    return case.get("method") or case.get("function") or case["kind"]


def _print_summary(counts: Counter[tuple[str, str]], bad: list[Any], numeric: Counter[str]) -> None:
    labels = sorted({label for label, _ in counts})
    print("\n" + f"{'':22}" + "".join(f"{verdict:>13}" for verdict in VERDICTS))
    for label in labels:
        print(f"{label:22}" + "".join(f"{counts[label, verdict] or '':>13}" for verdict in VERDICTS))
    print(f"{'all':22}" + "".join(f"{sum(counts[a, verdict] for a in labels):>13}" for verdict in VERDICTS))
    causes = defaultdict(list)
    for case, verdict in bad:
        causes[verdict["cause"]].append(case)
    for cause, cases in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(cases):4d} × {cause}\n       {json.dumps(cases[0])[:600]}")
    for warning, count in numeric.most_common(12):
        print(f"{count:6d} cases warn: {warning}")


if __name__ == "__main__":
    sys.exit(main())
