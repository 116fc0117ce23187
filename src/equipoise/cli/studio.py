"""`equipoise studio`: the live web app."""

from __future__ import annotations

import argparse
from typing import Any

from .option_values import whole_number
from .options import add_data, add_verb, read_data
from .outputs import need_pages

EXAMPLES = """\
  equipoise studio
  equipoise studio digits --port 5006
  equipoise studio table.csv --label kind --standardize"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "watch and steer a map as it forms, in a browser on this machine"
    verb = add_verb(verbs, "studio", line, "[DATA] [options]", EXAMPLES, run)
    add_data(verb, optional=True)
    group = verb.add_argument_group("server")
    group.add_argument("--port", type=whole_number, default=0, metavar="N", help="port (default: any that is free)")
    group.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen at (default: 127.0.0.1, this machine alone; beyond it a token is needed)",
    )
    group.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    need_pages()
    from ..studio.server.serve import serve

    dataset = None if args.data is None else read_data(args)
    serve(dataset, port=args.port, address=args.address, show=not args.no_browser)
    return 0
