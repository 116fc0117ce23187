"""Data frames, stored arrays, tensors, pipelines, grid searches, and very small data.

scikit-learn's own checks of an estimator run in tests/methods/test_scikit_learn.py. The one on inputs of the array API
skips itself unless SCIPY_ARRAY_API is set.
"""

from __future__ import annotations

import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.methods import brief, over
from support.source_tree import ROOT, needs

import equipoise as eq
from equipoise.arrays import blocks as blocks_of_rows
from equipoise.data import check_table
from equipoise.evaluate import trustworthiness
from equipoise.methods import ALL

PAGE = ROOT / "docs" / "ecosystem.md"
X, LABELS = make_blobs(60, 4, centers=3, random_state=1)
FRAME = pd.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(60)])

every_method = over(ALL)
ignore_components = pytest.mark.filterwarnings("ignore:the neighbour graph has")  # three blobs


# Data frames


@ignore_components
@every_method
def test_pandas_output_keeps_the_index(Method):
    method = brief(Method).set_output(transform="pandas")
    Y = method.fit_transform(FRAME[:50])
    new = method.transform(FRAME[50:])
    names = [f"{Method.__name__.lower()}{i}" for i in range(method.n_components)]
    for map_, index in ((Y, FRAME.index[:50]), (new, FRAME.index[50:])):
        assert list(map_.columns) == names == list(method.get_feature_names_out()) and map_.index.equals(index)
    assert_array_equal(Y.to_numpy(), method.embedding_)
    plain = brief(Method).fit(X[:50])
    assert_array_equal(new.to_numpy(), plain.transform(X[50:]))
    assert list(method.feature_names_in_) == list("abcd")


@ignore_components
@every_method
def test_polars_output(Method):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame(X, schema=list("abcd"))
    method = brief(Method).set_output(transform="polars")
    Y = method.fit_transform(frame[:50])
    assert isinstance(Y, pl.DataFrame) and Y.columns == list(method.get_feature_names_out())
    assert_array_equal(Y.to_numpy(), brief(Method).fit_transform(X[:50]))
    assert method.transform(frame[50:]).columns == Y.columns and list(method.feature_names_in_) == list("abcd")


def test_frame_with_other_columns_raises():
    method = eq.PCA().fit(FRAME)
    with pytest.raises(ValueError, match="feature names should match"):
        method.transform(FRAME.rename(columns={"b": "B"}))
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        method.transform(FRAME[["a", "b", "c"]])


def test_frames_are_accepted_as_map_and_init():
    Y = eq.PCA().set_output(transform="pandas").fit_transform(FRAME)
    assert trustworthiness(FRAME, Y, 5) == trustworthiness(X, Y.to_numpy(), 5)
    started, plain = (eq.TSNE(n_iter=5).fit_transform(X, init=start) for start in (Y, Y.to_numpy()))
    assert_array_equal(started, plain)


# Non-numeric columns


WHEN = pd.date_range("2020-01-01", periods=60)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (WHEN, r"column 4 \('e'\) contains times \(datetime64"),
        (WHEN.tz_localize("UTC"), r"column 4 \('e'\) contains times \(datetime64"),
        (WHEN - WHEN[0], r"column 4 \('e'\) contains times \(timedelta64"),
        (WHEN.to_period("M"), r"column 4 \('e'\) contains times \(period"),
        (pd.Categorical(["red", "blue"] * 30), r"column 4 \('e'\) contains categories \(category\); drop or encode it"),
        (pd.Categorical([1, 2] * 30), r"column 4 \('e'\) contains categories"),
        (
            ["red"] * 60,
            r"'red' at row 0, column 4 \('e'\) is text; drop or encode that column, or use metric=\"mixed\"",
        ),
        ([1.0] * 59 + ["x"], r"'x' at row 59, column 4 \('e'\) is text"),
        (pd.array(["red"] * 60, dtype="string"), r"'red' at row 0, column 4 \('e'\) is text"),
        ([[1.0]] * 60, r"\[1.0\] at row 0, column 4 \('e'\) is of type list"),
        (pd.array([1] * 7 + [None] * 53, dtype="Int64"), r"NaN at row 7, column 4 \('e'\), and 52 more"),
        ([1.0, None] * 30, r"NaN at row 1, column 4 \('e'\), and 29 more"),
    ],
)
def test_non_numeric_columns_raise_by_name(column, words):
    frame = FRAME.assign(e=column)
    with pytest.raises(ValueError, match=words):
        eq.TSNE().fit(frame)


def test_missing_objects_raise():
    frame = FRAME.astype(object)
    frame.iloc[3, 2] = pd.NA
    with pytest.raises(TypeError, match=r"<NA> at row 3, column 2 \('c'\) is of type NAType; fill it in"):
        eq.TSNE().fit(frame)


@pytest.mark.parametrize("dtype", ["Float64", "Int64", "int8", "float32", object])
def test_numeric_pandas_dtypes_are_accepted(dtype):
    whole = FRAME.round()
    assert_array_equal(check_table(whole.astype(dtype)), whole.to_numpy())


def test_non_numeric_polars_columns_raise():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame(X, schema=list("abcd"))
    for column, words in (
        (pl.lit("red"), "'red' at row 0, column 4 .*is text"),
        (pl.lit("red").cast(pl.Categorical), r"column 4 \('e'\) contains categories \(Categorical\)"),
        (pl.lit("red").cast(pl.Enum(["red", "blue"])), r"column 4 \('e'\) contains categories \(Enum\)"),
        (pl.date(2020, 1, 1), r"column 4 \('e'\) contains times \(Date\)"),
        (pl.lit(None).cast(pl.Float64), r"NaN at row 0, column 4 \('e'\), and 59 more"),
    ):
        with pytest.raises(ValueError, match=words):
            eq.TSNE().fit(frame.with_columns(column.alias("e")))
    with pytest.raises(ValueError, match=r"X \(LazyFrame\) has an unknown number of rows.*X.collect\(\)"):
        eq.TSNE().fit(frame.lazy())


def test_transform_names_invalid_columns():
    method = eq.PCA().fit(FRAME)
    with pytest.raises(ValueError, match=r"'x' at row 1, column 2 \('c'\) is text"):
        method.transform(FRAME[:2].astype(object).assign(c=[1.0, "x"]))


# Other kinds of arrays


def test_masked_values_raise():
    assert_array_equal(check_table(np.ma.masked_array(X)), X)
    mask = np.zeros(X.shape, dtype=bool)
    mask[5, 2] = mask[7, 0] = True
    with pytest.raises(ValueError, match="X is masked at row 5, column 2 and in 1 more entry; fill in the masked"):
        eq.TSNE().fit(np.ma.masked_array(X, mask))


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[D]"])
def test_times_raise(kind):
    with pytest.raises(ValueError, match=f"contains times \\({re.escape(kind)}\\)"):
        eq.TSNE().fit(X.astype(kind))


def test_objects_with_array_method_are_accepted():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array(X, dtype=dtype)

    assert_array_equal(eq.TSNE(**short_run()).fit_transform(Wrapped()), eq.TSNE(**short_run()).fit_transform(X))


def short_run():
    return {"n_iter": 20, "random_state": 0}


class Stored:
    """A stored array that is read by slices and records the slices."""

    dtype = np.dtype(np.float32)

    def __init__(self, table, chunks):
        self.table, self.shape, self.chunks, self.read = table, table.shape, chunks, []

    def __getitem__(self, key):
        self.read.append(key)
        return self.table[key].astype(np.float32)


@pytest.mark.parametrize(
    ("chunks", "blocks"),
    [
        ((7, 4), 5),  # two chunks of 7 rows at once: 56 of 64 numbers
        ((60, 1), 4),  # column by column
        ((50, 3), 3),
        (None, 4),  # 16 rows at once
        (((20, 30, 10), (4,)), 3),
        (((2,) * 30, (1, 3)), 4),
    ],
)
def test_stored_arrays_are_read_once_by_chunks(monkeypatch, chunks, blocks):
    monkeypatch.setattr(blocks_of_rows, "block_bytes", lambda: 8 * 64)
    whole = np.round(X)
    stored = Stored(whole, chunks)
    assert_array_equal(check_table(stored), whole)
    assert len(stored.read) == blocks
    times = np.zeros(X.shape, dtype=int)
    for key in stored.read:
        times[key] += 1
    assert (times == 1).all()


def test_reading_stored_arrays_does_not_copy_the_table():
    shape = (4000, 500)  # 16 MB
    stored = Stored(np.broadcast_to(np.arange(500.0), shape), (100, 500))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks_of_rows, "block_bytes", lambda: 8 * 50_000)
        tracemalloc.start()
        check_table(stored)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.1 * 8 * shape[0] * shape[1]


def test_stored_text_raises():
    stored = Stored(X, (7, 4))
    stored.dtype = np.dtype("U3")
    with pytest.raises(ValueError, match="X must contain numbers, but its dtype is <U3"):
        eq.TSNE().fit(stored)


def test_dask_arrays_are_accepted():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    array = da.from_array(X, chunks=(7, 3))
    method = eq.TSNE(**short_run()).fit(array)
    assert_array_equal(method.embedding_, eq.TSNE(**short_run()).fit_transform(X))
    assert_array_equal(method.transform(array[:9] + 0.1), method.transform(X[:9] + 0.1))
    assert trustworthiness(array, method.embedding_, 5) == trustworthiness(X, method.embedding_, 5)
    for use in (eq.TSNE().fit, lambda rows: eq.evaluate(rows, method.embedding_)):
        with pytest.raises(ValueError, match=r"X \(Array\) has an unknown number of rows.*compute_chunk_sizes"):
            use(array[array[:, 0] > 0])


def test_dask_arrays_of_sparse_chunks_stay_sparse():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    counts = sparse.random(60, 30, 0.2, format="csr", random_state=0)
    array = da.from_array(counts.toarray(), chunks=(20, 30)).map_blocks(sparse.csr_matrix)
    method, plain = (eq.TSNE(**short_run()).fit(data) for data in (array, counts))
    assert type(method._data) is type(plain._data) and method._data.X.nnz == counts.nnz
    assert_array_equal(method.embedding_, plain.embedding_)
    reports = [str(eq.evaluate(data, plain.embedding_, LABELS)) for data in (array, counts)]
    assert reports[0] == reports[1]


def test_zarr_arrays_are_accepted(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    array = zarr.open_array(tmp_path / "table.zarr", mode="w", shape=X.shape, chunks=(7, 3), dtype="f8")
    array[:] = X
    method = eq.TSNE(**short_run()).fit(array)
    assert_array_equal(method.embedding_, eq.TSNE(**short_run()).fit_transform(X))
    assert_array_equal(method.transform(array), method.embedding_)


def test_hdf5_arrays_are_accepted(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "table.h5", "w") as file:
        for chunks in ((7, 3), None):
            array = file.create_dataset(f"X {chunks}", data=X, chunks=chunks)
            assert_array_equal(check_table(array), X)


class Tensor:
    """The tensor interface, for machines without PyTorch."""

    def __init__(self, values, *, needs_gradient=True, size=4):
        self.values, self.shape, self.dtype = values, values.shape, "tensor.float32"
        self.needs_gradient, self.size = needs_gradient, size

    def detach(self):
        return Tensor(self.values, needs_gradient=False, size=self.size)

    def cpu(self):
        return self

    def float(self):
        return Tensor(self.values, needs_gradient=self.needs_gradient)

    def element_size(self):
        return self.size

    def __array__(self, dtype=None, copy=None):
        if self.needs_gradient or self.size < 4:
            raise RuntimeError("not an array")
        return np.array(self.values, dtype=dtype)


@pytest.mark.parametrize("size", [2, 4])
def test_tensors_are_detached(size):
    assert_array_equal(check_table(Tensor(X, size=size)), X)


def test_torch_tensors_are_accepted():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    plain = eq.TSNE(**short_run()).fit_transform(X)
    for tensor in (torch.tensor(X), torch.tensor(X, requires_grad=True)):
        assert_array_equal(eq.TSNE(**short_run()).fit_transform(tensor), plain)
    whole = torch.tensor(X).round()
    assert_array_equal(check_table(whole.to(torch.bfloat16)), whole.numpy())
    with pytest.raises(ValueError, match="cannot be converted to an array"):
        eq.TSNE().fit(whole.to_sparse())


# Pipelines and grid searches


def test_pipeline_keeps_the_index():
    pipeline = make_pipeline(StandardScaler(), eq.TSNE(**short_run())).set_output(transform="pandas")
    Y = pipeline.fit_transform(FRAME)
    assert Y.index.equals(FRAME.index) and list(pipeline.get_feature_names_out()) == ["tsne0", "tsne1"]
    assert_array_equal(Y, clone(pipeline).fit_transform(FRAME))


def held_out_trustworthiness(method, X_new, y=None):
    """Return the trustworthiness of the positions of held-out rows."""
    return float(trustworthiness(X_new, method.transform(X_new), 3))


def test_grid_search_scores_held_out_rows():
    search = GridSearchCV(eq.TSNE(random_state=0), {"perplexity": [2, 12]}, scoring=held_out_trustworthiness, cv=2).fit(
        X
    )
    first = clone(search.estimator).set_params(perplexity=2).fit(X[30:])
    assert search.cv_results_["split0_test_score"][0] == held_out_trustworthiness(first, X[:30])
    assert search.best_estimator_.embedding_.shape == (60, 2) and search.best_score_ > 0.8


@ignore_components
def test_grid_search_splits_rows_and_columns_of_distances():
    D = pairwise_distances(X)
    np.fill_diagonal(D, 0)
    scores = []
    for metric, data in (("euclidean", X), ("precomputed", D)):
        pipeline = make_pipeline(eq.ClassicalMDS(metric=metric), KNeighborsClassifier(3))
        search = GridSearchCV(pipeline, {"classicalmds__n_components": [1, 2]}, cv=3).fit(data, LABELS)
        scores.append(search.cv_results_["mean_test_score"])
    np.testing.assert_allclose(scores[0], scores[1])
    assert scores[0].max() > 0.9


# Few points


@pytest.mark.parametrize("Method", [M for M in ALL if "n_neighbors" in M().get_params()], ids=lambda M: M.__name__)
@pytest.mark.parametrize("n", [3, 5])
def test_too_many_neighbors_warn_and_are_reduced(Method, n):
    used = n if Method in (eq.UMAP, eq.PairEmbedding) else n - 1  # these two count the point itself
    with pytest.warns(UserWarning, match=f"n_neighbors=15 is too large for n_samples={n}; n_neighbors={used} is used"):
        Y = Method(n_neighbors=15, random_state=0).fit_transform(X[:n])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(Y, Method(n_neighbors=used, random_state=0).fit_transform(X[:n]))


@pytest.mark.parametrize(("n", "k"), [(3, 1), (5, 2), (30, 14), (31, 15), (60, 15)])
def test_report_chooses_k(n, k):
    report = eq.evaluate(X[:n], X[:n, :2])
    assert report.k == k and ("are too many for" in report.footer) == (k < 15)
    assert report.trustworthiness == trustworthiness(X[:n], X[:n, :2], k)
    assert eq.compare(X[:n], [X[:n, :2]]).reports["map 1"].k == k
    with pytest.raises(ValueError, match=f"k must be between 1 and n_samples - 1 = {n - 1}, got {n}"):
        eq.evaluate(X[:n], X[:n, :2], k=n)


# The page of the documentation


def blocks():
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@needs("docs")
@pytest.mark.parametrize("number", range(len(blocks())))
def test_ecosystem_page_runs(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = blocks()[number]
    for library in re.findall(r"^import (polars|dask|zarr|torch|anndata)\b", block, flags=re.MULTILINE):
        pytest.importorskip(library, reason=f"{library} is not installed")
    exec(compile(block, f"{PAGE.name}, block {number}", "exec"), {})
