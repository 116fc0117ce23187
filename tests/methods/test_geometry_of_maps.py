"""Methods in every geometry: gradients, limits, invariances, saving, transform, errors."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from support.cases import differences, relative_error, unequal_digits

import equipoise as eq
from equipoise.geometry import Directions, Flat, Hyperbolic, Sphere, Torus

X = unequal_digits(60)
METHODS = {
    "SNE": eq.SNE(),
    "SymmetricSNE": eq.SymmetricSNE(kernel=eq.kernels.StudentT(2.0), divergence=eq.divergences.Alpha(2.0)),
    "TSNE": eq.TSNE(),
    "PowerSNE": eq.PowerSNE(),
    "GSNE": eq.GSNE(alpha=0.0),
    "UMAP": eq.UMAP(),
    "UMAP intended": eq.UMAP(loss="intended"),
    "DKLLE": eq.DKLLE(),
    "DKPCA": eq.DKPCA(),
}
GEOMETRIES = {"sphere": Sphere(3.0), "torus": Torus(9.0), "hyperbolic": Hyperbolic(2.0)}


class Ellipsoid:
    """A user-defined geometry: straight lines between the points of an ellipsoid."""

    axes = np.array([3.0, 2.0, 2.0])

    def squared_distance(self, Yi, Yj):
        return ((Yi - Yj) ** 2).sum(-1)

    def columns(self, d):
        return d + 1

    def tangent(self, Y, F):
        normal = Y / self.axes**2
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        return F - (F * normal).sum(axis=1, keepdims=True) * normal

    def retract(self, Y):
        return Y / np.linalg.norm(Y / self.axes, axis=1, keepdims=True)


def method_in(name, geometry, **others):
    return clone(METHODS[name]).set_params(geometry=geometry, random_state=0, n_jobs=1, **others)


def spread_map(geometry, rng, n=60):
    """Return a map of n positions away from wrapped distances and edges."""
    geometry = eq.geometry.resolve(geometry).resolved(n, 2, 1.0)
    U = rng.standard_normal((n, geometry.columns(2)))
    return geometry.map(
        geometry.project(U) if isinstance(geometry, Sphere) else 1.5 * U + 4.0 * isinstance(geometry, Torus)
    )


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("name", METHODS)
def test_gradient_is_the_derivative_of_the_loss(name, geometry, rng):
    geometry = GEOMETRIES[geometry]
    problem = method_in(name, geometry, engine="reference").problem(X[:30])
    Y = spread_map(geometry, rng, 30)
    gradient = problem.gradient(Y)
    direction = rng.standard_normal((6, *Y.shape)) * np.linalg.norm(gradient) / np.sqrt(Y.size)
    for step in direction * 1e-5 / np.abs(gradient).max():
        found = (problem.loss(Y + step) - problem.loss(Y - step)) / 2
        true = float((gradient * step).sum())
        assert abs(found - true) <= 1e-5 * np.linalg.norm(gradient) * np.linalg.norm(step)


def test_every_entry_of_the_gradient(rng):
    for geometry in (*GEOMETRIES.values(), Ellipsoid()):
        problem = method_in("TSNE", geometry, engine="reference", perplexity=5).problem(X[:18])
        Y = spread_map(geometry, rng, 18)
        true = differences(problem.loss, Y, 1e-6)
        gradient = problem.gradient(Y)
        assert relative_error(gradient, true) < 1e-5
        assert_allclose(problem.attraction(Y) + problem.repulsion(Y), -gradient, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_large_sizes_are_the_plane(name, rng):
    Y = 2 * rng.standard_normal((len(X), 2))
    plane = method_in(name, "plane", engine="reference").problem(X)
    loss, gradient = plane.loss(Y), plane.gradient(Y)
    R = 1e4
    near = np.column_stack([Y, np.full(len(Y), R)])
    maps = {
        Torus(R): Y + R / 2,
        Hyperbolic(R): Hyperbolic(R).map(Y),
        Sphere(R): near / np.linalg.norm(near, axis=1, keepdims=True) * R,
    }
    for geometry, at in maps.items():
        problem = method_in(name, geometry, engine="reference").problem(X)
        assert_allclose(problem.loss(at), loss, rtol=1e-6)
        found = problem.gradient(at)[:, :2] / (2 * R if isinstance(geometry, Hyperbolic) else 1)
        assert relative_error(found, gradient) < 1e-4


def test_fits_in_a_large_space_are_fits_in_the_plane():
    """Around the middle of the torus, float32 has steps of 5e-4, but the initial map has a spread of 1e-4."""
    data, labels = unequal_digits(200), eq_labels(200)
    for geometry in (Torus(1e4), Torus(8e4), Sphere(8e4), Hyperbolic(1e9)):
        method = method_in("TSNE", geometry, n_iter=150).fit(data)
        D = method.geometry_.distance(method.embedding_[:, None], method.embedding_[None])
        np.fill_diagonal(D, np.inf)
        assert (labels[D.argmin(axis=1)] == labels).mean() > 0.85
        assert method.loss_ < 0.4
    with pytest.raises(ValueError, match=r"period=100000 is too large: .* use period=80000 or less"):
        method_in("TSNE", Torus(1e5)).fit(data)


def test_loss_is_invariant_to_isometries(rng):
    torus, plane, shift = Torus(9.0), Hyperbolic(2.0), np.array([3.0, -7.0])
    Y, U = spread_map(torus, rng), rng.standard_normal((len(X), 2))
    problem = method_in("TSNE", torus, engine="reference").problem(X)
    assert_allclose(problem.loss(Y + shift), problem.loss(Y))
    assert_allclose(problem.gradient(Y + shift), problem.gradient(Y), atol=1e-12)
    problem = method_in("TSNE", plane, engine="reference").problem(X)
    loss = problem.loss(plane.map(U))
    assert_allclose(problem.loss(plane.map(plane.translated(U, [1.0, 2.0]))), loss)
    assert_allclose(problem.loss(plane.map(U @ np.array([[0.6, 0.8], [-0.8, 0.6]]))), loss)


@pytest.mark.parametrize("geometry", ["sphere", "torus", "hyperbolic"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_fits_every_geometry(name, geometry):
    method = method_in(name, geometry, n_iter=30).fit(X)
    resolved = method.geometry_
    Y = method.embedding_
    assert np.isfinite(Y).all() and method.loss_ < method.loss_curve_[0, 1]
    assert Y.shape == (60, 3 if geometry == "sphere" else 2) == (60, method.n_columns)
    if geometry == "sphere":
        assert_allclose(np.linalg.norm(Y, axis=1), resolved.radius, rtol=1e-5)
    elif geometry == "torus":
        assert (Y >= 0).all() and (resolved.period > Y).all()
    else:
        assert (np.linalg.norm(Y, axis=1) < 1).all()
    assert clone(method).geometry == geometry


@pytest.mark.parametrize("geometry", ["torus", "hyperbolic"])
@pytest.mark.parametrize("name", ["TSNE", "GSNE", "UMAP"])
def test_mesh_and_direct_sums_lead_to_the_same_loss(name, geometry):
    data = unequal_digits(1200)
    losses = [method_in(name, geometry, engine=e, n_iter=60).fit(data[:, :]).loss_ for e in ("grid", "exact")]
    assert_allclose(*losses, rtol=0.15)  # engine="exact" also has the affinities of all pairs


@pytest.mark.parametrize("geometry", ["sphere", "torus", "hyperbolic"])
def test_maps_are_good_and_do_not_depend_on_threads(geometry):
    data, labels = unequal_digits(600), eq_labels(600)
    method, again = (
        method_in("TSNE", geometry, engine="grid", n_iter=200).set_params(n_jobs=n).fit(data) for n in (1, 2)
    )
    assert_array_equal(method.embedding_, again.embedding_)
    assert method.loss_ < {"sphere": 0.6, "torus": 0.65, "hyperbolic": 0.6}[geometry]
    D = method.geometry_.distance(method.embedding_[:, None], method.embedding_[None])
    np.fill_diagonal(D, np.inf)
    assert (labels[D.argmin(axis=1)] == labels).mean() > 0.9
    new = method.transform(data[:40] + 0.2)
    assert np.median(method.geometry_.distance(new, method.embedding_[:40])) < 1.5


def eq_labels(n):
    from sklearn.datasets import load_digits

    return load_digits().target[:n]


@pytest.mark.parametrize("geometry", ["sphere", "torus", "hyperbolic"])
@pytest.mark.parametrize("engine", ["exact", "grid"])
def test_saved_methods_and_checkpoints(geometry, engine, tmp_path):
    method = method_in("TSNE", geometry, engine=engine, n_iter=20).fit(X)
    eq.save(method, tmp_path / "model.eqz")
    loaded = eq.load(tmp_path / "model.eqz")
    assert loaded.geometry_ == method.geometry_
    assert_array_equal(loaded.transform(X[:5] + 0.1), method.transform(X[:5] + 0.1))

    class Stop(Exception):
        pass

    def stop(iteration, loss, Y):
        if iteration == 10:
            raise Stop

    saves = eq.Checkpoint(tmp_path / "run.ckpt", every=5)
    rule = eq.Momentum(every=5)
    with pytest.raises(Stop):
        method_in("TSNE", geometry, engine=engine, n_iter=20, optimizer=rule, callbacks=[saves, stop]).fit(X)
    resumed = method_in("TSNE", geometry, engine=engine, n_iter=20, optimizer=rule, callbacks=[saves]).fit(X)
    straight = method_in("TSNE", geometry, engine=engine, n_iter=20, optimizer=rule).fit(X)
    assert_array_equal(resumed.embedding_, straight.embedding_)


def test_losses_of_pairs_choose_an_engine_for_the_geometry():
    for geometry, engine in (("torus", "grid"), ("hyperbolic", "grid"), ("sphere", "grid"), (Ellipsoid(), "exact")):
        method = eq.PairEmbedding(geometry=geometry, n_iter=5, random_state=0).fit(unequal_digits(300))
        assert method.engine_ == engine and np.isfinite(method.embedding_).all()
    assert eq.PairEmbedding(3, geometry="sphere", n_iter=5, random_state=0).fit(X).embedding_.shape == (60, 4)


def test_user_defined_geometry_follows_its_surface():
    method = method_in("TSNE", Ellipsoid(), n_iter=30).fit(X)
    assert_allclose(np.linalg.norm(method.embedding_ / Ellipsoid.axes, axis=1), 1, rtol=1e-6)
    assert method.engine_ == "exact" and method.loss_ < method.loss_curve_[0, 1]
    assert method.transform(X[:2] + 0.1).shape == (2, 3)
    with pytest.raises(ValueError, match=r"geometry cannot be saved.*use a geometry of equipoise.geometry"):
        eq.save(method, "never.eqz")


def test_spherical_sne_is_the_unit_sphere(rng):
    with pytest.raises(ValueError, match="SphericalSNE has no geometry='torus'"):
        eq.SphericalSNE(geometry="torus").fit(X)
    common = {"n_iter": 20, "random_state": 0, "engine": "exact", "init": rng.standard_normal((60, 3))}
    same = eq.SymmetricSNE(geometry=Sphere(1.0), kernel=eq.kernels.SphericalExit(0.95, 3), **common).fit(X)
    s_sne = eq.SphericalSNE(**common).fit(X)
    assert_array_equal(same.embedding_, s_sne.embedding_)
    assert isinstance(eq.TSNE(n_iter=1).fit(X).geometry_, Flat)


def test_initial_maps_on_the_sphere(rng):
    """A patch around the pole at the distances of the given coordinates; directions around the whole sphere."""
    Y = 2 * rng.standard_normal((20, 3))
    Y[0] = 0
    patch = Sphere(5.0).start(Y)
    assert_allclose(np.linalg.norm(patch, axis=1), 5.0)
    assert_allclose(5 * np.arccos(patch[:, 2] / 5), np.linalg.norm(Y[:, :2], axis=1), atol=1e-6)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert_allclose(Sphere(5.0).start(torch.tensor(Y)).numpy(), patch)
    around = Directions("auto").resolved(60, 2, 1.0)
    assert isinstance(around, Directions) and around.radius == Sphere("auto").resolved(60, 2, 1.0).radius
    method = method_in("TSNE", "sphere", engine="torch", device="cpu", n_iter=30).fit(X)
    assert method.loss_ < method.loss_curve_[0, 1]
    assert_allclose(np.linalg.norm(method.embedding_, axis=1), method.geometry_.radius, rtol=1e-5)


def test_maps_to_start_from(rng):
    geometry = Hyperbolic(5.0)
    Y0 = geometry.map(rng.standard_normal((60, 2)))
    fitted = method_in("TSNE", geometry, init=Y0, n_iter=0).fit(X)
    U = geometry.work(Y0)
    assert_allclose(
        geometry.distance(fitted.embedding_[:1], fitted.embedding_), geometry.distance(Y0[:1], Y0), rtol=1e-3, atol=1e-4
    )
    assert np.abs(U).max() > 1
    with pytest.raises(ValueError, match=r"init: row .* outside the Poincaré disk"):
        method_in("TSNE", geometry, init=5 * Y0 / np.abs(Y0).max()).fit(X)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (eq.TSNE(geometry="donut"), "unknown geometry 'donut'"),
        (eq.TSNE(3, geometry="hyperbolic"), "is a plane, but n_components=3"),
        (eq.TSNE(geometry="torus", engine="sampled"), "engine='sampled' works in flat space and on the sphere only"),
        (eq.TSNE(geometry="torus", engine="torch"), "engine='torch' works in flat space and on the sphere only"),
        (eq.UMAP(geometry="torus", engine="negative_sampling"), "negative_sampling.*not with geometry='torus'"),
        (eq.TSNE(geometry="torus", g=np.eye(2)), "g needs the plane, but geometry='torus'"),
        (eq.Parametric(eq.TSNE(geometry="torus")), "Parametric trains in flat space and on the sphere"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_combinations_that_do_not_work(method, message):
    with pytest.raises(ValueError, match=message):
        method.fit(X)


def test_evaluated_loss_and_output_names():
    method = method_in("TSNE", "sphere", n_iter=10).fit(X)
    assert list(method.get_feature_names_out()) == ["tsne0", "tsne1", "tsne2"]
    assert eq.TSNE(geometry="sphere", n_components=1, n_iter=5, random_state=0).fit(X).embedding_.shape == (60, 2)
    assert isinstance(KNeighborsClassifier(1).fit(method.embedding_, eq_labels(60)), KNeighborsClassifier)


def test_models_load_in_a_fresh_process(tmp_path):
    for geometry in ("sphere", "torus", "hyperbolic"):
        for engine in ("exact", "grid"):
            eq.save(method_in("TSNE", geometry, engine=engine, n_iter=3).fit(X), tmp_path / f"{geometry}-{engine}.eqz")
    code = (
        "import equipoise as eq, pathlib, sys\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):\n"
        "    print(type(eq.load(path).geometry_).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Hyperbolic", "Hyperbolic", "Sphere", "Sphere", "Torus", "Torus"]
