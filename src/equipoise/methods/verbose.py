"""What a fit prints if `verbose` is true."""

from __future__ import annotations

from typing import Any

from .. import progress
from ..arrays.csr import is_sparse
from ..problems.forces import ForceProblem


def print_description(problem: ForceProblem) -> None:
    """Print one line about a problem: its engine, its number of points and its affinities P."""
    P, (n, d) = problem.objective.affinities, problem.Y0.shape
    pairs = "dense P"
    if is_sparse(P):
        pairs = f"sparse P with {P.nnz / n:.0f} entries per row, recall {problem.knn_recall:.2f}"
    progress.end_stage()
    print(f"engine {problem.engine_name}: {n:,} points in {d}-D, {pairs}", flush=True)


def print_loss(iteration: int, loss: float, Y: Any) -> None:
    """Print the iteration and the loss; used as a callback."""
    print(f"iteration {iteration:5d}   loss {loss:.6f}", flush=True)
