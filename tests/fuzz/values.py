"""Values of parameters: how they are drawn, and how they are written as JSON.

Numbers, text, None, lists and dictionaries stand for themselves. Anything else is {"$": kind, ...}, which `build` turns
into an object.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import equipoise as eq

SEEDS = (0, 1, 12345, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, -1, 10**30)
EXTREMES = (
    0,
    -1,
    1e-300,
    1e300,
    -1e300,
    5e-324,
    1e-10,
    1e10,
    2**31,
    2**63,
    10**30,
    10**400,
    float("nan"),
    float("inf"),
)
WRONG = (
    None, True, "", "a", "auto", [], [1, 2], {}, {"$": "complex"}, {"$": "object"}, {"$": "fraction"},
    {"$": "tuple", "items": [1, 2]}, {"$": "array", "shape": [2]}, {"$": "array", "shape": []},
    {"$": "array", "shape": [0]}, {"$": "number", "dtype": "float16", "value": 2},
    {"$": "number", "dtype": "int8", "value": 3}, {"$": "number", "dtype": "float32", "value": 1e-40},
    {"$": "number", "dtype": "bool", "value": 1}, {"$": "number", "dtype": "longdouble", "value": 3},
    {"$": "path"}, {"$": "function", "name": "nothing"}, b"b".decode(), {"$": "bytes"},
)  # fmt: skip


def number(rng: np.random.Generator, low: float = 1e-3, high: float = 1e3) -> float:
    """Return a number between the bounds, uniform in its logarithm."""
    return float(f"{10 ** rng.uniform(np.log10(low), np.log10(high)):.3g}")


def extreme(rng: np.random.Generator) -> Any:
    """Return a number of any size and sign, which may be 0, infinite or NaN."""
    if rng.random() < 0.6:
        return EXTREMES[rng.integers(len(EXTREMES))]
    return float(f"{rng.choice([1, 1, 1, -1]) * 10 ** rng.uniform(-300, 300):.3g}")


def wrong(rng: np.random.Generator) -> Any:
    """Return a value of an unusual or wrong type."""
    return WRONG[rng.integers(len(WRONG))]


def choose(rng: np.random.Generator, options: Any) -> Any:
    """Return one of the options, unchanged."""
    return options[int(rng.integers(len(options)))]


# User functions. Each raises nothing by itself except `fails`, whose error belongs to the user.


class NotBuilt(Exception):
    """The input of a case could not be made, so that nothing was called."""


@contextmanager
def building() -> Iterator[None]:
    """Turn any error within the context into NotBuilt: it is an error of the fuzzer or of another library."""
    try:
        yield
    except Exception as error:
        raise NotBuilt(repr(error)) from error


class OwnError(Exception):
    """Raised by a user function; the fuzzer accepts it where it comes out unchanged."""


def _fails(*args: Any, **settings: Any) -> Any:
    raise OwnError("raised by the function of the case")


FUNCTIONS = {
    "nothing": lambda *args: None,
    "nan": lambda *args: float("nan"),
    "negative": lambda *args: -1.0,
    "zero": lambda *args: 0.0,
    "text": lambda *args: "a",
    "cityblock": lambda x, y: float(np.abs(np.asarray(x) - np.asarray(y)).sum()),
    "random": lambda *args: random.random(),
    "array": lambda *args: np.ones(3),
    "identity": lambda X: np.eye(np.shape(X)[1]),
    "each": lambda X: np.broadcast_to(np.eye(np.shape(X)[1]), (len(X), np.shape(X)[1], np.shape(X)[1])),
    "huge": lambda X: 1e300 * np.eye(np.shape(X)[1]),
    "indefinite": lambda X: -np.eye(np.shape(X)[1]),
    "stop": lambda iteration, loss, Y: True,
    "fails": _fails,
}  # fmt: skip


class _OwnKernel(eq.kernels.Kernel):
    """A kernel defined by the user: correct, or wrong in a named way."""

    def __init__(self, mistake: str):
        self.mistake = mistake

    def value(self, d2: Any) -> Any:
        if self.mistake == "scalar":
            return 1.0 if d2 < 1 else 0.5
        if self.mistake == "fails":
            raise OwnError("raised by the kernel of the case")
        wrong_values = {"text": "a", "none": None, "shape": np.ones(3), "nan": d2 * np.nan, "negative": -1 - d2}
        return wrong_values.get(self.mistake, 1 / (1 + d2))

    def log_slope(self, d2: Any) -> Any:
        return 1 / (1 + d2) if self.mistake == "sign" else -1 / (1 + d2)

    def slope(self, d2: Any) -> Any:
        if self.mistake == "no slope":
            raise OwnError("raised by the kernel of the case")
        return -((1 + d2) ** -2.0)


MISTAKES = ("none of these", "scalar", "fails", "text", "none", "shape", "nan", "negative", "sign", "no slope")
KERNELS = {
    "Gaussian": (), "StudentT": ("dof",), "PowerLaw": ("beta", "r0"), "RegularizedPowerLaw": ("beta", "eta"),
    "SphericalExit": ("rho", "dimension"), "Membership": ("a", "b"), "NonMembership": ("a", "b", "epsilon"),
}  # fmt: skip
RULES = {
    "Momentum": ("friction", "gain_up", "gain_down", "turned", "min_gain", "max_step", "min_grad_norm", "every"),
    "GradientDescent": ("min_grad_norm", "min_loss_change", "every"),
    "Accelerated": ("min_grad_norm", "min_loss_change", "every"),
    "Dynamics": ("mass", "friction", "time_step", "min_grad_norm", "min_loss_change", "every"),
}


def named_object(rng: np.random.Generator, module: str, classes: dict[str, tuple[str, ...]]) -> Any:
    """Return the description of an object of one of the classes; up to two of its arguments are set."""
    name = choose(rng, list(classes))
    names = [argument for argument in classes[name] if rng.random() < 2 / len(classes[name])]
    arguments = {a: number(rng) if rng.random() < 0.6 else extreme(rng) for a in names}
    return {"$": "public", "module": module, "class": name, "arguments": arguments}


def kernel(rng: np.random.Generator) -> Any:
    """Return the description of a kernel, ours or the user's."""
    if rng.random() < 0.3:
        return {"$": "own kernel", "mistake": choose(rng, MISTAKES)}
    return named_object(rng, "kernels", KERNELS)


def build(value: Any) -> Any:
    """Return the object that a JSON value describes."""
    if isinstance(value, list):
        return [build(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {name: build(item) for name, item in value.items()}
    return _BUILDERS[value["$"]](value)


def _public(value: dict[str, Any]) -> Any:
    module = getattr(eq, value["module"]) if value.get("module") else eq
    return getattr(module, value["class"])(**build(value.get("arguments", {})))


def _estimator(value: dict[str, Any]) -> Any:
    return getattr(eq, value["method"])(**build(value["parameters"]))


def _random_array(value: dict[str, Any]) -> Any:
    return value.get("scale", 1.0) * np.random.default_rng(value.get("seed", 0)).normal(size=value["shape"])


_BUILDERS = {
    "tuple": lambda value: tuple(build(value["items"])),
    "complex": lambda value: 1 + 2j,
    "object": lambda value: object(),
    "fraction": lambda value: Fraction(5, 2),
    "array": _random_array,
    "number": lambda value: np.dtype(value["dtype"]).type(value["value"]),
    "random state": lambda value: np.random.RandomState(0),
    "generator": lambda value: np.random.default_rng(0),
    "path": lambda value: Path("nowhere"),
    "bytes": lambda value: b"a",
    "function": lambda value: FUNCTIONS[value["name"]],
    "own kernel": lambda value: _OwnKernel(value["mistake"]),
    "public": _public,
    "estimator": _estimator,
}
