"""Every public method with settings for small data; a new method is tested as soon as it is listed in `ALL`."""

from __future__ import annotations

import pytest
from sklearn.datasets import make_blobs

import equipoise as eq
from equipoise.methods import ALL, CLASSICAL

X, LABELS = make_blobs(70, 5, centers=4, cluster_std=5.0, random_state=0)  # one connected neighbour graph
NEW = X[60:]
X, LABELS = X[:60], LABELS[:60]
for table in (X, NEW):
    table.flags.writeable = False

SETTINGS = {"random_state": 0, "n_iter": 30, "perplexity": 6, "n_neighbors": 6, "n_jobs": 1}
PUBLIC = (*ALL, eq.Parametric)
FLOWS = CLASSICAL  # closed forms unless solver="flow"


def takes(Method, name):
    """Return whether the method has this parameter."""
    return name in Method().get_params()


def brief(Method, **parameters):
    """Return the method with settings for a short run on 60 points; parameters it does not have are ignored."""
    settings = {**SETTINGS, **parameters}
    if Method is eq.Parametric:
        settings = {
            "method": eq.TSNE(perplexity=6, n_jobs=1),
            "epochs": 3,
            "batch_size": 32,
            "device": "cpu",
        } | settings
    elif Method in FLOWS and "solver" not in parameters:
        settings.pop("n_iter")
    return Method(**{name: value for name, value in settings.items() if takes(Method, name)})


def iterative(Method, **parameters):
    """Return the method with an iterative solver: the classical methods use their gradient flow."""
    return brief(Method, **({"solver": "flow", "tol": 1e-9} if Method in FLOWS else {}) | parameters)


def over(methods):
    """Return a decorator that runs a test for each of these methods."""
    return pytest.mark.parametrize("Method", methods, ids=lambda Method: Method.__name__)


def over_those_with(*names):
    """Return a decorator that runs a test for each public method with these parameters."""
    return over([Method for Method in PUBLIC if all(takes(Method, name) for name in names)])


every_method = over(PUBLIC)
