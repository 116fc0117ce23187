"""Command lines: verbs with options of every kind, on a small table of any contents."""

from __future__ import annotations

import csv
import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from equipoise.cli import main

from .files import draw_read, table_text
from .values import choose

METHODS = (
    "tsne", "umap", "pca", "mds", "isomap", "lle", "gsne", "powersne", "sne", "dklle", "dkpca", "classicalmds",
    "sphericalsne", "symmetricsne", "laplacianeigenmaps", "nothing",
)  # fmt: skip
OPTIONS = (
    "--perplexity", "--n-components", "--n-neighbors", "--tol", "--seed", "--random-state", "--metric", "--pca",
    "--init", "--engine", "--beta", "--eta", "--dof", "--learning-rate", "--label", "--id", "--columns", "--save",
    "--format", "--plot", "--n-jobs", "--k",
)  # fmt: skip
WORDS = (
    "1", "2", "5", "0", "-1", "1e9", "1e-300", "1e300", "nan", "inf", "auto", "a", "1,2", "none", "", "pca", "grid",
    "precomputed", "cosine", "png", "csv", "10" * 20, "<b>", "../x", "a,b", "class",
)  # fmt: skip
ERROR = "equipoise: error: "


class ClearLine(Exception):
    """The command ended with one line that says what is wrong."""


class BadOutput(Exception):
    """The command ended without a map and without one clear line."""


def draw_command(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a verb, the contents of its table and options."""
    verb = choose(rng, ["embed"] * 6 + ["evaluate", "plot", "compare", "sweep", "transform", "info", "data", "nothing"])
    table = {}
    while "cells" not in table:
        table = draw_read(rng)
    table |= {"suffix": ".csv", "changes": []}
    if rng.random() < 0.6:
        table["cells"] = [[f"{x:.3g}" for x in row] for row in rng.normal(size=(choose(rng, [5, 20, 40]), 3))]
        table["header"], table["encoding"] = ["a", "b", "class"], "utf-8"
    words = ["--method", choose(rng, METHODS)] if verb in ("embed", "sweep") and rng.random() < 0.6 else []
    for _ in range(choose(rng, [0, 1, 1, 2, 3])):
        words += [choose(rng, OPTIONS), choose(rng, WORDS)][: 2 - int(rng.random() < 0.1)]
    return {"verb": verb, "table": table, "words": words}


def run_command(case: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Run the command line in an empty folder; raise BadOutput unless it wrote a map or printed one error."""
    verb = case["verb"]
    with tempfile.TemporaryDirectory() as folder, _working_in(folder):
        Path("table.csv").write_bytes(table_text(case["table"]))
        files = {"evaluate": ["table.csv"] * 2, "compare": ["table.csv"] * 3, "transform": ["table.csv"] * 2}
        words = [verb, *files.get(verb, ["table.csv"] if verb not in ("info", "data") else [])]
        if verb == "embed":
            words += ["--out", "out/", "--plot", "none"]
            closed = {"pca", "isomap", "lle", "classicalmds", "laplacianeigenmaps"} & {*case["words"]}
            words += [] if closed else ["--n-iter", "3"]
        code, error = _run([*words, *case["words"]])
        if isinstance(error, Exception):
            raise error
        if code == 0:
            return [(path.name, _coordinates(path), None) for path in Path("out").glob("*.csv")]
        lines = [line for line in error.splitlines() if not line.startswith("equipoise: warning: ")]
        usage = verb == "nothing" or any(line.startswith("usage: ") for line in lines)
        if code != 2 or not lines or not (usage or (len(lines) == 1 and lines[0].startswith(ERROR))):
            raise BadOutput(f"exit code {code} and {error!r}")
        if re.search(r"Traceback|Error\b.*line \d|object at 0x", error):
            raise BadOutput(f"an error of a program, not for a user: {error!r}")
    raise ClearLine


def _keep_error(caught: list[BaseException]) -> Callable[..., None]:
    """Return a stand-in for the function that prints an error as one line, which keeps the error."""
    return lambda error, *, debug: caught.append(error)


@contextmanager
def _working_in(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run(words: list[str]) -> tuple[Any, Any]:
    """Return the exit code of the command line, and what it printed as errors or the exception it made a line of."""
    errors, screen, caught = StringIO(), TextIOWrapper(BytesIO()), []
    keep = patch("equipoise.cli._print_error", _keep_error(caught))
    with redirect_stdout(screen), redirect_stderr(errors), warnings.catch_warnings(), keep:
        warnings.simplefilter("default")
        try:
            code: Any = main(words)
        except SystemExit as stop:
            code = stop.code
    return code, caught[0] if caught else errors.getvalue()


def _coordinates(path: Path) -> np.ndarray:
    """Return the columns y1, y2, … of a map."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    places = [j for j, name in enumerate(header) if re.fullmatch(r"y\d+", name)]
    return np.array([[row[j] for j in places] for row in rows], dtype=float)
