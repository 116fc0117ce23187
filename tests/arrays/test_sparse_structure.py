"""Sparse matrices with damaged index arrays raise an error with the place, before compiled code reads them."""

import numpy as np
import pytest
from scipy import sparse

import equipoise as eq
from equipoise.arrays.sparse_structure import check_structure

FORMATS = ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
X = np.arange(1.0, 25.0).reshape(6, 4)


def damaged(format, **arrays):
    """Return X in a format with some of its arrays replaced."""
    A = getattr(sparse, f"{format}_matrix")(X)
    for name, array in arrays.items():
        setattr(A, name, np.asarray(array))
    return A


def changed(format, name, at, value):
    A = getattr(sparse, f"{format}_matrix")(X)
    getattr(A, name)[at] = value
    return A


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["matrix", "array"])
def test_sound_matrices_are_returned_unchanged(format, kind):
    A = getattr(sparse, f"{format}_{kind}")(X)
    assert check_structure(A) is A


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (changed("csr", "indices", 5, 4), "row 1 of X has the column index 4, but column indices run from 0 to 3"),
        (changed("csr", "indices", 0, -1), "row 0 of X has the column index -1"),
        (changed("csc", "indices", 7, 6), "column 1 of X has the row index 6, but row indices run from 0 to 5"),
        (changed("bsr", "indices", 0, 99), "block row 0 of X has the block column index 99"),
        (changed("csr", "indptr", 0, 2), "indptr of X must start at 0, got indptr\\[0\\] = 2"),
        (changed("csr", "indptr", 3, 99), "indptr of X must not decrease, but row 3 goes from 99 to 16"),
        (changed("csr", "indptr", -1, 99), "24 values and 24 indices, but its indptr counts 99 entries"),
        (damaged("csr", indptr=np.arange(5)), "6 rows, so its indptr must have the shape \\(7,\\), got \\(5,\\)"),
        (damaged("csr", indices=np.arange(23) % 4), "24 values and 23 indices"),
        (
            damaged("csr", indices=np.zeros(24)),
            "indices of the sparse matrix X must be an array of integers",
        ),
        (damaged("csr", data=np.array(["a"] * 24)), "data of the sparse matrix X must be an array of numbers"),
        (damaged("csr", indices=np.zeros((24, 1), int)), "must have one dimension"),
        (damaged("coo", col=np.full(24, 4)), "entry 0 of X has the column index 4"),
        (damaged("coo", row=np.full(24, -1)), "entry 0 of X has the row index -1"),
        (damaged("coo", row=np.zeros(3, int)), "data, row and col .* must have the same length, got 24, 3 and 24"),
        (changed("lil", "rows", 2, [0, 1, 2, 9]), "row 2 of X has the column index 9"),
        (changed("lil", "rows", 2, [0]), "row 2 of X has 1 index, but 4 values"),
        (damaged("dia", offsets=np.zeros(9, int)), "one row of data for each offset, and no offset twice"),
    ],
)
def test_damaged_matrices_name_the_place(A, message):
    with pytest.raises(ValueError, match=message):
        check_structure(A)
    with pytest.raises(ValueError):
        eq.PCA().fit(A)


def test_one_dimensional_sparse_arrays_are_refused():
    A = sparse.coo_array(np.ones(3))
    if A.ndim == 2:
        pytest.skip("SciPy before 1.13 has no sparse arrays of one dimension")
    with pytest.raises(ValueError, match="two dimensions"):
        check_structure(A)


def test_false_claims_about_sorted_indices_are_dropped():
    A = sparse.csr_matrix((np.ones(4), [1, 0, 2, 2], [0, 2, 4]), shape=(2, 3))
    A.has_sorted_indices = A.has_canonical_format = True
    sound = check_structure(A)
    assert not sound.has_canonical_format
    np.testing.assert_array_equal(sound.toarray(), [[1, 1, 0], [0, 0, 2]])
