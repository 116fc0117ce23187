"""A worker process: reads cases from standard input, a JSON object per line, and answers with verdicts."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys


def main(time_limit: float, memory_limit: int) -> None:
    """Answer cases until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a case prints does not mix with the answers
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()

    from .verdicts import judge

    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        faulthandler.dump_traceback_later(time_limit, exit=True)
        try:
            verdict = judge(json.loads(line))
        finally:
            faulthandler.cancel_dump_traceback_later()
        print(json.dumps(verdict), file=answers, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(float(sys.argv[2])))
