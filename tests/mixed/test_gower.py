"""The distance of Gower against loops over its definition, for tables of every kind and with gaps."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from support.mixed_tables import gower_by_loops, small_table
from support.shared_data import SHARED

import equipoise as eq
from equipoise import data
from equipoise._warn import LeftOutWarning
from equipoise.inputs import MixedTable
from equipoise.mixed.row_numbers import numbers_rows

CONNECTIONS = SHARED / "kddcup99_10pct.npz"


def distances(X, metric="mixed"):
    data = MixedTable(X, metric)
    return data.block(np.arange(data.n))


def test_distances_agree_with_loops_over_the_definition():
    df = small_table(60)
    expected = gower_by_loops(df, categories=["city", "member"])
    data = MixedTable(df, "mixed")
    assert_allclose(data.block(np.arange(60)), expected, atol=1e-12)
    i, j = np.array([0, 5, 5, 59]), np.array([1, 5, 2, 30])
    assert_allclose(data.pairs(i, j), expected[i, j], atol=1e-12)
    assert_allclose(data.squared_to_all(data.rows(i)), expected[i] ** 2, atol=1e-12)


def test_weights_multiply_the_differences():
    df = small_table(40)
    weights = {"age": 2.5, "city": 0.5, "when": 0}
    expected = gower_by_loops(df, categories=["city", "member"], weights=weights)
    assert_allclose(distances(df, eq.Mixed(weights=weights)), expected, atol=1e-12)


def test_two_rows_by_hand():
    # |1 − 3| / 4, different colours and a missing number: (0.5 + 1) / 2
    X = [["red", 1.0, None], ["blue", 3.0, 7.0], ["red", 5.0, 9.0]]
    assert distances(X)[0, 1] == 0.75
    assert distances(X)[1, 2] == pytest.approx((1 + 0.5 + 1) / 3)


def test_rows_without_a_common_column_have_the_distance_one():
    X = pd.DataFrame({"a": [1.0, None, 2.0], "b": [None, 5.0, 6.0]})
    assert_array_equal(distances(X), [[0, 1, 1], [1, 0, 1], [1, 1, 0]])


def test_neighbours_are_those_of_all_distances():
    df = small_table(80)
    D = gower_by_loops(df, categories=["city", "member"])
    np.fill_diagonal(D, np.inf)
    graph = eq.neighbors.nearest_neighbors(df, 7, "mixed")
    assert_allclose(np.sort(graph.distances, axis=1), np.sort(D, axis=1)[:, :7], atol=1e-12)
    assert_allclose(graph.distances, np.take_along_axis(D, graph.indices.astype(int), axis=1), atol=1e-12)
    assert graph.recall == 1.0


@pytest.mark.skipif(not CONNECTIONS.exists(), reason="../shared/data is not there")
def test_a_real_table_with_gaps_agrees_with_loops_over_the_definition():
    with np.load(CONNECTIONS, allow_pickle=False) as file:
        rows = np.random.default_rng(0).choice(len(file["X"]), 90, replace=False)
        df = pd.DataFrame(file["X"][rows].astype(float)).add_prefix("x")
        for c, codes in enumerate(file["cat"][rows].T):
            df[f"kind {c}"] = [f"level {code}" for code in codes]
    df = df.loc[:, df.nunique() > 1]
    df = df.mask(np.random.default_rng(1).random(df.shape) < 0.1)
    df = df.loc[:, df.nunique() > 1]
    categories = [name for name in df if name.startswith("kind")]
    assert len(categories) == 3 and df.shape[1] > 15
    D = gower_by_loops(df, categories)
    assert_allclose(distances(df), D, atol=1e-12)
    np.fill_diagonal(D, np.inf)
    graph = eq.neighbors.nearest_neighbors(df, 10, "mixed")
    assert_allclose(np.sort(graph.distances, axis=1), np.sort(D, axis=1)[:, :10], rtol=1e-9)


def test_every_kind_of_table_gives_the_same_distances():
    polars = pytest.importorskip("polars")
    narwhals = pytest.importorskip("narwhals")
    df = small_table(30).drop(columns="size")  # polars gives every Enum an order, so none has a meaning
    expected = distances(df)
    for X in (pa.Table.from_pandas(df), polars.from_pandas(df), narwhals.from_native(df)):
        assert_array_equal(distances(X), expected)
    as_object = df.to_numpy(dtype=object)
    assert_allclose(distances(as_object), expected, atol=1e-12)


def test_numbers_with_commas_and_dates_as_text_are_quantities():
    df = pd.DataFrame(
        {
            "price": ["1,200", "2,200", "n/a"],
            "day": ["2024-01-01", "2024-01-11", "2024-01-05T12:00"],
            "zip": ["01", "02", "01"],
        }
    )
    assert eq.Mixed().describe(df).splitlines()[:4] == [
        "compared: 1 number, 1 date, 1 category",
        "number: 'price'",
        "date: 'day'",
        "category: 'zip'",
    ]
    assert distances(df)[0, 1] == 1.0
    assert distances(df)[0, 2] == pytest.approx(4.5 / 10 / 2)


def test_codes_of_categories_are_named_by_the_user():
    df = pd.DataFrame({"zip": [1000.0, 9000.0, None, 1000.0], "x": [0.0, 1.0, 0.5, 0.0]})
    assert distances(df, eq.Mixed(categories=["zip"]))[0, 1] == 1.0
    assert_allclose(distances(df, eq.Mixed(categories=["zip"]))[0, 2], 0.5)


@pytest.mark.parametrize(("missing", "number", "category"), [("mean", 4.0, "b"), ("median", 2.0, "b")])
def test_missing_values_are_filled_in(missing, number, category):
    df = pd.DataFrame({"x": [0.0, 2.0, 10.0, None, 3.0], "c": ["a", "b", "b", None, "a"]})
    df.loc[4, "x"] = 4.0 if missing == "mean" else 2.0
    df.loc[1:2, "x"] = [2.0, 10.0] if missing == "mean" else [2.0, 12.0]
    filled = df.fillna({"x": number, "c": "a"})
    assert_allclose(distances(df, eq.Mixed(missing=missing)), distances(filled))
    assert "filled in by the " + missing in eq.Mixed(missing=missing).describe(df)


def test_columns_without_information_are_left_out_with_a_warning():
    df = small_table(40).assign(
        name=[f"person {i}" for i in range(40)], row=np.arange(40), constant=3, empty=np.full(40, np.nan)
    )
    with pytest.warns(LeftOutWarning, match="left out of the distance: 'name' .*like a name.*'row' .numbers the rows"):
        found = distances(df)
    assert_array_equal(found, distances(small_table(40)))
    with pytest.warns(UserWarning, match="'constant' .constant., 'empty' .empty."):
        kept = MixedTable(df, eq.Mixed(weights={"row": 1, "name": 1}))
    assert {"row", "name"} <= set(kept.distance.names)


def test_the_description_counts_gaps():
    text = eq.Mixed().describe(pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", None, "y"], "c": [1, 2, 4]}))
    assert "missing: 2 values (22.2%) in 1 row and 2 columns" in text


@pytest.mark.parametrize(
    ("table", "metric", "message"),
    [
        ({"a": [1, 2], "b": [1, 2]}, {"weights": {"A1": 1}}, "weights names a column 'A1', which X does not have"),
        ({"a": [1.0, np.inf]}, {}, "X, row 1, column 'a': infinite value; replace it, or drop the row"),
        ({"a": [1, 1]}, {}, r"no column of X can be compared: 'a' \(constant\)"),
        ({"a": [1.0, None, 2.0]}, {}, "row 1 has no value in any column that is compared"),
        ({"a": [1, "x"]}, {}, "column 'a' contains values of the types int, str"),
        ({"a": [[1], [2]]}, {}, "column 'a' contains values of type list"),
        ({"a": [-1e308, 1e308]}, {}, "range of column 'a' overflows"),
    ],
)
def test_errors_name_the_column(table, metric, message):
    with pytest.raises(ValueError, match=message):
        MixedTable(pd.DataFrame(table), eq.Mixed(**metric))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": [1, 2]}, "weights must map names"),
        ({"weights": {"a": -1}}, "the weight of column 'a' must be a number >= 0"),
        ({"categories": "a"}, "categories must be a list of names"),
        ({"missing": "zero"}, "missing must be one of 'distance', 'mean', 'median'"),
    ],
)
def test_errors_of_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        eq.Mixed(**settings)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.arange(20), True),
        (np.random.default_rng(0).permutation(30) + 100, True),
        (np.arange(25) ** 2, True),
        (np.arange(19), False),
        (np.arange(20) + 0.5, False),
        (np.arange(25)[::-1] ** 2, False),
        (np.repeat(np.arange(20), 2), False),
    ],
)
def test_columns_that_number_the_rows(values, expected):
    """One rule for the metric "mixed" and for the hints of the command line."""
    assert numbers_rows(values.astype(float)) is expected
    table = pd.DataFrame({"x": np.sin(np.arange(len(values))), "row": values})
    assert ("numbers the rows" in eq.Mixed().describe(table)) is expected


@pytest.mark.parametrize("cell", ["-", "#N/A", "n/a", "?", ""])
def test_tables_and_files_have_the_same_missing_values(cell):
    read = data.read(io.BytesIO(f"a,b\n1,x\n{cell},y\n3,z\n".encode()), every_kind=True).X
    assert read.column("a").to_pylist() == [1, None, 3]
    assert "missing: 1 value" in eq.Mixed().describe(pd.DataFrame({"a": ["1", cell, "3"], "b": [1, 2, 4]}))


def test_digit_groups_of_python_are_text_in_tables_and_files():
    read = data.read(io.BytesIO(b"a,b\n1_000,1\n2_000,2\n"), every_kind=True).X
    for table in (read, pd.DataFrame({"a": ["1_000", "2_000"], "b": [1, 2]})):
        assert "compared: 1 number, 1 category" in eq.Mixed().describe(table)
