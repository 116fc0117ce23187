"""The command line: `equipoise embed digits`."""

from __future__ import annotations

import argparse
import io
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import __version__, data, methods
from ._types import Array
from .data import Dataset
from .engines import ENGINES
from .files import write_whole

METHODS = {method.__name__.lower(): method for method in methods.ALL}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 for bad input, 130 after Ctrl-C."""
    args = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            return int(args.run(args))
    except (ValueError, OSError, EOFError, ArithmeticError, RuntimeError, ImportError) as error:
        print(f"equipoise: error: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"equipoise: error: not enough memory: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("equipoise: interrupted before there was a map", file=sys.stderr)
        return 130


def _print_warning(message: Warning | str, *where: Any, **details: Any) -> None:
    print(f"equipoise: warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="equipoise", description="Maps of data, by attraction and repulsion.")
    parser.add_argument("--version", action="version", version=f"equipoise {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    embed = verbs.add_parser(
        "embed",
        help="embed a data set; writes NAME.csv and NAME.png",
        epilog="example: equipoise embed digits --method gsne --perplexity 50",
    )
    embed.add_argument("data", help="a name that `equipoise data` lists, or a .npy file with a table (n, D)")
    embed.add_argument("--method", choices=sorted(METHODS), default="tsne")
    embed.add_argument("--perplexity", type=float, default=None, help="effective number of neighbours (default: auto)")
    embed.add_argument("--neighbors", type=int, default=None, help="the same for methods on graphs, as umap and isomap")
    embed.add_argument("--components", type=int, default=None, help="dimension of the map (default: the method's own)")
    embed.add_argument("--iterations", type=int, default=None, help="iterations, at most (default: the method's own)")
    embed.add_argument("--engine", default=None, help=f"{', '.join(ENGINES)} (default: auto)")
    embed.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    embed.add_argument("--out", type=Path, default=Path("."), help="folder for the outputs (default: here)")
    embed.set_defaults(run=_embed)

    verbs.add_parser("data", help="list the bundled data sets and toy shapes").set_defaults(run=_list_data)
    return parser


def _list_data(args: argparse.Namespace) -> int:
    width = max(map(len, data.DATASETS))
    for name, description in data.DATASETS.items():
        print(f"{name:{width}s} {description}")
    return 0


def _embed(args: argparse.Namespace) -> int:
    dataset = _load(args.data)
    n, D = dataset.X.shape
    if not args.out.is_dir():
        raise ValueError(f"the output folder {str(args.out)!r} does not exist")
    progress = _Progress()
    given = {
        "n_components": args.components,
        "perplexity": args.perplexity,
        "n_neighbors": args.neighbors,
        "n_iter": args.iterations,
        "engine": args.engine,
    }
    method: Any = METHODS[args.method](random_state=args.seed, callbacks=[progress])
    closed = isinstance(method, methods.ClassicalEmbedding)  # nothing to iterate
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in method.get_params() or (closed and name == "n_iter"):
            raise ValueError(f"{args.method} has no {name}; see equipoise embed --help")
    method.set_params(**options)
    progress.total = "" if method.n_iter == "auto" else f" of {method.n_iter}"
    print(f"{dataset.name}: {n} rows, {D} columns; {type(method).__name__}, seed {args.seed}")
    start, interrupted = time.perf_counter(), False
    try:
        method.fit(dataset.X)
    except KeyboardInterrupt:
        if not hasattr(method, "embedding_"):
            raise
        interrupted = True
    if not closed:
        progress.finish()
    seconds = time.perf_counter() - start
    Y = method.embedding_
    stem = dataset.name if args.data in data.DATASETS else f"{dataset.name}-map"  # table.csv may be the user's own
    csv, png = args.out / f"{stem}.csv", args.out / f"{stem}.png"
    for path, content in (
        (csv, _csv(Y, dataset).encode()),
        (png, _png(Y, dataset, f"{dataset.name}, {type(method).__name__}")),
    ):
        with write_whole(path) as file:
            file.write(content)
    if interrupted:
        print(f"interrupted at iteration {method.n_iter_}; the map so far is in {csv} and {png}")
        return 130
    way = "in closed form" if closed else f"after {method.n_iter_} iterations"
    print(f"loss                {_number(method.loss_)} {way}, {seconds:.1f} s")
    _print_quality(Y, dataset)
    print(f"wrote               {csv} and {png}")
    return 0


class _Progress:
    """The loss as it falls: on one line in a terminal, line by line elsewhere."""

    def __init__(self) -> None:
        self.total = ""
        self.live = sys.stdout.isatty()

    def __call__(self, iteration: int, loss: float, Y: Array) -> None:
        line = f"iteration {iteration:5d}{self.total}   loss {_number(loss)}"
        print(f"\r{line}" if self.live else line, end="" if self.live else "\n", flush=True)

    def finish(self) -> None:
        if self.live:
            print()


def _number(loss: float) -> str:
    return f"{loss:.4f}" if abs(loss) < 1e4 else f"{loss:.4e}"


def _load(name: str) -> Dataset:
    if name.endswith(".npy"):
        X = np.load(name, allow_pickle=False)
        if X.ndim != 2:
            raise ValueError(f"{name} holds an array of shape {X.shape}; a table (rows, columns) is needed")
        return Dataset(Path(name).stem, X, None, ())
    if name not in data.DATASETS:
        raise ValueError(f"{name!r} is neither a .npy file nor a name that `equipoise data` lists, such as digits")
    return data.load(name)


def _csv(Y: Array, dataset: Dataset) -> str:
    names = [f"y{c + 1}" for c in range(Y.shape[1])]
    rows = [[f"{value:.6g}" for value in row] for row in Y]
    if dataset.labels is not None:
        names.append("class")
        for row, label in zip(rows, dataset.labels, strict=True):
            row.append(dataset.classes[label])
    return "\n".join(",".join(row) for row in [names, *rows]) + "\n"


def _png(Y: Array, dataset: Dataset, title: str) -> bytes:
    from .views.plot import plot

    buffer = io.BytesIO()
    names = None if dataset.labels is None else dataset.classes
    plot(Y, dataset.labels, names=names, title=title).savefig(buffer, format="png")
    return buffer.getvalue()


def _print_quality(Y: Array, dataset: Dataset) -> None:
    from .evaluate import neighbor_recall, one_nn_error

    k = min(10, len(Y) - 1)
    print(f"neighbours kept     {neighbor_recall(dataset.X, Y, k):.1%} of the {k} nearest")
    if dataset.labels is not None:
        print(f"1-NN class error    {one_nn_error(Y, dataset.labels):.1%} (10-fold)")


if __name__ == "__main__":
    sys.exit(main())
