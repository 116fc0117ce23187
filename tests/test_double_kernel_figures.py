"""Figures 4 to 6 and 8 of Draganov & Dohn 2024 on few points, by benchmarks/papers/double_kernel_runs.py."""

import zipfile
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from support.shared_data import SHARED
from support.source_tree import ROOT, needs

import equipoise as eq
from equipoise.evaluate import preservation_ratio

BENCHMARKS = ROOT / "benchmarks"
pytestmark = needs("benchmarks")
SIZES = {  # rows, columns and classes in appendix B.1, at most 1000 rows
    "usps": (1000, 256, 10),
    "ionosphere": (351, 34, 2),
    "seeds": (210, 7, 3),
    "abalone": (1000, 8, 23),
    "diabetes": (442, 10, 2),
    "scrna_worm_neurons": (1000, 50, 10),  # in place of the single cells of the paper
}


@pytest.fixture(scope="module")
def paper():
    """Return the module with the runs behind the figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        patch.syspath_prepend(str(BENCHMARKS / "papers"))
        import double_kernel_runs

        yield double_kernel_runs


@pytest.fixture(scope="module")
def maps(paper):
    """Return a function from the name of a data set to X, y, maps by method and the snapshots of UMAP."""

    @cache
    def make(name):
        X, y = digits() if name == "digits" else paper.load(name)
        Y, run = paper.own_run(X, 0)
        return X, y, {"UMAP": Y, **{key: fit(X) for key, fit in METHODS.items()}}, run

    return make


METHODS = {
    "DK-LLE": lambda X: eq.DKLLE(random_state=0).fit_transform(X),
    "t-SNE": lambda X: eq.TSNE(random_state=0).fit_transform(X),
}


def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(X))[:300]
    return X[rows] / 16, y[rows]


@pytest.mark.parametrize(("name", "floor"), [("digits", 0.88), ("diabetes", 0.63)])
def test_classifiers_are_as_good_on_dklle_as_on_umap(paper, maps, name, floor):
    """Fig. 4 and 8: the accuracies below the maps."""
    _, y, made, _ = maps(name)
    umap, dklle = (paper.accuracy(made[method], y) for method in ("UMAP", "DK-LLE"))
    assert abs(umap - dklle) < 0.04 and min(umap, dklle) > floor


@pytest.mark.parametrize("name", ["digits", "diabetes"])
def test_umap_lowers_the_dklle_loss_more_than_descent_of_the_same_rate(paper, maps, name):
    """Fig. 5, where both have rate 1. Descent of rate 0.1 ends lower than UMAP."""
    X, _, _, run = maps(name)
    problem = eq.DKLLE(random_state=0, early_exaggeration=1.0).problem(X)
    start = problem.loss(run[0][1])
    umap = problem.loss(run[-1][1]) / start
    descent = {}
    for rate in (1.0, 0.1):
        plain = eq.GradientDescent(every=50, min_loss_change=0.0)
        method = eq.DKLLE(random_state=0, early_exaggeration=1.0, optimizer=plain, learning_rate=rate)
        slow = method.problem(X)
        slow.optimize(n_iter=paper.EPOCHS[-1], Y0=run[0][1])
        descent[rate] = slow.loss_curve[-1][1] / start
    assert descent[0.1] < umap < 0.65 < 1 < descent[1.0]


@pytest.mark.parametrize("name", ["digits", "diabetes"])
def test_preservation_falls_with_the_rank_for_all_methods(paper, maps, name):
    """Fig. 6: eq. (9) for several l and m, whose values UMAP, DK-LLE and t-SNE share up to a factor."""
    X, _, made, _ = maps(name)
    ratios = {}
    for method, Y in made.items():
        ratios[method] = [float(preservation_ratio(X, Y, low, high)) for low, high in paper.RANGES]
        assert (np.diff(ratios[method]) < 0).all() and ratios[method][-1] < 0.1 * ratios[method][0]
    near = np.log([np.divide(ratios[method], ratios["UMAP"]) for method in ("DK-LLE", "t-SNE")])
    assert np.abs(near).max() < np.log(4) and np.abs(near[0]).mean() < np.abs(near[1]).mean()


@pytest.mark.parametrize("name", SIZES)
def test_data_sets_have_the_sizes_of_the_paper(paper, name):
    if name != "diabetes" and not (SHARED / f"{name}.npz").exists():
        pytest.skip(f"../shared/data/{name}.npz does not exist")
    X, y = paper.load(name)
    assert (*X.shape, len(np.unique(y))) == SIZES[name] and len(y) == len(X)
    assert np.isfinite(X).all()


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_images_have_784_pixels(name):
    if not (path := SHARED / f"{name}.npz").exists():
        pytest.skip(f"../shared/data/{name}.npz does not exist")
    with zipfile.ZipFile(path) as archive, archive.open("X.npy") as file:  # unpacking all takes seconds
        assert np.lib.format.read_magic(file) == (1, 0)
        rows, pixels = np.lib.format.read_array_header_1_0(file)[0]
    assert rows >= 60_000 and pixels == 784
