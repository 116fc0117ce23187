"""Properties of every public method: parameters, fitted attributes, determinism, containers and invariances."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator, clone
from support.methods import LABELS, NEW, PUBLIC, X, brief, every_method, iterative, over, over_those_with, takes

import equipoise as eq

# Warnings of duplicates, components, few points, and flows that stop early.
ignore_warnings = pytest.mark.filterwarnings("ignore::UserWarning")
WITHOUT_ENCODER = over([Method for Method in PUBLIC if Method is not eq.Parametric])
INTEGERS = np.round(X)  # exact in every dtype


def n_components(method):
    return (method.method if isinstance(method, eq.Parametric) else method).n_components


def with_init(Method, rows=slice(None), **parameters):
    """Return a method with few iterations, initialised with columns of the data if it has an `init` parameter."""
    columns = getattr(Method(), "n_components", 2)
    return brief(Method, init=0.1 * X[rows, :columns], **parameters)


def relative_distances(Y):
    """Return the pairwise distances of a map divided by the largest: invariant to rotation and reflection."""
    d = pdist(np.asarray(Y, dtype=np.float64))
    return d / d.max()


def test_every_public_estimator_is_tested():
    public = {getattr(eq, name) for name in eq.__all__}
    estimators = {value for value in public if inspect.isclass(value) and issubclass(value, BaseEstimator)}
    assert estimators - {eq.Embedding, eq.NeighborEmbedding} == set(PUBLIC)  # two are base classes


# Parameters


@every_method
def test_parameters_survive_set_params_and_clone(Method):
    method = Method()
    assert sorted(inspect.signature(Method).parameters) == sorted(method.get_params(deep=False))
    changed = {"n_jobs": 3, "random_state": 7, "callbacks": [print]}
    changed |= {"n_components": 4} if takes(Method, "n_components") else {"epochs": 4}
    assert method.set_params(**changed) is method
    copy = clone(method)
    assert copy is not method and type(copy) is Method
    assert {name: copy.get_params()[name] for name in changed} == changed
    assert repr(copy) == repr(method) and repr(copy).startswith(f"{Method.__name__}(")


@every_method
def test_unknown_parameter_raises(Method):
    with pytest.raises(TypeError, match="n_component"):
        Method(n_component=2)
    with pytest.raises(ValueError, match="n_component"):
        Method().set_params(n_component=2)


@every_method
def test_every_parameter_is_documented(Method):
    text = " ".join(cls.__doc__ or "" for cls in Method.__mro__ if cls.__module__.startswith("equipoise"))
    missing = [name for name in inspect.signature(Method).parameters if not re.search(rf"\b{name}\b", text)]
    assert not missing


@every_method
def test_fit_does_not_change_parameters(Method):
    method = brief(Method)
    before = repr(method.get_params())
    method.fit(X)
    assert repr(method.get_params()) == before


# Fitted attributes


@every_method
def test_fitted_attributes_have_expected_shapes(Method):
    method = brief(Method)
    assert method.fit(X) is method
    assert method.embedding_.shape == (60, n_components(method)) and method.embedding_.dtype.kind == "f"
    assert np.isfinite(method.embedding_).all() and np.isfinite(method.loss_)
    assert method.n_features_in_ == 5
    curve = method.loss_curve_
    assert curve.ndim == 2 and curve.shape[1] == 2 and np.isfinite(curve).all()
    assert (np.diff(curve[:, 0]) > 0).all()


@every_method
def test_fit_transform_returns_the_embedding_of_fit(Method):
    assert brief(Method).fit_transform(X).tobytes() == brief(Method).fit(X).embedding_.tobytes()


@every_method
def test_transform_of_fitted_rows_returns_their_embedding(Method):
    method = brief(Method).fit(X)
    Y = method.transform(X[:7])
    assert_allclose(Y, method.embedding_[:7], rtol=0, atol=1e-4 * np.abs(method.embedding_).max())


@every_method
def test_transform_places_new_rows_inside_the_map(Method):
    method = brief(Method).fit(X)
    Y = method.transform(NEW)
    assert Y.shape == (10, n_components(method)) and np.isfinite(Y).all()
    center = method.embedding_.mean(axis=0)
    assert np.abs(Y - center).max() < 3 * np.abs(method.embedding_ - center).max()


# Determinism


@every_method
def test_same_seed_gives_same_bytes_for_any_number_of_threads(Method):
    one, again, two = (brief(Method, n_jobs=n).fit(X) for n in (1, 1, 2))
    assert one.embedding_.tobytes() == again.embedding_.tobytes() == two.embedding_.tobytes()
    assert one.loss_curve_.tobytes() == again.loss_curve_.tobytes() == two.loss_curve_.tobytes()
    if Method is eq.Parametric:  # PyTorch's products round with the number of threads
        assert_allclose(one.transform(NEW), two.transform(NEW), rtol=1e-5, atol=1e-6)
    else:
        assert one.transform(NEW).tobytes() == two.transform(NEW).tobytes()


@over_those_with("init")
def test_different_seeds_give_different_maps(Method):
    first, second = (brief(Method, init="random", random_state=seed, n_iter=5).fit_transform(X) for seed in (0, 1))
    assert np.abs(first - second).max() > 0.1 * np.abs(first).max()


@every_method
def test_pickled_method_gives_the_same_bytes(Method):
    method = brief(Method).fit(X)
    copy = pickle.loads(pickle.dumps(method))
    assert repr(copy) == repr(method)
    assert copy.embedding_.tobytes() == method.embedding_.tobytes()
    assert copy.transform(NEW).tobytes() == method.transform(NEW).tobytes()
    assert copy.fit(X).embedding_.tobytes() == method.embedding_.tobytes()


@every_method
def test_input_is_not_modified(Method):
    data = X.copy()
    method = brief(Method).fit(data)
    new = NEW.copy()
    method.transform(new)
    assert_array_equal(data, X)
    assert_array_equal(new, NEW)


CONTAINERS = {
    "float32": lambda A: A.astype(np.float32),
    "int64": lambda A: A.astype(np.int64),
    "Fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "reversed": lambda A: A[::-1].copy()[::-1],
    "list": lambda A: A.tolist(),
    "frame": lambda A: pd.DataFrame(A, columns=list("abcde")),
}


@ignore_warnings
@pytest.mark.parametrize("container", CONTAINERS)
@every_method
def test_container_type_does_not_change_the_map(Method, container):
    plain, other = (brief(Method).fit_transform(data) for data in (INTEGERS, CONTAINERS[container](INTEGERS)))
    assert other.tobytes() == plain.tobytes()


# Sizes


@ignore_warnings
@pytest.mark.parametrize("d", [1, 2, 3])
@over_those_with("n_components")
def test_n_components_sets_the_map_dimension(Method, d):
    method = brief(Method, n_components=d).fit(X)
    assert method.embedding_.shape == (60, d) and np.isfinite(method.embedding_).all()
    assert method.transform(NEW).shape == (10, d)


@ignore_warnings
@pytest.mark.parametrize("n", [4, 5, 8])
@WITHOUT_ENCODER
def test_few_points_give_distinct_finite_positions(Method, n):
    data = np.random.RandomState(n).standard_normal((n, 4))
    Y = brief(Method, n_neighbors=2, perplexity=2).fit_transform(data)
    assert len(Y) == n and np.isfinite(Y).all() and len(np.unique(Y.round(9), axis=0)) == n


@ignore_warnings
@every_method
def test_duplicate_rows_stay_close(Method):
    Y = brief(Method).fit_transform(np.repeat(X[:30], 2, axis=0))
    twins = np.linalg.norm(Y[::2] - Y[1::2], axis=1)
    assert np.isfinite(Y).all() and np.median(twins) < 0.2 * np.median(pdist(Y))


# Invariances


@WITHOUT_ENCODER
def test_constant_columns_do_not_change_the_map(Method):
    padded = np.hstack([np.full((60, 1), 7.0), X, np.zeros((60, 2))])
    plain, constant = (with_init(Method, n_iter=15).fit_transform(data) for data in (X, padded))
    assert_allclose(relative_distances(constant), relative_distances(plain), atol=1e-3)


@every_method
def test_translating_the_data_does_not_change_the_map(Method):
    plain, shifted = (with_init(Method, n_iter=15).fit_transform(data) for data in (X, X + 100.0))
    assert_allclose(relative_distances(shifted), relative_distances(plain), atol=1e-3)


@WITHOUT_ENCODER
def test_row_order_does_not_change_the_map(Method):
    order = np.random.RandomState(0).permutation(60)
    plain = with_init(Method, n_iter=15).fit_transform(X)
    permuted = with_init(Method, order, n_iter=15).fit_transform(X[order])
    assert_allclose(relative_distances(permuted), relative_distances(plain[order]), atol=1e-3)


# Other inputs


@over_those_with("metric")
def test_precomputed_distances_give_the_same_map_as_the_table(Method):
    D = squareform(pdist(X))
    table = with_init(Method, n_iter=15).fit_transform(X)
    given = with_init(Method, n_iter=15, metric="precomputed").fit_transform(D)
    assert_allclose(relative_distances(given), relative_distances(table), atol=1e-3)


@ignore_warnings
@every_method
def test_sparse_tables_give_the_same_map_or_raise(Method):
    table = np.maximum(X, 0)
    if not brief(Method).__sklearn_tags__().input_tags.sparse:
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            brief(Method).fit(sparse.csr_matrix(table))
        return
    dense, stored = (with_init(Method, n_iter=15).fit_transform(data) for data in (table, sparse.csr_matrix(table)))
    assert_allclose(relative_distances(stored), relative_distances(dense), atol=1e-3)


@every_method
def test_fit_transform_accepts_labels(Method):
    Y = brief(Method).fit_transform(X, LABELS)
    assert len(Y) == 60 and np.isfinite(Y).all()


# Callbacks


@ignore_warnings
@every_method
def test_callbacks_get_iteration_loss_and_map(Method):
    seen = []
    callbacks = [lambda iteration, loss, Y: seen.append((iteration, loss, np.shape(Y)))]
    method = iterative(Method, callbacks=callbacks).fit(X)
    iterations, losses, shapes = zip(*seen, strict=True)
    again = np.flatnonzero(np.diff(iterations) <= 0) + 1  # DKPCA tries several starts
    assert (np.array(iterations)[again[:3]] == 0).all() and np.isfinite(losses).all()
    assert len(again) in ((3, 4) if Method is eq.DKPCA else (0,))  # 4 if two of the starts are continued
    assert set(shapes) == {(60, n_components(method))}
    assert np.isin(iterations, method.loss_curve_[:, 0]).all()


@ignore_warnings
@every_method
def test_callback_returning_true_stops_the_run(Method):
    method = iterative(Method, callbacks=[lambda iteration, loss, Y: True]).fit(X)
    assert len(method.embedding_) == 60 and np.isfinite(method.embedding_).all()
    assert method.loss_curve_[-1, 0] < iterative(Method).fit(X).loss_curve_[-1, 0]


@every_method
def test_interrupted_fit_keeps_the_last_map(Method):
    def interrupt(iteration, loss, Y):
        raise KeyboardInterrupt

    method = iterative(Method, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        method.fit(X)
    assert method.embedding_.shape == (60, n_components(method)) and np.isfinite(method.embedding_).all()
    assert np.isfinite(method.transform(NEW)).all()
