"""The parameters of the estimators of other libraries, and ours that correspond to them.

Suggestions for unknown parameters, `equipoise.accel` and a test of the pages in docs/migration read these tables.
"""

from __future__ import annotations

SHARED = {name: name for name in ("n_components", "n_jobs", "random_state", "verbose")}

# For each class, the name of a parameter and ours; None if ours needs no such parameter, because it only chooses an
# algorithm or limits its work. A parameter that is not listed has no counterpart, or is not known.
PARAMETERS: dict[str, dict[str, str | None]] = {
    "sklearn.manifold.TSNE": {
        **SHARED,
        "perplexity": "perplexity",
        "early_exaggeration": "early_exaggeration",
        "learning_rate": "learning_rate",
        "max_iter": "n_iter",
        "n_iter": "n_iter",  # the name before scikit-learn 1.5
        "n_iter_without_progress": "optimizer",
        "min_grad_norm": "optimizer",
        "metric": "metric",
        "metric_params": "metric",
        "init": "init",
        "method": "engine",
        "angle": "tol",
    },
    "sklearn.manifold.MDS": {
        **SHARED,
        "metric_mds": "stress",
        "metric": "metric",  # before scikit-learn 1.8 a bool, which is metric_mds now
        "dissimilarity": "metric",
        "metric_params": "metric",
        "init": "init",
        "n_init": "n_init",
        "max_iter": "n_iter",
        "eps": "tol",
        "normalized_stress": None,  # which of two numbers is stress_
    },
    "sklearn.manifold.Isomap": {
        "n_components": "n_components",
        "n_jobs": "n_jobs",
        "n_neighbors": "n_neighbors",
        "metric": "metric",
        "p": "metric",
        "metric_params": "metric",
        "eigen_solver": "solver",
        "tol": None,
        "max_iter": None,
        "path_method": None,
        "neighbors_algorithm": None,
    },
    "sklearn.manifold.LocallyLinearEmbedding": {
        "n_components": "n_components",
        "n_jobs": "n_jobs",
        "random_state": "random_state",
        "n_neighbors": "n_neighbors",
        "reg": "reg",
        "method": "variant",
        "eigen_solver": "solver",
        "tol": None,
        "max_iter": None,
        "hessian_tol": None,  # of method="hessian"
        "modified_tol": None,  # of method="modified"
        "neighbors_algorithm": None,
    },
    "sklearn.manifold.SpectralEmbedding": {
        "n_components": "n_components",
        "n_jobs": "n_jobs",
        "random_state": "random_state",
        "n_neighbors": "n_neighbors",
        "affinity": "affinity",
        "gamma": None,  # the kernel that scikit-learn computes
        "eigen_solver": "solver",
        "eigen_tol": None,
    },
    "umap.UMAP": {
        **SHARED,
        **{name: name for name in ("n_neighbors", "metric", "init", "min_dist", "spread", "a", "b")},
        **{name: name for name in ("negative_sample_rate", "target_weight", "learning_rate")},
        "metric_kwds": "metric",
        "n_epochs": "n_iter",
        "target_n_neighbors": None,  # of numeric targets
        "target_metric_kwds": None,
        "output_metric_kwds": None,
        "dens_lambda": None,  # of densMAP
        "dens_frac": None,
        "dens_var_shift": None,
        "low_memory": None,
        "angular_rp_forest": None,
        "force_approximation_algorithm": None,
        "transform_queue_size": None,
        "transform_seed": None,
        "tqdm_kwds": None,
    },
    "openTSNE.TSNEEmbedding.optimize": {
        "dof": "dof",
        "exaggeration": "exaggeration",
        "learning_rate": "learning_rate",
        "n_iter": "n_iter",
        "n_jobs": "n_jobs",
        "verbose": "verbose",
        "negative_gradient_method": "engine",
        "theta": "tol",
        "momentum": "optimizer",
        "max_grad_norm": "optimizer",
        "max_step_norm": "optimizer",
        "n_interpolation_points": None,
        "min_num_intervals": None,
        "ints_in_interval": None,
        "callbacks_every_iters": None,
    },
}


def differing_names() -> dict[str, tuple[str, ...]]:
    """Return, for each name that ours does not have, the names of ours that correspond to it."""
    found: dict[str, list[str]] = {}
    for parameters in PARAMETERS.values():
        for theirs, ours in parameters.items():
            if ours is not None and ours != theirs and ours not in found.setdefault(theirs, []):
                found[theirs].append(ours)
    return {theirs: tuple(ours) for theirs, ours in found.items() if ours}
