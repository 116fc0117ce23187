"""Rows of the papers' experiments: images, drawn at random or the first ones, on 50 principal components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import common
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import equipoise as eq

COMPONENTS = 50  # paper 001, section VI.A; centred and not whitened, as in its program
# Number of random draws; of the rows that are always the same, number of random starts.
DRAWS = {"mnist-1k": 16, "mnist-3k": 8, "mnist-6k": 6, "mnist-14k": 4, "coil20": 10, "olivetti": 10}
FIRST = -1  # the first n rows instead of a draw, as the program of paper 001 takes them
LAST = 1000  # number of the last block of rows
TRAINING = 60_000  # rows of MNIST that paper 001 draws from


@dataclass(frozen=True)
class Column:
    """A data set of paper 001: all rows of a file, or n of them drawn at random."""

    title: str
    file: str
    side: int  # of an image, in pixels
    n: int | None = None


COLUMNS = {
    "mnist-1k": Column("MNIST, 1k", "mnist", 28, 1000),
    "mnist-3k": Column("MNIST, 3k", "mnist", 28, 3000),
    "mnist-6k": Column("MNIST, 6k", "mnist", 28, 6000),
    "mnist-10k": Column("MNIST, 10k", "mnist", 28, 10_000),
    "mnist-14k": Column("MNIST, 14k", "mnist", 28, 14_000),
    "coil20": Column("COIL-20", "coil20", 128),
    "olivetti": Column("Olivetti", "olivetti_faces", 64),
}


def draws(column: str) -> tuple[int, ...]:
    """Return the seeds of the reported rows and maps of a data set."""
    return tuple(range(DRAWS[column]))


def only_starts(column: str) -> bool:
    """Return whether all draws of a data set have the same rows and differ only in the start of the map."""
    return COLUMNS[column].n is None


@dataclass(frozen=True)
class Rows:
    """X (n, 50 or fewer) in float64, a class per row, and the image behind it, (n, side, side) from 0 to 255."""

    title: str
    X: np.ndarray
    labels: np.ndarray
    images: np.ndarray


class Source(Protocol):
    """A source of rows."""

    def title(self, column: str) -> str:
        """Return the name of a data set for the page."""
        ...

    def draw(self, column: str, seed: int) -> Rows:
        """Return the rows of one draw, or the first rows (FIRST).

        Draws of MNIST have no rows in common. A column without a size has the same rows in all draws.
        """
        ...

    def split(self, column: str, seed: int) -> tuple[Rows, Rows]:
        """Return rows for choosing settings and rows for testing them, with no row in both.

        With a size: two draws, the second of them draw `seed`. Without: random halves of every class.
        """
        ...

    def of_class(self, column: str, label: int, n: int, seed: int) -> Rows:
        """Return n rows of one class, or all if there are fewer; no row is in two draws."""
        ...


class Shared:
    """The data sets of the paper, from ../shared/data."""

    def title(self, column: str) -> str:
        return COLUMNS[column].title

    def draw(self, column: str, seed: int) -> Rows:
        chosen = COLUMNS[column]
        if chosen.n is None:
            return _whole(column)
        images, labels = _read(chosen.file)
        rows = _block(TRAINING, chosen.n, seed)
        return _on_components(chosen.title, images[rows], labels[rows], chosen.side)

    def split(self, column: str, seed: int) -> tuple[Rows, Rows]:
        chosen = COLUMNS[column]
        images, labels = _read(chosen.file)
        if chosen.n is None:
            halves = _halves(labels, seed)
        else:
            halves = (_block(TRAINING, chosen.n, LAST - seed), _block(TRAINING, chosen.n, seed))
        first, second = (_on_components(chosen.title, images[rows], labels[rows], chosen.side) for rows in halves)
        return first, second

    def of_class(self, column: str, label: int, n: int, seed: int) -> Rows:
        chosen = COLUMNS[column]
        images, labels = _read(chosen.file)
        rows = np.flatnonzero(labels[:TRAINING] == label)[seed * n : (seed + 1) * n]
        return _on_components(f"{chosen.title}, class {label}", images[rows], labels[rows], chosen.side)


class Bundled:
    """The 8 × 8 digits of scikit-learn instead of every data set, with n/100 + 100 rows."""

    def title(self, column: str) -> str:
        return f"digits for {COLUMNS[column].title}"

    def draw(self, column: str, seed: int) -> Rows:
        images, labels = _digits()
        n = 100 + (COLUMNS[column].n or 5000) // 100
        rows = _block(len(images), n, seed)
        return _on_components(self.title(column), images[rows], labels[rows], 8)

    def split(self, column: str, seed: int) -> tuple[Rows, Rows]:
        rows = self.draw(column, seed)
        halves = (
            Rows(rows.title, rows.X[half], rows.labels[half], rows.images[half]) for half in _halves(rows.labels, seed)
        )
        return next(halves), next(halves)

    def of_class(self, column: str, label: int, n: int, seed: int) -> Rows:
        images, labels = _digits()
        rows = np.flatnonzero(labels == label)[:n]
        return _on_components(f"digits, class {label}", images[rows], labels[rows], 8)


def _block(total: int, n: int, seed: int) -> np.ndarray:
    """Return n of `total` rows: the first ones, or the block number `seed` of one random order of all, cut into blocks.

    Blocks LAST, LAST − 1, … are counted from the end.
    """
    if seed == FIRST:
        return np.arange(n)
    order = np.random.RandomState(0).permutation(total)
    start = total - (LAST - seed + 1) * n if seed > LAST // 2 else seed * n
    if not 0 <= start <= total - n:
        raise ValueError(f"draw {seed} of {n} rows needs more than the {total} rows there are")
    return np.sort(order[start : start + n])


def _halves(labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two random halves of the rows, each with half of every class."""
    half = train_test_split(np.arange(len(labels)), train_size=0.5, stratify=labels, random_state=seed)
    return np.sort(half[0]), np.sort(half[1])


def _digits() -> tuple[np.ndarray, np.ndarray]:
    pixels, labels = load_digits(return_X_y=True)
    return (pixels * (255 / 16)).astype(np.uint8), labels


@lru_cache(maxsize=1)
def _read(file: str) -> tuple[np.ndarray, np.ndarray]:
    path = common.DATA / f"{file}.npz"
    if not path.exists():
        raise FileNotFoundError(f"../shared/data/{path.name} not found")
    with np.load(path, allow_pickle=False) as opened:
        return opened["X"], opened["y"].astype(np.int64)


@lru_cache(maxsize=2)
def _whole(column: str) -> Rows:
    chosen = COLUMNS[column]
    images, labels = _read(chosen.file)
    return _on_components(chosen.title, images, labels, chosen.side)


def _on_components(title: str, pixels: np.ndarray, labels: np.ndarray, side: int) -> Rows:
    X = eq.PCA(n_components=min(COMPONENTS, *pixels.shape)).fit_transform(pixels / 255.0)
    return Rows(title, X, labels, pixels.reshape(-1, side, side))
