"""A map that several ranks share, as `fit` returns it, and the positions of new rows in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._types import Array
from .new_rows import TablePlacement
from .rank_problem import SharedProblem, in_input_order
from .row_output import write_rows
from .sampled_quality import MapQuality, draw_sample, label_codes, sampled_quality
from .shared_map import SharedMap


@dataclass(frozen=True, eq=False, repr=False)
class SharedRows:
    """Positions of the rows of a table, of which this rank has a part.

    Attributes
    ----------
    rows : ndarray of shape (own, d)
        The positions of the own rows.
    ids : array of int64, shape (own,)
        The index in the table of each own row.
    """

    rows: Array
    ids: Array
    shared: SharedMap

    def __repr__(self) -> str:
        return f"<{len(self.rows):,} of {self.shared.partition.n:,} rows placed in a map>"

    def gather(self) -> Array | None:
        """Return all positions (n, d), in the order of the table, on rank 0, and None on the others.

        All ranks must call this method.
        """
        with self.shared.group.stage("gathering the map"):
            return in_input_order(self.shared, self.rows, self.ids)

    def write(self, path: str | Path) -> None:
        """Write all positions in blocks of rows as Zarr, Parquet or NPY (see `write_rows`); all ranks must call it."""
        write_rows(self.shared.group, path, self.rows, self.ids, self.shared.partition.n)


@dataclass(frozen=True, eq=False, repr=False)
class RankMap(SharedRows):
    """The part of a fitted map that a rank owns, and how the fit went.

    Attributes
    ----------
    rows : ndarray of shape (own, d)
        The positions of the own points.
    ids : array of int64, shape (own,)
        The row of the table of each own point.
    loss : float
        Final loss, the same on all ranks.
    loss_curve : ndarray of shape (m, 2)
        Iteration and loss at each of m evaluations.
    n_iter : int
    knn_recall : float
        Fraction of the true neighbours that the search found, measured on a sample.
    remaining_gain : float
        As `remaining_gain_` of a method.
    """

    loss: float
    loss_curve: Array
    n_iter: int
    knn_recall: float
    remaining_gain: float
    placement: TablePlacement

    @classmethod
    def of(cls, problem: SharedProblem, ids: Array, placement: TablePlacement) -> RankMap:
        """Return the map of a problem after its optimisation."""
        curve = problem.loss_curve
        numbers = float(curve[-1, 1]), curve, problem.n_iter, problem.knn_recall, problem.remaining_gain
        return cls(problem.Y, ids, problem.shared, *numbers, placement)

    def __repr__(self) -> str:
        return f"<{len(self.rows):,} of {self.shared.partition.n:,} points of a map, loss {self.loss:.4g}>"

    def transform(self, data: Any, *, key: str | None = None) -> SharedRows:
        """Place the rows of another table in the map; each position depends on its own row only.

        All ranks call this method with the same table, of which each reads a part. A row equal to a fitted row gets the
        position of that row. Any other row starts at the nearest fitted point and moves under the forces of the whole
        map. The nearest fitted rows are found exactly. The positions have the same bytes for any number of ranks.

        Parameters
        ----------
        data : array, path or object
            The new rows, with the columns of the fitted table; see `open_rows`. One row is enough.
        key : str, optional
            As for `fit`.

        Returns
        -------
        SharedRows
            The positions of the rows that this rank read.
        """
        rows, ids, table = self.placement.place(data, key)
        return SharedRows(rows, ids, SharedMap(self.shared.group, table, self.shared.n_threads))

    def evaluate(self, labels: Any = None, *, k: int = 10, n_sample: int = 1000, random_state: int = 0) -> MapQuality:
        """Measure how well the map preserves neighbours, on a random sample of its points.

        The neighbours of these points in the data and in the map are found exactly, among the points of all ranks. All
        ranks call this method with the same arguments, and get the same result for any number of ranks.

        Parameters
        ----------
        labels : array-like of shape (n,), optional
            A label for each row of the table: also measure whether points have the label of their nearest neighbour.
        k : int, default=10
            Number of neighbours.
        n_sample : int, default=1000
            Number of points in the sample; all points if the map has fewer.
        random_state : int, default=0

        Returns
        -------
        MapQuality
        """
        n = self.shared.partition.n
        sample = draw_sample(n, n_sample, k, random_state)
        own_labels = None if labels is None else label_codes(labels, n)[self.ids]
        self.shared.group.require_equal("k, n_sample, random_state or labels", [int(k), len(sample), labels is None])
        return sampled_quality(self.shared, self.placement.fitted, self.rows, own_labels, int(k), sample)
