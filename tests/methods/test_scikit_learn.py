"""scikit-learn's estimator checks for every public method, without exceptions."""

from __future__ import annotations

import warnings

from sklearn.utils.estimator_checks import parametrize_with_checks
from support.methods import FLOWS, PUBLIC, takes

import equipoise as eq

SMALL = {eq.DKLLE: {"n_neighbors": 8}, eq.DKPCA: {"n_neighbors": 8}}
SMALL[eq.Parametric] = {
    "method": eq.TSNE(perplexity=4),
    "epochs": 2,
    "batch_size": 16,
    "random_state": 0,
    "device": "cpu",
}
EXPECTED_WARNINGS = (  # the data of the checks have few rows, in distant blobs
    "the neighbour graph .* components",
    "n_neighbors=15 is too large for n_samples",
)


def small(Method):
    """Return an instance with few iterations and with parameters suited to few rows."""
    short = {"n_iter": 20} if takes(Method, "n_iter") and Method not in FLOWS else {}
    return Method(**short, **SMALL.get(Method, {}))


@parametrize_with_checks([*map(small, PUBLIC), eq.PCA(solver="flow")])
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        for message in EXPECTED_WARNINGS:
            warnings.filterwarnings("ignore", message)
        check(estimator)
