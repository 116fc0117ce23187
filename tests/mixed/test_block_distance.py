"""Distances made of blocks of columns, against sums of the distances of the blocks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from support.mixed_tables import gower_by_loops, small_table

import equipoise as eq
from equipoise.inputs import MixedTable

N = 50
X = np.random.default_rng(0).normal(size=(N, 9)) * [1, 2, 3, 100, 200, 5, 6, 7, 8] + 4
GENES, PRICE, TEXT = range(3), (3, 4), range(5, 9)
OFF = ~np.eye(N, dtype=bool)


def distances(X, blocks):
    data = MixedTable(X, blocks)
    return data.block(np.arange(data.n))


def test_the_square_is_the_weighted_sum_of_blocks_of_mean_one():
    blocks = eq.Blocks(
        {"genes": GENES, "price": PRICE, "text": TEXT},
        metric={"price": "manhattan", "text": "cosine"},
        weight={"price": 0.5, "text": 2.0},
    )
    parts = [
        (1.0, cdist(X[:, GENES], X[:, GENES], "sqeuclidean")),
        (0.5, cdist(X[:, PRICE], X[:, PRICE], "cityblock")),
        (2.0, cdist(X[:, TEXT], X[:, TEXT], "cosine")),
    ]
    expected = sum(w * q / q[OFF].mean() for w, q in parts)
    found = distances(X, blocks)
    assert_allclose(found**2, expected, atol=1e-12)
    assert (found**2)[OFF].mean() == pytest.approx(3.5)


def test_a_single_block_without_scaling_is_its_metric():
    for metric, name, power in (("euclidean", "euclidean", 1), ("correlation", "correlation", 0.5)):
        found = distances(X, eq.Blocks({"all": range(9)}, metric=metric, scale="none"))
        assert_allclose(found, cdist(X, X, name) ** power, atol=1e-7)


def test_columns_of_unit_variance():
    found = distances(X, eq.Blocks({"all": range(9)}, scale="columns"))
    q = cdist(X, X, "seuclidean", V=X.var(axis=0)) ** 2
    assert_allclose(found**2, q / q[OFF].mean(), atol=1e-12)


def test_a_mixed_block_is_the_distance_of_gower():
    df = small_table(40).dropna(subset=["age", "city", "when"]).reset_index(drop=True)
    df = df.assign(a=np.arange(len(df)) % 7, b=np.arange(len(df)) % 5)
    blocks = eq.Blocks({"person": ["age", "city", "member"], "place": ["a", "b"]}, metric={"person": "mixed"})
    person = gower_by_loops(df[["age", "city", "member"]], ["city", "member"])
    place = cdist(df[["a", "b"]], df[["a", "b"]], "sqeuclidean")
    off = ~np.eye(len(df), dtype=bool)
    assert_allclose(distances(df, blocks) ** 2, person / person[off].mean() + place / place[off].mean(), atol=1e-12)


def test_neighbours_are_those_of_all_distances_and_the_search_does_not_depend_on_threads():
    for blocks in (
        eq.Blocks({"genes": GENES, "text": TEXT}, metric={"text": "cosine"}),
        eq.Blocks({"genes": GENES, "price": PRICE}, metric={"price": "manhattan"}),
    ):
        D = distances(X, blocks)
        np.fill_diagonal(D, np.inf)
        one, two = (eq.neighbors.nearest_neighbors(X, 6, blocks, n_threads=t) for t in (1, 2))
        assert_allclose(np.sort(one.distances, axis=1), np.sort(D, axis=1)[:, :6], rtol=1e-9)
        assert_array_equal(one.indices, two.indices)
        assert_array_equal(one.distances, two.distances)


def test_gaps_are_an_error_or_filled_in():
    gappy = X.copy()
    gappy[3, 3], gappy[5:7, 4] = np.nan, np.nan
    columns = {"genes": GENES, "price": PRICE}
    with pytest.raises(ValueError, match=r"block 'price' has missing values: 3 values .3.0%. in 3 rows and 2 columns"):
        MixedTable(gappy, eq.Blocks(columns))
    filled = np.where(np.isnan(gappy), np.nanmedian(gappy, axis=0), gappy)
    blocks = eq.Blocks(columns, missing="median")
    assert_allclose(distances(gappy, blocks), distances(filled, blocks), atol=1e-12)
    assert "price: 2 numbers, euclidean; missing: 3 values" in blocks.describe(gappy)


def test_a_saved_method_places_new_rows_at_the_same_position(tmp_path):
    df = small_table(60).drop(columns=["when"]).dropna()
    blocks = eq.Blocks({"who": ["age", "city"], "income": ["income"]}, metric={"who": "mixed"})
    method = eq.TSNE(metric=blocks, perplexity=8, n_iter=50, random_state=0).fit(df)
    assert_array_equal(method.transform(df[:4]), method.embedding_[:4])
    eq.save(method, tmp_path / "blocks.eq")
    loaded = eq.load(tmp_path / "blocks.eq")
    new = df[:5].assign(income=12_345.0)
    assert loaded.metric == blocks
    assert_array_equal(loaded.transform(new), method.transform(new))
    assert eq.evaluate(df, method).recall > 0.2


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({}, {}, "columns must map names of blocks"),
        ({"a": "x"}, {}, "columns of block 'a' must be a list"),
        ({"a": []}, {}, "block 'a' has no columns"),
        ({"a": [0, 1], "b": [1]}, {}, "column '1' is in the blocks 'a' and 'b'"),
        ({"price": [0]}, {"metric": {"prices": "cosine"}}, "metric names a block 'prices'.* did you mean price"),
        ({"a": [0]}, {"metric": "cosin"}, "the metric of block 'a' is 'cosin'; did you mean cosine"),
        ({"a": [0]}, {"scale": "row"}, "the scale of block 'a' is 'row'; choose from"),
        ({"a": [0]}, {"weight": 0}, "the weight of block 'a' must be a positive number"),
        ({"a": [0]}, {"missing": "drop"}, "missing must be one of"),
    ],
)
def test_errors_of_settings(columns, settings, message):
    with pytest.raises(ValueError, match=message):
        eq.Blocks(columns, **settings)


@pytest.mark.parametrize(
    ("table", "metric", "message"),
    [
        ({"y": [1, 2]}, "euclidean", "X lacks 1 column of block 'a', 'x'"),
        ({"x": ["u", "v"]}, "euclidean", "column 'x' of block 'a' contains categories, not numbers"),
        ({"x": [1, 1]}, "euclidean", "all rows are equal in block 'a'"),
        ({"x": [1, 0]}, "cosine", "row 1 is zero in block 'a'"),
        ({"x": [1, np.inf]}, "euclidean", "X, row 1, column 'x': infinite value"),
    ],
)
def test_errors_name_the_block(table, metric, message):
    with pytest.raises(ValueError, match=message):
        MixedTable(pd.DataFrame(table), eq.Blocks({"a": ["x"]}, metric=metric))
