"""Settings of a distance made of blocks of columns, each with a metric, a weight and a scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._suggest import did_you_mean
from .._tags import tagged
from ..arrays.namespace import is_positive

METRICS = ("euclidean", "manhattan", "cosine", "correlation", "mixed")
SCALES = ("block", "columns", "none")
FILLS = ("error", "mean", "median")


@tagged("mixed.block_settings.Blocks")
@dataclass(frozen=True)
class Blocks:
    """A distance between rows of a table whose columns form blocks, such as genes, an image and a price.

    The distance d of two rows is the root of a weighted sum,

        d² = Σ_b w_b q_b / s_b,

    where q_b is, by the metric of block b,

    - "euclidean": the squared distance Σ (x − y)²,
    - "manhattan": Σ \\|x − y\\|,
    - "cosine" or "correlation": 1 − cos of the angle of the rows, or 1 − their correlation (half the squared distance
      of the rows at length 1),
    - "mixed": the distance of Gower (see `Mixed`), for numbers, dates, booleans and categories.

    Each of these is a squared Euclidean distance, and so is their sum. With the default scaling s_b is the mean of q_b
    over all pairs of rows, so that every block contributes its weight to d² on average, however many columns it has and
    whatever their units.

    Parameters
    ----------
    columns : mapping of str to sequence of str
        The columns of each block, by their names; those of an array are called "0", "1", …. Columns that are in no
        block are not used.
    metric : str or mapping of str to str, default="euclidean"
        The metric of all blocks, or of blocks by name.
    weight : float or mapping of str to float, default=1.0
        The weight w_b of blocks by name; 1 for those that are not named.
    scale : str or mapping of str to str, default="block"
        "block": divide by the mean s_b; "columns": first divide each column by its standard deviation; "none": s_b = 1.
    missing : {"error", "mean", "median"}, default="error"
        What to do about missing values: raise an error, or fill in the mean or median of the column, and the most
        frequent category.

    Examples
    --------
    >>> import numpy as np
    >>> import equipoise as eq
    >>> X = np.random.default_rng(0).normal(size=(50, 12))
    >>> blocks = eq.Blocks({"genes": range(10), "price": [10, 11]}, metric={"genes": "cosine"}, weight={"price": 0.5})
    >>> eq.neighbors.nearest_neighbors(X, 5, blocks).indices.shape
    (50, 5)
    """

    columns: Mapping[str, Sequence[Any]]
    metric: Any = "euclidean"
    weight: Any = 1.0
    scale: Any = "block"
    missing: str = "error"

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise ValueError(f"columns must map names of blocks to lists of columns, got {self.columns!r}")
        columns = {}
        for name, names in self.columns.items():
            if isinstance(names, str) or not hasattr(names, "__iter__"):
                raise ValueError(f"the columns of block {str(name)!r} must be a list of names, got {names!r}")
            columns[str(name)] = tuple(map(str, names))
            if not columns[str(name)]:
                raise ValueError(f"block {str(name)!r} has no columns; name at least one")
        object.__setattr__(self, "columns", columns)
        where: dict[str, str] = {}
        for name, names in columns.items():
            for column in names:
                if where.setdefault(column, name) != name:
                    raise ValueError(f"column {column!r} is in the blocks {where[column]!r} and {name!r}; choose one")
        self._check_names()
        for name in columns:
            _require_choice("metric", name, self.of("metric", name), METRICS)
            _require_choice("scale", name, self.of("scale", name), SCALES)
            if not is_positive(self.of("weight", name)):
                raise ValueError(
                    f"the weight of block {name!r} must be a positive number, got {self.of('weight', name)!r}"
                )
        if self.missing not in FILLS:
            raise ValueError(f"missing must be one of {', '.join(map(repr, FILLS))}, got {self.missing!r}")

    def _check_names(self) -> None:
        for setting in ("metric", "weight", "scale"):
            value = getattr(self, setting)
            for name in value if isinstance(value, Mapping) else ():
                if name not in self.columns:
                    known = did_you_mean(str(name), self.columns, f"the blocks are {', '.join(self.columns)}")
                    raise ValueError(f"{setting} names a block {name!r}, which `columns` does not have; {known}")

    def of(self, setting: str, block: str) -> Any:
        """Return the metric, weight or scale of a block."""
        value = getattr(self, setting)
        default = {"metric": "euclidean", "weight": 1.0, "scale": "block"}[setting]
        return value.get(block, default) if isinstance(value, Mapping) else value

    def describe(self, X: Any) -> str:
        """Return in words how the blocks of a table are compared, and how many values are missing."""
        from .block_distance import BlockDistance

        return BlockDistance.fit_encode(X, self)[0].summary


def _require_choice(setting: str, block: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        hint = did_you_mean(str(value), known, f"choose from {', '.join(known)}")
        raise ValueError(f"the {setting} of block {block!r} is {value!r}; {hint}")
