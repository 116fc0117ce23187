"""What the signal trials disturb: a run, its repetition after the signal, and the check of its files."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq
from equipoise import data
from equipoise.cli import main
from equipoise.saving import neighbors_cache

DIGITS = data.load("digits").X[:250]
METHODS: dict[str, Callable[[], Any]] = {
    "grid": lambda: eq.TSNE(n_iter=120, engine="grid", random_state=0, n_jobs=1),
    "edges": lambda: eq.UMAP(n_iter=60, engine="negative_sampling", random_state=0, n_jobs=1),
    "stress": lambda: eq.MDS(n_iter=60, tol=0, init="random", n_init=2, random_state=0, n_jobs=1),
}


@dataclass(frozen=True)
class Scenario:
    """A run to disturb.

    Attributes
    ----------
    run : callable
        Called in the folder of the trial, and again (with True) after the signal, to resume or repeat.
    outputs : tuple of str
        Files that the second run must leave, with the same bytes as an undisturbed run.
    whole : callable
        Raises unless the files after the signal are whole; receives the folder and the undisturbed one.
    is_command : bool
        Whether it is a command, with the exit codes of commands and without tracebacks.
    starts : str
        Text on standard output that shows that the run has begun.
    """

    run: Callable[[bool], int | None]
    outputs: tuple[str, ...]
    whole: Callable[[Path, Path], None]
    is_command: bool = False
    starts: str = ""


def digest(path: Path) -> str:
    """Return a hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fit(name: str, again: bool) -> None:
    """Fit with a checkpoint, and write the map."""
    neighbors_cache.MIN_POINTS = 0  # save neighbours also of small tables
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = METHODS[name]().set_params(callbacks=[eq.Checkpoint("run.eqc", every=3, resume=again)]).fit(DIGITS)
    data.write_map("map.npy", method.embedding_, data.Dataset("digits", DIGITS, None, ()))


def whole_fit(folder: Path, undisturbed: Path) -> None:
    """Check the checkpoint, its neighbours and the map."""
    for name in ("run.eqc", "run.eqc.neighbors"):
        if (folder / name).exists():
            neighbors_cache.archive.read(folder / name, lambda path, about: None)
    if (folder / "map.npy").exists() and digest(folder / "map.npy") != digest(undisturbed / "map.npy"):
        raise AssertionError("map.npy differs from that of an undisturbed run")


MODELS = [eq.PCA(n_components=2).fit(DIGITS[:n]) for n in (100, 250)]


def save(again: bool) -> None:
    """Save two models in turn to one file, many times; the last is always the second."""
    for number in range(2 if again else 40):
        eq.save(MODELS[number % 2], "model.eqz")


def whole_model(folder: Path, undisturbed: Path) -> None:
    """Check that the model is one of the two."""
    path = folder / "model.eqz"
    if path.exists():
        loaded = eq.load(path).embedding_.tobytes()
        if loaded not in [model.embedding_.tobytes() for model in MODELS]:
            raise AssertionError("model.eqz contains a model that was never saved")


def embed(options: str, again: bool) -> int:
    """Run `equipoise embed` on a table; `--checkpoint` continues the run, otherwise it is repeated."""
    np.save("table.npy", DIGITS)
    words = f"embed table.npy --n-iter 120 --n-jobs 1 --plot none --out map.csv {options}".split()
    return main(words + ["--resume"] * (again and "--checkpoint" in options))


def whole_map(folder: Path, undisturbed: Path) -> None:
    """Check the map, which after Ctrl-C or SIGTERM is that of the last iteration, and the model."""
    path, model = folder / "map.csv", folder / "model.eqz"
    if path.exists():
        data.read(path)
        lines = path.read_text().splitlines()
        said = (folder / "stdout.txt").read_text()
        if len(lines) != len(DIGITS) + 1:
            raise AssertionError(f"map.csv has {len(lines)} lines")
        if "at iteration" not in said and digest(path) != digest(undisturbed / "map.csv"):
            raise AssertionError("map.csv differs from that of an undisturbed run")
    if model.exists() and digest(model) != digest(undisturbed / "model.eqz"):
        raise AssertionError("model.eqz differs from that of an undisturbed run")
    if (folder / "run.eqc").exists():
        neighbors_cache.archive.read(folder / "run.eqc", lambda path, about: None)


def studio(again: bool) -> int:
    """Serve the studio; the second time only until it has started."""
    from equipoise.studio.server.serve import Studio

    if not again:
        return main(["studio", "--no-browser"])
    server = Studio()
    server.stop()
    server.run()
    return 0


def whole_folder(folder: Path, undisturbed: Path) -> None:
    """Nothing to check: the studio writes only its temporary folder."""


SCENARIOS = {
    **{name: Scenario(lambda again, name=name: fit(name, again), ("map.npy",), whole_fit) for name in METHODS},
    "save": Scenario(save, ("model.eqz",), whole_model),
    "embed": Scenario(
        lambda again: embed("--save model.eqz", again), ("map.csv", "model.eqz"), whole_map, is_command=True
    ),
    "embed with checkpoint": Scenario(
        lambda again: embed("--checkpoint run.eqc", again), ("map.csv",), whole_map, is_command=True
    ),
    "studio": Scenario(studio, (), whole_folder, is_command=True, starts="Equipoise studio at"),
}


def import_all() -> None:
    """Import what the scenarios import when they run, before children are forked."""
    from equipoise.studio.server.serve import Studio

    server = Studio()
    server.stop()
    server.run()
