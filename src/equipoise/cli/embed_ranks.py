"""`equipoise embed DATA --ranks N`: make a map over several processes of this machine."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import data, progress
from .._plural import plural
from .._types import Array
from ..data import Dataset
from ..distributed import Group, RankMap, fit, run_ranks
from ..distributed.rank_fit import check_fit
from ..distributed.row_source import RowSource
from ..distributed.row_sources import open_rows
from ..engines import choose_device
from ..saving.checkpoint import Checkpoint
from .annotated_output import annotated_output
from .console import Console
from .map_files import known_classes
from .options import STDIN, existing
from .outputs import Outputs, check_writable, choose_outputs, join_names, report_written
from .read_table import is_columnwise
from .write_map import write_outputs

BLOCKS = ".zarr"  # a map that the ranks write in blocks of rows
# Options that need the whole table.
READ_WHOLE = (
    *("columns", "exclude", "label", "id", "transpose", "use_rep", "layer", "keep", "encoding"),
    *("normalize_total", "log1p", "standardize", "save"),
)
FUNCTION = "equipoise.cli.rank_command:embed_rank"


def run(args: argparse.Namespace, method: Any, checkpoints: Sequence[Checkpoint]) -> int:
    """Check the options, and embed the data over `args.ranks` processes of this machine."""
    _refuse(args)
    if is_columnwise(method.get_params().get("metric")):
        raise ValueError(
            "--metric mixed needs the ranges of the whole table, but --ranks read it in blocks; omit --ranks, or choose"
            " the metric euclidean, cosine or correlation"
        )
    dataset, source = _open(args)
    check_fit(method, source.shape[0])
    _outputs(args, dataset)
    for checkpoint in checkpoints:
        checkpoint.check()
    on_gpus = choose_device(method.engine, method.device)[1] == "cuda"
    variables = {"EQUIPOISE_BACKEND": os.environ.get("EQUIPOISE_BACKEND") or "auto"} if on_gpus else {}
    run_ranks(FUNCTION, args.ranks, [args.words], variables=variables, interactive=True)
    return 0


def embed(group: Group, args: argparse.Namespace, method: Any, checkpoints: Sequence[Checkpoint], bars: bool) -> None:
    """Embed the data as one rank; rank 0 prints, draws and writes."""
    stop = _StopOnInterrupt(group)
    dataset, source = _open(args)
    outputs = _outputs(args, dataset)
    console = Console(sys.stderr if outputs is not None and outputs.to_stdout else sys.stdout)
    say = console.print if group.rank == 0 else _silent
    (n, D), kind = source.shape, type(method).__name__
    size = f"{plural(n, 'row')}, {plural(D, 'column')}"
    say(f"{dataset.name}: {size}; {kind}, seed {method.random_state}, {plural(group.size, 'rank')}")
    console.total = f" of {method.resolve_n_iter(n)}"
    method.set_params(callbacks=[stop, *checkpoints] if bars else [stop, console, *checkpoints])
    start = time.perf_counter()
    result = fit(method, source, group=group, n_columns=args.pca)
    seconds = time.perf_counter() - start
    title, files = f"{dataset.name}, {kind}", [] if outputs is None else outputs.files
    if outputs is None:
        result.write(args.out)
        files = [Path(args.out)]
    elif (Y := result.gather()) is not None:
        into = annotated_output(args, outputs, method, n, args.pca is not None)
        write_outputs(outputs, Y, dataset, title, geometry=method.fit_plan(n).geometry, into=into)
    if group.broadcast_value(stop.asked):
        say(f"interrupted at iteration {result.n_iter}; the map so far is in {join_names(files)}")
        return
    after = f"{plural(result.n_iter, 'iteration')}, {seconds:.1f} s"
    say(f"loss                {progress.format_loss(result.loss)} after {after}")
    _print_quality(say, result, dataset)
    if group.rank == 0:
        report_written(files, console.print)


def _refuse(args: argparse.Namespace) -> None:
    """Raise ValueError if an option does not work over ranks."""
    if args.ranks < 1:
        raise ValueError(f"--ranks {args.ranks} must be at least 1")
    for name in READ_WHOLE:
        if getattr(args, name):
            _raise_whole(name)
    if args.missing != "error":
        _raise_whole("missing")
    if args.data == STDIN:
        raise ValueError("--ranks cannot read standard input, as every rank reads a part of the table; pass a file")


def _raise_whole(name: str) -> NoReturn:
    option = name.replace("_", "-")
    raise ValueError(f"--{option} needs the whole table, but --ranks read it in blocks; omit one of them")


def _open(args: argparse.Namespace) -> tuple[Dataset, RowSource]:
    """Return the table in blocks of rows, and a data set with its name and, if it is bundled, its classes."""
    if args.data in data.DATASETS:
        dataset = data.load(args.data)
        return dataset, open_rows(np.asarray(dataset.X))
    source = open_rows(Path(existing(args.data)))
    nothing = np.broadcast_to(np.float32(0), (source.shape[0], 1))  # takes no memory
    return Dataset(Path(args.data).stem, nothing, None, ()), source


def _outputs(args: argparse.Namespace, dataset: Dataset) -> Outputs | None:
    """Return the files to write; None if --out is a Zarr array, which the ranks write together."""
    out = Path(args.out)
    if out.suffix.lower() != BLOCKS:
        return choose_outputs(args, dataset.name)
    if args.plot or args.format:
        raise ValueError(f"--out {args.out} is written in blocks, without plots; omit --plot and --format")
    check_writable(out.with_suffix(".partial"))
    return None


def _silent(line: str) -> None:
    """Print nothing."""


def _print_quality(say: Any, result: RankMap, dataset: Dataset) -> None:
    """Measure the map on a sample and print the result; all ranks call this function."""
    labels = known_classes(dataset)
    missing = 0 if labels is None else int(np.ma.getmaskarray(labels).sum())
    found = result.evaluate(None if missing else labels, k=min(10, result.shared.partition.n - 1))
    say(f"neighbours kept     {found.recall:.1%} of the {found.k} nearest, on {plural(found.n_sample, 'point')}")
    if found.accuracy is not None:
        say(f"1-NN class error    {1 - found.accuracy:.1%} on these points")
    elif missing:
        say(f"1-NN class error    not measured: {plural(missing, 'row')} without a label")


class _StopOnInterrupt:
    """A callback that stops all ranks after SIGINT on rank 0; before the descent, SIGINT ends the rank."""

    def __init__(self, group: Group):
        self.asked, self._descends = False, False
        if group.rank == 0:
            signal.signal(signal.SIGINT, self._ask)

    def _ask(self, number: int, frame: Any) -> None:
        if not self._descends:
            raise KeyboardInterrupt
        self.asked = True
        print("stopping at the next report; Ctrl-C again ends the ranks at once", file=sys.stderr)

    def __call__(self, iteration: int, loss: float, Y: Array) -> bool:
        self._descends = True
        return self.asked
