"""`equipoise studio`: the live web application."""

from __future__ import annotations

import argparse
from typing import Any

from .option_values import integer
from .options import add_data, add_verb, read_data
from .outputs import require_bokeh

EXAMPLES = """\
  equipoise studio
  equipoise studio digits --port 5006
  equipoise studio table.csv --label kind --standardize"""


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "watch and control the optimisation of a map in a browser"
    verb = add_verb(verbs, "studio", line, "[DATA] [options]", EXAMPLES, run)
    add_data(verb, optional=True)
    group = verb.add_argument_group("server")
    group.add_argument("--port", type=integer, default=0, metavar="N", help="port (default: a free one)")
    group.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, this machine only; other addresses need a token)",
    )
    group.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    require_bokeh()
    from ..studio.server.serve import serve

    dataset = None if args.data is None else read_data(args)
    serve(dataset, port=args.port, address=args.address, show=not args.no_browser)
    return 0
