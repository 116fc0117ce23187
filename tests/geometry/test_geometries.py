"""Geometries of maps: distances, directions, steps, isometries and paths against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.cases import differences, relative_error

import equipoise as eq
from equipoise.geometry import (
    Directions,
    Flat,
    Hyperbolic,
    HyperbolicPairs,
    Sphere,
    Torus,
    TorusPairs,
    UserGeometry,
    resolve,
)
from equipoise.geometry.hyperbolic import ChordKernel
from equipoise.kernels import PowerLaw, StudentT

PERIOD = (7.0, 5.0)
GEOMETRIES = [Flat(), Sphere(3.0), Torus(PERIOD), Hyperbolic(2.0)]


def some_map(geometry, rng, n=12):
    """Return n positions of a map in a geometry."""
    if isinstance(geometry, Sphere):
        return geometry.work(rng.standard_normal((n, 3)))
    if isinstance(geometry, Torus):
        return rng.uniform(0, 1, (n, 2)) * PERIOD
    return geometry.map(3 * rng.standard_normal((n, 2)))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: type(g).__name__)
def test_working_coordinates_and_maps_are_inverse(geometry, rng):
    Y = some_map(geometry, rng)
    assert_allclose(geometry.map(geometry.work(Y)), Y, atol=1e-12)
    assert geometry.columns(2) == Y.shape[1]


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: type(g).__name__)
def test_pulled_back_forces_are_the_gradient_in_the_map(geometry, rng):
    Y, target = some_map(geometry, rng), rng.standard_normal((12, 3 if isinstance(geometry, Sphere) else 2))

    def energy(Y):
        return float(((geometry.work(Y) - target) ** 2).sum() / 2)

    F = geometry.work(Y) - target
    assert relative_error(geometry.pull_back(Y, F), differences(energy, Y)) < 1e-6


@pytest.mark.parametrize("pairs", [TorusPairs(PERIOD), HyperbolicPairs(0.5), HyperbolicPairs(3.0)])
def test_direction_is_half_the_derivative_of_the_squared_distance(pairs, rng):
    U, V = rng.standard_normal((2, 20, 2))

    def d2(U):
        return float(pairs.between(U, V)[0].sum())

    assert relative_error(2 * pairs.between(U, V)[1], differences(d2, U)) < 1e-8
    assert_allclose(pairs.between(U, V)[0], pairs.between(V, U)[0])
    assert not pairs.between(U, U)[0].any() and not pairs.between(U, U)[1].any()
    assert not pairs.between(np.zeros(2), np.zeros(2))[1].any()


def test_distances_of_the_hyperbolic_plane_agree_with_the_poincare_disk(rng):
    geometry = Hyperbolic(2.5)
    A, B = (geometry.map(4 * rng.standard_normal((30, 2))) for _ in range(2))
    ratio = ((A - B) ** 2).sum(axis=1) / ((1 - (A**2).sum(axis=1)) * (1 - (B**2).sum(axis=1)))
    assert_allclose(geometry.distance(A, B), 2.5 * np.arccosh(1 + 2 * ratio), rtol=1e-9)


def test_distances_of_the_torus_are_those_to_the_nearest_image(rng):
    A, B = (rng.uniform(0, 1, (30, 2)) * PERIOD for _ in range(2))
    images = [np.array([i, j]) * PERIOD for i in (-1, 0, 1) for j in (-1, 0, 1)]
    nearest = np.min([np.linalg.norm(A - B + image, axis=1) for image in images], axis=0)
    assert_allclose(Torus(PERIOD).distance(A, B), nearest)


def test_distances_of_the_sphere_are_chords():
    assert_allclose(Sphere(2.0).distance([[2.0, 0, 0]], [[0, 5.0, 0]]), [2 * np.sqrt(2)])


def test_isometries_keep_distances(rng):
    torus, plane = Torus(PERIOD), Hyperbolic(2.0)
    Y, U = some_map(torus, rng), 3 * rng.standard_normal((12, 2))
    moved = torus.wrap(Y + rng.standard_normal(2) * 9)
    assert_allclose(torus.distance(moved[:, None], moved[None]), torus.distance(Y[:, None], Y[None]), atol=1e-9)
    assert ((moved >= 0) & (moved < PERIOD)).all()
    c = np.array([2.0, -1.0])
    between = plane.pairs.between(U[:, None], U[None])[0]
    for V in (plane.translated(U, c), plane.retract(U), U @ np.array([[0.6, 0.8], [-0.8, 0.6]])):
        assert_allclose(plane.pairs.between(V[:, None], V[None])[0], between, rtol=1e-9, atol=1e-9)
    assert_allclose(plane.translated(c[None], c), 0, atol=1e-12)
    for _ in range(20):
        U = plane.retract(U)
    assert np.abs(U.mean(axis=0)).max() < 1e-9


def test_steps_in_the_hyperbolic_plane_follow_geodesics(rng):
    plane = Hyperbolic(2.0)
    U, step, velocity = 3 * rng.standard_normal((3, 50, 2))
    step /= 20  # steps of more than half a radius are shortened
    end, moved = plane.move(U, step, velocity, centred=False)
    assert_allclose(np.sqrt(plane.pairs.between(end, U)[0]), np.linalg.norm(step, axis=1))
    assert_allclose(np.linalg.norm(moved, axis=1), np.linalg.norm(velocity, axis=1))  # transport keeps lengths
    there, onward = plane.move(U, step, step, centred=False)
    assert_allclose(plane.move(there, -onward, onward, centred=False)[0], U, atol=1e-9)
    assert_allclose(
        plane.move(there, onward, onward, centred=False)[0], plane.move(U, 2 * step, step, centred=False)[0]
    )
    centred, with_it = plane.move(U, step, velocity, centred=True)
    between = plane.pairs.between(end[:, None], end[None])[0]
    assert_allclose(plane.pairs.between(centred[:, None], centred[None])[0], between, rtol=1e-8, atol=1e-8)
    assert_allclose(np.linalg.norm(with_it, axis=1), np.linalg.norm(velocity, axis=1))


def test_tangent_is_the_gradient_of_a_step(rng):
    plane, c = Hyperbolic(2.0), np.array([1.5, 0.5])
    U = 3 * rng.standard_normal((10, 2))

    def energy(step):
        return float(plane.pairs.between(plane.move(U, step, step, centred=False)[0], c)[0].sum())

    force = 2 * plane.pairs.between(U, c)[1]
    assert relative_error(plane.tangent(U, force), differences(energy, np.zeros((10, 2)))) < 1e-8


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: type(g).__name__)
def test_geodesics_have_the_length_of_the_distance(geometry, rng):
    a, b = some_map(geometry, rng, 2)
    path = geometry.geodesic(a, b, 400)
    length = geometry.distance(path[:-1], path[1:]).sum()
    direct = float(geometry.distance(a, b))
    if isinstance(geometry, Sphere):
        direct = 2 * 3.0 * np.arcsin(direct / 6.0)
    assert_allclose([path[0], path[-1]], [a, b], atol=1e-9)
    assert_allclose(length, direct, rtol=1e-4)
    assert_allclose(geometry.geodesic(a, a, 3), [a, a, a], atol=1e-12)


@pytest.mark.parametrize("R", [1e3, 1e5])
def test_large_radii_and_periods_are_flat(R, rng):
    U, V = rng.standard_normal((2, 20, 2))
    flat = ((U - V) ** 2).sum(axis=1)
    for pairs in (HyperbolicPairs(R), TorusPairs((R, R))):
        d2, v = pairs.between(U, V)
        assert_allclose(d2, flat, rtol=50 / R**2 + 1e-14)
        assert_allclose(v, U - V, atol=50 / R**2 + 1e-12)


def test_kernels_of_chords_are_kernels_of_distances():
    pairs, d = HyperbolicPairs(1.5), np.linspace(0.1, 6, 20)
    x = (2 * 1.5 * np.sinh(d / 3.0)) ** 2
    chord = pairs.radial(StudentT(2.0))
    assert isinstance(chord, ChordKernel) and chord.length == StudentT(2.0).length
    assert_allclose(chord.value(x), StudentT(2.0).value(d**2))
    assert_allclose(chord.slope(x), (chord.value(x * (1 + 1e-6)) - chord.value(x * (1 - 1e-6))) / (2e-6 * x), rtol=1e-6)
    assert_allclose(chord.log_slope(x), chord.slope(x) / chord.value(x))
    assert_allclose(np.log(chord.value(x)), chord.log_value(x))
    assert_allclose(pairs.radial(PowerLaw(2.0, 1.0)).kink, 3.0 * np.sinh(1 / 3.0))
    assert TorusPairs(PERIOD).radial(StudentT()) == StudentT()


def test_sizes_are_resolved_for_the_number_of_points():
    side = 15.0 * 10_000**0.25
    assert Torus().resolved(10_000, 2, 1.0).period == (side, side)
    assert Torus(4.0).resolved(10, 3, 1.0).period == (4.0, 4.0, 4.0)
    assert Sphere() == Sphere("auto") and Directions() == Directions("auto")
    assert_allclose(4 * np.pi * Sphere().resolved(10_000, 2, 1.0).radius ** 2, side**2)
    R = Hyperbolic().resolved(10_000, 2, 2.0).radius
    assert_allclose(2 * np.pi * R**2 * (np.cosh(3.0) - 1), (2 * side) ** 2)
    assert Hyperbolic(3.0).resolved(10, 2, 1.0) == Hyperbolic(3.0)


def test_working_coordinates_of_a_torus_keep_digits_in_the_middle():
    """At L/2 = 5,000, float32 has steps of 5e-4, more than the spread of an initial map."""
    torus = Torus((1e4, 1e4))
    U = (1e-4 * np.arange(8.0)).reshape(4, 2).astype(np.float32)
    assert_allclose(torus.project(U), U, rtol=0)
    assert_allclose(torus.work(torus.start(U.astype(np.float64))), U, atol=1e-11)
    far = np.array([[6e3, -6e3]], np.float32)
    assert_allclose(torus.project(far), -4e3 * np.array([[1, -1]]))
    assert_allclose(torus.map(far), [[1e3, 9e3]])
    assert torus.map(far).dtype == np.float32 and (torus.map(np.float32([[-5e3, 5e3]])) == 0).all()


@pytest.mark.parametrize(
    ("geometry", "length", "message"),
    [
        (
            Torus((1e5, 3.0)),
            1.0,
            'period=100000 is too large: float32 .*; use period=80000 or less, or geometry="plane"',
        ),
        (Sphere(1e5), 0.5, "radius=100000 is too large: .* kernel length 0.5 there; use radius=40000 or less"),
        (Hyperbolic(1e11), 1.0, r"radius=1e\+11 is too large: .*; use radius=1e\+10 or less"),
    ],
)
def test_sizes_that_float32_does_not_resolve(geometry, length, message):
    with pytest.raises(ValueError, match=message):
        geometry.check(2, length)


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        (
            Sphere(0.01),
            'radius=0.01 is too small: all distances are at most 0.02, less .*; use radius="auto" or a larger',
        ),
        (Torus((0.5, 0.5)), "period=0.5 is too small: all distances are at most 0.354, less than the kernel length 1"),
    ],
)
def test_spaces_smaller_than_the_kernel_are_warned_about(geometry, message):
    with pytest.warns(UserWarning, match=message):
        geometry.check(2, 1.0)
    geometry.check(2, 0.01)


def test_representations_of_geometries():
    class Named(Ellipse):
        def __repr__(self):
            return "Named(2)"

    assert repr(Flat()) == "Flat()" and repr(Flat([[2.0, 0.5], [0.5, 1.0]])).startswith("Flat(g=[[2. , 0.5],")
    assert repr(UserGeometry(Ellipse())) == "UserGeometry(Ellipse())"
    assert repr(UserGeometry(Named())) == "UserGeometry(Named(2))"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Torus(-1.0), "period must be a positive number"),
        (lambda: Torus((1.0, "auto")), "period must be a positive number, one per axis"),
        (lambda: Torus((1.0, 2.0)).resolved(9, 3, 1.0), r"has 2 entries, but n_components=3"),
        (lambda: Sphere(0), "radius must be a positive number"),
        (lambda: Hyperbolic("big"), "radius must be a positive number"),
        (lambda: Hyperbolic().resolved(9, 3, 1.0), "is a plane, but n_components=3"),
        (lambda: Hyperbolic(1.0).work(np.array([[0.1, 0.2], [1.0, 0.0]])), "row 1 of the map has norm 1, outside"),
        (lambda: resolve("donut"), "unknown geometry 'donut'; choose from 'plane', 'sphere', 'torus', 'hyperbolic'"),
        (lambda: resolve("donut"), r"or pass an object with a method distance\(Yi, Yj\)"),
        (lambda: resolve(Torus), r"use Torus\(\.\.\.\) with parentheses"),
        (lambda: resolve(5), r"or an object with a method distance\(Yi, Yj\), got 5"),
        (lambda: eq.geometry.Cylinder, "has no attribute 'Cylinder'"),
    ],
)
def test_errors_name_the_value(make, message):
    with pytest.raises((ValueError, AttributeError), match=message):
        make()


class Ellipse:
    """The plane with twice the distances along the second axis; PyTorch or NumPy."""

    def squared_distance(self, Yi, Yj):
        return (Yi - Yj)[:, 0] ** 2 + 4 * (Yi - Yj)[:, 1] ** 2


class WithDirection(Ellipse):
    def direction(self, Yi, Yj):
        return (Yi - Yj) * np.array([1.0, 4.0])


@pytest.mark.parametrize("user", [Ellipse(), WithDirection()], ids=lambda u: type(u).__name__)
def test_user_defined_pairs(user, rng):
    A, B = rng.standard_normal((2, 6, 1, 2)), rng.standard_normal((5, 2))
    d2, v = UserGeometry(user).pairs.between(A[0], B)
    assert_allclose(d2, ((A[0] - B) ** 2 * [1, 4]).sum(axis=-1))
    assert_allclose(v, (A[0] - B) * [1, 4])


def test_user_defined_distances_that_cannot_be_used(rng):
    Y = rng.standard_normal((4, 2))

    class InNumPy:
        def distance(self, Yi, Yj):
            return np.ones(len(Yi))

    class Wrong:
        def distance(self, Yi, Yj):
            return Yi - Yj

    with pytest.raises(ValueError, match="InNumPy cannot be differentiated: it must compute with PyTorch"):
        UserGeometry(InNumPy()).pairs.between(Y, Y)
    with pytest.raises(ValueError, match=r"Wrong have shape \(4, 2\) for 4 pairs"):
        UserGeometry(Wrong()).pairs.between(Y, Y)

    class Retracts(Ellipse):
        def retract(self, Y):
            return Y[:, :1]

    with pytest.raises(ValueError, match=r"retract of the geometry Retracts returned an array of shape \(4, 1\)"):
        UserGeometry(Retracts()).project(Y)


def test_points_too_far_from_the_origin_are_refused():
    plane = Hyperbolic(2.0)
    far = np.array([[28.0, 0.0], [-28.0, 0.0]], np.float32)
    plane.move(far, 0 * far, 0 * far, centred=True)
    with pytest.raises(
        FloatingPointError, match=r'extends to 15 times the radius of curvature 2, .*use radius="auto", or a much'
    ):
        plane.move(30 / 28 * far, 0 * far, 0 * far, centred=True)
    far = far.astype(np.float64)
    plane.move(2 * far, 0 * far, 0 * far, centred=True)
    step = np.array([[9.0, 0.0], [0.0, 0.1]])
    end, velocity = plane.move(0 * step, step, step, centred=False)
    assert_allclose(end, velocity)
    assert_allclose(end, [[1.0, 0.0], [0.0, 0.1]])  # at most half a radius


@pytest.mark.parametrize("geometry", [Sphere("auto"), Torus(), Hyperbolic()], ids=lambda g: type(g).__name__)
def test_distances_need_the_size_that_a_fit_chooses(geometry):
    y = np.full(geometry.columns(2), 0.1)
    for function in (geometry.distance, geometry.geodesic):
        with pytest.raises(ValueError, match='="auto" is chosen by fit; use geometry_ of a fitted method, or pass a'):
            function(y, -y)
