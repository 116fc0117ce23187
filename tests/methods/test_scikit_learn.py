"""scikit-learn's own checks of an estimator, for every public method; none is left out."""

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
TOLD = (  # the checks have few rows, in blobs far apart
    "the neighbour graph .* components",
    "n_neighbors=15 is too large for n_samples",
)


def small(Method):
    """Return the method with few iterations, and with parameters for data of few rows."""
    short = {"n_iter": 20} if takes(Method, "n_iter") and Method not in FLOWS else {}
    return Method(**short, **SMALL.get(Method, {}))


@parametrize_with_checks([*map(small, PUBLIC), eq.PCA(solver="flow")])
def test_scikit_learn_convention(estimator, check):
    with warnings.catch_warnings():
        for message in TOLD:
            warnings.filterwarnings("ignore", message)
        check(estimator)
