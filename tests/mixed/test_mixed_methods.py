"""metric="mixed" in the methods: fit, transform, save and load, evaluate, compare."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from support.mixed_tables import small_table

import equipoise as eq


@pytest.fixture(scope="module")
def table():
    return small_table(90)


@pytest.fixture(scope="module")
def fitted(table):
    return eq.TSNE(metric=eq.Mixed(weights={"age": 2}), perplexity=10, n_iter=60, random_state=0).fit(table)


def test_the_same_seed_gives_the_same_map(table, fitted):
    again = eq.TSNE(metric=eq.Mixed(weights={"age": 2}), perplexity=10, n_iter=60, random_state=0, n_jobs=1)
    assert_array_equal(again.fit_transform(table), fitted.embedding_)


def test_rows_of_the_fit_keep_their_position(table, fitted):
    assert_array_equal(fitted.transform(table[3:9]), fitted.embedding_[3:9])


def test_a_saved_method_places_new_rows_at_the_same_position(table, fitted, tmp_path):
    new = small_table(12, seed=1)
    eq.save(fitted, tmp_path / "mixed.eq")
    loaded = eq.load(tmp_path / "mixed.eq")
    assert loaded.metric == eq.Mixed(weights={"age": 2})
    assert_array_equal(loaded.transform(new), fitted.transform(new))


def test_an_unknown_category_differs_from_all_others(table, fitted):
    new = table[:2].assign(city=["Lima", "Lima"])
    with pytest.warns(UserWarning, match="column 'city' has categories that were not in the fitted data: 'Lima'"):
        placed = fitted.transform(new)
    assert np.isfinite(placed).all()


def test_new_rows_must_have_the_kind_of_the_fitted_columns(table, fitted):
    with pytest.raises(
        ValueError,
        match=r"column 'income' contains dates, such as '2024-01-01.*', but contained numbers when .*; write numbers",
    ):
        fitted.transform(table[:2].assign(income=pd.Timestamp("2024-01-01")))
    unknown = table[:1].assign(size=pd.Categorical(["XL"], ordered=True))
    with pytest.raises(ValueError, match="column 'size' has an order, but contains 'XL'"):
        fitted.transform(unknown)


def test_measures_use_the_metric_of_the_method(table, fitted):
    report = eq.evaluate(table, fitted)
    assert_array_equal(report.recall, eq.evaluate(table, fitted.embedding_, metric=fitted.metric).recall)
    assert str(eq.compare(table, [fitted, fitted.embedding_]))
    assert eq.local_isometry(table, fitted).k == 15


@pytest.mark.parametrize(
    "method",
    [
        eq.UMAP(metric="mixed", n_neighbors=10, n_iter=30, random_state=0),
        eq.MDS(metric="mixed", n_iter=5, random_state=0),
        eq.ClassicalMDS(metric="mixed"),
        eq.Isomap(metric="mixed"),
        eq.LaplacianEigenmaps(metric="mixed"),
        eq.DKPCA(metric="mixed", n_iter=20, random_state=0),
    ],
    ids=lambda method: type(method).__name__,
)
def test_other_methods_take_the_metric(table, method):
    Y = method.fit_transform(table)
    assert Y.shape == (90, 2)
    assert np.isfinite(Y).all() and np.isfinite(method.transform(table[:3])).all()


def test_parametric_maps_need_numbers(table):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="Parametric needs a table of numbers, but its method has metric='mixed'"):
        eq.Parametric(eq.TSNE(metric="mixed")).fit(table)


def test_a_metric_tensor_is_refused(table):
    with pytest.raises(ValueError, match="compares columns of a table; omit h"):
        eq.TSNE(metric="mixed", h=np.eye(6)).fit(table)
