"""Save and load fitted methods: parameters, the map and what `transform` needs; loading executes no code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from sklearn.utils.validation import check_is_fitted

from . import inputs
from ._plural import plural
from ._tags import from_tag, tag_of
from .arrays.namespace import is_device_array, to_numpy
from .methods import ALL, Parametric
from .methods.estimator import threads
from .methods.parametric.layers_as_data import as_data, from_data
from .saving import archive
from .saving.archive import Refused, Unstorable
from .saving.migrate import migrate

FORMAT = 1  # version of the file format; incremented when older versions cannot read new files
METHODS = {method.__name__: method for method in (*ALL, Parametric)}

ON_DEVICE = {  # tags of classes that need PyTorch, and the modules that define them, imported when needed
    "engines.torch.Torch": "engines.torch.engine",
    "inputs.device_table.DeviceTable": "inputs.device_table",
    "device.rows.Rows": "arrays.device_csr",
}
CURVED = {  # tags of classes for curved spaces, and the modules that define them, imported when needed
    "geometry.Sphere": "geometry.sphere",
    "geometry.Directions": "geometry.sphere",
    "geometry.Torus": "geometry.torus",
    "geometry.TorusPairs": "geometry.torus",
    "geometry.Hyperbolic": "geometry.hyperbolic",
    "geometry.HyperbolicPairs": "geometry.hyperbolic",
    "engines.curved.TorusGrid": "engines.mesh.curved_mesh",
    "engines.curved.PolarGrid": "engines.mesh.curved_mesh",
    "engines.curved.CurvedExact": "engines.curved_exact",
}
NOT_STATE = ("_problem", "_objective")  # attributes of a method for inspection only, in the process that fitted it
REMEDIES = {
    "metric": 'name a metric, or compute the distances and use metric="precomputed"',
    "g": "save the map, embedding_, instead",
    "h": 'compute the distances under h and use metric="precomputed"',
    "geometry": "use a geometry of equipoise.geometry",
    "kernel": "use a kernel of equipoise.kernels",
    "affinity": "use affinities.FixedWidth or a kernel of equipoise.kernels",
    "loss": "use a loss of equipoise.pair_losses",
    "divergence": "use a divergence of equipoise.divergences",
    "random_state": "call set_params(random_state=0), which does not change the fitted map",
    "optimizer": "use Momentum(), GradientDescent(), Dynamics() or None",
}


def save(method: Any, path: str | Path) -> None:
    """Save a fitted method to a file, atomically.

    The file is a zip of .npy arrays and a JSON file, without pickle or code. It contains the parameters, the map, the
    loss and its curve, the affinities and what `transform` needs, including the data, but no callbacks. A parameter
    that is code, such as a metric function or a user-defined kernel, raises ValueError before anything is written. A
    map that is a tensor is loaded as a NumPy array. The network of a `Parametric` is stored as layers and weights, if
    it consists of Linear layers and the usual activations; a network with other layers raises ValueError. A method
    fitted on a GPU can be loaded on a machine without a GPU, if PyTorch is installed there.

    Parameters
    ----------
    method : estimator
        A fitted method of equipoise.
    path : str or Path
        File to write; an existing file is replaced.
    """
    kind = type(method)
    if METHODS.get(kind.__name__) is not kind:
        raise ValueError(f"save() supports the methods {', '.join(METHODS)}; got {kind.__name__}")
    check_is_fitted(method, "embedding_")
    parameters = {**method.get_params(deep=False), "callbacks": ()}
    if kind is Parametric:
        parameters |= {"method": _nested(method.method), "encoder": method.encoder and as_data(method.encoder)}
    for name, value in parameters.items():
        _require_storable(name, value)
    state = _without(vars(method), {*parameters, *NOT_STATE})
    if kind is Parametric:
        state["encoder_"] = as_data(method.encoder_)
    about = {"kind": "method", "format": FORMAT, "equipoise": archive.version(), "method": kind.__name__}
    archive.write(path, about, {"parameters": parameters, "state": state}, _describe)


def _nested(method: Any) -> dict[str, Any] | None:
    """Return a method that is a parameter of another one as its name and its own parameters."""
    if method is None:
        return None
    parameters = {**method.get_params(deep=False), "callbacks": ()}
    for name, value in parameters.items():
        _require_storable(name, value)
    if METHODS.get(type(method).__name__) is not type(method):
        raise ValueError(f"the parameter method cannot be saved: {type(method).__name__} is not a method of equipoise")
    return {"class": type(method).__name__, "parameters": parameters}


def load(path: str | Path) -> Any:
    """Load a method written by `save`; its `transform` returns exactly the same values as that of the saved method.

    Nothing in the file is executed, and only classes of equipoise are created. A file of a newer format, a damaged file
    or a file with other content raises ValueError.

    Parameters
    ----------
    path : str or Path
        File to read.

    Returns
    -------
    method : estimator
        The fitted method.
    """
    kinds: list[Any] = []

    def accept(path: str | Path, about: dict[str, Any]) -> None:
        if about.get("kind") != "method":
            raise Refused(f"{path} does not contain a fitted method; use a file written by equipoise.save")
        version = about.get("format")
        if not isinstance(version, int) or version < 1:
            raise ValueError("the file does not specify the version of its format")
        if version > FORMAT:
            raise Refused(
                f"{path} was written by equipoise {about.get('equipoise')} in format {version}, but this is equipoise"
                f" {archive.version()}, which reads format {FORMAT}; upgrade equipoise"
            )
        if about.get("method") not in METHODS:
            raise Refused(
                f"{path} contains a method that this version does not know, {about.get('method')!r}; if a newer"
                " version wrote the file, upgrade equipoise"
            )
        kinds.append(METHODS[about["method"]])

    content = archive.read(path, accept, partial(_make, path))
    try:
        return _method(kinds[0], content["parameters"], content["state"])
    except MemoryError:
        raise
    except Exception as error:  # whatever values of the wrong form lead to
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} is damaged: {reason}; restore it from a copy, or fit and save again") from None


def _method(kind: Any, parameters: dict[str, Any], state: dict[str, Any]) -> Any:
    known = set(kind().get_params(deep=False))
    for name in parameters:
        if name not in known:
            raise ValueError(f"{kind.__name__} has no parameter {name[:80]!r} in this version")
    if kind is Parametric:
        parameters, state = _with_networks(parameters, state)
    method = kind(**parameters)
    for name, value in state.items():
        if not (name.startswith("_") ^ name.endswith("_")) or callable(getattr(kind, name, None)):
            raise ValueError(f"a fitted {kind.__name__} has no attribute {name[:80]!r}")
        vars(method)[name] = value
    _require_known(kind, [name for name in state if name.startswith("_")])  # the user may add public ones
    columns = method.n_columns if hasattr(method, "n_columns") else method.n_components
    if not (getattr(method.embedding_, "ndim", 0) == 2 and method.embedding_.shape[1] == columns):
        raise ValueError(f"the file does not contain a map with {plural(columns, 'column')}")
    return method


def _with_networks(parameters: dict[str, Any], state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the state of a Parametric with its method and its networks built."""
    method, encoder = parameters["method"], parameters["encoder"]
    built = None if method is None else METHODS[method["class"]](**method["parameters"])
    given = None if encoder is None else from_data(encoder)
    return {**parameters, "method": built, "encoder": given}, {**state, "encoder_": from_data(state["encoder_"])}


def _require_known(kind: type, names: Iterable[str]) -> None:
    """Raise ValueError if the code of the class does not mention one of the names: then the file is damaged."""
    unknown = set(names) - _mentioned_names(kind)
    if unknown:
        raise ValueError(f"{kind.__name__} has no attribute {min(unknown)[:80]!r}")


@cache
def _mentioned_names(kind: type) -> set[str]:
    """Return the names of attributes, globals and annotated fields in the code of a class and its bases."""
    names: set[str] = set()
    for base in kind.__mro__[:-1]:
        names.update(vars(base).get("__annotations__", ()))
        for member in vars(base).values():
            function = getattr(member, "fget", None) or getattr(member, "func", None) or member
            todo = [getattr(unwrap(function), "__code__", None)] if callable(function) else []
            while todo:
                code = todo.pop()
                if isinstance(code, CodeType):
                    names.update(code.co_names)
                    todo.extend(code.co_consts)
    return names


def _require_storable(name: str, value: Any) -> None:
    try:
        archive.check(value, _describe)
    except Unstorable as error:
        remedy = REMEDIES.get(name, "use a number, a string or an array")
        raise ValueError(f"the parameter {name} cannot be saved: {error}; {remedy}") from None


def _is_storable(value: Any) -> bool:
    """Return whether a value consists of plain values, arrays and objects of equipoise."""
    try:
        archive.check(value, _describe)
    except Unstorable:
        return False
    return True


def _describe(item: Any) -> tuple[str, Any] | None:
    """Return the tag and the state of an object, or None if it has no tag; the state of a function is None."""
    if isinstance(item, FunctionType):
        tag = tag_of(item)
        return None if tag is None else (tag, None)
    tag = tag_of(type(item))
    return None if tag is None else (tag, _state(item))


def _state(item: Any) -> dict[str, Any]:
    kind = type(item)
    if is_dataclass(item):
        return {field.name: getattr(item, field.name) for field in fields(item)}
    own = any("__getstate__" in vars(cls) for cls in kind.__mro__[:-1])
    state = item.__getstate__() if own else vars(item)
    omitted = archive.cached_names(kind)
    if isinstance(item, inputs.FromSpace) and not _is_storable(item.space):
        omitted.add("space")
    return _without(state, omitted)


def _without(state: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Return `state` without the attributes `names`, and with device arrays converted to NumPy arrays."""
    return {
        name: to_numpy(value) if is_device_array(value) else value for name, value in state.items() if name not in names
    }


def _make(path: str | Path, tag: str, state: Any) -> Any:
    """Return the function registered under a tag, or an object with this state of the class registered under the tag.

    A dataclass is built by its constructor, which validates the fields. `path` is the file to name in error messages.
    """
    tag, state = migrate(tag, state)
    if tag in ON_DEVICE:
        _import_torch_module(path, tag)
    elif tag in CURVED:
        import_module(f".{CURVED[tag]}", __package__)
    kind: Any = from_tag(tag)
    if kind is None:
        raise ValueError(
            f"the file contains {tag[:80]!r}, which this version does not know (upgrade equipoise if a newer version"
            " wrote the file)"
        )
    if isinstance(kind, FunctionType):
        return kind
    if "n_threads" in state:  # this machine may have fewer than the one that fitted
        state["n_threads"] = max(1, min(int(state["n_threads"]), threads(None)))
    if is_dataclass(kind):
        return _make_dataclass(kind, state)
    item = kind.__new__(kind)
    if hasattr(kind, "__setstate__"):
        item.__setstate__(state)
    else:
        vars(item).update(state)
    return item


def _import_torch_module(path: str | Path, tag: str) -> None:
    """Import the module that defines the class with this tag; raise Refused if PyTorch is not installed."""
    if find_spec("torch") is None:
        raise Refused(
            f'{path} contains a method fitted with engine="torch", which needs PyTorch: pip install "equipoise[gpu]"'
        )
    import_module(f".{ON_DEVICE[tag]}", __package__)


def _make_dataclass(kind: Any, state: dict[str, Any]) -> Any:
    item = kind(**{field.name: state.pop(field.name) for field in fields(kind) if field.init})
    vars(item).update({field.name: state.pop(field.name) for field in fields(kind) if not field.init})
    if state:
        raise ValueError(f"{kind.__name__} has no attribute {', '.join(state)[:80]!r}")
    return item
