"""Masked labels are left out of measures of classes, or refused."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

import equipoise as eq
from equipoise.evaluate.given_map import in_geometry

ev = importlib.import_module("equipoise.evaluate")  # the package; equipoise.evaluate is the function
X = np.random.default_rng(0).normal(size=(120, 5))
Y = X[:, :2] + 0.3 * np.random.default_rng(1).normal(size=(120, 2))
LABELS = np.array(["a", "b", "c", "d"])[(X[:, 0] > 0) * 2 + (X[:, 1] > 0)]


def test_masked_labels_are_left_out_of_measures_of_classes():
    known = np.arange(120) % 7 != 3
    labels = np.ma.masked_array(np.where(known, LABELS, "missing"), mask=~known)
    for measure in (ev.one_nn_error, ev.knn_accuracy):
        some = measure(Y, labels)
        assert some == measure(Y[known], LABELS[known]) and some.points.tolist() == np.flatnonzero(known).tolist()
    some = ev.centroid_correlation(X, Y, labels)
    assert some == ev.centroid_correlation(X[known], Y[known], LABELS[known]) and len(some.points) == known.sum()
    report = eq.evaluate(X, Y, labels)
    for table, error in zip((Y, X), report.class_errors, strict=True):
        D = squareform(pdist(table[known]))
        np.fill_diagonal(D, np.inf)
        assert error == np.mean(LABELS[known][D.argmin(axis=1)] != LABELS[known])
    assert report.centroid_correlation == some
    shares = np.unique(LABELS[known], return_counts=True)[1] / known.sum()
    line = next(line for line in str(report).splitlines() if line.startswith("nearest of another class"))
    assert line.endswith(f"{1 - (shares**2).sum():.1%}")
    assert "missing" in str(report.to_html())
    curved = in_geometry(Y - Y.min(), eq.geometry.Torus(100.0))  # so large that the distances are those of the plane
    assert ev.one_nn_error(curved, labels) == ev.one_nn_error(Y, labels)


def test_masked_labels_elsewhere_are_refused():
    labels = np.ma.masked_array(LABELS, mask=np.arange(120) == 4)
    for measure in (ev.silhouette, ev.davies_bouldin):
        with pytest.raises(ValueError, match="the label of row 4 is masked; leave out points without a label"):
            measure(Y, labels)
    with pytest.raises(ValueError, match="no point has a label"):
        ev.one_nn_error(Y, np.ma.masked_all(120, dtype="U1"))
    few = np.ma.masked_array(LABELS, mask=np.arange(120) > 1)
    with pytest.raises(ValueError, match="all labels"):
        ev.one_nn_error(Y, few)
