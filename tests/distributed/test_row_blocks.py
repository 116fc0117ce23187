"""Tables that are read in blocks of rows: the same rows and the same map from every source, and errors."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from support.row_tables import FORMS, OwnSource, annotated, make_table, write_lists, write_parquet, write_zarr
from support.thread_ranks import run_ranks

import equipoise as eq
from equipoise.distributed import fit, parquet_rows, row_pieces
from equipoise.distributed.row_sources import open_rows

pytestmark = pytest.mark.ranks
N, D = 2100, 5
X = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
X[:, :2] *= np.random.default_rng(1).uniform(size=(N, 2)) < 0.3  # for sparse matrices
X[1234] = 0
METHOD = eq.TSNE(perplexity=5, n_iter=5, random_state=0)


@pytest.fixture(params=FORMS)
def table(request, tmp_path, monkeypatch):
    for package in ("zarr", "pyarrow", "anndata", "dask"):
        pytest.importorskip(package)
    monkeypatch.setattr(row_pieces, "LEAST", 4 * D * 100)  # several pieces
    monkeypatch.setattr(parquet_rows, "BATCH", 8 * D * 40)
    values = X if request.param != "list of lists" else X.astype(np.float64)
    return request.param, values, *make_table(request.param, values, tmp_path)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(bounds=st.lists(st.tuples(st.integers(0, N), st.integers(0, N)), min_size=1, max_size=6))
def test_every_source_gives_the_same_rows(table, bounds):
    _, values, source, key = table
    rows = open_rows(source, key=key)
    assert rows.shape == (N, D) and rows.dtype == values.dtype
    for start, stop in map(sorted, bounds):
        block = rows.read(start, stop)
        assert block.dtype == values.dtype and block.flags.c_contiguous and block.flags.writeable
        assert_array_equal(block, values[start:stop])


@pytest.fixture(scope="module")
def expected():
    return {dtype: fit(METHOD, X.astype(dtype)).gather() for dtype in (np.float32, np.float64)}


def test_every_source_gives_the_same_map(table, expected):
    _, values, source, key = table
    parts = run_ranks(2, lambda group: fit(METHOD, source, group=group, key=key).gather())
    assert_array_equal(parts[0], expected[values.dtype.type])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, bool])
def test_integers_are_read_as_floats(tmp_path, dtype):
    values = (10 * X).astype(np.int8).astype(dtype)
    expected = np.float32 if np.can_cast(dtype, np.float32) else np.float64
    np.save(tmp_path / "t.npy", values)
    sources = [values, tmp_path / "t.npy", write_zarr(tmp_path / "t.zarr", values)]
    if dtype is not bool:
        sources.append(write_parquet(tmp_path / "t.parquet", values))
    for source in sources:
        block = open_rows(source).read(3, 9)
        assert block.dtype == expected
        assert_array_equal(block, values[3:9])


def test_chosen_columns_of_parquet_and_file_order(tmp_path):
    for f, start in ((2, 200), (10, 100), (1, 0)):  # in the order of names, part-1 < part-10 < part-2
        write_parquet(tmp_path / f"part-{f}.parquet", X[start : start + 100])
    rows = open_rows(tmp_path, columns=["x3", "x0"])
    assert_array_equal(rows.read(0, 300), X[:300][:, [3, 0]])


class Counted:
    """Slices of an array in chunks, counted."""

    chunks = (100, D)
    shape, dtype = X.shape, X.dtype

    def __init__(self):
        self.slices = []

    def __getitem__(self, rows):
        self.slices.append((rows.start, rows.stop))
        return X[rows]


@pytest.mark.parametrize(("least", "kept", "slices"), [(1, 2**20, 21), (8000, 2**20, 6), (1, 100, 210)])
def test_a_chunk_is_read_once_in_ascending_order(monkeypatch, least, kept, slices):
    from equipoise.distributed.stored_rows import StoredRows

    monkeypatch.setattr(row_pieces, "LEAST", least)
    monkeypatch.setattr(row_pieces, "KEPT", kept)
    values = Counted()
    rows = StoredRows(values, "t")
    for start in range(0, N, 10):
        assert_array_equal(rows.read(start, start + 10), X[start : start + 10])
    assert len(values.slices) == slices
    assert all(start % 100 == 0 for start, _ in values.slices) or kept == 100


def test_parquet_is_decoded_once_in_ascending_order_and_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_rows, "BATCH", 8 * D * 64)
    rows = parquet_rows.ParquetRows(write_parquet(tmp_path / "t.parquet", X, group=N), None, None)
    sizes, values = [], rows._values

    def counted(batch):
        sizes.append(batch.num_rows)
        return values(batch)

    monkeypatch.setattr(rows, "_values", counted)
    for start in range(0, N, 50):
        assert_array_equal(rows.read(start, start + 50), X[start : start + 50])
    assert sum(sizes) == N and max(sizes) <= 64  # no row group is in memory as a whole
    assert_array_equal(rows.read(7, 9), X[7:9])


def refused(source, match, error=ValueError, **options):
    with pytest.raises(error, match=match):
        open_rows(source, **options)


def test_paths_that_cannot_be_opened_are_refused(tmp_path):
    refused(tmp_path / "t.npy", r"t\.npy does not exist", FileNotFoundError)
    (tmp_path / "t.csv").write_text("1,2\n")
    refused(tmp_path / "t.csv", r"read in blocks of rows only as \.npy, \.zarr, \.h5ad or \.parquet; convert it first")
    for suffix, kind in ((".npy", "NPY"), (".h5ad", "H5AD"), (".parquet", "Parquet")):
        (tmp_path / f"bad{suffix}").write_bytes(b"nothing that can be read")
        refused(tmp_path / f"bad{suffix}", rf"bad{suffix} cannot be read as {kind}: ")
    (tmp_path / "bad.zarr").mkdir()
    refused(tmp_path / "bad.zarr", r"bad\.zarr cannot be read as Zarr: ")
    (tmp_path / "empty.parquet").mkdir()
    refused(tmp_path / "empty.parquet", r"empty\.parquet contains no \*\.parquet files")


def test_tables_of_other_shapes_and_types_are_refused(tmp_path):
    cube = np.zeros((4, 3, 2), np.float32)
    np.save(tmp_path / "t.npy", cube)
    refused(tmp_path / "t.npy", r"t\.npy has shape \(4, 3, 2\); a table has two axes")
    refused(cube, r"X has shape \(4, 3, 2\); a table has two axes, rows and columns")
    refused(OwnSource(cube), r"my table has shape \(4, 3, 2\); a table has two axes")
    refused(np.zeros((1, 3)), r"X has shape \(1, 3\); a table needs at least 2 rows and 1 column")
    refused(np.array([["a", 1], ["b", 2]], object), "X has values of type object; a table of real numbers is needed")
    refused(OwnSource(np.zeros((4, 3), complex)), "my table has values of type complex128")


def test_pickled_arrays_are_refused(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[object()]]), allow_pickle=True)
    refused(tmp_path / "t.npy", r"t\.npy cannot be read as NPY: ")
    head = {"chunks": [1, 1], "compressor": None, "dtype": "<f8", "fill_value": 0, "filters": [{"id": "pickle"}]}
    (tmp_path / "t.zarr").mkdir()
    (tmp_path / "t.zarr" / ".zarray").write_text(json.dumps(head | {"order": "C", "shape": [1, 1], "zarr_format": 2}))
    refused(tmp_path / "t.zarr", "uses a pickle codec")


def test_zarr_errors(tmp_path):
    zarr = pytest.importorskip("zarr")
    path = write_zarr(tmp_path / "t.zarr", X)
    refused(path, r"t\.zarr is one array, so that key='a' names nothing; use key=None", key="a")
    zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    refused(tmp_path / "g.zarr", r"g\.zarr contains the arrays none; choose one by key=")
    for name in ("b", "a"):
        write_zarr(tmp_path / "g.zarr" / name, X[:3, :2])
    refused(tmp_path / "g.zarr", r"g\.zarr contains the arrays 'a', 'b'; choose one by key=")
    refused(tmp_path / "g.zarr", r"g\.zarr has no array 'c'", key="c")
    zarr.open_array(str(tmp_path / "g.zarr" / "cube"), mode="w", shape=(3, 2, 2), dtype="float32")
    refused(tmp_path / "g.zarr", r"g\.zarr/cube has shape \(3, 2, 2\); a table has two axes", key="cube")


def not_read(source, start, stop, match, **options):
    rows = open_rows(source, **options)
    with pytest.raises(ValueError, match=match):
        rows.read(start, stop)


def test_missing_and_damaged_chunks_of_zarr_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(row_pieces, "LEAST", 1)
    path = write_zarr(tmp_path / "t.zarr", X)
    (path / "c" / "3" / "0").unlink()  # rows 630 to 839
    assert_array_equal(open_rows(path).read(0, 630), X[:630])
    not_read(path, 600, 640, r"rows 600 to 639 of .*t\.zarr cannot be read: .*c.3.0 is missing; write the table again")
    damaged = path / "c" / "2" / "0"
    damaged.write_bytes(damaged.read_bytes()[:100])
    not_read(path, 430, 440, r"rows 430 to 439 of .*t\.zarr cannot be read: ")
    constant = write_zarr(tmp_path / "constant.zarr", np.zeros((500, 3), np.float32))
    not_read(constant, 0, 10, r"write_empty_chunks=True if all values of these rows are 0\.0")


def test_parquet_errors(tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = write_parquet(tmp_path / "t.parquet", X)
    refused(path, r"t\.parquet has no column 'y'; its columns are 'x0', .*'kind'", columns=["y"])
    refused(path, r"t\.parquet has no column 'y'", key="y")
    refused(path, r"column 'kind' of .*t\.parquet has type string; a column of numbers is needed", columns=["kind"])
    refused(path, r"column 'x0' of .*t\.parquet has type float; a column of lists of numbers is needed", key="x0")
    lists = [row.tolist() for row in X]
    lists[777] = [1.0, 2.0]
    path = write_lists(tmp_path / "lists.parquet", lists, pa.list_(pa.float32()))
    not_read(path, 700, 800, r"cannot be read: row 777 has a list of 2 numbers, expected 5", key="v")
    lists[777] = None
    path = write_lists(tmp_path / "lists.parquet", lists, pa.list_(pa.float32(), D))
    not_read(path, 700, 800, r"row 777 has a list of 0 numbers, expected 5", key="v")
    words = write_lists(tmp_path / "words.parquet", [["a"]] * 5, pa.list_(pa.string()))
    refused(words, r"has type list<.*string>; a column of lists of numbers", key="v")


def test_truncated_and_unlike_parquet_files_are_refused(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    first = write_parquet(folder / "a.parquet", X[:500])
    write_parquet(folder / "b.parquet", X[500:, :4])
    message = r"b\.parquet has other columns than .*a\.parquet; all files must have columns of the same names and types"
    refused(folder, message)
    write_parquet(folder / "b.parquet", X[500:].astype(np.float64))
    refused(folder, message)
    (folder / "b.parquet").write_bytes(first.read_bytes()[:-100])
    refused(folder, r"b\.parquet cannot be read as Parquet: ")
    content = bytearray(first.read_bytes())
    content[200:1200] = b"\0" * 1000
    (folder / "b.parquet").write_bytes(content)
    not_read(folder, 500, 900, r"rows 500 to 899 of .*parts cannot be read: ")


def test_annotated_errors(tmp_path):
    pytest.importorskip("anndata")
    data = annotated(X)
    refused(data, r"the AnnData object has no obsm\['X_umap'\]; its obsm has X_other, X_pca", key="X_umap")
    data.write_h5ad(tmp_path / "t.h5ad")
    refused(tmp_path / "t.h5ad", r"t\.h5ad has no obsm/X_umap; its obsm has X_other, X_pca", key="X_umap")
    annotated(sparse.csc_matrix(X)).write_h5ad(tmp_path / "csc.h5ad")
    refused(tmp_path / "csc.h5ad", r"csc\.h5ad/X is stored as csc_matrix; rows are read from arrays and csr_matrix")


def test_dask_array_with_unknown_chunks_is_refused():
    array = pytest.importorskip("dask.array")
    values = array.from_array(X, chunks=(100, D))
    refused(values[values[:, 0] > 0], r"the Dask array has chunks of unknown size; call compute_chunk_sizes\(\) first")


def test_missing_values_are_refused_with_row_and_column(tmp_path):
    bad = X.copy()
    bad[1500, 3] = np.nan
    match = r"has the value nan in row 1500, column 3; fill or remove missing values"
    for source in (bad, write_parquet(tmp_path / "t.parquet", bad), write_zarr(tmp_path / "t.zarr", bad)):
        not_read(source, 1400, 1600, match)
    with pytest.raises(ValueError, match=match):
        run_ranks(2, lambda group: fit(METHOD, bad, group=group))


def test_user_object_that_returns_too_few_rows_is_refused():
    class Short(OwnSource):
        def read(self, start, stop):
            return super().read(start, stop - 1)

    not_read(
        Short(X), 10, 20, r"rows 10 to 19 of my table have shape \(9, 5\), expected \(10, 5\); a block of the table"
    )


def test_memory_errors_are_not_hidden():
    class Full(OwnSource):
        def read(self, start, stop):
            raise MemoryError

    with pytest.raises(MemoryError):
        open_rows(Full(X)).read(0, 5)


def test_table_that_is_removed_while_it_is_read_is_refused(tmp_path):
    rows = open_rows(write_zarr(tmp_path / "t.zarr", X))
    shutil.rmtree(tmp_path / "t.zarr" / "c")
    with pytest.raises(ValueError, match="is missing; write the table again"):
        rows.read(0, 5)
