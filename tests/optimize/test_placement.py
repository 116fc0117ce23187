import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

import equipoise as eq
from equipoise import _core, data
from equipoise.engines import Grid
from equipoise.methods import METHODS
from equipoise.optimize import placement
from equipoise.optimize.placement import first_largest

DIGITS = data.load("digits")
ROWS = np.random.RandomState(0).permutation(len(DIGITS.X))
OLD, NEW = ROWS[:500], ROWS[500:700]
FITTED = {}


def fitted(Method, engine):
    if (Method, engine) not in FITTED:
        FITTED[Method, engine] = Method(random_state=0, engine=engine).fit(DIGITS.X[OLD])
    return FITTED[Method, engine]


every_method = pytest.mark.parametrize("Method", METHODS, ids=lambda Method: Method.__name__)
every_engine = pytest.mark.parametrize("engine", ["exact", "grid", "sampled"])


@every_method
@every_engine
def test_new_points_are_placed_near_their_class(Method, engine):
    method = fitted(Method, engine)
    Y = method.transform(DIGITS.X[NEW])
    assert Y.shape == (200, method.n_components) and np.isfinite(Y).all()
    near = KNeighborsClassifier(5).fit(method.embedding_, DIGITS.labels[OLD])
    own = near.score(method.embedding_, DIGITS.labels[OLD])  # optimistic: each fitted point votes for itself
    assert near.score(Y, DIGITS.labels[NEW]) > own - 0.1


@every_method
@every_engine
def test_placement_does_not_depend_on_the_batch(Method, engine):
    method = fitted(Method, engine)
    together = method.transform(DIGITS.X[NEW[:12]])
    alone = np.vstack([method.transform(DIGITS.X[i : i + 1]) for i in NEW[:12]])
    assert together.tobytes() == alone.tobytes()


@every_method
def test_fitted_rows_keep_their_positions(Method):
    method = fitted(Method, "grid")
    np.testing.assert_array_equal(method.transform(DIGITS.X[OLD[:7]]), method.embedding_[:7])


def test_placement_by_stress_starts_at_the_nearest_fitted_point(monkeypatch):
    mds = eq.MDS(random_state=0, n_iter=20).fit(DIGITS.X[OLD])
    monkeypatch.setattr(placement, "STRESS_STEPS", 0)
    nearest = cdist(DIGITS.X[NEW], DIGITS.X[OLD]).argmin(axis=1)
    np.testing.assert_array_equal(mds.transform(DIGITS.X[NEW]), mds.embedding_[nearest])


def test_new_points_are_placed_near_their_nearest_fitted_point():
    method = fitted(eq.TSNE, "grid")
    X = DIGITS.X[NEW]
    moved = method.transform(X)
    nearest = ((X[:, None] - DIGITS.X[OLD]) ** 2).sum(axis=2).argmin(axis=1)
    assert np.median(np.linalg.norm(moved - method.embedding_[nearest], axis=1)) < 0.1 * method.embedding_.std()


@pytest.mark.parametrize("kept", [1.0, 0.6])
def test_first_of_the_largest_entries_of_each_row(rng, kept):
    dense = rng.integers(1, 4, (50, 8)) * (rng.uniform(size=(50, 8)) < kept)
    dense[:, 5] = 3
    at = first_largest(P := sparse.csr_matrix(dense.astype(np.float64)))
    np.testing.assert_array_equal(P.indices[at], dense.argmax(axis=1))


def test_the_map_is_sorted_into_cells_once(monkeypatch):
    method = eq.UMAP(random_state=0, engine="grid", n_iter=50).fit(DIGITS.X[OLD])
    sorts, original = [], {name: getattr(_core, name) for name in ("near", "NearField32", "NearField64")}
    for name, function in original.items():
        monkeypatch.setattr(_core, name, lambda *a, function=function, name=name: sorts.append(name) or function(*a))
    Y = method.transform(DIGITS.X[NEW[:3]])
    frozen = len(sorts)
    np.testing.assert_array_equal(method.transform(DIGITS.X[NEW[:3]]), Y)
    assert 0 < frozen == len(sorts)


def test_transform_from_distances():
    X, new = DIGITS.X[OLD[:200]], DIGITS.X[NEW[:9]]
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    D_new = np.sqrt(((new[:, None] - X) ** 2).sum(axis=2))
    init = fitted(eq.TSNE, "grid").embedding_[:200]
    table = eq.TSNE(engine="grid", init=init, n_iter=0).fit(X)
    given = eq.TSNE(engine="grid", init=init, n_iter=0, metric="precomputed").fit(D)
    np.testing.assert_allclose(given.transform(D_new), table.transform(new), rtol=1e-3, atol=1e-2)
    with pytest.raises(ValueError, match="expecting 200 features"):
        given.transform(D_new[:, :50])


def test_transform_after_pickling():
    method = fitted(eq.TSNE, "grid")
    again = pickle.loads(pickle.dumps(method))
    np.testing.assert_array_equal(again.transform(DIGITS.X[NEW[:3]]), method.transform(DIGITS.X[NEW[:3]]))


def test_invalid_rows_raise():
    method = fitted(eq.TSNE, "grid")
    bad = DIGITS.X[NEW[:4]].copy()
    bad[2, 5] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 2, column 5"):
        method.transform(bad)
    with pytest.raises(ValueError, match="expecting 64 features"):
        method.transform(bad[:, :10])


def test_divergences_over_all_pairs_have_no_transform():
    method = eq.GSNE(alpha=1.5, random_state=0, n_iter=5).fit(DIGITS.X[OLD[:40]])
    with pytest.raises(ValueError, match="transform needs an Alpha divergence"):
        method.transform(DIGITS.X[NEW[:2]])


def test_first_transforms_in_several_threads_freeze_the_map_once(monkeypatch):
    method = eq.TSNE(random_state=0, engine="grid", n_iter=50).fit(DIGITS.X[OLD])
    expected = pickle.loads(pickle.dumps(method)).transform(DIGITS.X[NEW]).tobytes()
    freeze, frozen, results = Grid.freeze, [], []

    def slow_freeze(engine, *arguments):
        frozen.append(engine)
        threading.Event().wait(0.2)
        return freeze(engine, *arguments)

    monkeypatch.setattr(Grid, "freeze", slow_freeze)
    work = [threading.Thread(target=lambda: results.append(method.transform(DIGITS.X[NEW]))) for _ in range(3)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(frozen) == 1 and [Y.tobytes() for Y in results] == [expected] * 3


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_transform_works_in_a_process_forked_while_another_thread_freezes_the_map(monkeypatch):
    method = eq.TSNE(random_state=0, engine="grid", n_iter=50).fit(DIGITS.X[OLD])
    freeze, entered, leave, main = Grid.freeze, threading.Event(), threading.Event(), threading.get_ident()

    def waiting_freeze(engine, *arguments):
        if threading.get_ident() != main:
            entered.set()
            assert leave.wait(120)
        return freeze(engine, *arguments)

    monkeypatch.setattr(Grid, "freeze", waiting_freeze)
    other = threading.Thread(target=method.transform, args=[DIGITS.X[NEW]])
    other.start()
    assert entered.wait(60)
    child = multiprocessing.get_context("fork").Process(target=method.transform, args=[DIGITS.X[NEW]])
    child.start()
    child.join(60)
    child.kill()
    leave.set()
    other.join()
    assert child.exitcode == 0
