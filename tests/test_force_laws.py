import doctest
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import equipoise as eq
from equipoise import force_laws
from equipoise.kernels import StudentT

R = np.geomspace(0.02, 20, 50)
p, Z = 0.03, 7.0

TABLE_1 = {  # Lin et al. 2024: method, attraction, repulsion
    "SNE": (eq.SNE(), 4 * p * R, 4 * R * np.exp(-(R**2)) / Z),
    "symmetric SNE": (eq.SymmetricSNE(), 4 * p * R, 4 * R * np.exp(-(R**2)) / Z),
    "t-SNE": (eq.TSNE(), 4 * p * R / (1 + R**2), 4 * R / (1 + R**2) ** 2 / Z),
    "p-SNE": (eq.PowerSNE(beta=2, r0=0.01), 4 * p / R, 4 / R**3 / Z),
    "p-SNE, β = 1.5": (eq.PowerSNE(beta=1.5, r0=0.01), 3 * p / R, 3 / R**2.5 / Z),
    "g-SNE": (
        eq.GSNE(alpha=-1, beta=3, eta=0.1),
        6 * p * R**2 / (0.1 + R**3),
        6 * R**2 / (0.1 + R**3) ** 2 / Z,
    ),
}


@pytest.mark.parametrize("name", TABLE_1)
def test_forces_match_table_1(name):
    method, attraction, repulsion = TABLE_1[name]
    curves = eq.forces(method, r=R, p=p, Z=Z)
    ((label, pull),), ((same_label, push),) = curves.attraction.items(), curves.repulsion.items()
    assert label == same_label == str(method)
    assert_allclose(pull, attraction, rtol=1e-12)
    assert_allclose(push, repulsion, rtol=1e-12)


def test_spherical_sne_near_rho_1_matches_power_sne():
    # Lin et al. 2024, eq. (31): 2 d p / r
    curves = eq.forces(eq.SphericalSNE(rho=1 - 1e-6), r=np.array([0.1, 0.5]), p=p)
    assert_allclose(curves.attraction["SphericalSNE(rho=0.999999)"], 6 * p / np.array([0.1, 0.5]), rtol=1e-5)


def curve(method, r):
    """Return the attraction and repulsion of a method at the distances r."""
    curves = eq.forces(method, r=np.asarray(r), p=p, Z=Z)
    return curves.attraction[str(method)], curves.repulsion[str(method)]


def test_beta_sets_the_decay_of_forces_and_eta_their_strength():
    """Lin et al. 2024, section IV.B."""
    far, betas, etas = np.array([1e3, 2e3]), (1.2, 1.5, 2, 3, 4), (2, 1, 0.25, 0.05)
    for eta in etas:
        tails = [curve(eq.GSNE(alpha=-1, beta=beta, eta=eta), far)[1] for beta in betas]
        decay = [np.log2(tail[0] / tail[1]) for tail in tails]
        assert_allclose(decay, np.add(betas, 1), rtol=1e-2)  # r^(−β−1): as t-SNE for β = 2
        assert all(near[0] > next[0] for near, next in pairwise(tails))  # small β: strong far away
    assert_allclose(np.log2(np.divide(*curve(eq.TSNE(), far)[1])), 3, rtol=1e-2)
    for beta in betas:
        forces = [curve(eq.GSNE(alpha=-1, beta=beta, eta=eta), R) for eta in etas]
        for weak, strong in pairwise(forces):  # smaller η: both stronger at every distance
            assert (strong[0] > weak[0]).all() and (strong[1] > weak[1]).all()


def test_attraction_at_small_distances_vanishes_for_t_and_g_sne_and_diverges_for_p_sne():
    """Lin et al. 2024, section IV.B."""
    near = np.array([1e-5, 1e-3])
    for beta in (1.5, 2, 3):
        for eta in (1, 0.25):
            small, larger = curve(eq.GSNE(alpha=-1, beta=beta, eta=eta), near)[0]
            assert small < larger < 0.05
        small, larger = curve(eq.PowerSNE(beta=beta, r0=1e-6), near)[0]
        assert small > 99 * larger > 1
    small, larger = curve(eq.TSNE(), near)[0]
    assert small < larger < 0.05


@pytest.mark.parametrize("alpha", [-3, -2, -0.5, 0, 0.7])
def test_forces_of_two_points_match_pair_forces(alpha):
    """For two points P = Q = 1/2 and T = 1, so the pair forces are exact."""
    method = eq.GSNE(alpha=alpha, beta=3, eta=0.1, perplexity=1)
    problem = method.problem(np.array([[0.0, 0.0], [1.0, 2.0]]))
    k = method._kernel()
    for r in (0.1, 0.7, 3.0):
        Y = np.array([[0.0, 0.0], [r, 0.0]])
        pull, push = method.pair_forces(np.array([r]), p=0.5, Z=2 * k.value(np.array([r**2]))[0])
        assert_allclose(problem.attraction(Y), [[pull[0], 0], [-pull[0], 0]], rtol=1e-6, atol=1e-12)
        assert_allclose(problem.repulsion(Y), [[-push[0], 0], [push[0], 0]], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    "method",
    [eq.SymmetricSNE(), eq.TSNE(), eq.PowerSNE(r0=0.1), *(eq.GSNE(alpha=alpha) for alpha in (-2, -1, 0.5))],
    ids=str,
)
def test_pair_forces_sum_to_the_forces_of_a_map(method, rng):
    problem = method.set_params(engine="reference", perplexity=3).problem(rng.normal(size=(9, 4)))
    Y = rng.normal(size=(9, 2))
    P = np.asarray(problem.affinities, dtype=np.float64)
    diff = Y[:, None] - Y
    r = np.sqrt((diff**2).sum(axis=2)) + np.eye(9)
    off = ~np.eye(9, dtype=bool)
    k, s = method._kernel().value(r**2), method._divergence().s
    Z = k[off].sum()
    T = (P[off] ** s * (k[off] / Z) ** (1 - s)).sum()
    pull, push = np.zeros((2, 9, 9))
    for i, j in np.argwhere(off):
        pull[i, j], push[i, j] = method.pair_forces(r[i, j], P[i, j], Z)
    assert_allclose(problem.attraction(Y), -np.einsum("ij,ijc->ic", pull / r, diff), rtol=1e-7, atol=1e-12)
    assert_allclose(problem.repulsion(Y), T * np.einsum("ij,ijc->ic", push / r, diff), rtol=1e-7, atol=1e-12)


def test_forces_balance_where_q_equals_p_for_any_alpha():
    r = np.array([3.0])  # q = 1/(1 + 9) with Z = 1
    for alpha in (-3, -1, 0, 0.9):
        pull, push = eq.GSNE(alpha=alpha, beta=2, eta=1).pair_forces(r, p=0.1)
        assert_allclose(pull, push, rtol=1e-12)


@pytest.mark.parametrize(
    "divergence", [eq.divergences.ChiSquare(), eq.divergences.Alpha(1.0), eq.divergences.Alpha(2.0)]
)
def test_divergences_over_all_pairs_attract_where_q_is_less_than_p(divergence):
    method = eq.SymmetricSNE(kernel=StudentT(), divergence=divergence)
    pull, push = method.pair_forces(np.array([1.0, 3.0, 5.0]), p=0.1)  # q = 0.5, 0.1, 0.04
    assert_allclose([pull[0], pull[1], push[1], push[2]], 0, atol=1e-15)
    assert push[0] > 0 and pull[2] > 0


def test_net_force_is_continuous_at_alpha_1():
    pull, push = eq.SymmetricSNE(kernel=StudentT(), divergence=eq.divergences.Alpha(1.0)).pair_forces(R, p, Z)
    near = eq.SymmetricSNE(kernel=StudentT(), divergence=eq.divergences.Alpha(1 - 1e-7)).pair_forces(R, p, Z)
    assert_allclose(push - pull, near[1] - near[0], rtol=1e-5, atol=1e-7)


def test_curves_keep_order_and_names():
    curves = eq.forces(eq.TSNE(), eq.GSNE(beta=2, eta=0.25), eq.SNE())
    assert list(curves.attraction) == list(curves.repulsion) == ["TSNE()", "GSNE(beta=2, eta=0.25)", "SNE()"]
    assert curves.r.shape == (400,) and curves.r[0] > 0 and curves.r[-1] == 5
    assert all(force.shape == (400,) for force in [*curves.attraction.values(), *curves.repulsion.values()])


def test_attraction_scales_with_p_and_repulsion_with_inverse_z():
    one, other = eq.forces(eq.TSNE(), p=0.1, Z=1), eq.forces(eq.TSNE(), p=0.3, Z=4)
    assert_allclose(other.attraction["TSNE()"], 3 * one.attraction["TSNE()"])
    assert_allclose(other.repulsion["TSNE()"], one.repulsion["TSNE()"] / 4)


def test_figure_shows_every_curve():
    names = ["SymmetricSNE()", "TSNE()", "PowerSNE(r0=0.01)"]
    curves = eq.forces(eq.SymmetricSNE(), eq.TSNE(), eq.PowerSNE(r0=0.01))
    figure = curves.figure()
    left, right = figure.axes
    assert (left.get_title(), right.get_title()) == ("attraction", "repulsion")
    for axes, expected in ((left, curves.attraction), (right, curves.repulsion)):
        assert [line.get_label() for line in axes.lines] == names
        for line, name in zip(axes.lines, names, strict=True):
            assert_allclose(line.get_ydata(), expected[name])
        assert axes.get_xlabel() == "distance r in the map"
        assert axes.get_ylim()[1] < 100  # the power law does not hide the others
    assert [text.get_text() for text in right.get_legend().get_texts()] == names


def test_axis_limits_fit_a_single_method():
    left, right = eq.forces(eq.TSNE()).figure().axes
    assert_allclose([left.get_ylim()[1], right.get_ylim()[1]], [1.15 * 2, 1.15 * 0.75 * np.sqrt(3)], rtol=1e-3)


def test_axis_limits_show_peaks_of_similar_height():
    curves = eq.forces(eq.TSNE(), eq.UMAP())
    left, right = curves.figure().axes
    assert left.get_ylim()[1] > max(force.max() for force in curves.attraction.values())
    assert right.get_ylim()[1] < curves.repulsion["UMAP()"].max()  # far above the other peak


def test_no_methods_raises():
    with pytest.raises(ValueError, match="needs at least one method"):
        eq.forces()


@pytest.mark.parametrize(
    ("r", "message"),
    [
        ([], r"r must be an array \(m,\) with at least one distance, got shape \(0,\)"),
        ([[1.0]], r"r must be an array \(m,\) with at least one distance, got shape \(1, 1\)"),
        ([1.0, -2.0], r"r must contain finite distances >= 0, got r\[1\] = -2"),
        ([np.nan, 1.0], r"r must contain finite distances >= 0, got r\[0\] = nan"),
    ],
)
def test_invalid_distances_raise(r, message):
    with pytest.raises(ValueError, match=message):
        eq.forces(eq.TSNE(), r=r)


def test_docstring_example_runs():
    result = doctest.testmod(force_laws, extraglobs={"TSNE": eq.TSNE})
    assert result.attempted >= 2 and result.failed == 0


def test_repr_of_curves_is_one_line():
    curves = eq.forces(eq.TSNE(), eq.UMAP())
    assert repr(curves) == "<forces of TSNE(), UMAP() at 400 distances from 0.02 to 5; figure() draws them>"


def test_similarities_and_their_crossings():
    curves = eq.similarities(eq.SNE(), eq.TSNE(), eq.GSNE(), p=0.1)
    assert list(curves.similarity) == ["SNE()", "TSNE()", "GSNE()"]
    assert_allclose(curves.similarity["TSNE()"], 1 / (1 + curves.r**2), rtol=1e-12)
    assert_allclose(list(curves.distance.values()), [np.sqrt(np.log(10)), 3, 0.9 ** (1 / 3)], rtol=1e-3)
    assert repr(curves).startswith("<kernels with the similarity 0.1 at the distances: SNE() 1.52, TSNE() 3, GSNE()")
    assert np.isnan(eq.similarities(eq.TSNE(), r=[0.1, 0.2]).distance["TSNE()"])


def test_figure_of_similarities_marks_the_crossings():
    curves = eq.similarities(eq.SNE(), eq.TSNE())
    (axes,) = curves.figure().axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["SNE()", "TSNE()"]
    assert [text.get_text() for text in axes.texts] == ["1.52", "3.00", "p = 0.1"]


def test_invalid_arguments_of_similarities_raise():
    with pytest.raises(ValueError, match=r"similarities\(\) needs at least one method"):
        eq.similarities()
    with pytest.raises(TypeError, match=r"similarities\(\) needs methods with a kernel, such as TSNE\(\), got PCA"):
        eq.similarities(eq.PCA())
    with pytest.raises(ValueError, match="p must be a number above 0 and below 1, got 1"):
        eq.similarities(eq.TSNE(), p=1)
    with pytest.raises(ValueError, match="r must contain ascending distances"):
        eq.similarities(eq.TSNE(), r=[2.0, 1.0])


NEW = [
    eq.divergences.Renyi(0.5),
    eq.divergences.Beta(1.5),
    eq.divergences.Gamma(0.5),
    eq.divergences.NeRV(0.3),
    eq.divergences.SymmetricKL(),
    eq.divergences.JensenShannon(),
]


@pytest.mark.parametrize("divergence", NEW, ids=repr)
def test_forces_of_other_divergences_balance_where_q_equals_p(divergence):
    method = eq.SymmetricSNE(kernel=StudentT(), divergence=divergence)
    pull, push = method.pair_forces(np.array([1.0, 3.0, 5.0]), p=0.1)  # q = 0.5, 0.1, 0.04
    assert_allclose(pull[1], push[1], rtol=1e-12)
    assert push[0] > pull[0] and pull[2] > push[2]


def test_force_laws_of_other_divergences_have_the_limits_of_kl():
    def law(divergence):
        return np.array(eq.SymmetricSNE(kernel=StudentT(), divergence=divergence).pair_forces(R, p, Z))

    kl = law(eq.divergences.KL())
    limits = (eq.divergences.Renyi(1.0), eq.divergences.Beta(1.0), eq.divergences.Gamma(0.0), eq.divergences.NeRV(1.0))
    for limit in limits:
        assert_allclose(law(limit), kl, rtol=1e-12)
    net = law(eq.divergences.SymmetricKL()) - kl
    dense = law(eq.divergences.Alpha(1.0))
    assert_allclose(net[1] - net[0], dense[1] - dense[0], rtol=1e-9, atol=1e-12)
