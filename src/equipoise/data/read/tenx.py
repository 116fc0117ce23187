"""Read counts of 10x Genomics: folders with a matrix, features and barcodes, and HDF5 files. Rows are cells."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..._names import list_names
from ..._optional import import_optional
from ..._plural import plural
from ..._warn import warn
from ..dataset import Dataset
from .annotated import check_in_separate_process
from .decode_errors import decoding
from .finite import check_numbers
from .matrix_market import read_matrix_market
from .selection import Selection
from .text_lines import open_binary

MATRIX = ("matrix.mtx", "matrix.mtx.gz")
FEATURES = ("features.tsv", "features.tsv.gz", "genes.tsv", "genes.tsv.gz")
BARCODES = ("barcodes.tsv", "barcodes.tsv.gz")
GENES = "Gene Expression"  # the type of a feature that is a gene


def find_parts(folder: Path) -> tuple[Path, Path, Path] | None:
    """Return the matrix, the features and the barcodes in a folder, or None if it has no matrix.

    The three names may have a common beginning, as in GSM123_matrix.mtx.gz. Raise if only some of the files exist, or
    if there are several matrices.
    """
    found = [path for path in sorted(folder.iterdir()) if path.name.endswith(MATRIX) and path.is_file()]
    if not found:
        return None
    if len(found) > 1:
        names = list_names(path.name for path in found)
        raise ValueError(
            f"{folder} has several matrices ({names}); put each with its features and barcodes in a folder"
        )
    matrix = found[0]
    prefix = matrix.name[: matrix.name.rindex("matrix.mtx")]
    features, barcodes = (
        next((path for name in names if (path := folder / (prefix + name)).is_file()), None)
        for names in (FEATURES, BARCODES)
    )
    if features is None or barcodes is None:
        missing = prefix + (FEATURES if features is None else BARCODES)[0]
        raise ValueError(
            f"{folder} has {matrix.name} but no {missing}; add the file written by Cell Ranger, or read the matrix"
            " alone"
        )
    return matrix, features, barcodes


def read_10x_folder(parts: tuple[Path, Path, Path], selection: Selection) -> Dataset:
    """Return the data set of a 10x folder: cells are rows, genes are columns, barcodes are the row names."""
    matrix, features, barcodes = parts
    source = str(matrix.parent)
    table = _read_tsv(features)
    names = [row[1] if len(row) > 1 else row[0] for row in table]
    types = [row[2] for row in table if len(row) > 2]
    cells = [row[0] for row in _read_tsv(barcodes)]
    X = sparse.csr_matrix(read_matrix_market(matrix, Selection()).X)
    for path, listed, expected in ((features, names, X.shape[0]), (barcodes, cells, X.shape[1])):
        if len(listed) != expected:
            rows, columns = X.shape
            raise ValueError(
                f"{path.name} lists {len(listed):,} names, but {matrix.name} has {rows:,} rows (genes) and"
                f" {columns:,} columns (cells); these files do not belong together"
            )
    return _make_dataset(source, sparse.csr_matrix(X.T), ([row[0] for row in table], names, types), cells, selection)


def read_10x_h5(path: Path, selection: Selection) -> Dataset:
    """Return the data set of a .h5 file of Cell Ranger: cells are rows, genes are columns."""
    h5py = import_optional("h5py", "anndata", "reading 10x HDF5")
    source = str(path)
    check_in_separate_process(path, "10x HDF5")
    with decoding(source, "10x HDF5"), h5py.File(path, "r") as file:
        groups = [name for name in file if isinstance(file[name], h5py.Group) and "barcodes" in file[name]]
        if not groups:
            raise ValueError(
                f"it contains {list_names(file)}, but no counts of 10x Genomics; convert other HDF5 files to .h5ad or"
                " .npy"
            )
        if len(groups) > 1:
            raise ValueError(f"it contains several genomes ({list_names(groups)}); split it into a file for each")
        group = file[groups[0]]
        about = group.get("features", group)
        keys = ("id", "name", "feature_type") if "features" in group else ("genes", "gene_names", "")
        features = tuple(_texts(about[key]) if key in about else [] for key in keys)
        genes, cells = (int(size) for size in group["shape"][()])
        parts = (group["data"][()], group["indices"][()], group["indptr"][()])
        X = sparse.csr_matrix(parts, shape=(cells, genes))
        X.check_format(full_check=True)
        barcodes = _texts(group["barcodes"])
        if len(features[0]) != genes or len(barcodes) != cells:
            raise ValueError(f"it declares {genes} genes and {cells} cells, but lists others; write it again")
    return _make_dataset(source, X, (features[0], features[1] or features[0], features[2]), barcodes, selection)


def _make_dataset(
    source: str,
    X: sparse.csr_matrix,
    features: tuple[Sequence[str], Sequence[str], Sequence[str]],
    cells: Sequence[str],
    selection: Selection,
) -> Dataset:
    """Return the data set of cells × features; `features` has their identifiers, their names and their types."""
    ids, names, types = features
    counts = Counter(names)
    names = [name if counts[name] == 1 else f"{name} ({id})" for name, id in zip(names, ids, strict=True)]
    is_gene = np.array([kind == GENES for kind in types], dtype=bool)
    selected = selection.find(names, source)
    if selection.columns is None and is_gene.any() and not is_gene.all():
        others = Counter(kind for kind in types if kind != GENES)
        listed = ", ".join(f"{count:,} of type {kind}" for kind, count in others.items())
        total = plural(sum(others.values()), "feature that is not a gene", "features that are not genes")
        warn(f"{source}: left out {total} ({listed}); select such features with `columns`")
        selected = [j for j in (range(len(names)) if selected is None else selected) if is_gene[j]]
        if not selected:
            raise ValueError(f"{source} has no gene to embed; exclude fewer columns, or select others with `columns`")
    if selected is not None:
        X, names = X[:, selected], [names[j] for j in selected]
    Selection(None, selection.label, selection.id).check([], source)
    named = Selection(None, None, "barcode")
    barcodes = np.array(list(cells), dtype=object)
    X = sparse.csr_matrix(X, dtype=np.float64)
    return named.dataset(source, check_numbers(X, source, names), names, {"barcode": barcodes})


def _read_tsv(path: Path) -> list[list[str]]:
    with decoding(str(path), "TSV"), open_binary(path) as stream:
        text = io.StringIO(stream.read().decode("utf-8"), newline="")
        return [row for row in csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE) if row]


def _texts(array: Any) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in array[()].tolist()]
