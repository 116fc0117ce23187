"""Equations (H1) to (H16) of docs/math.md, section 21, written out in float64, agree with the code."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.cases import differences, relative_error

from equipoise import _core
from equipoise.engines.mesh import polar_mesh
from equipoise.engines.mesh.plan import Source, split
from equipoise.engines.mesh.polar_mesh import (
    MARGIN,
    PolarPlan,
    PolarSource,
    PolarTransform,
    polar_near_table,
)
from equipoise.engines.mesh.torus_mesh import TorusPlan, TorusTransform
from equipoise.geometry import Hyperbolic, HyperbolicPairs, Sphere, Torus, TorusPairs
from equipoise.kernels import StudentT

R = 1.7
PLANE = Hyperbolic(R)
KERNEL = StudentT()


@pytest.fixture
def points(rng):
    return 2 * rng.standard_normal((2, 40, 2))


def polar(u):
    """Return r, e and e^⊥ of u = R r e."""
    r = np.linalg.norm(u, axis=-1, keepdims=True)
    e = u / r
    return r / R, e, np.stack([-e[..., 1], e[..., 0]], axis=-1)


def dot(a, b):
    return (a * b).sum(axis=-1, keepdims=True)


def lorentz(a, b):
    return -a[..., 0] * b[..., 0] + (a[..., 1:] * b[..., 1:]).sum(axis=-1)


def lift(u):
    """Return the point of u on the hyperboloid."""
    r, e, _ = polar(u)
    return np.hstack([np.cosh(r), np.sinh(r) * e])


def lift_vector(u, a):
    """Return the vector a of the orthonormal frame at u on the hyperboloid."""
    r, e, _ = polar(u)
    return np.hstack([np.sinh(r) * dot(a, e), a + (np.cosh(r) - 1) * dot(a, e) * e]) / R


def lower(X, W):
    """Return u and the vector of the frame."""
    s = np.linalg.norm(X[:, 1:], axis=1, keepdims=True)
    e = X[:, 1:] / s
    return R * np.arcsinh(s) * e, R * (W[:, 1:] - (1 - 1 / X[:, :1]) * dot(W[:, 1:], e) * e)


def test_h1_torus(rng):
    L = np.array([7.0, 5.0])
    u, w = rng.uniform(-20, 20, (2, 60, 2))
    d2, v = TorusPairs((7.0, 5.0)).between(u, w)
    images = np.array([[i, j] for i in range(-9, 10) for j in range(-9, 10)]) * L
    nearest = ((u - w)[:, None] + images)[np.arange(60), (((u - w)[:, None] + images) ** 2).sum(axis=2).argmin(axis=1)]
    assert_allclose(v, nearest, atol=1e-12)
    assert_allclose(d2, (nearest**2).sum(axis=1))
    assert_allclose(Torus((7.0, 5.0)).wrap(u), u % L, atol=1e-12)


def test_h2_law_of_cosines(points):
    (a, e, _), (b, f, _) = map(polar, points)
    t = np.arctan2(e[:, 1], e[:, 0]) - np.arctan2(f[:, 1], f[:, 0])
    a, b = a[:, 0], b[:, 0]
    s = np.sinh((a - b) / 2) ** 2 + np.sinh(a) * np.sinh(b) * np.sin(t / 2) ** 2
    d2 = PLANE.pairs.between(*points)[0]
    assert_allclose(d2, (2 * R * np.arcsinh(np.sqrt(s))) ** 2)
    assert_allclose(np.cosh(np.sqrt(d2) / R), np.cosh(a) * np.cosh(b) - np.sinh(a) * np.sinh(b) * np.cos(t))
    Y = PLANE.map(points[0])
    assert_allclose(2 * R * np.arctanh(np.linalg.norm(Y, axis=1)), np.linalg.norm(points[0], axis=1))
    near = points[0] * (1 + 1e-9)  # no cancellation
    assert_allclose(np.sqrt(PLANE.pairs.between(points[0], near)[0]), 1e-9 * R * a, rtol=1e-6)


def test_h3_direction(points):
    (a, e, across), (b, f, _) = map(polar, points)
    t = (np.arctan2(e[:, 1], e[:, 0]) - np.arctan2(f[:, 1], f[:, 0]))[:, None]
    d2, v = PLANE.pairs.between(*points)
    d = np.sqrt(d2)[:, None] / R
    along = np.sinh(a - b) / 2 + np.cosh(a) * np.sinh(b) * np.sin(t / 2) ** 2
    turn = np.sinh(a) / a * np.sinh(b) * np.sin(t) / 2
    assert_allclose(v, 2 * R * d / np.sinh(d) * (along * e + turn * across))
    slope = PLANE.pairs.radial(KERNEL).slope(4 * R**2 * np.sinh(d / 2) ** 2)
    assert_allclose(slope, KERNEL.slope(R**2 * d**2) * d / np.sinh(d))


def test_h4_force_in_an_orthonormal_frame(points):
    u, F = points
    r, e, across = polar(u)
    assert_allclose(PLANE.tangent(u, F), dot(F, e) * e + r / np.sinh(r) * dot(F, across) * across)


def test_h5_steps_on_the_hyperboloid(points, rng):
    u, w = points
    a = 0.2 * rng.standard_normal(u.shape)
    a /= np.maximum(1, np.linalg.norm(a, axis=1, keepdims=True) / (R / 2))
    D = np.linalg.norm(a, axis=1, keepdims=True) / R
    X, A = lift(u), lift_vector(u, a)
    assert_allclose(lorentz(X, X), -1)
    assert_allclose(lorentz(X, A), 0, atol=1e-9)
    assert_allclose(lorentz(A, A), D[:, 0] ** 2)
    moved = np.cosh(D) * X + np.sinh(D) / D * A
    W = lift_vector(u, w) + dot(w, a) / (R * D) ** 2 * ((np.cosh(D) - 1) * A + D * np.sinh(D) * X)
    assert_allclose(lorentz(moved, W), 0, atol=1e-8)
    assert_allclose(PLANE.move(u, a, w, centred=False), lower(moved, W), atol=1e-9)
    long = np.tile([[3 * R, 0.0]], (len(u), 1))  # shortened to R/2, with the velocity
    assert_allclose(PLANE.move(u, long, w, centred=False), PLANE.move(u, long / 6, w / 6, centred=False))


def test_h6_centring(points):
    u, w = points[0] + 1.0, points[1]
    r = polar(u)[0]
    c = (u.mean(axis=0) / ((1 + r / np.tanh(r)) / 2).mean())[None]
    C = lift(c)

    def boost(V):
        inner = dot(C[:, 1:], V[:, 1:])
        return np.hstack([C[:, :1] * V[:, :1] - inner, V[:, 1:] + (inner / (1 + C[:, :1]) - V[:, :1]) * C[:, 1:]])

    assert_allclose(boost(C), [[1, 0, 0]], atol=1e-12)
    found = PLANE.move(u, 0 * u, w, centred=True)
    assert_allclose(found, lower(boost(lift(u)), boost(lift_vector(u, w))), atol=1e-9)
    assert_allclose(PLANE.retract(u), found[0], atol=1e-12)

    def spread(c):  # ½ Σ d² to a point c
        return PLANE.pairs.between(c, u)[0].sum() / 2

    gradient = differences(spread, np.full((1, 2), 1e-12))
    assert relative_error(gradient[0], -u.sum(axis=0)) < 1e-6


def test_h7_gradient_in_the_disk(points):
    u, F = points
    Y = PLANE.map(u)
    _, e, across = polar(u)
    y = np.linalg.norm(Y, axis=1, keepdims=True)
    stated = 2 * R / (1 - y**2) * dot(F, e) * e + 2 * R * np.arctanh(y) / y * dot(F, across) * across
    assert_allclose(PLANE.pull_back(Y, F), stated)
    numerical = differences(lambda Y: float((F * PLANE.work(Y)).sum()), Y, 1e-7)
    assert relative_error(stated, numerical) < 1e-6


def test_h8_sphere(rng):
    sphere, Y, F = Sphere(R), rng.standard_normal((20, 3)), rng.standard_normal((20, 3))
    u = R * Y / np.linalg.norm(Y, axis=1, keepdims=True)
    tangent = F - dot(F, u) / R**2 * u
    assert_allclose(sphere.work(Y), u)
    assert_allclose(sphere.tangent(u, F), tangent)
    assert_allclose(sphere.pull_back(Y, F), R / np.linalg.norm(Y, axis=1, keepdims=True) * tangent)
    numerical = differences(lambda Y: float((F * sphere.work(Y)).sum()), Y)
    assert relative_error(sphere.pull_back(Y, F), numerical) < 1e-6
    step = sphere.tangent(u, rng.standard_normal((20, 3)))
    end, velocity = sphere.move(u, step, F, centred=True)
    assert_allclose(end, R * (u + step) / np.linalg.norm(u + step, axis=1, keepdims=True))
    assert_allclose(dot(end, velocity), 0, atol=1e-12)
    gamma = np.arccos(np.clip(dot(u[1:], u[:-1])[:, 0] / R**2, -1, 1))
    assert_allclose(sphere.distance(Y[1:], Y[:-1]), 2 * R * np.sin(gamma / 2))


def test_h9_sizes():
    n, length = 5000, 1.3
    L = 15 * n**0.25 * length
    assert_allclose(Torus().resolved(n, 2, length).period, (L, L))
    assert_allclose(4 * np.pi * Sphere("auto").resolved(n, 2, length).radius ** 2, L**2)
    assert_allclose(2 * np.pi * Hyperbolic().resolved(n, 2, length).radius ** 2 * (np.cosh(3) - 1), L**2)


@pytest.mark.parametrize("radius", [0.0, 2.0])
def test_h10_periodic_mesh(radius, rng):
    L, size = np.array([9.0, 6.0]), (30, 24)
    transform = TorusTransform(KERNEL, TorusPlan(0.3, size, radius, np.float64, tuple(L)))
    lags = [np.minimum(np.arange(N), N - np.arange(N)) * side / N for N, side in zip(size, L, strict=True)]
    d2 = lags[0][:, None] ** 2 + lags[1] ** 2
    smooth = KERNEL.value(d2) - (split(KERNEL, radius).near(d2) if radius else 0.0)
    b = [(66 + 52 * np.cos(w) + 2 * np.cos(2 * w)) / 120 for w in (2 * np.pi * np.arange(N) / N for N in size)]
    stated = np.fft.fft2(smooth) / (b[0][:, None] ** 2 * b[1] ** 2)
    found = transform.frequencies.copy()
    found[0, 0] += transform.shift * d2.size  # the constant is kept apart
    assert_allclose(found, stated.real[:, : size[1] // 2 + 1], atol=1e-9 * np.abs(stated).max())
    nodes = rng.integers(0, size, (40, 2)) * L / size
    charges = rng.uniform(size=(40, 1))
    potential = transform.solve(Source(nodes, charges), 1)(nodes)[0]
    between = TorusPairs(tuple(L)).between(nodes[:, None], nodes)[0]
    # exact at nodes; the table of the near field is float32
    assert_allclose(potential, KERNEL.value(between) @ charges, rtol=1e-5 if radius else 1e-9)


def polar_transform(h, rings, angles, reach=0.0, levels=0):
    return PolarTransform(KERNEL, PolarPlan(h, rings, levels, angles, reach, np.float64), R)


def test_h11_polar_mesh(rng):
    h, rings, angles = 0.4, 2 * MARGIN + 9, 64
    transform = polar_transform(h, rings, angles)
    r, t = (np.arange(rings) - MARGIN) * h / R, 2 * np.pi * np.arange(angles) / angles
    s = np.sinh((r[:, None] - r) / 2)[..., None] ** 2
    s = s + np.outer(np.sinh(r), np.sinh(r))[..., None] * np.sin(t / 2) ** 2
    k = KERNEL.value((2 * R * np.arcsinh(np.sqrt(np.maximum(s, 0)))) ** 2) - transform.shift
    A = polar_mesh.collocation(rings)
    ((first, start, K),) = transform.groups
    assert (first, start, len(K)) == (0, 0, angles // 2 + 1)
    for m in (0, 1, 7, angles // 2):
        w = 2 * np.pi * m / angles
        K_m = (k * np.cos(m * t)).sum(axis=2)
        b = (66 + 52 * np.cos(w) + 2 * np.cos(2 * w)) / 120
        stated = np.linalg.solve(A, np.linalg.solve(A, K_m).T).T / b**2
        assert_allclose(K[m], stated, atol=1e-9 * np.abs(stated).max())
    ring, angle = rng.integers(1, 9, 50) * h, t[rng.integers(0, angles, 50)]
    nodes, charges = np.stack([ring * np.cos(angle), ring * np.sin(angle)], axis=1), rng.uniform(size=(50, 1))
    potential = transform.solve(PolarSource(nodes, charges, R), 1)(nodes)[0]
    exact = KERNEL.value(HyperbolicPairs(R).between(nodes[:, None], nodes)[0]) @ charges
    assert_allclose(potential, exact, rtol=1e-6)


def test_h11_levels_keep_the_frequencies_that_a_ring_has():
    h, rings, angles, levels = 0.2, 2 * MARGIN + 30, 4096, 5
    transform = polar_transform(h, rings, angles, levels=levels)
    r = np.abs(np.arange(rings) - MARGIN) * h
    M = 1.25 * np.pi / h * R * np.sinh((r + h) / R) + 8
    kept = np.zeros(rings)
    for first, start, K in transform.groups:
        used = np.flatnonzero(np.abs(K).max(axis=(0, 1)) > 0) + start if len(K) else []
        kept[used] = np.maximum(kept[used], first + len(K) - 1)
    assert (kept >= np.minimum(M, angles / 2)).all()
    entries = sum(K.size for *_, K in transform.groups)
    assert entries < 0.5 * (angles // 2 + 1) * rings**2


@pytest.mark.parametrize("span", [1.0, 29.0, 1500.0, 9e4])
def test_h11_levels_of_the_rings(monkeypatch, span):
    h, found = 0.5, []

    def block(self, r, own, start, angles, n_threads):
        found.extend((abs(radius), angles) for radius in own)
        return np.zeros((len(own), len(r) - start, 0))

    monkeypatch.setattr(PolarTransform, "_block", block)
    monkeypatch.setattr(PolarTransform, "_group", lambda *_: None)
    rings, levels, N = polar_mesh._mesh_size(h, span, R * np.arcsinh(span / R))
    polar_transform(h, rings, N, levels=levels)
    N_0 = max(int(np.ceil(2 * np.pi * span / h)), 24)
    assert N_0 <= N and len(found) == rings
    for r, angles in found:
        M = 1.25 * np.pi / h * R * np.sinh((r + h) / R) + 8
        possible = [q for q in range(13) if N / 2 ** (q + 1) >= M and q <= np.log2(N_0 / 24)]
        assert angles == N >> max(possible, default=0)


def test_h12_near_pairs(rng):
    reach, n = 0.8, 600
    Y = rng.standard_normal((n, 2)) * 2
    Y[0] = 0
    r, t = np.hypot(*Y.T), np.arctan2(Y[:, 1], Y[:, 0])
    d2, v = HyperbolicPairs(R).between(Y[:, None], Y)
    i, j = np.nonzero((d2 < reach**2) & ~np.eye(n, dtype=bool))
    ring = reach / 2
    p, q = r[i] // ring, r[j] // ring
    assert (np.abs(p - q) <= 2).all()
    between = np.maximum(np.abs(p - q) - 1, 0) * ring
    bound = np.sinh(reach / (2 * R)) ** 2 - np.sinh(between / (2 * R)) ** 2
    sines = np.sinh(p * ring / R) * np.sinh(q * ring / R)
    assert (np.sin((t[i] - t[j]) / 2) ** 2 * sines <= bound * (1 + 1e-12)).all()
    table = polar_near_table(KERNEL, reach, HyperbolicPairs(R))
    potential, half = np.zeros((n, 1)), np.zeros((n, 1, 2))
    points, ones = Y.astype(np.float32), np.ones((n, 1))
    _core.polar_near(HyperbolicPairs(R).native(), *table, reach, points, points, ones, potential, half, 1)
    near = split(KERNEL, reach)
    assert_allclose(potential[:, 0], near.near(d2).sum(axis=1), rtol=1e-4)
    assert relative_error(half[:, 0], (near.near_slope(d2)[..., None] * v).sum(axis=1)) < 1e-4


@pytest.mark.parametrize("size", [30.0, 300.0])
def test_h13_to_h15_flat_limits(size, rng):
    x, y = rng.standard_normal((2, 30, 2))
    flat, cross = ((x - y) ** 2).sum(axis=1), (x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0]) ** 2
    sphere = Sphere(size)
    a, b = (sphere.start(np.column_stack([z, np.zeros(30)])) for z in (x, y))
    chord = ((a - b) ** 2).sum(axis=1)
    assert_allclose(chord, flat - (cross / 3 + flat**2 / 12) / size**2, atol=100 / size**4 + 1e-12 * size**2)
    d2, v = HyperbolicPairs(size).between(x, y)
    assert_allclose(d2, flat + cross / (3 * size**2), atol=100 / size**4 + 1e-13)
    assert_allclose(v, x - y, atol=20 / size**2)
    assert_allclose(Hyperbolic(size).map(x), x / (2 * size), atol=20 / size**3)
    assert np.abs(x - y).max() < size / 2
    assert_allclose(TorusPairs((size, size)).between(x, y)[1], x - y, atol=1e-13 * size)


def test_h16_pairs_in_the_disk(points):
    (r, e, _), (q, f, _) = map(polar, points)
    y, z = np.tanh(r / 2) * e, np.tanh(q / 2) * f
    w, other = 1 / (1 - (y**2).sum(axis=1, keepdims=True)), 1 / (1 - (z**2).sum(axis=1, keepdims=True))
    D = y - z
    x = 4 * R**2 * w * other * (D**2).sum(axis=1, keepdims=True)
    ratio = np.sinh(r) / r
    half = 2 * R * other * (ratio * D + (1 - ratio) * (D * e).sum(axis=1, keepdims=True) * e) + x / (2 * R) * y
    s, gradient = HyperbolicPairs(R).chord(points[0] / R, points[1] / R)
    assert_allclose(x[:, 0], 4 * R**2 * s, rtol=1e-9)
    assert_allclose(half, 2 * R * gradient, rtol=1e-7, atol=1e-9)
