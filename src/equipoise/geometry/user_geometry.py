"""User-defined geometries: an object with a distance, and optionally its derivative, tangent vectors and retraction."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .._optional import import_optional
from .._types import Array
from ..kernels import Kernel
from .flat import Geometry
from .user_checks import PAIRS, check_pairs

METHODS = ("distance", "squared_distance")
NEED = "a geometry without the method direction, which is differentiated,"  # what needs PyTorch


def is_geometry(item: Any) -> bool:
    """Return whether an object defines a distance."""
    return any(callable(getattr(item, name, None)) for name in METHODS)


class UserGeometry(Geometry):
    """A geometry given by an object. All sums run over all pairs, in float64.

    The methods of the object take positions (..., columns) and return arrays:

    - `distance(Yi, Yj)` or `squared_distance(Yi, Yj)`, (...): required, symmetric, in PyTorch functions unless
      `direction` is given. A distance must be differentiable at 0, or only its square is: then give the square.
    - `direction(Yi, Yj)`, (..., columns): v = ½ ∂d²/∂y_i, in NumPy; optional. Without it, PyTorch differentiates d².
    - `tangent(Y, F)`, (n, columns): the force F as a tangent vector, in NumPy; optional, F by default.
    - `retract(Y)`, (n, columns): positions Y after a step, moved back to the space, in NumPy; optional, Y by default.
    - `columns(d)`: the number of columns of a map in d dimensions; optional, d by default.
    - `start(Y)`: the initial map for coordinates Y (n, columns) around 0, in NumPy; optional, retract(Y) by default.

    Parameters
    ----------
    user : object
        The object.
    """

    def __init__(self, user: Any):
        self.user = user

    def __repr__(self) -> str:
        kind: Any = type(self.user)
        return f"UserGeometry({f'{kind.__name__}()' if kind.__repr__ is object.__repr__ else repr(self.user)})"

    @cached_property
    def pairs(self) -> UserPairs:  # type: ignore[override]
        return UserPairs(self.user)

    def check(self, d: int, length: float) -> None:
        """Raise ValueError if distances and directions disagree on some random pairs, or a tangent is not finite."""
        rng = np.random.RandomState(0)
        Y = self.project(self.start(length * rng.standard_normal((2 * PAIRS, self.columns(d)))))
        check_pairs(self, Y)
        finite = np.isfinite(self.tangent(Y, rng.standard_normal(Y.shape))).all(axis=1)
        if not finite.all():
            i = int(finite.argmin())
            raise ValueError(
                f"tangent(Y, F) of the geometry {type(self.user).__name__} is not finite for a finite force F at the"
                f" position {np.array2string(Y[i], precision=4, separator=', ')}; correct tangent"
            )

    def columns(self, d: int) -> int:
        return int(self.user.columns(d)) if hasattr(self.user, "columns") else d

    def start(self, Y: Array) -> Array:
        if hasattr(self.user, "start"):
            return self._checked(self.user.start(Y), Y, "start")
        return self.project(Y)

    def tangent(self, U: Array, F: Array) -> Array:
        return self._checked(self.user.tangent(U, F), F, "tangent") if hasattr(self.user, "tangent") else F

    def project(self, U: Array) -> Array:
        return self._checked(self.user.retract(U), U, "retract") if hasattr(self.user, "retract") else U

    def geodesic(self, y_i: Array, y_j: Array, points: int = 50) -> Array:
        """Return positions (points, columns) along the straight line between two positions, retracted."""
        return self.project(super().geodesic(y_i, y_j, points))

    def _checked(self, result: Any, like: Array, name: str) -> Array:
        result = np.asarray(result)
        if result.shape != like.shape:
            raise ValueError(
                f"{name} of the geometry {type(self.user).__name__} returned an array of shape {result.shape}; it must"
                f" have shape {like.shape}"
            )
        return result


class UserPairs:
    """Pairs of a user-defined geometry, differentiated by PyTorch if the object gives no direction."""

    def __init__(self, user: Any):
        self.user = user
        self.name = "squared_distance" if hasattr(user, "squared_distance") else "distance"

    def raw(self, Yi: Array, Yj: Array) -> Array:
        """Return the distances, or squared distances, (m,) that the object defines, in NumPy."""
        if hasattr(self.user, "direction"):
            return np.asarray(self._called(Yi, Yj))
        torch = import_optional("torch", "gpu", NEED)
        return np.asarray(self._called(torch.tensor(Yi), torch.tensor(Yj)))

    def between(self, Ui: Array, Uj: Array) -> tuple[Array, Array]:
        shape = np.broadcast_shapes(np.shape(Ui), np.shape(Uj))
        Ui, Uj = (np.array(np.broadcast_to(U, shape), dtype=np.float64).reshape(-1, shape[-1]) for U in (Ui, Uj))
        if hasattr(self.user, "direction"):
            d2, v = np.asarray(self._squared(Ui, Uj)), np.asarray(self.user.direction(Ui, Uj))
        else:
            d2, v = self._differentiated(Ui, Uj)
        if d2.shape != (len(Ui),) or v.shape != Ui.shape:
            raise ValueError(
                f"the distances of the geometry {type(self.user).__name__} have shape {d2.shape} for {len(Ui)} pairs;"
                f" they must have shape ({len(Ui)},), and directions {Ui.shape}"
            )
        return d2.reshape(shape[:-1]), v.reshape(shape)

    def native(self) -> None:
        return None

    def radial(self, kernel: Kernel) -> Kernel:
        return kernel

    def _squared(self, Ui: Any, Uj: Any) -> Any:
        result = self._called(Ui, Uj)
        return result if self.name == "squared_distance" else result**2

    def _called(self, Ui: Any, Uj: Any) -> Any:
        """Return the result of the user's function; an error in it is raised again, with a remedy."""
        try:
            return getattr(self.user, self.name)(Ui, Uj)
        except (RuntimeError, TypeError, AttributeError) as error:
            remedy = "it must compute with PyTorch functions, or the geometry must have a method direction(Yi, Yj)"
            if hasattr(self.user, "direction"):
                remedy = "with a method direction, both must compute with NumPy functions"
            raise ValueError(
                f"{self.name} of the geometry {type(self.user).__name__} failed with arrays of type"
                f" {type(Ui).__name__}: {remedy} ({type(error).__name__}: {str(error).partition(chr(10))[0]})"
            ) from error

    def _differentiated(self, Ui: Array, Uj: Array) -> tuple[Array, Array]:
        """Return d² and ½ ∂d²/∂u_i by automatic differentiation.

        Where the derivative of a distance is infinite or undefined, as at coincident points, the direction is 0.
        """
        torch = import_optional("torch", "gpu", NEED)
        first = torch.tensor(Ui, requires_grad=True)
        d2 = self._squared(first, torch.tensor(Uj))
        if not (torch.is_tensor(d2) and d2.requires_grad):
            raise ValueError(
                f"the distance of the geometry {type(self.user).__name__} cannot be differentiated: it must compute"
                " with PyTorch functions, or the geometry must have a method direction(Yi, Yj)"
            )
        (gradient,) = torch.autograd.grad(d2.sum(), first)
        return d2.detach().numpy(), np.nan_to_num(gradient.numpy() / 2, nan=0.0, posinf=0.0, neginf=0.0)
