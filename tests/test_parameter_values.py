"""Parameters that are no usable numbers: too large for float64, NaN, arrays, or of other types."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.utils import get_tags
from support.methods import X, brief, over_those_with

import equipoise as eq
from equipoise.arrays.namespace import check_random_state, is_auto, is_finite, is_integer, is_positive


def test_numbers_of_any_type():
    for value in (3, np.int8(3), 2.5, np.float32(2.5)):
        assert is_finite(value) and is_positive(value)
    assert is_integer(3) and is_integer(np.uint8(3)) and not is_integer(3.0) and not is_integer(True)
    for value in (np.nan, np.inf, 10**400, -(10**400), True, "3", None, [3], np.ones(2), 1j):
        assert not is_finite(value) and not is_positive(value)
    assert not is_positive(0) and not is_positive(-1.0)
    assert is_auto("auto") and not is_auto(np.array(["auto", "auto"])) and not is_auto(1)


@pytest.mark.parametrize("seed", [-1, 2**32, 10**30, np.int64(-5)])
def test_seeds_out_of_range_are_refused(seed):
    with pytest.raises(ValueError, match=f"random_state must be between 0 and 4294967295, got {seed}"):
        check_random_state(seed)
    assert check_random_state(2**32 - 1).randint(9) == np.random.RandomState(2**32 - 1).randint(9)


@over_those_with("random_state")
def test_every_method_checks_its_seed(Method):
    with pytest.raises(ValueError, match="random_state must be between"):
        brief(Method, random_state=2**32).fit(X)


@over_those_with("n_jobs")
@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True, 2**31, 10**30])
def test_every_method_checks_its_number_of_threads(Method, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be"):
        brief(Method, n_jobs=n_jobs).fit(X)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (eq.TSNE(perplexity=10**400), "perplexity must be a number"),
        (eq.TSNE(perplexity=[1, "a"]), "perplexity must be a number"),
        (eq.TSNE(learning_rate=10**400), "learning_rate must be a positive number"),
        (eq.TSNE(learning_rate=np.ones(2)), "learning_rate must be a positive number"),
        (eq.TSNE(exaggeration=10**400), "exaggeration must be a positive number"),
        (eq.TSNE(device=np.array([])), "device must be one of"),
        (eq.TSNE(engine=5), "unknown engine 5"),
        (eq.UMAP(target_weight=object()), "target_weight must be between 0 and 1"),
        (eq.UMAP(min_dist="a"), "min_dist must be between"),
        (eq.UMAP(loss=["effective"]), "unknown loss"),
        (eq.DKPCA(bandwidth=10**400), "bandwidth must be"),
    ],
)
def test_unusable_values_are_refused_by_name(method, message):
    with pytest.raises(ValueError, match=message):
        method.fit(X)


def test_kernels_and_divergences_refuse_integers_beyond_float64():
    with pytest.raises(ValueError, match="dof must be"):
        eq.kernels.StudentT(dof=10**400)
    with pytest.raises(ValueError, match="alpha must be a finite number"):
        eq.divergences.Alpha(alpha=10**400)


def test_equal_column_names_are_refused():
    frame = pd.DataFrame(np.array(X), columns=["a", "b", "c", "b", "e"])
    with pytest.raises(ValueError, match="columns 1 and 3 of X have the same name 'b'"):
        eq.PCA().fit(frame)


@pytest.mark.parametrize("table", [{"a": 1}, {1.0, 2.0}, (row for row in X), object()])
def test_objects_that_are_no_tables_are_refused(table):
    with pytest.raises((TypeError, ValueError), match=r"is not a table of numbers|Expected 2D"):
        eq.TSNE().fit(table)


def test_integers_beyond_float64_are_named():
    table = np.array(X).astype(object)
    table[3, 2] = 10**400
    with pytest.raises(ValueError, match="integer beyond the range of float64 at row 3, column 2"):
        eq.TSNE().fit(table)


def test_forces_and_memory_check_their_arguments():
    for arguments in ({"r": 3.0}, {"r": []}, {"r": ["a"]}, {"p": "a"}, {"Z": np.nan}):
        with pytest.raises(ValueError, match="must be"):
            eq.forces(eq.TSNE(), **arguments)
    with pytest.raises(TypeError, match="methods with a kernel"):
        eq.forces("TSNE")
    with pytest.raises(ValueError, match="n must be an integer >= 2"):
        eq.estimate_memory(float("nan"), 5)
    assert eq.estimate_memory(1000, 5, n_components=np.int8(3)).peak > 0


@pytest.mark.parametrize(
    "method",
    [
        eq.GSNE(alpha=0.99, eta=1e-300),
        eq.PowerSNE(r0=1e-10, learning_rate=1e10),
        eq.UMAP(learning_rate=4.5e58),
    ],
)
def test_maps_that_leave_the_range_of_numbers_raise(method):
    method.set_params(n_iter=60, random_state=0)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match=r"NaN or inf|the loss is|underflows"):
        method.fit(X)


@pytest.mark.parametrize("Method", [eq.DKLLE, eq.LLE, eq.Isomap])
def test_new_rows_out_of_range_are_named(Method):
    fitted = brief(Method).fit(X)
    rows = np.array(X[:3])
    rows[1] = 1e300
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="row 1 of X cannot be placed"):
        fitted.transform(rows)


@pytest.mark.parametrize("Method", [eq.TSNE, eq.MDS])
def test_verbose_must_be_a_number(Method):
    with pytest.raises(ValueError, match="verbose must be an integer"):
        Method(verbose=np.ones(2)).fit(X)


def test_integers_beyond_int64_are_converted_to_floats():
    method = brief(eq.SNE, early_exaggeration=10**30, engine="torch", device="cpu")
    assert np.isfinite(method.fit(X).embedding_).all()


def test_a_diverged_map_on_a_mesh_raises():
    with pytest.raises(
        FloatingPointError, match="the embedding contains NaN or infinite coordinates; lower learning_rate"
    ):
        eq.DKLLE(engine="grid", learning_rate=2.85e86, n_iter=12, random_state=0).fit(X)


def test_a_kernel_whose_length_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"the length scale of .*beta=0.01, eta=.* is not between 1e-100 and 1e100"):
        eq.GSNE(beta=0.01, eta=1e-10).fit(X)


def test_spherical_sne_checks_callbacks_before_g():
    with pytest.raises((TypeError, ValueError), match="callbacks"):
        eq.SphericalSNE(g=lambda Y: np.eye(Y.shape[1]), callbacks=1e-10).fit(X)


def test_a_divergence_whose_powers_overflow_raises():
    with (
        np.errstate(all="ignore"),
        pytest.raises(FloatingPointError, match=r"in the loss overflows.* alpha nearer to -1"),
    ):
        eq.GSNE(alpha=-1e300, n_iter=5, random_state=0).fit(X)


def test_values_of_the_wrong_type_are_named():
    Y = X[:, :2]
    with pytest.raises(
        ValueError, match=r"must be a matrix of numbers, got ''; pass .* or equipoise\.LearnedMetric\(\)"
    ):
        eq.SphericalSNE(h="").fit(X)
    with pytest.raises(ValueError, match=r"n_landmarks must be an integer >= 4, .*; got 'b'"):
        eq.canonical_form(X[:, :3], [[0, 1, 2]], n_landmarks="b")
    with pytest.raises(ValueError, match=r"unknown engine array\("):
        eq.estimate_memory(100, 5, engine=np.ones(2))
    with pytest.raises(ValueError, match="title must be text, got 3"):
        eq.plot(Y, title=3)
    with pytest.raises(ValueError, match=r"unknown engine array\("):
        eq.SphericalSNE(engine=np.empty(0)).fit(X)
    with pytest.raises(ValueError, match=r"X must be a table \(n, D\).*, got NoneType"):
        eq.compare(None, {"a": Y})
    with pytest.raises(ValueError, match=r"Y must be a numeric map of shape"):
        eq.plot([[10**400, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"X \(Tensor\) is not a table of numbers"):
        eq.neighbors.nearest_neighbors(torch.ones((9, 2), requires_grad=True), 3)


@pytest.mark.parametrize("early_late", [("a", "b"), (None, 0.5), (np.ones(2), 0.5), (0.5, np.nan), (0.5,), [0.5, 0.8]])
def test_momentum_must_be_two_numbers(early_late):
    with pytest.raises(ValueError, match=r"momentum must be a tuple of two numbers in \[0, 1\), one for early .*, got"):
        eq.Momentum(momentum=early_late)


def test_integers_beyond_float64_are_refused_as_metric_tensors():
    with pytest.raises(ValueError, match="the metric tensor h must be a matrix of numbers, got 1000"):
        eq.SNE(h=10**400).fit(X)
    with pytest.raises(ValueError, match=r"g must be a matrix of numbers .* or a function of the map, got 1000"):
        eq.TSNE(g=10**400).fit(X)


@pytest.mark.parametrize("d", [10**9, 10**400], ids=["1e9", "1e400"])
@pytest.mark.parametrize("Method", [eq.PCA, eq.Isomap, eq.LLE, eq.TSNE, eq.UMAP])
def test_more_components_than_rows_or_columns_are_refused_with_the_limit(Method, d):
    message = r"n_components=10+ is too large for n_(samples|features)=\d+; use at most \d+$"
    with pytest.raises(ValueError, match=message):
        Method(n_components=d).fit(X)
    with pytest.raises(MemoryError, match=r"n_components=10+ needs about .* GB are available; use fewer components"):
        eq.MDS(n_components=d).fit(X)


def test_numbers_of_extended_precision_give_the_same_map():
    for Method, name in ((eq.TSNE, "dof"), (eq.SphericalSNE, "rho"), (eq.LLE, "reg")):
        maps = [brief(Method, **{name: kind(0.5)}).fit(X).transform(X[:3] + 0.1) for kind in (float, np.longdouble)]
        np.testing.assert_array_equal(*maps)
    assert eq.kernels.NonMembership(epsilon=10**30).length == 1e15


def test_precomputed_is_compared_only_with_text():
    for method in (eq.TSNE(metric=np.ones(2)), eq.UMAP(affinity=np.ones(2)), eq.LLE(metric=np.ones(2))):
        assert get_tags(method).input_tags.pairwise is False


def test_parameters_of_rules_are_numbers_that_float64_can_represent():
    for make in (lambda: eq.Momentum(turned=10**400), lambda: eq.GradientDescent(min_grad_norm=10**400)):
        with pytest.raises(ValueError, match=r"(turned|min_grad_norm)=1000.* is not a number in the range"):
            make()


@pytest.mark.filterwarnings("ignore:.*more neighbours at the smallest distance")
def test_equal_distances_have_a_start():
    D = np.ones((50, 50)) - np.eye(50)  # LAPACK returns none of its three largest eigenvalues, which are equal
    method = eq.SphericalSNE(metric="precomputed", perplexity=5, n_iter=2, random_state=0).fit(D)
    assert np.isfinite(method.embedding_).all()
