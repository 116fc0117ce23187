"""One rank: call a function with the group that the environment describes.

`python -m equipoise.distributed.rank_process module:function '[arguments]'` runs a rank of a local run, see
`run_ranks`; launchers such as torchrun and Slurm can run it on each machine.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from .._atomic import atomic_write
from .group import DEFAULT_TIMEOUT
from .rank_error import RankError, describe_error
from .rank_function import execute, load_function


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one rank; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m equipoise.distributed.rank_process")
    parser.add_argument("function", help="module:function or file.py:function, called with the group and the arguments")
    parser.add_argument("arguments", nargs="?", default="[]", help="a JSON list")
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT, help="seconds for a collective")
    parser.add_argument("--report", help="JSON file for the result or the error")
    parser.add_argument("--brief", action="store_true", help="show no traceback; whoever reads the report shows errors")
    options = parser.parse_args(arguments)
    try:
        value = execute(load_function(options.function), json.loads(options.arguments), options.timeout)
        _write(options.report, {"value": value})
    except BaseException as error:
        failure = error if isinstance(error, RankError) else None
        if not options.brief and (failure is None or failure.__cause__ is not None):
            traceback.print_exc()
        elif not options.brief:
            print(failure, file=sys.stderr)
        if failure is None:
            failure = RankError(int(os.environ.get("RANK", 0)), socket.gethostname(), "start", describe_error(error))
        _write(options.report, {"error": [failure.rank, failure.host, failure.stage, failure.cause]})
        return 1
    return 0


def _write(path: str | None, report: dict[str, Any]) -> None:
    if path is not None:
        with atomic_write(path) as file:
            file.write(json.dumps(report).encode())


def _exit(status: int) -> None:
    """End the process without waiting for collectives that another rank left unfinished."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _exit(main())
