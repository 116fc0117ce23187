"""`equipoise embed`: make a map of a data set."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .. import progress
from .._plural import plural
from .._warn import LeftOutWarning, UnfinishedWarning
from ..arrays.namespace import is_auto
from ..data import Dataset
from ..methods import MDS
from ..methods.quality import describe_quality
from ..optimize.rules import GAP, MAX_ITER
from ..saving.checkpoint import Checkpoint
from . import embed_ranks
from .annotated_output import annotated_output
from .console import Console
from .data_lines import print_data
from .geometry_option import as_option
from .interrupts import describe, exit_code
from .map_files import class_names, known_classes, require_classes, unlabelled
from .method_options import add_parameters, given_parameters, is_closed_form, make_method
from .option_values import integer
from .options import add_data, add_verb
from .outputs import add_outputs, choose_outputs, join_names, report_written, wants_page, writable
from .read_table import add_missing, read_for
from .saved_model import save_model
from .write_map import write_outputs

EXAMPLES = """\
  equipoise embed digits
  equipoise embed digits --method umap --n-neighbors 30 --min-dist 0.5
  equipoise embed iris --method symmetricsne --kernel "StudentT(dof=0.5)"
  equipoise embed iris --geometry torus:60
  equipoise embed wine --plot svg,html --out maps
  equipoise embed digits --out digits.html
  equipoise embed wine --metric mixed
  equipoise embed iris --save iris.eq && equipoise transform iris.eq iris --out new
  equipoise embed iris --checkpoint run.eqc
  equipoise embed iris --checkpoint run.eqc --resume
  equipoise embed big.zarr --ranks 4 --pca 50 --out map.zarr
  equipoise embed - --label class --out - < iris.csv > again.csv
  equipoise embed --method umap --help"""


def add(verbs: Any, method: str) -> None:
    """Add the verb `embed` to the command line, with options for the parameters of one method."""
    verb = add_verb(verbs, "embed", "make a map of a data set and a plot of it", "DATA [options]", EXAMPLES, run)
    add_data(verb)
    add_missing(verb)
    group = add_outputs(verb)
    group.add_argument(
        "--save",
        metavar="FILE",
        type=writable,
        help="save the fitted method, for `transform`, `evaluate`, `compare` and `plot`",
    )
    group.add_argument(
        "--checkpoint", metavar="FILE", type=writable, help="save the state every 50 iterations, for --resume"
    )
    group.add_argument(
        "--resume", action="store_true", help="continue from the checkpoint, to the same map as without interruption"
    )
    verb.add_argument_group("several processes").add_argument(
        "--ranks",
        metavar="N",
        type=integer,
        help="divide the work among N processes, which read DATA in blocks (.npy .zarr .h5ad .parquet); the map has the"
        " same bytes for any N; --out FILE.zarr is written in blocks too",
    )
    add_parameters(verb, method, several=False)


def run(args: argparse.Namespace) -> int:
    """Read the data, embed them, write the map and print its quality."""
    method = make_method(args, given_parameters(args))
    checkpoints = read_checkpoints(args, method)
    if args.ranks is not None:
        return embed_ranks.run(args, method, checkpoints)
    with progress.shown() as bars:
        table = read_for(method, args, wants_page(args))
        dataset, preparation, columns = table.dataset, table.preparation, table.columns
        outputs = replace(choose_outputs(args, dataset.name), details=table.details)
        into = annotated_output(args, outputs, method, dataset.X.shape[0], not preparation.is_identity)
        console = Console(sys.stderr if outputs.to_stdout else sys.stdout)
        print_data(console, args, table, method, method.random_state)
        n, kind = dataset.X.shape[0], type(method).__name__
        total = resolve(n) if (resolve := getattr(method, "resolve_n_iter", None)) else method.n_iter
        console.total = "" if is_auto(total) else f" of {total}"
        method.set_params(callbacks=checkpoints if bars else [console, *checkpoints])
        start = time.perf_counter()
        interrupted: KeyboardInterrupt | None = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnfinishedWarning)  # printed with the result
                warnings.simplefilter("ignore", LeftOutWarning)  # printed above
                method.fit(dataset.X)
        except KeyboardInterrupt as interrupt:
            if not hasattr(method, "n_iter_"):
                raise type(interrupt)("before the first map") from None
            interrupted = interrupt
    seconds, geometry = time.perf_counter() - start, getattr(method, "geometry_", None)
    write_outputs(outputs, method.embedding_, dataset, f"{dataset.name}, {kind}", geometry=geometry, into=into)
    if interrupted is not None:
        where = join_names(outputs.files) if outputs.files else "standard output"
        console.print(f"{describe(interrupted)} at iteration {method.n_iter_}; the map so far is in {where}")
        return exit_code(interrupted)
    if args.save is not None:
        save_model(method, args.save, preparation, columns, class_names(dataset))
    console.print(f"{_result(method)}, {seconds:.1f} s")
    if (space := as_option(geometry)) is not None:
        console.print(f"geometry            {space}; pass --geometry {space} with the map, as it does not contain it")
    if (gain := getattr(method, "remaining_gain_", 0.0)) >= GAP:
        amount = "unknown after so few iterations" if gain == np.inf else f"up to about {gain:.0%} of the loss"
        console.print(f"remaining gain      {amount}; {_advice(method)}")
    _print_quality(console, method, dataset)
    if into is not None:
        console.print(f"added               obsm['X_{into.name}'] to a copy of {args.data}")
    report_written([*outputs.files, *([] if args.save is None else [args.save])], console.print)
    return 0


def read_checkpoints(args: argparse.Namespace, method: Any) -> list[Checkpoint]:
    """Return the checkpoint that the options describe, if any."""
    if args.checkpoint is None:
        if args.resume:
            raise ValueError("--resume needs a checkpoint; add --checkpoint FILE")
        return []
    if is_closed_form(method):
        raise ValueError(f"{args.method} is computed in closed form and has no checkpoints; omit --checkpoint")
    return [Checkpoint(args.checkpoint, resume=args.resume)]


def _result(method: Any) -> str:
    """Return a line with the loss, followed by "after … iterations" or, without iterations, "in closed form".

    For PCA, classical MDS, Isomap and MDS a more readable measure replaces the loss.
    """
    how = "in closed form" if is_closed_form(method) else f"after {plural(method.n_iter_, 'iteration')}"
    name, value = describe_quality(method)
    return f"{name:<20}{value} {how}"


def _advice(method: Any) -> str:
    """Return what to do about a large remaining gain."""
    if isinstance(method, MDS):
        if method.n_iter_ < (MAX_ITER if is_auto(method.n_iter) else method.n_iter):
            return f"a --tol below {method.tol:g} continues beyond it"
        if not is_auto(method.n_iter):
            return (
                f"--n-iter auto runs until ten iterations lower the loss by less than {method.tol:g} of it (--tol), at"
                f" most {MAX_ITER:,} iterations"
            )
    if is_auto(method.n_iter):
        return f"pass a number above {MAX_ITER:,} to --n-iter to continue beyond it"
    return f"--n-iter auto runs until it is below {GAP:.0%}"


def _print_quality(console: Console, method: Any, dataset: Dataset) -> None:
    from ..evaluate import neighbor_recall, one_nn_error
    from ..evaluate.checks import precomputed_input

    k = min(10, len(method.embedding_) - 1)
    try:
        if (found := precomputed_input(method)) is not None:
            raise ValueError(f"X contains {found[1]}, not distances; pass the original table to `equipoise evaluate`")
        metric = method.get_params().get("metric", "euclidean")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LeftOutWarning)
            kept = neighbor_recall(dataset.X, method, k, metric=metric)
        console.print(f"neighbours kept     {kept:.1%} of the {k} nearest")
    except ValueError as error:
        console.print(f"neighbours kept     not measured: {error}")
    if dataset.labels is None:
        return
    try:
        require_classes(dataset)
        labels = known_classes(dataset)
        how = "; ".join(filter(None, ("cross-validated", unlabelled(labels))))
        console.print(f"1-NN class error    {one_nn_error(method, labels):.1%} ({how})")
    except ValueError as error:
        console.print(f"1-NN class error    not measured: {error}")
