"""Counts of 10x Genomics: folders and HDF5 files give cells as rows, with barcodes and gene names."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import io, sparse
from support.read_cases import assert_read_raises

from equipoise import data

COUNTS = np.random.default_rng(0).poisson(0.5, (7, 5))  # 7 cells, 5 features
BARCODES = [f"CELL{i}-1" for i in range(7)]
IDS = [f"ENSG{j}" for j in range(5)]
GENES = ["CD3", "CD8", "MT", "CD3", "CD19"]
NAMES = ("CD3 (ENSG0)", "CD8", "MT", "CD3 (ENSG3)", "CD19")


def write_folder(folder, types=("Gene Expression",) * 5, prefix="", ending=".gz", features="features", counts=COUNTS):
    """Write the files of Cell Ranger, compressed if `ending` is ".gz"."""
    lines = ["\t".join(row) for row in zip(IDS, GENES, *([types] if types else []), strict=True)]
    for name, content in ((features, lines), ("barcodes", BARCODES)):
        (folder / f"{prefix}{name}.tsv{ending}").write_bytes(_packed("".join(f"{line}\n" for line in content), ending))
    io.mmwrite(folder / "plain.mtx", sparse.coo_array(counts.T), field="integer")
    plain = folder / "plain.mtx"
    (folder / f"{prefix}matrix.mtx{ending}").write_bytes(_packed(plain.read_text(), ending))
    plain.unlink()


def _packed(text, ending):
    return gzip.compress(text.encode()) if ending else text.encode()


@pytest.mark.parametrize("options", [{}, {"ending": "", "features": "genes", "types": None}, {"prefix": "GSM7_"}])
def test_folder_gives_cells_as_rows(tmp_path, options):
    write_folder(tmp_path, **options)
    found = data.read(tmp_path)
    assert sparse.issparse(found.X) and found.X.dtype == np.float64
    assert_array_equal(found.X.toarray(), COUNTS)
    assert found.columns == NAMES and list(found.ids) == BARCODES and found.name == tmp_path.name
    chosen = data.read(tmp_path, columns=["MT", "CD8"])
    assert_array_equal(chosen.X.toarray(), COUNTS[:, [2, 1]])
    assert_read_raises(tmp_path, "no column is named 'type'; there are none to choose from", label="type")
    assert_read_raises(tmp_path, "no column is named 'CD20'; the columns are 'CD3 ", columns=["CD20"])


@pytest.mark.filterwarnings("ignore:.*Antibody Capture")
def test_excluded_features_are_dropped(tmp_path):
    write_folder(tmp_path, types=[*["Gene Expression"] * 4, "Antibody Capture"])
    found = data.read(tmp_path, exclude=["MT"])
    assert_array_equal(found.X.toarray(), COUNTS[:, [0, 1, 3]])
    assert found.columns == (NAMES[0], "CD8", NAMES[3])
    assert_read_raises(tmp_path, "no column is named 'CD20'", exclude=["CD20"])
    assert_read_raises(tmp_path, "has no gene to embed; exclude fewer", exclude=NAMES[:4])


def test_features_other_than_genes_are_left_out_and_named(tmp_path):
    write_folder(tmp_path, types=["Gene Expression"] * 3 + ["Antibody Capture"] * 2)
    with pytest.warns(UserWarning, match=r"left out 2 features that are not genes \(2 of type Antibody Capture\);"):
        found = data.read(tmp_path)
    assert_array_equal(found.X.toarray(), COUNTS[:, :3])
    assert data.read(tmp_path, columns=["CD19"]).columns == ("CD19",)


def test_incomplete_folders_raise(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "barcodes.tsv.gz").write_bytes(gzip.compress(b"A\nB\n"))
    assert_read_raises(tmp_path, r"barcodes.tsv.gz lists 2 names, but matrix.mtx.gz has 5 rows \(genes\) and 7 columns")
    (tmp_path / "barcodes.tsv.gz").unlink()
    assert_read_raises(tmp_path, "has matrix.mtx.gz but no barcodes.tsv; add the file written by Cell Ranger")
    (tmp_path / "GSM1_matrix.mtx").write_text("")
    assert_read_raises(tmp_path, r"has several matrices \('GSM1_matrix.mtx', 'matrix.mtx.gz'\)")


def test_matrix_alone_hints_at_the_folder_and_can_be_transposed(tmp_path):
    write_folder(tmp_path)
    with pytest.warns(UserWarning, match=r"10x Genomics stores genes as rows; read its folder .* transpose=True"):
        genes = data.read(tmp_path / "matrix.mtx.gz")
    assert_array_equal(genes.X.toarray(), COUNTS.T)
    assert_array_equal(data.read(tmp_path / "matrix.mtx.gz", transpose=True).X.toarray(), COUNTS)


def test_transposed_csv_exchanges_names(tmp_path):
    lines = ["," + ",".join(BARCODES[:3]), *(f"{id},{i},{i + 10},{i + 20}" for i, id in enumerate(IDS))]
    (tmp_path / "genes.csv").write_text("\n".join(lines) + "\n")
    found = data.read(tmp_path / "genes.csv", transpose=True)
    assert_array_equal(found.X, np.arange(5) + 10.0 * np.arange(3)[:, None])
    assert found.columns == tuple(IDS) and list(found.ids) == BARCODES[:3]
    (tmp_path / "kinds.csv").write_text("a,b,kind\n1,2,x\n3,4,y\n")
    for options in ({}, {"label": "kind"}):
        message = r"cannot be transposed with the columns 'kind', .* as in id='kind' \(--id kind\), and remove other"
        assert_read_raises(tmp_path / "kinds.csv", message, transpose=True, **options)


def write_h5(path, *, version=3, indptr=None, groups=("matrix",)):
    """Write counts as Cell Ranger does, version 2 or 3."""
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    X = sparse.csc_matrix(COUNTS.T)
    with h5py.File(path, "w") as file:
        for name in groups:
            group = file.create_group(name)
            group["data"], group["indices"] = X.data, X.indices
            group["indptr"] = X.indptr if indptr is None else indptr
            group["shape"] = np.array(X.shape)
            group["barcodes"] = np.array(BARCODES, dtype="S")
            about = group.create_group("features") if version == 3 else group
            about["id" if version == 3 else "genes"] = np.array(IDS, dtype="S")
            about["name" if version == 3 else "gene_names"] = np.array(GENES, dtype="S")
            if version == 3:
                about["feature_type"] = np.array(["Gene Expression"] * 5, dtype="S")


@pytest.mark.parametrize("version", [2, 3])
def test_h5_gives_cells_as_rows(tmp_path, version):
    write_h5(tmp_path / "counts.h5", version=version, groups=("GRCh38" if version == 2 else "matrix",))
    found = data.read(tmp_path / "counts.h5")
    assert_array_equal(found.X.toarray(), COUNTS)
    assert found.columns == NAMES and list(found.ids) == BARCODES


def test_invalid_h5_raises(tmp_path):
    path = tmp_path / "counts.h5"
    write_h5(path, indptr=[0, 3, 1, 9, 9, 9, 9, 40])
    assert_read_raises(path, "counts.h5 cannot be read as 10x HDF5")
    write_h5(path, groups=("hg19", "mm10"))
    assert_read_raises(path, r"it contains several genomes \('hg19', 'mm10'\)")
    write_h5(path, groups=())
    assert_read_raises(path, "no counts of 10x Genomics; convert other HDF5 files to .h5ad")
    path.write_bytes(b"not HDF5")
    assert_read_raises(path, "counts.h5 cannot be read as 10x HDF5")
