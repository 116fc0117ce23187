"""Answers to openTSNE.

Its two stages of optimisation, which take most of the time, are answered; affinities, initial maps and the placement of
new points are openTSNE's. `TSNE.fit` and scripts that run the stages themselves call the same function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import methods
from ..methods.other_libraries import PARAMETERS
from .calls import NotAvailable
from .translate import jobs, shown


def optimize(
    embedding: Any, n_iter: int, inplace: bool = False, propagate_exception: bool = False, **settings: Any
) -> Any:
    """Answer openTSNE.TSNEEmbedding.optimize."""
    given = {**embedding.gradient_descent_params, **settings}
    for name, value in given.items():
        if name not in PARAMETERS["openTSNE.TSNEEmbedding.optimize"] and value is not None:
            raise NotAvailable(f"{name}={shown(value)} has no counterpart")
    dof, exaggeration = given.get("dof", 1), given.get("exaggeration") or 1
    if dof != 1:
        raise NotAvailable(f"dof={shown(dof)} has another meaning")
    result = embedding if inplace else _copy(embedding)
    if n_iter <= 0:
        raise NotAvailable(f"n_iter={n_iter} has no counterpart")
    rate = given.get("learning_rate", "auto")
    method = methods.TSNE(
        n_components=embedding.shape[1],
        affinity="precomputed",
        init=np.array(embedding, dtype=np.float64),
        n_iter=n_iter,  # measured: with fewer, a stage that starts from another's map may end at a higher loss
        early_exaggeration=float(exaggeration),
        exaggeration=float(exaggeration),
        learning_rate=rate if isinstance(rate, str) else float(rate),
        n_jobs=jobs(given.get("n_jobs", 1)),
        random_state=embedding.random_state,
        verbose=int(bool(given.get("verbose", False))),
    )
    problem = method.problem(embedding.affinities.P)
    problem.optimize()
    result[:] = problem.Y - problem.Y.mean(axis=0)
    result.kl_divergence = float(problem.loss(problem.Y))
    result.interp_coeffs = result.box_x_lower_bounds = result.box_y_lower_bounds = None
    return result


def _copy(embedding: Any) -> Any:
    return type(embedding)(
        np.copy(embedding),
        embedding.affinities,
        random_state=embedding.random_state,
        optimizer=embedding.optimizer.copy(),
        **embedding.gradient_descent_params,
    )
