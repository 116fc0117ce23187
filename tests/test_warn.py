"""Warnings point at the user's line, also through scikit-learn's wrappers and pipelines."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import equipoise as eq
from equipoise._warn import collecting, warn

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


def test_threads_collect_their_own_messages_at_the_same_time():
    both_inside = threading.Barrier(2, timeout=60)
    found = {}

    def collect(name):
        with collecting() as messages:
            both_inside.wait()  # never passed if one thread waits for the other to finish
            warn(f"first of {name}")
            both_inside.wait()
            warn(f"second of {name}")
        found[name] = messages

    threads = [threading.Thread(target=collect, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    with pytest.warns(UserWarning, match="of this thread"):
        warn("of this thread")
    for thread in threads:
        thread.join()
    assert found == {name: [f"first of {name}", f"second of {name}"] for name in "ab"}


def test_warnings_are_issued_again_after_collecting():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with collecting() as outer, pytest.raises(ZeroDivisionError), collecting() as inner:
            warn("inner")
            1 / 0  # noqa: B018
        with collecting() as last:
            warn("last")
    assert (outer, inner, last) == ([], ["inner"], ["last"])
    with pytest.warns(UserWarning, match="after"):
        warn("after")
