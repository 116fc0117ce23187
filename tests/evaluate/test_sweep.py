"""Parameter sweeps: scores, warm starts, and advice based on the scores."""

import io

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import equipoise as eq
from equipoise import data
from equipoise.evaluate import knn_accuracy, neighbor_recall, triplet_accuracy, trustworthiness
from equipoise.evaluate.advice import EFFECTS, advise
from equipoise.procrustes import disagreement

IRIS = data.load("iris")
QUICK = eq.TSNE(n_iter=40, n_jobs=1)


@pytest.fixture(scope="module")
def sweep_result():
    return eq.sweep(QUICK, IRIS.X, {"perplexity": [40, 20, 5]}, IRIS.labels)


def test_every_map_starts_from_the_previous_one(sweep_result):
    Y = None
    for perplexity, swept in zip((40, 20, 5), sweep_result.maps, strict=True):
        method = eq.TSNE(perplexity=perplexity, n_iter=40, n_jobs=1, random_state=0)
        Y = method.fit_transform(IRIS.X, init=Y)
        np.testing.assert_array_equal(swept, Y)
    assert np.isnan(sweep_result.steps[0])
    np.testing.assert_allclose(sweep_result.steps[1:], [disagreement(*sweep_result.maps[i : i + 2]) for i in (0, 1)])
    assert sweep_result.losses[-1] == method.loss_


def test_scores_match_the_measures(sweep_result):
    for i, Y in enumerate(sweep_result.maps):
        assert sweep_result.scores["neighbours"][i] == neighbor_recall(IRIS.X, Y, 10)
        assert sweep_result.scores["trustworthiness"][i] == trustworthiness(IRIS.X, Y, 10)
        assert sweep_result.scores["triplets"][i] == triplet_accuracy(IRIS.X, Y)
        assert sweep_result.scores["classes"][i] == knn_accuracy(Y, IRIS.labels, 10)
    assert sweep_result.best("neighbours") == sweep_result.settings[int(np.argmax(sweep_result.scores["neighbours"]))]
    assert "classes" not in eq.sweep(eq.PCA(), IRIS.X, {"solver": ["eigen"]}).scores


def test_two_parameter_sweep_warm_starts_along_rows_and_first_column():
    values = {"exaggeration": [4, 1], "perplexity": [30, 10]}
    sweep_result = eq.sweep(QUICK, IRIS.X, values)
    assert sweep_result.settings == [{"exaggeration": e, "perplexity": p} for e in (4, 1) for p in (30, 10)]
    assert sweep_result.shape == (2, 2)
    maps = {}
    for i, (setting, before) in enumerate(zip(sweep_result.settings, (None, 0, 0, 2), strict=True)):
        method = eq.TSNE(n_iter=40, n_jobs=1, random_state=0, **setting)
        maps[i] = method.fit_transform(IRIS.X, init=maps.get(before))
        np.testing.assert_array_equal(sweep_result.maps[i], maps[i])


@pytest.mark.parametrize("name", ["early_exaggeration", "init"])
def test_sweep_of_start_parameters_has_no_warm_start(name):
    values = {"early_exaggeration": [12, 1], "init": ["pca", "random"]}[name]
    sweep_result = eq.sweep(QUICK, IRIS.X, {name: values})
    for value, Y in zip(values, sweep_result.maps, strict=True):
        expected = eq.TSNE(n_iter=40, n_jobs=1, random_state=0, **{name: value}).fit_transform(IRIS.X)
        np.testing.assert_array_equal(Y, expected)


@pytest.mark.filterwarnings("ignore:the neighbour graph has 2 components")
def test_sweep_of_isomap_and_mds_matches_direct_fits():
    isomap = eq.sweep(eq.Isomap(), IRIS.X, {"n_neighbors": [20, 10]})
    np.testing.assert_array_equal(isomap.maps[1], eq.Isomap(n_neighbors=10, random_state=0).fit_transform(IRIS.X))
    first = eq.MDS(metric="manhattan", n_iter=2, random_state=0).fit(IRIS.X)
    then = eq.MDS(metric="manhattan", n_iter=4, random_state=0, init=first.embedding_).fit(IRIS.X)
    mds = eq.sweep(eq.MDS(metric="manhattan"), IRIS.X, {"n_iter": [2, 4]})
    np.testing.assert_array_equal(mds.maps[1], then.embedding_)
    assert mds.scores["neighbours"][1] == neighbor_recall(IRIS.X, then.embedding_, 10, metric="manhattan")


def test_precomputed_distances_score_like_the_table():
    D = cdist(IRIS.X, IRIS.X)
    sweep_result = eq.sweep(eq.TSNE(metric="precomputed", n_iter=20, init="random"), D, {"perplexity": [20, 5]})
    table = [triplet_accuracy(IRIS.X, Y) for Y in sweep_result.maps]
    np.testing.assert_allclose(sweep_result.scores["triplets"], table, atol=1e-3)


def test_text_lists_settings_scores_and_advice(sweep_result):
    lines = str(sweep_result).splitlines()
    assert lines[0].startswith("TSNE(") and lines[1].split() == [*sweep_result.scores, "moved"]
    assert lines[2].startswith("perplexity 40") and lines[2].endswith("–")
    assert lines[4].split()[:2] == ["perplexity", "5"]
    assert lines[4].split()[4] == f"{sweep_result.scores['neighbours'][2]:.3f}"
    assert lines[5:] == sweep_result.sentences and EFFECTS["perplexity"] in lines


def test_figures_of_one_and_two_parameter_sweeps(sweep_result):
    grid = eq.sweep(QUICK, IRIS.X, {"exaggeration": [2, 1], "perplexity": [20, 5]})
    for result, labels, panels in ((sweep_result, IRIS.labels, 4), (sweep_result, None, 4), (grid, None, 4)):
        figure = result.figure(labels)
        assert len(figure.axes) == panels
        assert figure.axes[1].get_title().startswith(("perplexity 20", "exaggeration 2, perplexity 5"))
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=50)
        assert buffer.tell() > 5_000
    assert figure.axes[3].get_title().startswith("exaggeration 1, perplexity 5\nneighbours ")


def advice_text(neighbours, triplets, steps=(np.nan, 0.1), parameter="perplexity", **more):
    scores = {"neighbours": np.array(neighbours), "triplets": np.array(triplets)}
    scores.update({name: np.array(values) for name, values in more.items()})
    return " ".join(advise([{parameter: 30}, {parameter: 5}], scores, np.array(steps)))


def test_advice_follows_from_the_scores():
    assert "hardly depend on the value" in advice_text([0.50, 0.51], [0.80, 0.81])
    assert "Choose perplexity 5: it keeps the most neighbours (60%), and about as much" in advice_text(
        [0.4, 0.6], [0.7, 0.8]
    )
    assert "Choose perplexity 5: it keeps the most neighbours (60%), and about as much" in advice_text(
        [0.4, 0.6], [0.81, 0.80]
    )
    assert "Choose perplexity 30: it keeps the most large structure (0.80), and" in advice_text(
        [0.61, 0.62], [0.8, 0.7]
    )
    both = advice_text([0.4, 0.6], [0.8, 0.7])
    assert (
        "preserved best at perplexity 5 (60%; large structure 0.70), the large structure at perplexity 30 (0.80;"
        in both
    )
    assert "changes little from map to map" in both
    assert "changes most at the step to perplexity 5" in advice_text([0.4, 0.6], [0.8, 0.7], steps=(np.nan, 0.6))
    assert "Classes are separated best at perplexity 30 (90%)" in advice_text(
        [0.4, 0.6], [0.8, 0.7], classes=[0.9, 0.8]
    )
    assert advice_text([0.4, 0.6], [0.8, 0.7], parameter="alpha").endswith(EFFECTS["alpha"])
    assert advise([{"perplexity": 30}], {}, np.array([np.nan])) == [EFFECTS["perplexity"]]


def test_advice_names_only_existing_parameters():
    parameters = {name for method in eq.methods.ALL for name in method().get_params()}
    assert set(EFFECTS) <= parameters


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        (QUICK, {}, "`values` must map one or two parameters to lists"),
        (QUICK, {"perplexity": [5], "dof": [1], "exaggeration": [1]}, "`values` must map one or two parameters"),
        (QUICK, {"beta": [1, 2]}, "TSNE has no parameter 'beta'; choose from .*perplexity"),
        (QUICK, {"perplexity": 5}, r"values\['perplexity'\] must be a list of at least one value, got 5"),
        (QUICK, {"init": "pca"}, r"values\['init'\] must be a list of at least one value, got 'pca'"),
        (QUICK, {"perplexity": []}, r"must be a list of at least one value, got \[\]"),
        (QUICK, {"n_components": [2, 3]}, "n_components cannot be swept: maps of different dimensions"),
        (QUICK, {"random_state": [0, 1]}, r"random_state cannot be swept: use stability\(\)"),
        (eq.TSNE(affinity="precomputed"), {"exaggeration": [1]}, "but X contains affinities"),
    ],
)
def test_invalid_arguments_raise(method, values, message):
    with pytest.raises(ValueError, match=message):
        eq.sweep(method, IRIS.X, values)


def test_labels_and_k_are_checked_before_fitting(sweep_result):
    def never(iteration, loss, Y):
        raise AssertionError("fitting began")

    method = eq.TSNE(callbacks=[never])
    with pytest.raises(ValueError, match=r"labels have shape \(3,\), but there are 150 points"):
        eq.sweep(method, IRIS.X, {"perplexity": [5]}, [0, 1, 2])
    with pytest.raises(ValueError, match="k must be between 1 and n_samples - 1 = 149, got 150"):
        eq.sweep(method, IRIS.X, {"perplexity": [5]}, k=150)
    with pytest.raises(ValueError, match="k must be between 1 and the number of training points = 135, got 140"):
        eq.sweep(method, IRIS.X, {"perplexity": [5]}, IRIS.labels, k=140)
    with pytest.raises(ValueError, match="unknown score 'beauty'; choose from trustworthiness"):
        sweep_result.best("beauty")
