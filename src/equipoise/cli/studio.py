"""`equipoise studio`: watch and control the optimisation of a map in a browser."""

from __future__ import annotations

import argparse
from typing import Any

from ..data import DATASETS
from .option_values import integer
from .options import STDIN, add_data, add_verb, preparation_steps, read_data
from .outputs import require_bokeh

EXAMPLES = """\
  equipoise studio
  equipoise studio digits --port 5006
  equipoise studio table.csv --label kind --standardize"""


def add(verbs: Any) -> None:
    """Add the verb `studio` to the command line."""
    line = "watch and control the optimisation of a map in a browser"
    verb = add_verb(verbs, "studio", line, "[DATA] [options]", EXAMPLES, run)
    add_data(verb, optional=True)
    group = verb.add_argument_group("server")
    group.add_argument("--port", type=integer, default=0, metavar="N", help="port (default: a free one)")
    group.add_argument(
        "--address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1, this machine only; on an address that other machines can reach,"
        " pages need the token in the printed URL)",
    )
    group.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")


def run(args: argparse.Namespace) -> int:
    """Serve the studio until Ctrl-C or SIGTERM."""
    require_bokeh()
    from ..studio.data_sources import GivenData
    from ..studio.server.serve import serve

    data = None if args.data is None else GivenData(read_data(args), python_code(args))
    serve(data, port=args.port, address=args.address, show=not args.no_browser)
    return 0


def python_code(args: argparse.Namespace) -> str:
    """Return Python code that reads and prepares the table X as on the command line.

    For standard input, which cannot be read again, the code is only a comment.
    """
    if args.data == STDIN:
        return "# X is the table that was read from standard input"
    columns = {"columns": args.columns, "label": args.label, "id": args.id, "transpose": args.transpose or None}
    columns |= {"use_rep": args.use_rep, "layer": args.layer}
    chosen = "".join(f", {name}={value!r}" for name, value in columns.items() if value is not None)
    read = f"data.load({args.data!r})" if args.data in DATASETS else f"data.read({args.data!r}{chosen})"
    steps = preparation_steps(args)
    given = "".join(f", {name}={value!r}" for name, value in steps.items() if value)
    if not given:
        return f"X = {read}.X"
    return f"dataset = {read}\nX = data.preparation(dataset{given}).apply(dataset).X"
