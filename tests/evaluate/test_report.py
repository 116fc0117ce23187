"""The report of a map: numbers equal to the individual measures, verdicts, text, HTML and comparisons."""

import doctest
import importlib
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import equipoise as eq
from equipoise import data, spaces
from equipoise.evaluate import (
    Measured,
    centroid_correlation,
    continuity,
    neighbor_recall,
    reading,
    recall_curve,
    shepard,
    stress,
    triplet_accuracy,
    trustworthiness,
)
from equipoise.evaluate import sample as sampling
from equipoise.evaluate.figures.shading import shadings
from equipoise.evaluate.figures.shepard import distance_bands
from equipoise.evaluate.order import BlockOrder
from equipoise.evaluate.reading import CARE, NOT, READ, Limits
from equipoise.evaluate.report_table import random_trust
from equipoise.views.plane import in_plane

GROUP_DISTANCES = "distances between groups"


@pytest.fixture(scope="module")
def digits():
    digits = data.load("digits")
    return digits.X[:400], digits.labels[:400]


@pytest.fixture(scope="module")
def report(digits):
    X, labels = digits
    return eq.evaluate(X, eq.TSNE(random_state=0).fit_transform(X), labels)


def verdicts(report):
    return {reading.about: reading.verdict for reading in report.readings}


def test_similar_map_is_readable_in_every_respect(rng):
    X, labels = rng.normal(size=(300, 2)), rng.integers(0, 4, size=300)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    report = eq.evaluate(X, 5 * X @ turn + 1, labels)
    assert set(verdicts(report).values()) == {READ} and len(report.sentences) == 8
    assert report.trustworthiness == report.continuity == report.recall == 1.0
    perfect = [report.triplet_accuracy, report.shepard.correlation, report.density_correlation, report.stretch]
    np.testing.assert_allclose(perfect, 1, atol=1e-9)
    assert report.stress.scale_free < 1e-6 and report.stress.scale == pytest.approx(1 / 5)
    assert float(report.class_errors[0]) == float(report.class_errors[1])


def test_random_map_is_unreadable_in_every_respect(rng):
    report = eq.evaluate(rng.normal(size=(300, 5)), rng.normal(size=(300, 2)))
    assert set(verdicts(report).values()) == {NOT} and len(report.sentences) == 7


def test_report_shows_the_stress_that_no_map_can_beat(report, digits, monkeypatch):
    X, _ = digits
    bound = spaces.embeddability(spaces.Euclidean(X), 2).normalised_stress[1]
    assert 0.1 < bound < report.stress.scale_free
    assert report.lowest_stress.bound == pytest.approx(bound, rel=1e-9)
    assert report.lowest_stress.of_map == pytest.approx(report.stress.scale_free)
    assert f"≥ {bound:.3f}" in str(report)
    assert f"No map in 2 dimensions has a scale-free stress below {bound:.3f}." in report.footer
    monkeypatch.setattr(importlib.import_module("equipoise.evaluate.distances"), "BOUND_POINTS", 100)
    sampled = eq.evaluate(X, report.Y)
    lowest = sampled.lowest_stress
    assert len(lowest.points) == 100 and "≥" not in str(sampled)
    assert (
        0.1
        < lowest.bound
        < lowest.of_map
        == pytest.approx(float(stress(X[lowest.points], report.Y[lowest.points]).scale_free))
    )
    assert "No map of 100 of the points, drawn at random, in 2 dimensions" in sampled.footer
    pair = eq.compare(X, {"a": report.Y, "b": report.Y[:, :1]})
    assert pair.reports["b"].lowest_stress.bound > pair.reports["a"].lowest_stress.bound


def test_tsne_map_has_readable_groups_but_not_sizes(report):
    found = verdicts(report)
    assert found["groups of near points"] == found["gaps"] == READ
    assert found["sizes"] == NOT and found["densities"] != READ
    assert f"trustworthiness {float(report.trustworthiness):.3f}" in report.sentences[0]
    assert f"{float(report.recall) * 15:.1f} of 15" in report.sentences[2]
    assert f"{report.stretch:.1f}-fold" in report.sentences[4]


def test_report_numbers_match_the_individual_measures(report, digits):
    X, labels = digits
    Y = report.Y
    assert report.trustworthiness == trustworthiness(X, Y, 15)
    assert report.continuity == continuity(X, Y, 15)
    assert report.recall == neighbor_recall(X, Y, 15)
    assert report.triplet_accuracy == triplet_accuracy(X, Y)
    assert report.shepard.correlation == shepard(X, Y).correlation
    assert report.stress.scale_free == stress(X, Y).scale_free
    assert report.centroid_correlation == centroid_correlation(X, Y, labels)
    np.testing.assert_array_equal(report.recall_curve.recall, recall_curve(X, Y).recall)
    for whole, points in (("trustworthiness", "trust"), ("continuity", "continuity_of_points"), ("recall", "kept")):
        values = getattr(report, points)
        assert values.shape == (400,)
        np.testing.assert_allclose(values.mean(), float(getattr(report, whole)))


def test_class_errors_match_hand_computed_values():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])  # nearest: 1, 0, 1, 2
    Y = np.array([[0.0], [1.0], [9.0], [7.0]])  # nearest: 1, 0, 3, 2
    in_map, in_data = eq.evaluate(X, Y, ["a", "a", "b", "b"], k=1).class_errors
    assert (in_map, in_data) == (0.0, 0.25)


def test_density_correlation_of_known_spacings():
    X = np.arange(1.0, 21.0)[:, None] ** 2  # spacing grows outwards
    same, turned = eq.evaluate(X, 3 * X, k=1), eq.evaluate(X, np.sqrt(X), k=1)
    assert same.density_correlation == pytest.approx(1)
    assert turned.density_correlation == 0  # evenly spaced
    assert verdicts(same)["densities"] == READ and verdicts(turned)["densities"] == NOT


def test_stretch_is_the_ratio_of_dilation_quantiles(report, digits):
    d_x, d_y = (spaces.Euclidean(V).matrix()[np.triu_indices(400, 1)] for V in (digits[0], report.Y))
    low, high = np.quantile(d_y / d_x, (0.05, 0.95))
    np.testing.assert_allclose(report.stretch, high / low, rtol=0.03)  # from a sample of the pairs


def test_coincident_points_have_infinite_stretch(rng):
    X = rng.normal(size=(60, 3))
    report = eq.evaluate(X, np.repeat([[0.0], [1.0]], 30, axis=0))
    assert report.stretch == np.inf and verdicts(report)["sizes"] == NOT and "inf" in str(report)
    assert "inf" not in report.sentences[4]
    assert "at least 5% of the pairs coincide in the map although they differ in the data." in report.sentences[4]


@pytest.mark.parametrize(("n", "k"), [(200, 15), (60, 29), (60, 50)])
def test_random_trust_matches_random_maps(n, k, rng):
    found = [trustworthiness(rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), k) for _ in range(60)]
    np.testing.assert_allclose(np.mean(found), random_trust(n, k), atol=0.03)


def test_limits_give_verdicts():
    limits = Limits(0.9, 0.5)
    found = [limits.verdict(value) for value in (1.0, 0.9, 0.89, 0.5, 0.49, np.nan)]
    assert found == [READ, READ, CARE, CARE, NOT, NOT]
    for name in ("NEAR", "KEPT", "ORDER", "RANKS", "STRETCH"):
        assert getattr(reading, name).read > getattr(reading, name).care


def test_group_distance_verdict_is_the_worse_of_two(rng):
    X = rng.normal(size=(300, 2))
    X[:150, 0] += 100  # two islands: triplets across them keep their order, whatever happens inside
    Y = np.where(X[:, :1] > 50, [50.0, 0.0], [0.0, 0.0]) + rng.normal(size=(300, 2))
    report = eq.evaluate(X, Y)
    assert reading.ORDER.verdict(report.triplet_accuracy) == verdicts(report)[GROUP_DISTANCES] == CARE
    assert reading.RANKS.verdict(report.shepard.correlation) == CARE


@pytest.mark.parametrize(
    ("mapped", "verdict", "word"), [(0, READ, "as much as"), (1, CARE, "more separated in the map")]
)
def test_class_verdict_compares_map_and_data(mapped, verdict, word, rng):
    labels = np.repeat([0, 1], 100)
    X = rng.normal(size=(200, 3))
    Y = X[:, :2] if mapped == 0 else rng.normal(size=(200, 2)) + 100 * labels[:, None]
    report = eq.evaluate(X if mapped else Y, Y, labels)
    assert verdicts(report)["classes"] == verdict and word in report.sentences[-1]
    assert report.centroid_correlation is None  # two classes have only one distance
    if mapped:
        turned = eq.evaluate(Y, X[:, :2], labels)
        assert verdicts(turned)["classes"] == CARE and "mix more in the map" in turned.sentences[-1]


def test_text_is_short_and_omits_unavailable_rows(report, digits):
    text = str(report)
    lines = text.splitlines()
    assert len(lines) <= 38 and max(map(len, lines)) <= 90
    assert lines[0] == "400 points: 64 columns, euclidean distances, map in 2 dimensions; k = 15 neighbours"
    assert f"trustworthiness                     {float(report.trustworthiness):.3f}" in text
    assert "nearest of another class" in text and "±" in text  # triplets are sampled
    assert text == repr(report) == str(eq.evaluate(digits[0], report.Y, digits[1]))
    bare = str(eq.evaluate(digits[0], report.Y))
    assert "class" not in bare


def test_report_accepts_distances_spaces_and_other_metrics(rng):
    X, labels = rng.normal(size=(80, 3)), np.repeat([0, 1, 2, 3], 20)
    Y, D = X[:, :2], cdist(X, X)
    table = eq.evaluate(X, Y, labels)
    for same in (eq.evaluate(D, Y, labels, metric="precomputed"), eq.evaluate(spaces.Euclidean(X), Y, labels)):
        assert same.trustworthiness == table.trustworthiness and same.class_errors == table.class_errors
        np.testing.assert_allclose(same.shepard.correlation, table.shepard.correlation, atol=1e-9)
        np.testing.assert_allclose(same.density_correlation, table.density_correlation, atol=1e-9)
        assert same.centroid_correlation is None  # centroids need a table
    assert "precomputed distances" in str(eq.evaluate(D, Y, metric="precomputed"))
    assert "the space Euclidean(n=80)" in str(eq.evaluate(spaces.Euclidean(X), Y))
    cosine = eq.evaluate(X, Y, labels, metric="cosine")
    assert cosine.trustworthiness == trustworthiness(X, Y, 15, metric="cosine") != table.trustworthiness
    assert "cosine distances" in str(cosine)


def test_large_maps_are_evaluated_on_a_sample(rng, monkeypatch):
    monkeypatch.setattr(sampling, "ALL", 200)
    monkeypatch.setattr(sampling, "MIN_SAMPLE", 100)
    X = rng.normal(size=(400, 3))
    whole = trustworthiness(X, X[:, :2], 15)
    report = eq.evaluate(X, X[:, :2], rng.integers(0, 3, size=400))
    assert len(report.points) == 100 == len(report.trust) and (np.diff(report.points) > 0).all()
    assert 0 < report.trustworthiness.error < 0.02 and 0 < report.density_correlation.error < 0.1
    assert abs(report.trustworthiness - whole) < 4 * whole.error + 4 * report.trustworthiness.error
    basis = "measured for 100 of 400 points, distances for 50,000 pairs; ± is the standard error"
    assert basis in " ".join(str(report).split())
    assert sum(shadings(report)["trust"].shares()) == pytest.approx(1)
    assert report.figure().get_axes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Y": np.zeros((30, 2))}, "the same position"),
        ({"Y": np.ones((29, 2)) * np.arange(29)[:, None]}, "X has 30 points and Y has 29"),
        ({"Y": np.full((30, 2), np.nan)}, "Y contains NaN at row 0, column 0"),
        ({"labels": np.zeros(29)}, "labels"),
        ({"labels": np.zeros(30)}, "at least two classes"),
        ({"labels": [None] * 30}, "label of row 0"),
        ({"k": 30}, "k must be between 1 and n_samples - 1 = 29, got 30"),
    ],
)
def test_invalid_arguments_raise(change, message, rng):
    given = {"X": rng.normal(size=(30, 3)), "Y": rng.normal(size=(30, 2)), **change}
    with pytest.raises(ValueError, match=message):
        eq.evaluate(**given)


def test_three_points_are_enough():
    report = eq.evaluate(np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [1.0], [3.0]]), k=1)
    assert report.trustworthiness == 1 and report.sentences


class Tags(HTMLParser):
    """HTML parser that fails on unbalanced tags."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], set()
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in ("img", "meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_notebook_html_has_table_list_and_figure(report):
    text = report._repr_html_()
    assert {"table", "li", "img"} <= Tags(text).seen
    assert "data:image/png;base64," in text and all(sentence in text for sentence in report.sentences)


def test_compare_marks_the_best_map_in_each_row(digits, rng):
    X, labels = digits
    X, labels = X[:200], labels[:200]
    maps = {"PCA": eq.PCA(n_components=2).fit_transform(X), "<noise>": rng.normal(size=(200, 2))}
    found = eq.compare(X, maps, labels, k=10)
    assert list(found.reports) == ["PCA", "<noise>"] and found["PCA"].k == 10
    (line,) = (line for line in str(found).splitlines() if line.startswith("trustworthiness"))
    pca, noise = (f"{report.trustworthiness:.3f}" for report in found.reports.values())
    assert line.split() == ["trustworthiness", pca, "*", noise]
    assert str(found).count("*") == 11  # ten rows and the note
    np.testing.assert_array_equal(found["PCA"].shepard.d_x, found["<noise>"].shepard.d_x)  # the same pairs
    text = found._repr_html_()
    assert "&lt;noise&gt;" in text and "<noise>" not in text and {"table", "img"} <= Tags(text).seen
    assert len(found.figure().get_axes()) == 3


def test_compare_names_maps_and_rejects_invalid_ones(rng):
    X = rng.normal(size=(40, 3))
    Y = X[:, :2]
    fitted = eq.PCA(n_components=2).fit(X)
    assert list(eq.compare(X, [Y, -Y]).reports) == ["map 1", "map 2"]
    assert list(eq.compare(X, [fitted, fitted, Y]).reports) == ["PCA 1", "PCA 2", "map 3"]
    assert eq.compare(X, {"a": fitted})["a"].trustworthiness == trustworthiness(X, fitted.embedding_, 15)
    same = eq.compare(X, [Y, Y], random_state=np.random.RandomState(0))
    assert str(same).count("*") == 2 * 8 + 1  # equal values are both best; eight rows and the note
    assert same["map 1"].triplet_accuracy == same["map 2"].triplet_accuracy  # the same triplets
    with pytest.raises(ValueError, match="`maps` is empty"):
        eq.compare(X, [])
    with pytest.raises(ValueError, match="map 2: X has 40 points and Y has 39"):
        eq.compare(X, [Y, Y[1:]])


def test_signs_of_projection_axes_follow_the_rule_for_eigenvectors(rng):
    Y = rng.normal(size=(50, 4)) * [4, 3, 2, 1]
    for axis in range(4):
        mirror = np.where(np.arange(4) == axis, -1, 1)
        axes = np.linalg.lstsq(Y - Y.mean(axis=0), in_plane(Y * mirror)[0], rcond=None)[0] * mirror[:, None]
        assert (axes[np.abs(axes).argmax(axis=0), [0, 1]] > 0).all()


def test_in_plane_projects_maps_of_any_dimension(rng):
    Y = rng.normal(size=(50, 4))
    np.testing.assert_array_equal(in_plane(Y[:, :2])[0], Y[:, :2])
    line, how = in_plane(Y[:, :1])
    np.testing.assert_array_equal(line[:, 0], Y[:, 0])
    assert "line" in how
    plane, how = in_plane(np.column_stack([Y[:, :2], 0 * Y[:, :1]]))
    assert plane.shape == (50, 2) and "3 dimensions" in how
    np.testing.assert_allclose(cdist(plane, plane), cdist(Y[:, :2], Y[:, :2]), atol=1e-9)  # distances are kept
    sphere, how = in_plane(Y[:, :3] / np.linalg.norm(Y[:, :3], axis=1, keepdims=True))
    assert np.abs(sphere[:, 1]).max() <= 1 and "sphere" in how


def test_distance_bands_are_quantiles_of_the_pairs(rng):
    d_x = rng.uniform(size=20_000)
    at, low, median, high = distance_bands(d_x, d_x + rng.uniform(-0.1, 0.1, size=20_000))
    np.testing.assert_allclose(median, at, atol=0.03)
    np.testing.assert_allclose(high - low, 0.18, atol=0.03)


def test_shadings_bin_points_by_fixed_limits(report):
    shades = shadings(report)
    assert list(shades) == ["trust", "continuity", "kept", "class"]
    trust = shades["trust"]
    assert trust.names == ("0.99 or more", "0.95 to 0.99", "0.85 to 0.95", "below 0.85")
    np.testing.assert_array_equal(trust.codes == 3, report.trust < 0.85)
    np.testing.assert_array_equal(trust.codes == 0, report.trust >= 0.99)
    assert shades["class"].names == tuple("0123456789")


def test_missing_bokeh_names_the_extra_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh.resources", None)
    with pytest.raises(ImportError, match=r'pip install "equipoise\[pages\]"'):
        report.to_html()


def test_table_rows_format_values_with_standard_errors():
    row = importlib.import_module("equipoise.evaluate.report_table").ROWS[0]
    assert row.write(Measured(0.98765, 0.0123)) == "0.988 ± 0.012"
    assert row.write(Measured(0.98765, 0.0001)) == row.write(0.98765) == "0.988"
    assert row.write(None) == ""


def test_docstring_example_runs():
    result = doctest.testmod(importlib.import_module("equipoise.evaluate.report"))
    assert result.attempted > 3 and result.failed == 0


def test_evaluate_accepts_a_fitted_method_and_names_an_unfitted_one():
    X = np.random.default_rng(0).normal(size=(40, 4))
    method = eq.PCA().fit(X)
    assert eq.evaluate(X, method).recall == eq.evaluate(X, method.embedding_).recall
    with pytest.raises(ValueError, match=r"Y is the method PCA, which is not fitted; call fit\(X\) first"):
        eq.evaluate(X, eq.PCA())


def test_report_says_that_a_loss_was_still_decreasing():
    X = data.load("iris").X
    stopped, finished = (eq.TSNE(random_state=0, n_iter=n_iter).fit(X) for n_iter in (200, 1000))
    report = eq.evaluate(X, stopped)
    assert report.remaining_gain == stopped.remaining_gain_ > 0.05 and verdicts(report)["convergence"] == CARE
    assert f"lower the loss by up to about {stopped.remaining_gain_:.0%}" in " ".join(str(report).split())
    assert "convergence" not in verdicts(eq.evaluate(X, finished))
    array = eq.evaluate(X, stopped.embedding_)
    assert array.remaining_gain is None and "convergence" not in verdicts(array)


def test_compare_searches_the_neighbours_of_the_data_once(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 4))
    maps = {"first": X[:, :2], "second": X[:, 2:], "third": X[:, 1:3]}
    searches = []
    nearest = BlockOrder.nearest
    monkeypatch.setattr(BlockOrder, "nearest", lambda self, *args: searches.append(1) or nearest(self, *args))
    comparison = eq.compare(X, maps, metric="cosine")
    once = len(searches)
    assert once > 0
    for name, Y in maps.items():
        alone, searches[:] = eq.evaluate(X, Y, metric="cosine"), []
        assert str(comparison[name]) == str(alone)
    searches.clear()
    eq.evaluate(X, maps["first"], metric="cosine")
    assert len(searches) == once
