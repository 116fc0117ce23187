"""Every file format gives back the table that was written; invalid files raise."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
import warnings
from contextlib import suppress

import numpy as np
import pytest
from scipy import io, sparse
from support.read_cases import KINDS, NAMES, X, assert_read_raises

from equipoise import data
from equipoise.arrays import blocks
from equipoise.data.read import annotated as annotated_module
from equipoise.data.read.finite import check_numbers

# NPY and NPZ


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int16, np.uint8, bool])
def test_npy_keeps_its_dtype(tmp_path, dtype):
    table = (10 * X).astype(np.int8).astype(dtype)
    np.save(tmp_path / "t.npy", table)
    found = data.read(tmp_path / "t.npy")
    np.testing.assert_array_equal(found.X, table)
    assert found.X.dtype == dtype and found.name == "t" and found.X.flags.writeable


def test_npz_uses_the_only_table_or_the_one_named_X(tmp_path):
    np.savez(tmp_path / "t.npz", table=X, y=np.arange(60) % 2, names=NAMES.astype(str), other=np.ones(3))
    found = data.read(tmp_path / "t.npz", label="y", id="names")
    np.testing.assert_array_equal(found.X, X)
    assert found.classes == ("0", "1") and list(found.ids) == list(NAMES) and not found.extra
    assert set(data.read(str(tmp_path / "t.npz")).extra) == {"y", "names"}
    np.savez(tmp_path / "t.npz", X=X, W=2 * X)
    np.testing.assert_array_equal(data.read(tmp_path / "t.npz").X, X)
    np.savez(tmp_path / "t.npz", V=X, W=2 * X)
    assert_read_raises(tmp_path / "t.npz", r"name one of the tables X; found 'V \(60, 4\)', 'W \(60, 4\)'")
    np.savez(tmp_path / "t.npz", X=X)
    assert_read_raises(tmp_path / "t.npz", "the table in an NPZ file has no column names; omit", columns=["a"])
    assert_read_raises(tmp_path / "t.npz", "no column is named 'y'", label="y")


@pytest.mark.parametrize(
    ("array", "match"),
    [
        (np.ones(3), r"shape \(3,\); expected a nonempty table"),
        (np.ones((0, 3)), "cannot be read as NPY|shape"),
        (np.ones((2, 3), complex), "values of type complex128; expected real numbers"),
        (np.array([["a", "b"]]), "values of type <U1"),
        (np.where(np.arange(8).reshape(4, 2) == 5, np.nan, 1.0), "row 2, column 1: missing value"),
        (
            np.where(np.arange(8).reshape(4, 2) > 3, np.nan, 1.0),
            r"row 2, column 0: missing value \(NaN\), also at row 2, column 1 and row 3, column 0 \(4 in all, in 2"
            r" rows and 2 columns\); fill them in",
        ),
        (np.where(np.arange(8).reshape(4, 2) == 3, -np.inf, 1.0), "row 1, column 1: infinite value"),
    ],
)
def test_invalid_arrays_raise(tmp_path, array, match):
    np.save(tmp_path / "t.npy", array)
    assert_read_raises(tmp_path / "t.npy", match)


def test_missing_values_are_counted_block_by_block():
    """The peak of memory does not grow with the number of missing values."""
    X = np.full((2_000_000, 2), np.nan, dtype=np.float32)
    X[0] = 1
    X[5, 0] = np.inf  # another fault, which is not counted
    tracemalloc.start()
    try:
        with pytest.raises(
            ValueError, match=r"row 1, column 0.*also at row 1, column 1 and row 2, column 0 \(3,999,997"
        ):
            check_numbers(X, "t")
        assert tracemalloc.get_traced_memory()[1] < 2 * X.nbytes
    finally:
        tracemalloc.stop()


class Trap:
    """An object whose unpickling creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_are_never_loaded(tmp_path):
    trap = np.array([[Trap(tmp_path / "sprung")]], dtype=object)
    np.save(tmp_path / "t.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "t.npz", X=trap)
    for name in ("t.npy", "t.npz"):
        assert_read_raises(tmp_path / name, "cannot be read")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be truncated on Windows")
@pytest.mark.parametrize("suffix", [".npy", ".feather"])
def test_file_truncated_while_it_is_read_raises(tmp_path, suffix):
    """In a process of its own: reading a truncated memory map ends the process."""
    code = f"""
import sys
import numpy as np, pyarrow
from pyarrow import feather
from equipoise import data
from equipoise.data.read import arrow_files, numpy_files
path, X = sys.argv[1], np.random.default_rng(0).standard_normal((50_000, 4))
def truncate(*arguments, **options):
    with open(path, "r+b") as file:
        file.truncate(5000)
if {suffix == ".npy"}:
    np.save(path, X)
    opened = np.lib.format.open_memmap
    np.lib.format.open_memmap = lambda *args, **options: [opened(*args, **options), truncate()][0]
else:
    feather.write_feather(pyarrow.table({{name: X[:, i] for i, name in enumerate("abcd")}}), path, "uncompressed")
    opened = pyarrow.ipc.open_file
    pyarrow.ipc.open_file = lambda source: [opened(source), truncate()][0]
try:
    data.read(path)
except ValueError as error:
    print(error)
"""
    words = [sys.executable, "-c", code, str(tmp_path / f"t{suffix}")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"t{suffix} cannot be read as" in done.stdout


def test_npy_with_a_label_raises(tmp_path):
    np.save(tmp_path / "t.npy", X)
    assert_read_raises(tmp_path / "t.npy", "an NPY file has no column names", label="y")


# MatrixMarket


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_sparse_matrix_market_is_read(tmp_path, suffix):
    counts = sparse.random(30, 12, 0.2, format="csr", random_state=0)
    io.mmwrite(tmp_path / "t.mtx", counts, precision=17)
    if suffix == ".mtx.gz":
        (tmp_path / "t.mtx.gz").write_bytes(gzip.compress((tmp_path / "t.mtx").read_bytes()))
    found = data.read(tmp_path / f"t{suffix}")
    assert sparse.issparse(found.X) and found.X.format == "csr" and found.name == "t"
    np.testing.assert_array_equal(found.X.toarray(), counts.toarray())


def test_dense_and_invalid_matrix_market(tmp_path):
    io.mmwrite(tmp_path / "t.mtx", X, precision=17)
    np.testing.assert_array_equal(data.read(tmp_path / "t.mtx").X, X)
    io.mmwrite(tmp_path / "t.mtx", sparse.csr_matrix(X * 1j))
    assert_read_raises(tmp_path / "t.mtx", "line 1: values of type complex are not real numbers")
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 nan\n")
    assert_read_raises(tmp_path / "t.mtx", "row 1, column 0: missing value")
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 5\n")
    assert_read_raises(tmp_path / "t.mtx", "Line 3: Row index out of bounds")
    for broken in (b"1 1 5", b"1 1 1.3E", b"1 1 5\0", b"2 1", b"1 1 5\n2 2", b"1 1 x\n"):  # some crash SciPy
        (tmp_path / "t.mtx").write_bytes(b"%%MatrixMarket matrix coordinate real general\n2 2 2\n" + broken)
        assert_read_raises(tmp_path / "t.mtx", r"t\.mtx cannot be read as MatrixMarket: ")
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 3 1\n2 1\n")
    assert_read_raises(tmp_path / "t.mtx", r"a symmetric matrix, which must be square, of shape \(2, 3\)")
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 999999999999 1\n1 1 5\n")
    assert_read_raises(tmp_path / "t.mtx", r"999999999999\) with 1 entry, which is too large for a file of this size")
    (tmp_path / "t.mtx").write_text("%%MatrixMarket matrix coordinate real general\n100000 100000 1\n1 1 5\n")
    assert data.read(tmp_path / "t.mtx").X.shape == (100_000, 100_000)  # few entries in a large matrix


@pytest.mark.parametrize(
    ("head", "entry", "expected"),
    [
        ("coordinate pattern general", "2 1", [[0, 0], [1, 0]]),
        ("coordinate integer symmetric", "2 1 7", [[0, 7], [7, 0]]),
        ("coordinate real skew-symmetric", "2 1 7", [[0, -7], [7, 0]]),
    ],
)
def test_matrix_market_values_and_symmetries(tmp_path, head, entry, expected):
    (tmp_path / "t.mtx").write_text(f"%%MatrixMarket matrix {head}\n% by hand\n\n2 2 1\n{entry}")
    found = data.read(tmp_path / "t.mtx").X
    assert found.toarray().tolist() == expected and found.dtype == np.float64


# AnnData and Zarr


def make_anndata(values):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    obs = pd.DataFrame({"kind": pd.Categorical(KINDS), "depth": np.arange(60), "lane": KINDS.astype(str)}, index=NAMES)
    return anndata.AnnData(X=values, obs=obs, var=pd.DataFrame(index=[f"gene {j}" for j in range(4)]))


def check_annotated(path, sparse_values):
    found = data.read(path, label="kind")
    assert sparse.issparse(found.X) == sparse_values
    np.testing.assert_array_equal(found.X.toarray() if sparse_values else found.X, X)
    assert found.columns == ("gene 0", "gene 1", "gene 2", "gene 3") and list(found.ids) == list(NAMES)
    assert found.classes == ("a", "b", "c") and list(found.extra) == ["depth", "lane"]
    assert found.extra["depth"].tolist() == list(range(60)) and list(found.extra["lane"]) == list(KINDS)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_h5ad_columns_labels_and_ids(tmp_path, make):
    make_anndata(make(X)).write_h5ad(tmp_path / "t.h5ad")
    check_annotated(tmp_path / "t.h5ad", make is not np.asarray)
    found = data.read(tmp_path / "t.h5ad", columns=["gene 2", "gene 0"], id="lane")
    np.testing.assert_array_equal(found.X if make is np.asarray else found.X.toarray(), X[:, [2, 0]])
    assert list(found.ids) == list(KINDS)
    assert_read_raises(tmp_path / "t.h5ad", "no column is named 'gene 9'", columns=["gene 9"])
    assert_read_raises(tmp_path / "t.h5ad", "no column is named 'gene 1'", label="gene 1")


@pytest.mark.filterwarnings("ignore:Writing zarr v2")
@pytest.mark.parametrize("name", ["t.h5ad", "t.zarr"])
def test_excluded_genes_of_anndata_are_dropped(tmp_path, name):
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    getattr(make_anndata(X), "write_h5ad" if name.endswith("h5ad") else "write_zarr")(tmp_path / name)
    found = data.read(tmp_path / name, exclude=["gene 0", "gene 3"])
    np.testing.assert_array_equal(found.X, X[:, [1, 2]])
    assert found.columns == ("gene 1", "gene 2")
    assert_read_raises(tmp_path / name, "no column is named 'gene 9'", exclude=["gene 9"])
    every = [f"gene {j}" for j in range(4)]
    assert_read_raises(tmp_path / name, "has no column to embed; exclude fewer", exclude=every)


def test_h5ad_that_crashes_hdf5_raises(tmp_path, monkeypatch):
    path, trial = tmp_path / "t.h5ad", tmp_path / "trial.py"
    make_anndata(X).write_h5ad(path)
    monkeypatch.setattr(annotated_module, "TRIAL", trial)
    trial.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    assert_read_raises(path, r"t\.h5ad cannot be read as H5AD: .* crashes the HDF5 library \(status .*; download")
    trial.write_text("import a_module_that_is_not_there\n")
    with pytest.warns(UserWarning, match="could not be checked in a separate process .*a_module_that_is_not_there"):
        data.read(path)
    trial.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")  # as when out of memory
    with pytest.warns(UserWarning, match=r"could not be checked .* \(exit status -9\)"):
        assert data.read(path).X.shape == X.shape


@pytest.mark.parametrize(("program", "reason"), [("", "sys.executable is empty"), ("/no/such/python", "No such file")])
def test_h5ad_is_read_with_a_warning_if_no_process_can_be_started(program, reason, tmp_path, monkeypatch):
    make_anndata(X).write_h5ad(tmp_path / "t.h5ad")
    monkeypatch.setattr("sys.executable", program)
    with pytest.warns(UserWarning, match=rf"could not be checked in a separate process \(.*{reason}"):
        assert data.read(tmp_path / "t.h5ad").X.shape == X.shape


def test_modules_next_to_an_h5ad_are_not_imported(tmp_path, monkeypatch):
    make_anndata(X).write_h5ad(tmp_path / "t.h5ad")
    (tmp_path / "h5py.py").write_text("open('marker', 'w').close()\n")
    (tmp_path / "runpy.py").write_text("open('marker', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert data.read("t.h5ad").X.shape == X.shape
    assert not (tmp_path / "marker").exists()


def test_h5ad_check_follows_external_links(tmp_path, monkeypatch):
    """Arrays in two identically written files have the same addresses."""
    h5py = pytest.importorskip("h5py")
    from equipoise.data.read import hdf5_trial

    for name, value in (("a.h5", 1.0), ("b.h5", 2.0)):
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = np.full(3, value)
            file["same"] = file["x"]
            if name == "a.h5":
                file["y"] = h5py.ExternalLink("b.h5", "/x")
    seen = []
    monkeypatch.setattr(hdf5_trial, "read", lambda array: seen.append(array[0]))
    with h5py.File(tmp_path / "a.h5", "r") as file:
        hdf5_trial.read_all(file, set())
    assert seen == [1, 2]


def test_h5ad_with_a_corrupt_attribute_type_does_not_crash(tmp_path):
    """A corrupt type of the attribute _index crashes h5py 3.16 with HDF5 2.0. An error or a table is correct."""
    path = tmp_path / "t.h5ad"
    make_anndata(X).write_h5ad(path)
    content = path.read_bytes()
    spot = b"_index\x00\x00\x19\x01"
    assert spot in content
    path.write_bytes(content.replace(spot, b"_index\x00\x00\x19\xf8"))
    with suppress(ValueError):
        assert data.read(path).X.shape == X.shape


def test_invalid_h5ad_raises(tmp_path):
    values = X.copy()
    values[7, 2] = np.nan
    make_anndata(values).write_h5ad(tmp_path / "t.h5ad")
    assert_read_raises(tmp_path / "t.h5ad", "row 7, column 'gene 2': missing value")
    (tmp_path / "t.h5ad").write_bytes((tmp_path / "t.h5ad").read_bytes()[:2000])
    assert_read_raises(tmp_path / "t.h5ad", "cannot be read as H5AD")


def test_zarr_arrays_and_groups(tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.setattr(blocks, "block_bytes", lambda: 800)
    zarr.save_array(str(tmp_path / "t.zarr"), X)
    found = data.read(tmp_path / "t.zarr")
    np.testing.assert_array_equal(found.X, X)
    assert found.name == "t"
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group["table"] = X.astype(np.float32)
    np.testing.assert_array_equal(data.read(tmp_path / "g.zarr").X, X.astype(np.float32))
    group["other"] = X
    assert_read_raises(tmp_path / "g.zarr", "name one of the tables X; found")
    zarr.open_array(str(tmp_path / "t.zarr"), mode="r+")[33, 1] = np.nan
    assert_read_raises(tmp_path / "t.zarr", "row 33, column 1: missing value")
    assert_read_raises(tmp_path / "t.zarr", "a Zarr array has no column names", id="a")


def test_anndata_zarr_store(tmp_path):
    pytest.importorskip("zarr")
    with warnings.catch_warnings():  # about the Zarr version that anndata writes
        warnings.simplefilter("ignore")
        make_anndata(X).write_zarr(tmp_path / "t.zarr")
    check_annotated(tmp_path / "t.zarr", False)


def test_zarr_with_pickle_codec_raises(tmp_path):
    pytest.importorskip("zarr")
    head = {"chunks": [1, 1], "compressor": None, "dtype": "<f8", "fill_value": 0, "filters": [{"id": "pickle"}]}
    (tmp_path / "t.zarr").mkdir()
    (tmp_path / "t.zarr" / ".zarray").write_text(json.dumps(head | {"order": "C", "shape": [1, 1], "zarr_format": 2}))
    assert_read_raises(tmp_path / "t.zarr", "uses a pickle codec")


# Images


def save_image(path, pixels):
    from PIL import Image

    path.parent.mkdir(exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 3)])
def test_image_folders_become_pixels_and_classes(tmp_path, shape):
    pixels = np.random.RandomState(0).randint(256, size=(6, *shape)).astype(np.uint8)
    for i, one in enumerate(pixels):
        save_image(tmp_path / "abc"[i // 2] / f"{i}.png", one)
    found = data.read(tmp_path)
    np.testing.assert_array_equal(found.X, pixels.reshape(6, -1))
    assert found.classes == ("a", "b", "c") and found.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert found.ids[3] == "b/3.png" and found.name == tmp_path.name
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "8.png").write_text("no image")
    assert len(data.read(tmp_path).X) == 6
    save_image(tmp_path / "c" / "7.png", np.zeros((4, 3), np.uint8))
    assert_read_raises(tmp_path, r"7\.png is 3 × 4 in greyscale, but .*0\.png is 3 × 5")


def test_16_bit_and_jpeg_images(tmp_path):
    save_image(tmp_path / "deep" / "0.png", np.array([[0, 257 * 7, 65535]], dtype=np.uint16))
    assert data.read(tmp_path / "deep").X.tolist() == [[0, 7, 255]] and data.read(tmp_path / "deep").labels is None
    save_image(tmp_path / "flat" / "0.JPG", np.full((8, 8), 77, np.uint8))
    assert data.read(tmp_path / "flat").X.tolist() == [[77] * 64]


def test_invalid_image_folders_raise(tmp_path):
    assert_read_raises(tmp_path, "contains no images")
    save_image(tmp_path / "0.png", np.zeros((40, 30), np.uint8))
    assert_read_raises(tmp_path, "a folder of images has no column names", label="kind")
    (tmp_path / "0.png").write_bytes((tmp_path / "0.png").read_bytes()[:-30])
    assert_read_raises(tmp_path, "0.png cannot be read as an image")


# Missing packages


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("t.h5ad", "anndata", "anndata"), ("t.zarr", "zarr", "anndata")],
)
def test_missing_package_raises_with_install_hint(tmp_path, monkeypatch, name, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    if name == "t.zarr":
        (tmp_path / name).mkdir()
        (tmp_path / name / "zarr.json").write_text("{}")
    else:
        (tmp_path / name).write_text("")
    with pytest.raises(ImportError, match=rf'pip install "equipoise\[{extra}\]"'):
        data.read(tmp_path / name)
