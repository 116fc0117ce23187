"""User-defined geometries are checked on random pairs before work starts."""

import numpy as np
import pytest
from support.cases import unequal_digits

import equipoise as eq
from equipoise.geometry import UserGeometry

X = unequal_digits(60)


class Space:
    """The plane, in NumPy."""

    def distance(self, Yi, Yj):
        return np.sqrt(((Yi - Yj) ** 2).sum(-1))

    def direction(self, Yi, Yj):
        return Yi - Yj


class WrongSign(Space):
    def direction(self, Yi, Yj):
        return Yj - Yi


class NotHalf(Space):
    def direction(self, Yi, Yj):
        return 2 * (Yi - Yj)


class Negative(Space):
    def distance(self, Yi, Yj):
        return -super().distance(Yi, Yj)


class NotANumber(Space):
    def distance(self, Yi, Yj):
        return np.nan * super().distance(Yi, Yj)


class Asymmetric(Space):
    def distance(self, Yi, Yj):
        return super().distance(Yi, Yj) * (1 + (Yi[:, 0] > Yj[:, 0]))


class AwayFromItself(Space):
    def distance(self, Yi, Yj):
        return 1 + super().distance(Yi, Yj)


class Constant(Space):
    def distance(self, Yi, Yj):
        return 0 * Yi[:, 0]


class InfiniteDirection(Space):
    def direction(self, Yi, Yj):
        return (Yi - Yj) * np.inf


class InfiniteTangent(Space):
    def tangent(self, Y, F):
        return np.inf * F


class UndefinedAtZero(Space):
    def direction(self, Yi, Yj):
        d = self.distance(Yi, Yj)[:, None]
        return d * (Yi - Yj) / d


class NegativeSquare:
    def squared_distance(self, Yi, Yj):
        return -((Yi - Yj) ** 2).sum(-1)


class NumPyOnTensors:
    def distance(self, Yi, Yj):
        return np.linalg.norm(Yi - Yj, axis=-1)


class TensorsOnNumPy(Space):
    def distance(self, Yi, Yj):
        import torch

        return torch.linalg.norm(Yi - Yj, dim=-1)


class Sphere:
    """Arcs on a sphere of radius 10, whose direction is defined only along the sphere."""

    def columns(self, d):
        return d + 1

    def distance(self, Yi, Yj):
        return 10 * np.arccos(np.clip((Yi * Yj).sum(-1) / 100, -1 + 1e-9, 1 - 1e-9))

    def direction(self, Yi, Yj):
        along = Yj - (Yi * Yj).sum(-1, keepdims=True) / 100 * Yi
        length = np.linalg.norm(along, axis=-1, keepdims=True)
        return -self.distance(Yi, Yj)[:, None] * along / np.maximum(length, 1e-9)

    def retract(self, Y):
        return 10 * Y / np.linalg.norm(Y, axis=1, keepdims=True)


class Torus:
    """A torus of period 20, whose retraction jumps."""

    def distance(self, Yi, Yj):
        return np.sqrt((self.direction(Yi, Yj) ** 2).sum(-1))

    def direction(self, Yi, Yj):
        return (Yi - Yj + 10) % 20 - 10

    def retract(self, Y):
        return Y % 20


class Tensor:
    """The plane, in PyTorch, kept from 0."""

    def distance(self, Yi, Yj):
        return (((Yi - Yj) ** 2).sum(-1) + 1e-12).sqrt()


@pytest.mark.parametrize("user", [Space(), Sphere(), Torus()], ids=lambda user: type(user).__name__)
@pytest.mark.parametrize("length", [1e-3, 1.0, 50.0])
def test_consistent_geometries_pass(user, length):
    UserGeometry(user).check(2, length)


def test_differentiated_geometries_pass():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    UserGeometry(Tensor()).check(2, 1.0)


PAIR = r"for Yi = \[.*\] and Yj = \[.*\]"


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (WrongSign(), f"WrongSign is not half the derivative .* {PAIR} the squared distance changes by .* or omit it"),
        (NotHalf(), f"NotHalf is not half the derivative of the squared distance by Yi: {PAIR}"),
        (
            Negative(),
            rf"in the geometry Negative, distance\(Yi, Yj\) is -.* {PAIR}; it must be finite and not negative",
        ),
        (NotANumber(), rf"in the geometry NotANumber, distance\(Yi, Yj\) is nan {PAIR}"),
        (
            Asymmetric(),
            rf"Asymmetric, the distance of Yi and Yj is .* and .* in the other order {PAIR}; it must be the same",
        ),
        (
            AwayFromItself(),
            r"in the geometry AwayFromItself, the distance of Y to itself is 1\. for Y = \[.*; it must be 0",
        ),
        (Constant(), "in the geometry Constant, distance is 0 for 8 random pairs; it must be positive"),
        (
            InfiniteDirection(),
            rf"in the geometry InfiniteDirection, direction\(Yi, Yj\) is \[.*{PAIR}; it must be finite",
        ),
        (
            InfiniteTangent(),
            r"tangent\(Y, F\) of the geometry InfiniteTangent is not finite for a finite force F at the position \[",
        ),
        (
            UndefinedAtZero(),
            r"in the geometry UndefinedAtZero, direction\(Y, Y\) is \[nan, nan\] for Y = .*; it must be 0",
        ),
        (
            TensorsOnNumPy(),
            "distance of the geometry TensorsOnNumPy failed with arrays of type ndarray: with a method direction, both",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_inconsistent_geometries_are_refused_before_work(user, message):
    with pytest.raises(ValueError, match=message):
        eq.TSNE(geometry=user, n_iter=1).fit(X)


@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            NegativeSquare(),
            rf"in the geometry NegativeSquare, squared_distance\(Yi, Yj\) is -.* {PAIR}; it must be finite",
        ),
        (
            NumPyOnTensors(),
            r"NumPyOnTensors failed with arrays of type Tensor: it must compute with PyTorch .*\(RuntimeError: Can",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_distances_without_a_direction_are_refused_before_work(user, message):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(ValueError, match=message):
        eq.TSNE(geometry=user, n_iter=1).fit(X)
