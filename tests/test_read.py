"""Tables in text become data sets, or one line says where they are wrong."""

from __future__ import annotations

import io

import numpy as np
import pytest

from equipoise import data

FLOWERS = "name,width,species,length\nf1,0.5,setosa,1\nf2,1.5,virginica,2e1\nf3,2.5,setosa,-3\n"
X = np.array([[0.5, 1], [1.5, 20], [2.5, -3]])


def read(text, **wanted):
    return data.read(io.BytesIO(text.encode() if isinstance(text, str) else text), **wanted)


def refused(text, match, **wanted):
    with pytest.raises(ValueError, match=match) as caught:
        read(text, **wanted)
    assert "\n" not in str(caught.value)


# What is taken in


def test_numbers_are_embedded_and_text_is_kept_beside_them():
    flowers = read(FLOWERS)
    np.testing.assert_array_equal(flowers.X, X)
    assert flowers.X.dtype == np.float64 and flowers.X.flags.c_contiguous and flowers.columns == ("width", "length")
    assert flowers.labels is None and flowers.classes == () and flowers.ids is None
    assert {name: list(column) for name, column in flowers.extra.items()} == {
        "name": ["f1", "f2", "f3"],
        "species": ["setosa", "virginica", "setosa"],
    }


def test_columns_have_the_roles_that_are_asked_for():
    flowers = read(FLOWERS, columns=["length"], label="species", id="name")
    np.testing.assert_array_equal(flowers.X, X[:, 1:])
    assert list(flowers.labels) == [0, 1, 0] and flowers.classes == ("setosa", "virginica")
    assert list(flowers.ids) == ["f1", "f2", "f3"] and flowers.columns == ("length",)
    np.testing.assert_array_equal(flowers.extra["width"], X[:, 0])
