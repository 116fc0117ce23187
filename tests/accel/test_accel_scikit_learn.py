"""The estimators of sklearn.manifold under accel: which calls are answered, and that all else is scikit-learn's."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn import manifold
from sklearn.base import clone
from sklearn.datasets import load_wine, make_s_curve
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import equipoise as eq
from equipoise import accel
from equipoise.methods.other_libraries import PARAMETERS
from equipoise.procrustes import disagreement

CURVE = make_s_curve(120, noise=0.02, random_state=0)[0]
WINE = StandardScaler().fit_transform(load_wine().data)[:80]
MDS = {"init": "classical_mds", "n_init": 1, "random_state": 0}
ESTIMATORS = {
    "TSNE": manifold.TSNE(perplexity=15, max_iter=500, random_state=0),
    "Isomap": manifold.Isomap(n_neighbors=8),
    "Isomap, p=1": manifold.Isomap(n_neighbors=8, p=1),
    "LLE": manifold.LocallyLinearEmbedding(n_neighbors=10, random_state=0),
    **{
        f"LLE, {method}": manifold.LocallyLinearEmbedding(n_neighbors=11, method=method, random_state=0)
        for method in ("modified", "hessian", "ltsa")
    },
    "SpectralEmbedding": manifold.SpectralEmbedding(n_neighbors=10, random_state=0),
    "SpectralEmbedding, rbf": manifold.SpectralEmbedding(affinity="rbf", gamma=0.5, random_state=0),
}
if "metric_mds" in manifold.MDS().get_params():  # scikit-learn 1.8
    ESTIMATORS |= {"MDS": manifold.MDS(**MDS), "non-metric MDS": manifold.MDS(metric_mds=False, **MDS)}
CLOSED_FORMS = [name for name in ESTIMATORS if "TSNE" not in name and "MDS" not in name]


@pytest.fixture
def on():
    with accel.accelerated():
        yield


@pytest.fixture(scope="module")
def fitted():
    """Each estimator fitted by scikit-learn and under accel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        original = {name: clone(estimator).fit(CURVE) for name, estimator in ESTIMATORS.items()}
        with accel.accelerated():
            answered = {name: clone(estimator).fit(CURVE) for name, estimator in ESTIMATORS.items()}
            assert all(row.taken_over for row in accel.calls())
    return original, answered


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fitted_attributes_are_those_of_scikit_learn(fitted, name):
    theirs, ours = (vars(estimators[name]) for estimators in fitted)
    private_names_of_mds = {"_init", "_metric", "_metric_mds"}
    assert theirs.keys() - private_names_of_mds == ours.keys()
    for key in theirs.keys() & ours.keys():
        a, b = theirs[key], ours[key]
        assert np.shape(a) == np.shape(b)
        if hasattr(a, "dtype") and hasattr(b, "dtype") and np.ndim(a):
            assert a.dtype == b.dtype, key


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms_give_the_same_map_in_the_same_size(fitted, name):
    theirs, ours = (estimators[name] for estimators in fitted)
    assert disagreement(theirs.embedding_, ours.embedding_) < 1e-5
    assert np.allclose(np.abs(theirs.embedding_), np.abs(ours.embedding_), atol=1e-5 * np.abs(theirs.embedding_).max())
    if hasattr(theirs, "transform"):
        assert disagreement(theirs.transform(CURVE[:40] + 0.01), ours.transform(CURVE[:40] + 0.01)) < 1e-5
    for quantity in ("reconstruction_error_", "n_neighbors_", "gamma_"):
        assert np.isclose(getattr(theirs, quantity, 0), getattr(ours, quantity, 0), rtol=1e-4, atol=1e-12)
    for matrix in ("dist_matrix_", "affinity_matrix_"):
        difference = getattr(theirs, matrix, np.zeros(1)) - getattr(ours, matrix, np.zeros(1))
        assert np.abs(difference).max() < 1e-9


def test_isomap_reports_the_same_reconstruction_error(fitted):
    theirs, ours = (estimators["Isomap"].reconstruction_error() for estimators in fitted)
    assert np.isclose(theirs, ours, rtol=1e-6)


@pytest.mark.parametrize(("name", "quantity"), [("TSNE", "kl_divergence_"), ("MDS", "stress_")])
def test_iterative_methods_reach_a_similar_loss_or_a_lower_one(fitted, name, quantity):
    if name not in ESTIMATORS:
        pytest.skip("scikit-learn before 1.8 has no metric_mds")
    theirs, ours = (getattr(estimators[name], quantity) for estimators in fitted)
    assert ours <= 1.05 * theirs


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_class_its_clone_and_its_pickle_are_scikit_learns(fitted, name):
    estimator = fitted[1][name]
    assert type(estimator) is type(ESTIMATORS[name])
    assert clone(estimator).get_params() == ESTIMATORS[name].get_params()
    copy = pickle.loads(pickle.dumps(estimator))  # accel is not installed here
    assert copy.embedding_.tobytes() == estimator.embedding_.tobytes()
    assert b"equipoise" not in pickle.dumps(estimator)


@pytest.mark.filterwarnings("ignore:the map may have:UserWarning")
def test_pipelines_data_frames_and_set_output_work(on):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(WINE[:, :4], columns=list("abcd"))
    steps = make_pipeline(StandardScaler(), manifold.Isomap(n_neighbors=8)).set_output(transform="pandas")
    Y = steps.fit_transform(frame)
    assert list(Y.columns) == ["isomap0", "isomap1"]
    assert steps.transform(frame[:3]).shape == (3, 2)
    tsne = manifold.TSNE(perplexity=10, max_iter=250, random_state=0).set_output(transform="pandas")
    assert list(tsne.fit_transform(frame).columns) == ["tsne0", "tsne1"]
    assert list(tsne.feature_names_in_) == list("abcd")
    assert tsne.n_features_in_ == 4


REASONS = [
    (
        manifold.LocallyLinearEmbedding(method="ltsa", n_neighbors=3),
        "method='ltsa' needs at least 4 neighbours, got 3",
    ),
    (manifold.Isomap(n_neighbors=None, radius=2.0), "radius=2.0 has no counterpart"),
    (manifold.Isomap(p=3), "p=3 has no counterpart"),
    (manifold.Isomap(metric="wminkowski", metric_params={"w": 1}), "metric_params={'w': 1} has no counterpart"),
    (manifold.TSNE(perplexity=300), None),
    (manifold.TSNE(init="pca", metric="precomputed"), 'init="pca" needs coordinates, not metric="precomputed"'),
    (manifold.SpectralEmbedding(n_neighbors=1), "n_neighbors=1 of 120 rows counts the point itself"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "reason"), REASONS)
def test_other_calls_are_answered_by_the_original(on, estimator, reason):
    before = len(accel.calls())
    try:
        clone(estimator).fit(CURVE)
    except ValueError as error:
        assert "equipoise" not in str(error).lower()
    rows = accel.calls()[before:]
    assert [row.why for row in rows if not row.taken_over] == ([reason] if reason else [])


@pytest.mark.parametrize("estimator", [manifold.TSNE(perplexity=-1), manifold.SpectralEmbedding(gamma="wide")])
def test_errors_about_parameters_are_scikit_learns(on, estimator):
    with pytest.raises(ValueError, match=r"The '(perplexity|gamma)' parameter of"):
        estimator.fit(CURVE)


def test_errors_about_data_are_scikit_learns(on):
    with pytest.raises(ValueError, match="Input X contains NaN"):
        manifold.LocallyLinearEmbedding().fit(np.full((20, 3), np.nan))


def test_unfitted_estimators_stay_unfitted(on):
    with pytest.raises(NotFittedError):
        manifold.Isomap().transform(CURVE)


def test_tsne_translates_its_learning_rate_and_iterations(on):
    settings = {"perplexity": 10, "random_state": 0, "init": "random"}
    short = manifold.TSNE(max_iter=260, **settings).fit(WINE)
    usual = manifold.TSNE(**settings).fit(WINE)
    longer = manifold.TSNE(max_iter=1200, **settings).fit(WINE)
    assert [short.n_iter_, usual.n_iter_, longer.n_iter_] == [260, 300, 360]
    assert manifold.TSNE(learning_rate=50.0, **settings).fit(WINE).learning_rate_ == 50.0


def test_a_given_start_is_used(on):
    start = np.random.default_rng(0).normal(size=(len(WINE), 2))
    a = manifold.TSNE(init=start, perplexity=10, max_iter=250).fit_transform(WINE)
    b = manifold.TSNE(init=start, perplexity=10, max_iter=250).fit_transform(WINE)
    c = manifold.TSNE(init=-start, perplexity=10, max_iter=250).fit_transform(WINE)
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_importing_accel_imports_no_manifold_module():
    code = "import equipoise.accel, sys; print({'sklearn.manifold', 'umap', 'openTSNE', 'pacmap'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


LEGACY = {"n_iter", "dissimilarity", "metric_mds"}  # of other versions of scikit-learn


@pytest.mark.parametrize("name", ["TSNE", "MDS", "Isomap", "LocallyLinearEmbedding", "SpectralEmbedding"])
def test_the_tables_name_parameters_that_exist_on_both_sides(name):
    estimator, table = getattr(manifold, name)(), PARAMETERS[f"sklearn.manifold.{name}"]
    assert table.keys() - LEGACY <= estimator.get_params().keys()
    ours = {"Isomap": "Isomap", "LocallyLinearEmbedding": "LLE", "SpectralEmbedding": "LaplacianEigenmaps"}
    known = getattr(eq, ours.get(name, name))().get_params().keys()
    assert {counterpart for counterpart in table.values() if counterpart} - {"verbose"} <= known
