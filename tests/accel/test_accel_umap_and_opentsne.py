"""umap.UMAP and openTSNE under accel; the tests are skipped where these packages are not installed."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.manifold import trustworthiness

from equipoise import accel
from equipoise.accel.calls import NotAvailable
from equipoise.accel.opentsne import optimize
from equipoise.accel.umap_learn import fit

pytestmark = pytest.mark.filterwarnings("ignore")
X = load_digits().data[:200]
NEW = load_digits().data[200:220]


@pytest.fixture
def umap():
    module = pytest.importorskip("umap", reason="umap-learn is not installed")
    with accel.accelerated():
        yield module


@pytest.fixture
def openTSNE():
    module = pytest.importorskip("openTSNE", reason="openTSNE is not installed")
    with accel.accelerated():
        yield module


def test_a_umap_object_is_fitted_placed_cloned_and_pickled(umap):
    model = umap.UMAP(n_neighbors=10, random_state=0, n_epochs=100, n_jobs=1)
    Y = model.fit_transform(X)
    Y_new = model.transform(NEW)
    assert type(model) is umap.UMAP
    assert (Y.shape, Y.dtype, Y_new.shape, Y_new.dtype) == ((200, 2), np.float32, (20, 2), np.float32)
    assert trustworthiness(X, Y) > 0.95
    assert np.array_equal(model.transform(X[:5]), Y[:5])
    assert model.graph_.shape == (200, 200)
    assert list(model.get_feature_names_out()) == ["umap0", "umap1"]
    assert "transform" not in vars(clone(model))
    accel.uninstall()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(NEW), Y_new)
    assert [(row.name, row.by) for row in accel.calls()] == [
        ("umap.UMAP", "equipoise.UMAP"),
        ("umap.UMAP.transform", "equipoise.UMAP"),
    ]


def test_umap_uses_labels(umap):
    labels = load_digits().target[:200]
    Y = umap.UMAP(n_neighbors=10, random_state=0, n_epochs=60).fit(X, labels).embedding_
    unsupervised = umap.UMAP(n_neighbors=10, random_state=0, n_epochs=60).fit(X).embedding_
    assert not np.array_equal(Y, unsupervised)


def test_more_than_three_components_are_sampled(umap):
    model = umap.UMAP(n_components=5, n_neighbors=10, random_state=0, n_epochs=60).fit(X)
    assert model.embedding_.shape == (200, 5)
    assert model.transform.method.engine_ == "negative_sampling"
    assert model.transform.method.n_iter_ == 60


@pytest.mark.slow  # umap-learn compiles its functions
def test_umap_learns_own_methods_work_on_the_same_map(umap):
    model = umap.UMAP(n_neighbors=10, random_state=0, n_epochs=100).fit(X)
    Y = model.embedding_.copy()
    inverse = model.inverse_transform(Y[:3])
    assert inverse.shape == (3, 64)
    assert np.array_equal(model.embedding_, Y)
    assert model.n_epochs == 100
    assert isinstance(model.init, str)


@pytest.mark.parametrize(
    ("parameters", "arguments", "reason"),
    [
        ({"densmap": True}, {}, "densmap=True has no counterpart"),
        ({"output_metric": "haversine"}, {}, "output_metric='haversine' has no counterpart"),
        ({"target_metric": "l2"}, {}, "target_metric='l2' has no counterpart"),
        ({"metric": "minkowski", "metric_kwds": {"p": 3}}, {}, "metric_kwds={'p': 3} has no counterpart"),
        ({"n_epochs": 0}, {}, "n_epochs=0 has no counterpart"),
        ({"n_neighbors": 300}, {}, "n_neighbors=300 needs more than 200 rows"),
        ({}, {"ensure_all_finite": False}, "arguments of fit other than X and y have no counterpart"),
    ],
)
def test_umap_calls_without_a_counterpart_fall_back(umap, parameters, arguments, reason):
    with pytest.raises(NotAvailable) as caught:
        fit(umap.UMAP(**parameters), X, **arguments)
    assert str(caught.value) == reason


def test_classes_that_inherit_from_umap_fall_back(umap):
    class Own(umap.UMAP):
        pass

    with pytest.raises(NotAvailable, match="Own has no counterpart"):
        fit(Own(), X)


def test_opentsne_is_optimised_by_equipoise(openTSNE):
    embedding = openTSNE.TSNE(perplexity=15, random_state=0).fit(X)
    assert isinstance(embedding, openTSNE.TSNEEmbedding)
    assert trustworthiness(X, np.array(embedding)) > 0.97
    assert 0 < embedding.kl_divergence < 1
    assert embedding.transform(NEW).shape == (20, 2)
    assert np.array_equal(pickle.loads(pickle.dumps(embedding)), embedding)
    before = np.array(embedding)
    further = embedding.optimize(n_iter=20, exaggeration=2)
    assert np.array_equal(embedding, before)
    assert further is not embedding
    assert embedding.optimize(n_iter=20, exaggeration=2, inplace=True) is embedding
    assert np.array_equal(embedding, further)
    assert [(row.by, row.count) for row in accel.calls()] == [("equipoise.TSNE", 4)]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"callbacks": print}, "callbacks=print has no counterpart"),
        ({"dof": 0.5}, "dof=0.5 has another meaning"),
        ({"n_iter": 0}, "n_iter=0 has no counterpart"),
    ],
)
def test_opentsne_calls_without_a_counterpart_fall_back(openTSNE, settings, reason):
    start = openTSNE.TSNE(perplexity=15, random_state=0).prepare_initial(X)
    with pytest.raises(NotAvailable, match=reason.replace("(", r"\(")):
        optimize(start, **{"n_iter": 10, **settings})
