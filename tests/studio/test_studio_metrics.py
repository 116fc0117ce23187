"""Metrics in the studio: which ones a table allows, and that runs, links and copied code keep them."""

import numpy as np
import pytest

from equipoise import data
from equipoise.studio import Recipe, Run
from equipoise.studio.page.link import LinkedRun, View, from_query, to_query
from equipoise.studio.session.metrics import METRICS
from equipoise.studio.session.python_source import python_source

pyarrow = pytest.importorskip("pyarrow")

X = data.load("iris").X[:60]
GAPS = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)
TABLE = pyarrow.table({"length": X[:, 0], "colour": ["red", "blue", None] * 20})


@pytest.mark.parametrize(
    ("table", "default", "others"),
    [(X, "euclidean", {"cosine", "mixed"}), (GAPS, "mixed", {"nan_euclidean", "mixed_mean"}), (TABLE, "mixed", set())],
)
def test_default_metric_fits_the_table(table, default, others):
    run = Run(table, Recipe(), n_jobs=1)
    assert run.metric == default == run.metrics[0] and others <= set(run.metrics) <= set(METRICS)
    run.step(5)
    assert np.isfinite(run.frame.Y).all() and 0 <= float(run.trust(run.frame)) <= 1


@pytest.mark.parametrize(
    ("table", "metric", "message"),
    [
        (GAPS, "cosine", "'cosine' does not allow missing values; choose from mixed"),
        (TABLE, "cosine", "'cosine' compares numbers, but the table has other columns; choose from mixed"),
        (TABLE, "nan_euclidean", "'nan_euclidean' compares numbers, but the table has other columns"),
        (X, "mixed_mean", "fills in missing values; there are none; choose from euclidean"),
        (X, "levenshtein", "unknown metric 'levenshtein'; choose from euclidean"),
    ],
)
def test_metric_that_the_table_does_not_allow_is_refused(table, metric, message):
    with pytest.raises(ValueError, match=message):
        Run(table, Recipe(metric=metric), n_jobs=1)


@pytest.mark.parametrize(("table", "metric"), [(X, "cosine"), (GAPS, "mixed_median"), (TABLE, "auto")])
def test_links_and_copied_code_keep_the_metric(table, metric):
    run = Run(table, Recipe("umap", seed=2, metric=metric), n_jobs=1)
    run.step(50)
    view = View("named:iris", (LinkedRun(run.recipe, 50),))
    query = to_query(view)
    assert from_query(query) == view and ("metric" in query) == (metric != "auto")
    for _ in range(2):  # an estimator, then a run with a change
        source = python_source(run, "X = table", run.iteration)
        exec(source.replace("X = table", ""), namespace := {"X": table})
        assert namespace["Y"].tobytes() == run.frame.Y.tobytes()
        run.change("min_dist", 0.4)
        run.step(3)
