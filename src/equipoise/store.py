"""Fitted methods as files: parameters, the map, and all that `transform` needs; read back without running anything."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from . import affinities, archive, dissimilarities, divergences, geometry, gram, inputs, kernels, landmarks, optimize
from . import engines as engine_package
from .archive import Refused, Unstorable
from .inputs.sparse_table import _Reduced
from .low_rank import Directions
from .methods import ALL, kernel_neighborhoods, neighborhoods
from .methods.estimator import threads
from .objectives import (
    ConditionalKL,
    CrossEntropy,
    DenseDivergence,
    DoubleKernelLLE,
    DoubleKernelPCA,
    EffectiveCrossEntropy,
    JointDivergence,
)
from .placement import Placement

FORMAT = 1  # of the files; raised when an older reader could not read them
METHODS = {method.__name__: method for method in ALL}

# fmt: off
CLASSES = (  # what a fitted method is made of; nothing else comes out of a file
    # values of parameters
    kernels.Gaussian, kernels.StudentT, kernels.PowerLaw, kernels.RegularizedPowerLaw, kernels.SphericalExit,
    kernels.Squared, kernels.Membership, kernels.NonMembership,
    divergences.Alpha, divergences.ChiSquare,
    optimize.Momentum, optimize.GradientDescent, optimize.Accelerated,
    # the data, and how new rows are compared with it
    inputs.Table, inputs.SparseTable, inputs.Distances, inputs.Affinities, inputs.FromSpace, _Reduced, Directions,
    neighborhoods.Gaussian, neighborhoods.Uniform, neighborhoods.Fuzzy, neighborhoods.Given,
    kernel_neighborhoods.LocallyLinear, kernel_neighborhoods.Radial, kernel_neighborhoods.Bandwidth,
    dissimilarities.Table, dissimilarities.Given, dissimilarities.KnownPairs, dissimilarities.InSpace,
    # the forces on new points
    Placement, geometry.Flat, geometry.Sphere,
    engine_package.Reference, engine_package.Exact, engine_package.Grid, engine_package.Sampled,
    ConditionalKL, CrossEntropy, DenseDivergence, DoubleKernelLLE, DoubleKernelPCA, EffectiveCrossEntropy,
    JointDivergence,
    # closed forms
    gram.Inner, gram.Factor, landmarks.Landmarks,
)
# fmt: on
FUNCTIONS = (affinities.of_rows, affinities.of_total)
LEFT_OUT = {  # what nothing asks for after the fit
    inputs.FromSpace: ("_space",),
    dissimilarities.InSpace: ("space",),
}
NOT_STATE = ("_problem", "_objective")  # of a method: to look inside, in the process that fitted it
REMEDIES = {
    "metric": 'name a metric, or compute the distances and use metric="precomputed"',
    "g": "a function has no place in a file; keep the map, embedding_, itself",
    "h": 'compute the distances under h and use metric="precomputed"',
    "kernel": "use a kernel of equipoise.kernels",
    "divergence": "use a divergence of equipoise.divergences",
    "random_state": "set_params(random_state=0), or any number, changes nothing in a finished map",
    "optimizer": "use Momentum(), GradientDescent() or None",
}


def _name(thing: Any) -> str:
    return f"{thing.__module__.removeprefix('equipoise.')}.{thing.__qualname__}"


_BY_NAME: dict[str, Any] = {_name(thing): thing for thing in (*CLASSES, *FUNCTIONS)}


def save(method: Any, path: str | Path) -> None:
    """Write a fitted method to one file, whole or not at all.

    The file is a zip of .npy arrays and a JSON: no pickle, no code. It holds the parameters, the map, loss, curve,
    affinities, and what `transform` needs, the data included; not the callbacks. What no file without code can hold, a
    function as metric or a kernel of one's own, is refused before anything is written.
    """
    kind = type(method)
    if METHODS.get(kind.__name__) is not kind:
        raise ValueError(f"save takes a method of equipoise, one of {', '.join(METHODS)}; got {kind.__name__}")
    check_is_fitted(method, "embedding_")
    parameters = {**method.get_params(deep=False), "callbacks": ()}
    for name, value in parameters.items():
        _require_storable(name, value)
    state = {name: value for name, value in vars(method).items() if name not in {*parameters, *NOT_STATE}}
    about = {"kind": "method", "format": FORMAT, "equipoise": archive.version(), "method": kind.__name__}
    archive.write(path, about, {"parameters": parameters, "state": state}, _describe)


def load(path: str | Path) -> Any:
    """Return the method that `save` wrote: fitted, and with the same bytes from `transform`.

    Nothing in the file is run, and only classes of equipoise come out of it. A file in a format newer than this
    version reads, one that is damaged, or one that holds anything else raises ValueError.
    """
    kinds: list[Any] = []

    def accept(path: str | Path, about: dict[str, Any]) -> None:
        if about.get("kind") != "method":
            raise Refused(f"{path} holds no method; equipoise.save writes them")
        version = about.get("format")
        if not isinstance(version, int) or version < 1:
            raise ValueError("it does not say its format")
        if version > FORMAT:
            raise Refused(
                f"{path} was written by equipoise {about.get('equipoise')} in format {version}, and this is equipoise"
                f" {archive.version()}, which reads format {FORMAT}: upgrade equipoise"
            )
        if about.get("method") not in METHODS:
            raise Refused(f"{path} holds a method that this version does not know, {about.get('method')!r}")
        kinds.append(METHODS[about["method"]])

    content = archive.read(path, accept, _make)
    try:
        return _method(kinds[0], content["parameters"], content["state"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {' '.join(str(error).split())}") from None


def _method(kind: Any, parameters: dict[str, Any], state: dict[str, Any]) -> Any:
    known = set(kind().get_params(deep=False))
    for name in parameters:
        if name not in known:
            raise ValueError(f"{kind.__name__} has no parameter {name[:80]!r} in this version")
    method = kind(**parameters)
    for name, value in state.items():
        if not (name.startswith("_") ^ name.endswith("_")) or callable(getattr(kind, name, None)):
            raise ValueError(f"a fitted {kind.__name__} has no attribute {name[:80]!r}")
        vars(method)[name] = value
    if not (getattr(method.embedding_, "ndim", 0) == 2 and method.embedding_.shape[1] == method.n_components):
        raise ValueError(f"the file holds no map in {method.n_components} dimensions")
    return method


def _require_storable(name: str, value: Any) -> None:
    try:
        archive.check(value, _describe)
    except Unstorable as error:
        remedy = REMEDIES.get(name, "give a number, a string or an array")
        raise ValueError(f"{name} is a {error}, which a file without code cannot hold; {remedy}") from None


def _describe(thing: Any) -> tuple[str, Any] | None:
    """Return the name and the state of an object of one of the classes; None for any other."""
    if thing in FUNCTIONS:
        return _name(thing), None
    return (_name(type(thing)), _state(thing)) if type(thing) in CLASSES else None


def _state(thing: Any) -> dict[str, Any]:
    kind = type(thing)
    if is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    own = any("__getstate__" in vars(cls) for cls in kind.__mro__[:-1])
    state = thing.__getstate__() if own else vars(thing)
    made_again = archive.cached(kind).union(LEFT_OUT.get(kind, ()))
    return {name: value for name, value in state.items() if name not in made_again}


def _make(name: str, state: Any) -> Any:
    """Return the object of a name and a state; those of a dataclass pass its checks."""
    if name not in _BY_NAME:
        raise ValueError(f"it holds {name[:80]!r}, which this version does not know")
    kind: Any = _BY_NAME[name]
    if kind in FUNCTIONS:
        return kind
    if "n_threads" in state:  # of the machine that fitted; here there may be fewer
        state["n_threads"] = max(1, min(int(state["n_threads"]), threads(None)))
    if is_dataclass(kind):
        return _make_dataclass(kind, state)
    made = kind.__new__(kind)
    if hasattr(kind, "__setstate__"):
        made.__setstate__(state)
    else:
        vars(made).update(state)
    return made


def _make_dataclass(kind: Any, state: dict[str, Any]) -> Any:
    made = kind(**{field.name: state.pop(field.name) for field in fields(kind) if field.init})
    vars(made).update({field.name: state.pop(field.name) for field in fields(kind) if not field.init})
    if state:
        raise ValueError(f"{kind.__name__} has no {', '.join(state)[:80]!r}")
    return made
