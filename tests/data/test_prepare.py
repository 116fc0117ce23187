"""Preparation of a table before embedding, against NumPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from equipoise import data
from equipoise.data import Dataset

rng = np.random.RandomState(0)
COUNTS = rng.poisson(2.0, size=(80, 6)).astype(np.float64)
COUNTS[:, 4] = 3.0
NAMES = tuple("abcdef")


def make_dataset(X):
    return Dataset("t", X, np.arange(80) % 2, ("0", "1"), NAMES, None, {"extra": np.arange(80.0)})


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_standardize_gives_mean_0_and_standard_deviation_1(dtype):
    before = COUNTS.astype(dtype)
    prepared = data.prepare(make_dataset(before), standardize=True)
    Z = (COUNTS - COUNTS.mean(axis=0)) / np.where(np.arange(6) == 4, 1, COUNTS.std(axis=0))
    np.testing.assert_allclose(prepared.X, Z, atol=1e-12)
    assert (prepared.X[:, 4] == 0).all() and prepared.columns == NAMES and prepared.extra["extra"][7] == 7
    np.testing.assert_array_equal(before, COUNTS)


def test_standardize_gives_zero_for_columns_constant_up_to_rounding():
    X = np.column_stack([np.full(80, 0.1) * 3, COUNTS[:, 0]])
    X[0, 0] = 0.3
    assert np.abs(data.prepare(Dataset("t", X, None, ()), standardize=True).X[:, 0]).max() < 1e-12


def test_steps_are_log1p_standardize_pca():
    prepared = data.prepare(make_dataset(COUNTS), standardize=True, log1p=True, pca=3)
    L = np.log1p(COUNTS)
    Z = (L - L.mean(axis=0)) / np.where(np.arange(6) == 4, 1, L.std(axis=0))
    expected = PCA(3).fit_transform(Z)
    np.testing.assert_allclose(np.abs(prepared.X), np.abs(expected), atol=1e-9)
    assert prepared.columns == ("PC1", "PC2", "PC3")


def test_sparse_tables_stay_sparse_without_pca():
    before = sparse.csr_matrix(COUNTS)
    scaled = data.prepare(make_dataset(before), standardize=True, log1p=True)
    L = np.log1p(COUNTS)
    L /= np.where(np.arange(6) == 4, 1, L.std(axis=0))
    assert sparse.issparse(scaled.X) and scaled.X.format == "csr"
    np.testing.assert_allclose(scaled.X.toarray(), L, rtol=1e-9)
    np.testing.assert_array_equal(before.toarray(), COUNTS)
    scores = data.prepare(make_dataset(before), pca=2).X
    np.testing.assert_allclose(np.abs(scores), np.abs(PCA(2).fit_transform(COUNTS)), atol=1e-8)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_invalid_preparation_raises(make):
    X = COUNTS.copy()
    X[5, 3] = -2
    with pytest.raises(ValueError, match="log1p requires nonnegative values, but row 5, column 'd' is -2"):
        data.prepare(make_dataset(make(X)), log1p=True)
    with pytest.raises(
        ValueError, match=r"pca=7 is out of range for a table of shape \(80, 6\); use an integer from 1 to 6"
    ):
        data.prepare(make_dataset(make(X)), pca=7)


def test_repr_of_data_set_and_preparation_is_one_line():
    digits = data.load("digits")
    assert repr(digits) == "<digits: table 1,797 × 64, 10 classes>"
    assert repr(data.preparation(digits, log1p=True, pca=1)) == "<preparation: log(1 + x), 1 principal component>"
    assert str(data.preparation(digits)) == "unchanged"


def test_flags_must_be_booleans():
    for name in ("standardize", "log1p"):
        with pytest.raises(ValueError, match=f"{name} must be True or False"):
            data.prepare(make_dataset(np.ones((3, 2))), **{name: np.ones(2)})


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_values_out_of_range_are_refused(value):
    X = np.ones((3, 2))
    X[1, 0] = value
    with pytest.raises(ValueError, match=r"X contains .* at row 1, column 0"):
        data.prepare(make_dataset(X), standardize=True)


def test_rows_with_other_columns_raise():
    preparation = data.preparation(make_dataset(COUNTS), standardize=True)
    message = "^t has 2 columns, but the preparation was fitted to 6; pass the same columns$"
    with pytest.raises(ValueError, match=message):
        preparation.apply(make_dataset(COUNTS[:, :2]))
