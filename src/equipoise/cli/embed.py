"""`equipoise embed`: a map of a table, with its picture and how good it is."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import progress
from ..data import Dataset
from ..data.read.wanted import listed
from ..methods import MDS, PCA, ClassicalMDS, Isomap
from ..saving.checkpoint import Checkpoint
from .console import Screen, counted
from .map_files import class_of_each
from .method_options import add_parameters, given_parameters, in_closed_form, make_method
from .options import add_data, add_verb, read_preparation, read_source
from .outputs import add_outputs, choose_outputs, in_words, tell_written, writable
from .saved_model import keep
from .write_map import write

EXAMPLES = """\
  equipoise embed digits
  equipoise embed digits --method umap --n-neighbors 30 --min-dist 0.5
  equipoise embed iris --method symmetricsne --kernel "StudentT(dof=0.5)"
  equipoise embed wine --plot svg,html --out maps
  equipoise embed iris --save iris.eq && equipoise transform iris.eq iris --out new
  equipoise embed iris --checkpoint run.eqc
  equipoise embed iris --checkpoint run.eqc --resume
  equipoise embed - --label class --out - < iris.csv > again.csv
  equipoise embed --method umap --help"""


def add(verbs: Any, method: str) -> None:
    """Declare the verb, with the parameters of one method."""
    verb = add_verb(verbs, "embed", "make a map of a data set: NAME.csv and NAME.png", "DATA [options]", EXAMPLES, run)
    add_data(verb)
    group = add_outputs(verb)
    group.add_argument(
        "--save", metavar="FILE", type=writable, help="keep the fitted method, for `transform`, `evaluate` and `plot`"
    )
    group.add_argument(
        "--checkpoint", metavar="FILE", type=writable, help="keep the state of the run every 50 iterations"
    )
    group.add_argument("--resume", action="store_true", help="go on from the checkpoint, to the same bytes")
    add_parameters(verb, method, several=False)


def run(args: argparse.Namespace) -> int:
    """Read, embed, write, and say how good the map is."""
    method = make_method(args, given_parameters(args))
    checkpoints = _checkpoints(args, method)
    with progress.shown() as seen:
        source = read_source(args)
        preparation = read_preparation(args, source)
        columns, dataset = source.columns, preparation.apply(source)
        del source  # the prepared table is enough
        outputs = choose_outputs(args, dataset.name)
        screen = Screen(sys.stderr if outputs.map is None else sys.stdout)
        (n, D), kind = dataset.X.shape, type(method).__name__
        screen.say(f"{dataset.name}: {counted(n, 'row')}, {counted(D, 'column')}; {kind}, seed {method.random_state}")
        if columns and args.columns is None and Path(args.data).is_file():
            screen.say(f"columns             {listed(columns)}")
        screen.total = "" if method.n_iter == "auto" else f" of {method.n_iter}"
        method.set_params(callbacks=checkpoints if seen else [screen, *checkpoints])
        start, interrupted = time.perf_counter(), False
        try:
            method.fit(dataset.X)
        except KeyboardInterrupt:
            if not hasattr(method, "embedding_"):
                raise KeyboardInterrupt("before there was a map") from None
            interrupted = True
    seconds = time.perf_counter() - start
    write(outputs, method.embedding_, dataset, f"{dataset.name}, {kind}")
    if interrupted:
        screen.say(f"interrupted at iteration {method.n_iter_}; the map so far is in {in_words(outputs.files)}")
        return 130
    if args.save is not None:
        keep(method, args.save, preparation, columns)
    screen.say(f"{_success(method)}, {seconds:.1f} s")
    _say_quality(screen, method, dataset)
    tell_written([*outputs.files, *([] if args.save is None else [args.save])], screen.say)
    return 0


def _checkpoints(args: argparse.Namespace, method: Any) -> list[Checkpoint]:
    if args.checkpoint is None:
        if args.resume:
            raise ValueError("--resume goes on from a checkpoint; say which, with --checkpoint FILE")
        return []
    if in_closed_form(method):
        raise ValueError(f"{args.method} is computed in closed form, so there is nothing to keep in a checkpoint")
    return [Checkpoint(args.checkpoint, resume=args.resume)]


def _success(method: Any) -> str:
    """Return how far the method came, in the measure of its kind."""
    way = "in closed form" if in_closed_form(method) else f"after {counted(method.n_iter_, 'iteration')}"
    if isinstance(method, PCA):
        return f"variance kept       {method.explained_variance_ratio_.sum():.1%} {way}"
    if isinstance(method, ClassicalMDS | Isomap):  # E = ‖B − YYᵀ‖², least at ‖B‖² − Σλ²
        kept = float(np.square(np.maximum(method.eigenvalues_, 0.0)).sum())
        return f"Gram matrix kept    {kept / (kept + method.loss_) if kept else 0.0:.1%} {way}"
    if isinstance(method, MDS):
        return f"stress-1            {method.stress_1_:.4f} {way}"
    return f"loss                {progress.format_loss(method.loss_)} {way}"


def _say_quality(screen: Screen, method: Any, dataset: Dataset) -> None:
    from ..evaluate import neighbor_recall, one_nn_error

    Y = method.embedding_
    settings = method.get_params()
    k = min(10, len(Y) - 1)
    try:
        if settings.get("affinity") == "precomputed":
            raise ValueError("affinities are no distances")
        metric = settings.get("metric", "euclidean")
        screen.say(f"neighbours kept     {neighbor_recall(dataset.X, Y, k, metric=metric):.1%} of the {k} nearest")
    except ValueError as error:
        screen.say(f"neighbours kept     not measured: {error}")
    if dataset.labels is None:
        return
    try:
        screen.say(f"1-NN class error    {one_nn_error(Y, class_of_each(dataset)):.1%} (10-fold)")
    except ValueError as error:
        screen.say(f"1-NN class error    not measured: {error}")
