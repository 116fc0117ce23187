"""Products by rows: the same bytes for one row as for many, and for every memory layout."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equipoise.linalg.row_products import ROWS, multiply_rows, multiply_vector


@pytest.mark.parametrize("k, d", [(3, 2), (20, 4), (64, 1), (200, 7)])
def test_rows_do_not_depend_on_other_rows_or_on_the_memory_layout(k, d):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(ROWS + 9, k)), rng.normal(size=(k, d))
    product = multiply_rows(A, B)
    assert_allclose(product, A @ B, rtol=1e-12, atol=1e-12)
    reversed_view = np.ascontiguousarray(B[:, ::-1])[:, ::-1]
    for layout in (np.asfortranarray(B), reversed_view):
        assert multiply_rows(np.asfortranarray(A), layout).tobytes() == product.tobytes()
    for i in (0, 5, ROWS, ROWS + 8):
        assert multiply_rows(A[i : i + 1], B).tobytes() == product[i : i + 1].tobytes()
        assert multiply_vector(A[i], reversed_view).tobytes() == product[i].tobytes()


def test_no_rows_have_an_empty_product():
    assert multiply_rows(np.empty((0, 3)), np.ones((3, 2))).shape == (0, 2)
