"""The distance `Blocks` fitted to a table: each block becomes columns whose weighted differences sum up to d²."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._names import list_names, suggest_column
from .._plural import plural
from .._tags import tagged
from .._types import Array
from .base import ABSOLUTE, CATEGORY, SQUARED, ColumnDistance
from .frame import WORDS, make_column, read_columns
from .gaps import describe_gaps, require_not_infinite
from .gower import Gower
from .settings import Mixed

if TYPE_CHECKING:
    from .block_settings import Blocks

DIRECTIONS = ("cosine", "correlation")  # metrics that depend on the directions of rows only


@tagged("mixed.block_distance.BlockDistance")
class BlockDistance(ColumnDistance):
    """The distance `Blocks` with the scales and categories of one table; rows are the codes of all blocks side by side.

    Parameters
    ----------
    settings : Blocks
    parts : list of _Numbers or _Mixture
        One for each block.
    weights : list of array
        The weights of the columns of each block.
    """

    none = 1.0  # there are no missing values

    def __init__(self, settings: Blocks, parts: Sequence[Any], weights: Sequence[Array]):
        self.settings, self.parts = settings, list(parts)
        self.weights = np.concatenate(weights)
        self.kinds = np.concatenate([part.kinds for part in parts])
        self.summary = "\n".join(part.summary for part in parts)

    @classmethod
    def fit_encode(cls, X: Any, settings: Blocks) -> tuple[BlockDistance, Array]:
        """Return the distance with the scales and categories of a table, and the rows of the table as codes."""
        arrays = read_columns(X)
        parts, codes, weights = [], [], []
        for name, columns in settings.columns.items():
            chosen = _take(arrays, columns, name)
            metric, scale = settings.of("metric", name), settings.of("scale", name)
            part: Any = (
                _Mixture.fit(name, chosen, settings.missing)
                if metric == "mixed"
                else _Numbers.fit(name, chosen, metric, scale == "columns", settings.missing)
            )
            code = part.encode(chosen)
            spread = 1.0 if scale == "none" else part.mean(code)
            if not spread > 0:
                raise ValueError(f"all rows are equal in block {name!r}; leave the block out")
            parts.append(part)
            codes.append(code)
            weights.append(part.weights * (settings.of("weight", name) / spread))
        return cls(settings, parts, weights), np.concatenate(codes, axis=1)

    def encode(self, X: Any) -> Array:
        arrays = read_columns(X)
        parts = zip(self.parts, self.settings.columns.items(), strict=True)
        return np.concatenate([part.encode(_take(arrays, columns, name)) for part, (name, columns) in parts], axis=1)

    def finish(self, means: Array) -> Array:
        means *= self.weights.sum()
        return np.sqrt(means, out=means)


def _take(arrays: dict[str, Any], columns: Sequence[str], block: str) -> dict[str, Any]:
    """Return the columns of a block; raise ValueError if the table lacks one."""
    if lacking := [column for column in columns if column not in arrays]:
        raise ValueError(
            f"X lacks {plural(len(lacking), 'column')} of block {block!r}, {list_names(lacking)};"
            f" {suggest_column(lacking[0], list(arrays))}"
        )
    return {column: arrays[column] for column in columns}


@tagged("mixed.block_distance.Numbers")
class _Numbers:
    """A block of numbers: its columns are centred and divided by `scale`; for cosine, rows have length 1."""

    def __init__(self, name: str, metric: str, X: Array, standardize: bool, missing: str):
        self.name, self.metric, self.missing = name, metric, missing
        with np.errstate(all="ignore"):
            self.fill = np.nanmedian(X, axis=0) if missing == "median" else np.nanmean(X, axis=0)
        C = X.shape[1]
        gaps = describe_gaps(X)
        X = self._filled(X)
        deviation = X.std(axis=0) if standardize else np.ones(C)
        self.scale = np.where(deviation > 1e-12 * np.abs(X).max(axis=0), deviation, 1.0)
        self.center = np.zeros(C) if metric in DIRECTIONS else (X / self.scale).mean(axis=0)
        self.kinds = np.full(C, ABSOLUTE if metric == "manhattan" else SQUARED, np.uint8)
        self.weights = np.full(C, 0.5 if metric in DIRECTIONS else 1.0)
        filled = f"; missing: {gaps}, filled in by the {missing}" if gaps else ""
        self.summary = f"{name}: {plural(C, 'number')}, {metric}{filled}"

    @classmethod
    def fit(cls, name: str, arrays: dict[str, Any], metric: str, standardize: bool, missing: str) -> _Numbers:
        return cls(name, metric, _numbers(name, arrays), standardize, missing)

    def encode(self, arrays: dict[str, Any]) -> Array:
        V = self._filled(_numbers(self.name, arrays)) / self.scale - self.center
        if self.metric == "correlation":
            V = V - V.mean(axis=1, keepdims=True)
        if self.metric in DIRECTIONS:
            length = np.linalg.norm(V, axis=1, keepdims=True)
            if not length.all():
                kind = "constant" if self.metric == "correlation" else "zero"
                raise ValueError(
                    f"row {int(length.argmin())} is {kind} in block {self.name!r}, so that its {self.metric} distances"
                    ' are not defined; drop the row, or use the metric "euclidean"'
                )
            V = V / length
        return np.ascontiguousarray(V)

    def mean(self, V: Array) -> float:
        """Return the mean of the weighted differences over all pairs of different rows."""
        n = len(V)
        if self.metric == "manhattan":  # Σ_{i<j} |x_i − x_j| = Σ_i (2i − n + 1) x_(i), for sorted x
            rank = 2 * np.arange(n) - n + 1
            return float((rank @ np.sort(V, axis=0)).sum() / (n * (n - 1) / 2))
        return float(2 * (V.var(axis=0, ddof=1) * self.weights).sum())

    def _filled(self, X: Array) -> Array:
        gaps = np.isnan(X)
        if not gaps.any():
            return X
        if self.missing == "error" or np.isnan(self.fill).any():
            raise _gaps_in_block(self.name, X)
        return np.where(gaps, self.fill, X)


def _numbers(block: str, arrays: dict[str, Any]) -> Array:
    """Return the columns of a block as an array of numbers; raise ValueError for other kinds of columns."""
    columns = [make_column(name, array) for name, array in arrays.items()]
    for column in columns:
        if column.kind not in ("number", "date"):
            raise ValueError(
                f"column {column.name!r} of block {block!r} contains {WORDS[column.kind][1]}, not numbers; give"
                ' the block the metric "mixed", or leave the column out'
            )
    X = np.column_stack([column.values for column in columns])
    require_not_infinite(X, "X", [column.name for column in columns])
    return X


def _gaps_in_block(block: str, values: Array) -> ValueError:
    """Return the error for missing values among the columns of a block."""
    return ValueError(
        f'block {block!r} has missing values: {describe_gaps(values)}; use Blocks(..., missing="median"), drop these'
        " rows, or leave the columns out"
    )


@tagged("mixed.block_distance.Mixture")
class _Mixture:
    """A block of mixed columns, compared by the distance of Gower."""

    def __init__(self, name: str, gower: Gower):
        self.name, self.gower, self.kinds = name, gower, gower.kinds
        self.weights = gower.weights / gower.weights.sum()
        self.summary = f"{name}: " + gower.summary.replace("\n", f"\n{name}: ")

    @classmethod
    def fit(cls, name: str, arrays: dict[str, Any], missing: str) -> _Mixture:
        import pyarrow

        X = pyarrow.table(arrays)
        gower, codes = Gower.fit_encode(X, Mixed(missing="distance" if missing == "error" else missing))
        if missing == "error" and np.isnan(codes).any():
            raise _gaps_in_block(name, codes)
        return cls(name, gower)

    def encode(self, arrays: dict[str, Any]) -> Array:
        import pyarrow

        codes = self.gower.encode(pyarrow.table(arrays))
        if np.isnan(codes).any():
            raise _gaps_in_block(self.name, codes)
        return codes

    def mean(self, codes: Array) -> float:
        """Return the mean of the distance of Gower over all pairs of different rows."""
        n, total = len(codes), 0.0
        for values, kind, w in zip(codes.T, self.kinds, self.weights, strict=True):
            if kind == CATEGORY:
                counts = np.unique(values, return_counts=True)[1].astype(np.float64)
                mean = 1 - (counts * (counts - 1)).sum() / (n * (n - 1))
            else:
                mean = (2 * np.arange(n) - n + 1) @ np.sort(values) / (n * (n - 1) / 2)
            total += w * mean
        return float(total)
