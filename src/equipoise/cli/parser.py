"""Parses the command line."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence

from .._version import __version__
from . import compare, completion, data, embed, evaluate, info, plot, stability, studio, sweep, transform
from .method_options import find_method, foreign_parameter
from .options import Parser

DESCRIPTION = "Embed data in two or three dimensions by attraction and repulsion."
EPILOG = """\
examples:
  equipoise embed digits                   embed a bundled data set and plot it
  equipoise embed table.csv --label kind   embed your own table
  equipoise evaluate digits digits.csv     measure how far a map can be trusted

Run `equipoise COMMAND --help` for the options and examples of a command."""

NO_METRIC = (
    "it needs numbers without gaps: use --exclude and --missing, or --method classicalmds, which has --metric mixed"
)


class Help(argparse.RawDescriptionHelpFormatter):
    """A help formatter that does not indent the verbs, because argparse misaligns the help of indented verbs."""

    def _iter_indented_subactions(self, action: argparse.Action) -> Generator[argparse.Action, None, None]:
        if isinstance(action, argparse._SubParsersAction):
            yield from action._get_subactions()


def make_parser(method: str) -> argparse.ArgumentParser:
    """Return the parser of the command line; `embed`, `sweep` and `stability` have the parameters of this method."""
    parser = Parser(
        prog="equipoise",
        usage="equipoise COMMAND …",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"equipoise {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="COMMAND", dest="verb", title="commands", parser_class=Parser)
    embed.add(verbs, method)
    transform.add(verbs)
    evaluate.add(verbs)
    compare.add(verbs)
    sweep.add(verbs, method)
    stability.add(verbs, method)
    plot.add(verbs)
    studio.add(verbs)
    data.add(verbs)
    info.add(verbs)
    completion.add(verbs, make_parser)
    return parser


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; on an error, print one line and exit with code 2."""
    parser = make_parser(find_method(words))
    args, rest = parser.parse_known_args(words)
    if rest:
        name = foreign_parameter(rest) if hasattr(args, "method") else None
        if name is not None:
            advice = NO_METRIC if name == "metric" else f"see equipoise {args.verb} --method {args.method} --help"
            args.parser.error(f"{args.method} has no parameter {name}; {advice}")
        args.parser.reject(rest)
    args.words = list(words)
    return args
