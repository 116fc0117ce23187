"""Add verbs such as `embed` to the command line, and the arguments for data that several verbs share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from .. import data
from .._suggest import did_you_mean
from ..data import Dataset
from ..data.read.selection import Selection
from ..methods.parameter_names import equivalent_parameter
from .option_values import integer

STDIN = "-"
UNNAMED_COLUMNS = (".npy", ".npz", ".mtx", ".mtx.gz")  # files whose columns have no names
NAMED_COLUMNS = (*(suffix for suffix in data.READERS if suffix not in UNNAMED_COLUMNS), STDIN)


class Parser(argparse.ArgumentParser):
    """A parser that prints errors on one line and suggests corrections."""

    def error(self, message: str) -> NoReturn:
        """Print an error on one line and exit with code 2."""
        usage = " ".join(self.format_usage().split())
        print(f"equipoise: error: {message} ({usage}; see --help)", file=sys.stderr)
        sys.exit(2)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [*map(str, action.choices)]
            suggestion = did_you_mean(str(value), known, f"choose from {', '.join(known)}")
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {suggestion}")

    def reject(self, words: Sequence[str]) -> NoReturn:
        """Exit with an error about unknown arguments."""
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        known = self._option_string_actions
        suggestions = (suggest_option(word, known) for word in options)
        suggestion = next((f"; {suggestion}" for suggestion in suggestions if suggestion), "")
        plural = "s" if len(options) > 1 else ""
        self.error(f"unknown argument{plural}: {' '.join(words)}{suggestion}")


def suggest_option(word: str, known: Iterable[str]) -> str:
    """Return "use --n-iter" for an option such as --n-epochs of another library, or "did you mean ...?", or ""."""
    parameters = {name.removeprefix("--").replace("-", "_"): name for name in known}
    ours = equivalent_parameter(word.removeprefix("--").replace("-", "_"), parameters)
    return f"use {parameters[ours]}" if ours is not None else did_you_mean(word, parameters.values(), "")


def add_verb(
    verbs: Any, name: str, line: str, usage: str, examples: str, run: Callable[[argparse.Namespace], int]
) -> Parser:
    """Add a verb, such as `embed`, to the command line.

    Parameters
    ----------
    verbs : argparse subparsers
    name : str
    line : str
        Description in one line: an imperative phrase that starts in lower case.
    usage : str
        The arguments, as shown in the usage line.
    examples : str
        Example commands for the help text.
    run : callable
        Takes the parsed arguments and returns the exit code.

    Returns
    -------
    verb : Parser
        The parser of the verb.
    """
    verb: Parser = verbs.add_parser(
        name,
        help=line,
        usage=f"equipoise {name} {usage}",
        description=f"{line[0].upper()}{line[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="print the traceback of an error")
    verb.set_defaults(run=run, parser=verb)
    return verb


def add_source(verb: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the argument DATA and the options that choose columns."""
    verb.add_argument(
        "data",
        metavar="DATA",
        nargs="?" if optional else None,
        help="a data set listed by `equipoise data`; a file (.csv .tsv .xlsx .parquet .feather .npy .npz .mtx .h5ad .h5"
        " .zarr); a folder of images or of 10x Genomics; or - for CSV on standard input",
    )
    group = verb.add_argument_group("data")
    group.add_argument(
        "--columns",
        metavar="A,B,…",
        type=column_names,
        help="columns to use (default: those of the saved model, if there is one, else all numeric columns)",
    )
    group.add_argument("--exclude", metavar="A,B,…", type=column_names, help="columns not to use")
    group.add_argument("--label", metavar="COLUMN", help="column with the classes")
    group.add_argument("--id", metavar="COLUMN", help="column with the names of the rows")
    group.add_argument("--transpose", action="store_true", help="exchange rows and columns of the file")
    group.add_argument("--encoding", metavar="NAME", help="encoding of a CSV or TSV, such as cp1252 (default: UTF-8)")
    group.add_argument("--use-rep", metavar="KEY", help="table of obsm to use in an AnnData file (default: X)")
    group.add_argument("--layer", metavar="KEY", help="layer to use in an AnnData file (default: X)")


def add_data(verb: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add the argument DATA and the options that choose and prepare columns."""
    add_source(verb, optional=optional)
    group = verb.add_argument_group("preparation, applied in this order")
    group.add_argument(
        "--normalize-total",
        action="store_true",
        help="for counts of genes in cells: scale each row to the median of the rows' totals, then --log1p",
    )
    group.add_argument("--log1p", action="store_true", help="replace x by log(1 + x), for example for counts")
    group.add_argument("--standardize", action="store_true", help="scale columns to mean 0 and standard deviation 1")
    group.add_argument("--pca", metavar="N", type=integer, help="use the first N principal components")


def column_names(text: str) -> list[str]:
    """Split comma-separated names; used as an argparse type."""
    return [name.strip() for name in text.split(",")]


def read_source(args: argparse.Namespace, columns: Sequence[str] | None = None, every_kind: bool = False) -> Dataset:
    """Read the data without preparation; if --columns is missing, use `columns` for files with named columns.

    If `every_kind`, text and missing values of text tables and Parquet and Feather files are kept.
    """
    selected: dict[str, Any] = {"columns": args.columns, "label": args.label, "id": args.id}
    selected |= {"use_rep": args.use_rep, "layer": args.layer, "encoding": args.encoding}
    if args.data not in data.DATASETS:
        if args.columns is None and args.data.lower().endswith(NAMED_COLUMNS) and not args.transpose:
            selected["columns"] = columns
        exclude = [] if args.exclude is None else args.exclude
        selected |= {"transpose": args.transpose, "every_kind": every_kind, "exclude": exclude}
        return data.read(existing(args.data), **selected)
    for name, value in {**selected, "transpose": args.transpose or None, "exclude": args.exclude}.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} applies to files only; omit it for the bundled data set {args.data}")
    return data.load(args.data)


def keep_columns(dataset: Dataset, names: Sequence[str] | None, source: str) -> Dataset:
    """Return a data set whose columns of these names are also among the columns that are copied into the map.

    The names ["all"] stand for all columns. Error messages name the file `source`.
    """
    if names is None:
        return dataset
    columns = list(dataset.columns)
    if not columns:
        raise ValueError(f"{source} has no column names; omit --keep")
    chosen = columns if list(names) == ["all"] and "all" not in columns else list(names)
    others = [name for name in chosen if name not in dataset.extra and name != dataset.label]
    Selection(tuple(others)).check(columns, source)
    table = dataset.X[:, [columns.index(name) for name in others]]
    values = table.toarray() if sparse.issparse(table) else np.asarray(table)
    kept = {name: values[:, j].astype(np.float64) for j, name in enumerate(others)}
    return replace(dataset, extra={**kept, **dataset.extra})


def read_data(args: argparse.Namespace) -> Dataset:
    """Read and prepare the data."""
    dataset = read_source(args)
    return read_preparation(args, dataset).apply(dataset)


def read_preparation(args: argparse.Namespace, dataset: Dataset) -> data.Preparation:
    """Return the preparation requested by the options."""
    return data.preparation(dataset, **preparation_steps(args))


def preparation_steps(args: argparse.Namespace) -> dict[str, Any]:
    """Return the steps that the options request, as arguments of `data.preparation`."""
    log1p = args.log1p or args.normalize_total
    steps = {"standardize": args.standardize, "log1p": log1p, "pca": args.pca}
    return steps | ({"normalize_total": True} if args.normalize_total else {})


def existing(source: str) -> str:
    """Return `source` if it exists or is standard input; raise ValueError otherwise."""
    if source != STDIN and not Path(source).exists():
        suggestion = did_you_mean(source, data.DATASETS, "run `equipoise data` for a list")
        raise ValueError(f"{source!r} is neither a file nor a bundled data set; {suggestion}")
    return source
