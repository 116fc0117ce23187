"""Single-cell data on the command line: tables of AnnData files, library sizes, and maps added to the user's file."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from support.command_line import embed, one_line_error, read_csv

import equipoise as eq
from equipoise.cli import main
from equipoise.cli.map_files import read_map

ad = pytest.importorskip("anndata", reason="anndata is not installed")

COUNTS = 1 + np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(1, 2, (40, 1)) + np.eye(40, 9) * 5)
QUICK = ("--iterations", 20)


@pytest.fixture
def cells(tmp_path):
    """Return the path of an H5AD file with counts, a layer, principal components and something in each other part."""
    adata = ad.AnnData(sparse.csr_matrix(COUNTS.astype(np.float32)))
    adata.obs["type"] = [f"type {i % 3}" for i in range(40)]
    adata.obsm["X_pca"] = eq.PCA(4).fit_transform(np.log1p(COUNTS))
    adata.layers["logs"] = np.log1p(COUNTS)
    adata.varm["PCs"], adata.uns["note"] = np.ones((9, 4)), {"by": "hand"}
    adata.obsp["graph"] = sparse.eye_array(40, format="csr")
    adata.raw = adata
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


@pytest.mark.parametrize(
    ("words", "table"),
    [
        (("--use-rep", "X_pca"), lambda adata: adata.obsm["X_pca"]),
        (("--layer", "logs"), lambda adata: adata.layers["logs"]),
        (("--use-rep", "X_pca", "--columns", "pca2,pca1"), lambda adata: adata.obsm["X_pca"][:, [1, 0]]),
    ],
)
def test_tables_of_annotated_files(tmp_path, cells, words, table):
    assert embed(cells, *words, *QUICK, "--out", tmp_path / "map.csv") == 0
    _, rows = read_csv(tmp_path / "map.csv")
    expected = eq.TSNE(n_iter=20, random_state=0).fit_transform(table(ad.read_h5ad(cells)))
    assert_array_equal(np.array([row[1:3] for row in rows], dtype=np.float32), expected)


def test_normalize_total_scales_rows_to_the_median_total(tmp_path, cells, capsys):
    assert embed(cells, "--normalize-total", *QUICK, "--out", tmp_path / "map.csv", "--save", tmp_path / "m.eq") == 0
    totals = COUNTS.sum(axis=1)
    assert (
        f"preparation         rows scaled to a total of {np.median(totals):,.6g}, log(1 + x)\n"
        in capsys.readouterr().out
    )
    expected = np.log1p(COUNTS * (np.median(totals) / totals)[:, None])
    found = eq.data.prepare(eq.data.read(cells), normalize_total=True, log1p=True)
    assert_allclose(found.X.toarray(), expected, rtol=1e-6)
    dense = eq.data.Dataset("dense", COUNTS, None, ())
    assert_allclose(eq.data.prepare(dense, normalize_total=True, log1p=True).X, expected, rtol=1e-12)
    assert main(["transform", str(tmp_path / "m.eq"), str(cells), "--out", str(tmp_path / "new.csv")]) == 0
    assert main(["evaluate", str(cells), str(tmp_path / "m.eq")]) == 0
    assert "rows scaled to a total of" in capsys.readouterr().out


def test_normalize_total_keeps_rows_of_zeros_and_rejects_negative_values():
    table = eq.data.Dataset("t", np.array([[0.0, 0.0], [1.0, 3.0], [4.0, 8.0]]), None, ())
    assert_array_equal(eq.data.prepare(table, normalize_total=True).X, [[0, 0], [2, 6], [8 / 3, 16 / 3]])
    negative = eq.data.Dataset("t", np.array([[1.0, -3.0], [4.0, 8.0]]), None, ())
    with pytest.raises(
        ValueError, match=r"normalize_total requires nonnegative values, but row 0, column 1 is -3; omit"
    ):
        eq.data.prepare(negative, normalize_total=True)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_maps_have_the_same_key_as_in_the_library(tmp_path, cells):
    out = tmp_path / "with-map.h5ad"
    assert embed(cells, "--use-rep", "X_pca", "--method", "symmetricsne", *QUICK, "--perplexity", 5, "--out", out) == 0
    assert "X_symmetric_sne" in ad.read_h5ad(out).obsm


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", ["with-map.h5ad", "cells.h5ad"])
def test_map_is_added_to_the_annotated_file(tmp_path, cells, name, capsys):
    before, out = ad.read_h5ad(cells), tmp_path / name
    assert embed(cells, "--use-rep", "X_pca", "--method", "umap", *QUICK, "--out", out) == 0
    assert f"added               obsm['X_umap'] to a copy of {cells}" in capsys.readouterr().out
    after = ad.read_h5ad(out)
    expected = eq.UMAP(n_iter=20, random_state=0).fit(before.obsm["X_pca"])
    assert_array_equal(after.obsm["X_umap"], expected.embedding_)
    assert after.uns["umap"]["params"]["n_iter"] == 20 and after.uns["umap"]["table"]["use_rep"] == "X_pca"
    assert_array_equal(after.X.toarray(), before.X.toarray())
    assert_array_equal(after.raw.X.toarray(), before.X.toarray())
    assert_array_equal(after.obsp["graph"].toarray(), np.eye(40))
    assert after.obs.equals(before.obs) and after.uns["note"] == {"by": "hand"} and "PCs" in after.varm
    assert_array_equal(after.layers["logs"], before.layers["logs"])
    report = eq.anndata.evaluate(after, "umap")
    assert_array_equal(report.trust, eq.evaluate(before.obsm["X_pca"], expected.embedding_).trust)
    words = ["--use-rep", "X_pca", "--label", "type"]
    assert main(["evaluate", str(cells), str(out), *words]) == 0
    assert main(["plot", str(out), "--color", "type", "--out", str(tmp_path / "map.svg")]) == 0
    assert embed(out, *QUICK, "--out", out) == 0  # a second map
    capsys.readouterr()
    assert main(["plot", str(out)]) == 2
    assert "contains 2 maps; choose one with --coordinates: 'X_tsne', 'X_umap'" in one_line_error(capsys)
    assert main(["plot", str(out), "--coordinates", "umap", "--out", str(tmp_path / "map.svg")]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cells.h5ad", "--use-rep", "X_pcs"), "use_rep='X_pcs' is not a table of obsm; choose from 'X_pca', 'X'"),
        (("cells.h5ad", "--layer", "raw"), "layer='raw' is not a layer; choose from 'logs'"),
        (("cells.h5ad", "--layer", "logs", "--use-rep", "X_pca"), "exclude each other; omit one"),
        (
            ("t.csv", "--layer", "logs"),
            "use_rep and layer select a table of an AnnData file (.h5ad or Zarr); omit them",
        ),
        (("iris", "--transpose"), "--transpose applies to files only; omit it for the bundled data set iris"),
        (("cells.h5ad", "--ranks", "2", "--use-rep", "X_pca"), "--use-rep needs the whole table"),
    ],
)
def test_invalid_tables_raise(tmp_path, cells, words, message, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    assert embed(*words) == 2
    assert message in one_line_error(capsys)


def test_map_in_h5ad_that_crashes_hdf5_is_an_error(tmp_path, monkeypatch):
    """The separate process reads the file before this process opens it."""
    ad.AnnData(np.eye(5), obsm={"X_tsne": np.ones((5, 2))}).write_h5ad(tmp_path / "m.h5ad")
    (tmp_path / "trial.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setattr(sys.modules["equipoise.data.read.annotated"], "TRIAL", tmp_path / "trial.py")
    monkeypatch.setattr("h5py.File", None)
    with pytest.raises(ValueError, match=r"m\.h5ad cannot be read as H5AD: .* crashes the HDF5 library"):
        read_map(str(tmp_path / "m.h5ad"))
