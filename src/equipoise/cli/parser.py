"""The whole command line as one parser, a verb each."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence

from .. import __version__
from . import compare, completion, data, embed, evaluate, info, plot, studio, sweep, transform
from .method_options import foreign_parameter, method_named_in
from .options import Parser

DESCRIPTION = "Maps of data, by attraction and repulsion."
EPILOG = """\
examples:
  equipoise embed digits                 a map of a bundled set, and a picture
  equipoise embed table.csv --label kind a map of a table of your own
  equipoise evaluate digits digits.csv   how far that map can be trusted

`equipoise VERB --help` has the options and examples of a verb."""


class Help(argparse.RawDescriptionHelpFormatter):
    """The usual help, with the verbs in one column: argparse leaves their indentation out of its width."""

    def _iter_indented_subactions(self, action: argparse.Action) -> Generator[argparse.Action, None, None]:
        if isinstance(action, argparse._SubParsersAction):
            yield from action._get_subactions()


def make_parser(method: str) -> argparse.ArgumentParser:
    """Return the parser of every verb; those that embed take the parameters of one method."""
    parser = Parser(
        prog="equipoise",
        usage="equipoise VERB …",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"equipoise {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB", dest="verb", title="verbs", parser_class=Parser)
    embed.add(verbs, method)
    transform.add(verbs)
    evaluate.add(verbs)
    compare.add(verbs)
    sweep.add(verbs, method)
    plot.add(verbs)
    studio.add(verbs)
    data.add(verbs)
    info.add(verbs)
    completion.add(verbs)
    return parser


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return a command line understood; leave with the code 2 and one line if it cannot be."""
    parser = make_parser(method_named_in(words))
    args, rest = parser.parse_known_args(words)
    if rest:
        name = foreign_parameter(rest) if hasattr(args, "method") else None
        if name is not None:
            args.parser.error(f"{args.method} has no {name}; see equipoise {args.verb} --method {args.method} --help")
        args.parser.refuse(rest)
    return args
