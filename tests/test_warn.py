"""Warnings point at the user's line, also through scikit-learn's wrappers and pipelines."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import equipoise as eq

X = np.random.RandomState(0).standard_normal((20, 4))


def test_warnings_point_at_the_calling_line():
    far = np.vstack([X[:5], X[:5] + 100])
    no_metric = np.square(X[:9, :1] - X[:9, 0])
    calls = (
        lambda: eq.DKLLE().fit(X[:5]),
        lambda: eq.UMAP().set_output(transform="pandas").fit_transform(pd.DataFrame(X[:5])),
        lambda: make_pipeline(StandardScaler(), eq.Isomap(n_neighbors=9)).fit(X[:5]),
        lambda: eq.Isomap(n_neighbors=2).fit(far),
        lambda: eq.ClassicalMDS(metric="precomputed").fit(no_metric),
        lambda: eq.TSNE(perplexity=2).fit(np.ones((9, 2))),
    )
    for call in calls:
        with pytest.warns(UserWarning) as caught:
            call()
        assert {warning.filename for warning in caught} == {__file__}
