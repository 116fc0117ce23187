"""Read tables with missing values and columns of every kind, as --missing and --metric say."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..data import Dataset, Preparation, preparation
from ..data.missing import drop_incomplete_rows, fill_values, is_frame_of_columns, keep_numbers, side_columns
from ..data.read.selection import Selection
from ..mixed import Mixed
from ..mixed.gaps import describe_gaps
from .hints import date_hints, hints
from .options import keep_columns, preparation_steps, read_source
from .outputs import NOTHING, PageDetails
from .page_details import page_details

CHOICES = ("error", "distance", "mean", "median", "drop")
COLUMNS = "mixed"  # the metric over columns of every kind, by name


@dataclass(frozen=True)
class Table:
    """The prepared data, their preparation, the metric, and lines that say what was done.

    `columns` are the names of the columns that were read, before the preparation. `hints` say which columns may be
    better treated in another way, and `mentioned` names columns that are left out and that the notes name.
    `details` are what a page shows of the data, before the preparation.
    """

    dataset: Dataset
    preparation: Preparation
    metric: Any
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    details: PageDetails = NOTHING


def add_missing(verb: argparse.ArgumentParser) -> None:
    """Add --missing to a verb that reads data."""
    verb.add_argument_group("missing values").add_argument(
        "--missing",
        choices=CHOICES,
        default="error",
        metavar="HOW",
        help="error (default; with --metric mixed: distance); distance: compare rows in the columns where both have a"
        " value; mean or median: fill in that of the column; drop: drop rows with missing values",
    )


def is_columnwise(metric: Any) -> bool:
    """Return whether a metric compares columns of every kind."""
    return isinstance(metric, Mixed) or (isinstance(metric, str) and metric == COLUMNS)


def read_table(args: argparse.Namespace, metric: Any, for_page: bool = False) -> Table:
    """Read and prepare the data that the options describe, for a metric, with details for a page if requested."""
    missing = getattr(args, "missing", "error")
    if missing == "error" and not is_columnwise(metric):
        source = read_source(args)
        steps = preparation(source, **preparation_steps(args))
        advice = tuple(hints(source, metric, args.standardize))
        details = _details(args, source) if for_page else NOTHING
        return Table(steps.apply(_keep(args, source)), steps, metric, source.columns, hints=advice, details=details)
    source = read_source(args, every_kind=True)
    if is_columnwise(metric):
        source, notes = _drop(source) if missing == "drop" else (source, ())
        _refuse_steps(args, "--metric mixed compares columns in units of their ranges")
        metric = Mixed(missing=missing) if missing in ("mean", "median") else metric
        described = Mixed(missing=metric.missing if isinstance(metric, Mixed) else "distance").describe(source.X)
        details = _details(args, source) if for_page else NOTHING
        lines = (*_aligned(described), *notes)
        advice = tuple(date_hints(source.X)) if is_frame_of_columns(source.X) else ()
        return Table(_keep(args, source), Preparation(), metric, source.columns, lines, advice, details=details)
    return _numeric_table(args, source, missing, metric, for_page)


def read_for(method: Any, args: argparse.Namespace, for_page: bool = False) -> Table:
    """Read and prepare the data for a method, and set its metric to the one that --missing requires."""
    table = read_table(args, method.get_params().get("metric"), for_page)
    if table.metric is not None:
        method.set_params(metric=table.metric)
    return table


def _drop(source: Dataset) -> tuple[Dataset, tuple[str, ...]]:
    """Return a data set without the rows that have a gap, and a line that says how many these are."""
    source, text = drop_incomplete_rows(source)
    return source, (f"missing             {text}",) if text else ()


def _numeric_table(args: argparse.Namespace, source: Dataset, missing: str, metric: Any, for_page: bool) -> Table:
    """Return the numbers of a table, whose gaps are filled in or kept, or without the rows that have one."""
    left_out, side = "", set(source.extra)
    if is_frame_of_columns(source.X):
        source, left_out = keep_numbers(source, args.columns)
    source, dropped = _drop(source) if missing == "drop" else (source, ())  # gaps of other columns do not count
    notes = ((f"left out            {left_out}",) if left_out else ()) + dropped
    gaps = describe_gaps(source.X)
    if missing == "distance":
        if metric is None:
            raise ValueError(
                "--missing distance needs a method with the parameter --metric; use --missing mean, median or drop, or"
                " --method classicalmds"
            )
        if metric not in ("euclidean", "nan_euclidean"):
            raise ValueError(f"--missing distance needs the metric euclidean, nan_euclidean or mixed, not {metric}")
        _refuse_steps(args, "--missing distance compares the columns as they are")
        how, steps = "rows are compared in the columns where both have a value", Preparation(gaps=True)
        metric = "nan_euclidean"
    elif missing in ("mean", "median"):
        how = f"filled in by the {missing}"
        fill = Preparation(fill=fill_values(source, missing))
        steps = replace(preparation(fill.apply(source), **preparation_steps(args)), fill=fill.fill)
    else:
        how, steps = "", preparation(source, **preparation_steps(args))
    notes += (f"missing             {gaps}; {how}",) if gaps else ()
    mentioned = tuple(name for name in source.extra if name not in side)
    advice = tuple(hints(replace(source, extra={}), metric, args.standardize))
    table = Table(steps.apply(_keep(args, source)), steps, metric, source.columns, notes, advice, mentioned)
    return replace(table, details=_details(args, source)) if for_page else table


def read_like(args: argparse.Namespace, columns: Sequence[str] | None, prepared: Preparation, metric: Any) -> Dataset:
    """Read data and prepare them as for a saved method with this preparation and metric."""
    columnwise = is_columnwise(metric)
    source = read_source(args, columns, every_kind=columnwise or prepared.gaps or prepared.fill is not None)
    if is_frame_of_columns(source.X) and not columnwise:
        source, _ = keep_numbers(source, columns)
    return prepared.apply(_keep(args, source))


def _details(args: argparse.Namespace, source: Dataset) -> PageDetails:
    """Return what a page shows of the data besides the columns of --keep, which are copied into the map."""
    kept = getattr(args, "keep", None) or ()
    return page_details(source, source.columns if list(kept) == ["all"] else kept)


def _keep(args: argparse.Namespace, dataset: Dataset) -> Dataset:
    """Return a data set that also has the columns of --keep among those that are copied into the map."""
    names = getattr(args, "keep", None)
    if names is None or not is_frame_of_columns(dataset.X):
        return keep_columns(dataset, names, args.data)
    chosen = dataset.columns if list(names) == ["all"] else [name for name in names if name not in dataset.extra]
    Selection(tuple(chosen)).check(dataset.columns, args.data)
    return replace(dataset, extra={**side_columns(dataset.X, chosen), **dataset.extra})


def _refuse_steps(args: argparse.Namespace, reason: str) -> None:
    for name in ("normalize_total", "log1p", "standardize", "pca"):
        if getattr(args, name):
            raise ValueError(f"{reason}; omit --{name.replace('_', '-')}")


def _aligned(text: str) -> tuple[str, ...]:
    """Return the lines "key: text" of a description in the columns of the output."""
    lines = (line.partition(": ") for line in text.splitlines())
    return tuple(f"{key:<20}{rest}" for key, _, rest in lines)
