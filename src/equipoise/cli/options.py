"""What verbs have in common: how a verb is declared, and the options that say what the data is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .. import data
from .._suggest import closest, did_you_mean
from ..data import Dataset
from .option_values import whole_number

STDIN = "-"
UNNAMED = (".npy", ".npz", ".mtx", ".mtx.gz")  # files whose columns have no names
NAMED = (*(suffix for suffix in data.READERS if suffix not in UNNAMED), STDIN)  # sources whose columns have names


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are one line long, and say what was probably meant."""

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split())
        print(f"equipoise: error: {message} ({usage}; --help says more)", file=sys.stderr)
        sys.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [*map(str, action.choices)]
            what = did_you_mean(str(value), known, f"choose from {', '.join(known)}")
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {what}")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Leave because of words that mean nothing here."""
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        near = next((near for word in options if (near := closest(word, self._option_string_actions))), None)
        self.error(f"unknown: {' '.join(words)}{f'; did you mean {near}?' if near else ''}")


def add_verb(
    verbs: Any, name: str, line: str, usage: str, examples: str, run: Callable[[argparse.Namespace], int]
) -> Parser:
    """Declare a verb: a line on what it does, what follows it, examples that work as they stand, and its function."""
    verb: Parser = verbs.add_parser(
        name,
        help=line,
        usage=f"equipoise {name} {usage}",
        description=f"{line[0].upper()}{line[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show where an error arose")
    verb.set_defaults(run=run, parser=verb)
    return verb


def add_source(verb: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add DATA, and the options that choose its columns."""
    verb.add_argument(
        "data",
        metavar="DATA",
        nargs="?" if optional else None,
        help="a name that `equipoise data` lists; a file: .csv .tsv .parquet .feather .npy .npz .mtx .h5ad .zarr; a"
        " folder of images; or - for CSV from standard input",
    )
    group = verb.add_argument_group("data")
    group.add_argument(
        "--columns", metavar="A,B,…", type=column_names, help="columns to embed (default: all of numbers)"
    )
    group.add_argument("--label", metavar="COLUMN", help="column with the class of each row")
    group.add_argument("--id", metavar="COLUMN", help="column with the name of each row")


def add_data(verb: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add DATA, the options that choose its columns, and those that prepare them."""
    add_source(verb, optional=optional)
    group = verb.add_argument_group("preparation, in this order")
    group.add_argument("--log1p", action="store_true", help="take log(1 + x), as for counts")
    group.add_argument("--standardize", action="store_true", help="bring columns to mean 0 and deviation 1")
    group.add_argument("--pca", metavar="N", type=whole_number, help="go on with the first N principal components")


def column_names(text: str) -> list[str]:
    """Return the names between commas; for options."""
    return [name.strip() for name in text.split(",")]


def read_source(args: argparse.Namespace, columns: Sequence[str] | None = None) -> Dataset:
    """Return the data that the options ask for, as it is; of files with names `columns`, if none are asked for."""
    asked = {"columns": args.columns, "label": args.label, "id": args.id}
    if args.data not in data.DATASETS:
        if args.columns is None and args.data.lower().endswith(NAMED):
            asked["columns"] = columns
        return data.read(existing(args.data), **asked)
    for name, value in asked.items():
        if value is not None:
            raise ValueError(f"--{name} is for files; the columns of the bundled {args.data} have no names")
    return data.load(args.data)


def read_data(args: argparse.Namespace) -> Dataset:
    """Return the data that the options ask for, prepared."""
    dataset = read_source(args)
    return read_preparation(args, dataset).apply(dataset)


def read_preparation(args: argparse.Namespace, dataset: Dataset) -> data.Preparation:
    """Return how the options prepare a data set."""
    return data.preparation(dataset, standardize=args.standardize, log1p=args.log1p, pca=args.pca)


def existing(source: str) -> str:
    """Return the name of a file or folder that is there, or of standard input."""
    if source != STDIN and not Path(source).exists():
        what = did_you_mean(source, data.DATASETS, "digits is one of them")
        raise ValueError(f"{source!r} is neither a file nor a name that `equipoise data` lists; {what}")
    return source
