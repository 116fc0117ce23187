"""Generates command-line options for the parameters of a method from its estimator class."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from .. import methods
from .geometry_option import FORMS, geometry
from .option_values import PARSERS

METHODS: dict[str, type[Any]] = {method.__name__.lower(): method for method in methods.ALL}
DEFAULT = "tsne"
SHORT = {"n_components": "components", "n_neighbors": "neighbors", "n_iter": "iterations", "random_state": "seed"}
HINTS = {"geometry": f" Here: {FORMS}."}  # what the docstring cannot say about the command line
NO_OPTION = ("callbacks", "verbose")  # not expressible as text, or set by the command line itself
# The type line of a numpydoc entry, as in "n_iter : int or "auto", default="auto"".
TYPE = re.compile(
    r"(int|float|str|bool|array|ndarray|callable|sequence|list|tuple|dict|[A-Z]\w+|\"|\{).*(default|optional)"
)
BRACES = str.maketrans("", "", "{}")
SEED = 0  # default seed: the same command gives the same map


def find_method(words: Sequence[str]) -> str:
    """Return the value of --method without parsing other options; the default if it is missing or unknown."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--method", nargs="?", default=DEFAULT)
    name = parser.parse_known_args([word for word in words if word != "--"])[0].method
    return name if name in METHODS else DEFAULT


def parameters(method: type[Any]) -> list[Field[Any]]:
    """Return the parameters that have a command-line option: a method's own first, those of its base classes last."""

    def depth(field: Field[Any]) -> int:
        return max(i for i, cls in enumerate(method.__mro__) if field.name in vars(cls).get("__annotations__", ()))

    return sorted((field for field in fields(method) if field.name not in NO_OPTION), key=depth)


def option(name: str) -> str:
    """Return the option of a parameter: --n-iter for n_iter."""
    return f"--{name.replace('_', '-')}"


def add_parameters(parser: argparse.ArgumentParser, name: str, *, several: bool) -> None:
    """Add --method and an option for each parameter of the method `name`; if `several`, each accepts several values."""
    parser.add_argument(
        "--method",
        choices=sorted(METHODS),
        metavar="METHOD",
        default=DEFAULT,
        help=f"{', '.join(sorted(METHODS))} (default: {DEFAULT}); add --help to list the parameters of METHOD",
    )
    method = METHODS[name]
    group = parser.add_argument_group(
        f"parameters of {method.__name__}",
        "separate several numbers by commas, as in 10,100; arrays are .npy files",
    )
    texts = parameter_texts(method)
    for field in parameters(method):
        parse, metavar = (geometry, "SPACE") if field.name == "geometry" else PARSERS[str(field.type)]
        names = [option(field.name), *([f"--{SHORT[field.name]}"] if field.name in SHORT else [])]
        group.add_argument(
            *names,
            dest=field.name,
            type=parse,
            nargs="+" if several else None,
            metavar=metavar,
            default=argparse.SUPPRESS,
            help=f"{texts.get(field.name, '')}{HINTS.get(field.name, '')}{_default(field)}".replace("%", "%%"),
        )


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters set on the command line."""
    names = [field.name for field in parameters(METHODS[args.method])]
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def make_method(args: argparse.Namespace, given: dict[str, Any]) -> Any:
    """Return the unfitted method with the parameters `given` on the command line."""
    method = METHODS[args.method](**{"random_state": SEED, **given})
    if hasattr(args, "n_iter") and is_closed_form(method):
        raise ValueError(
            f"{args.method} is computed in closed form, without iterations; omit --n-iter (--iterations), or add"
            " --solver flow"
        )
    method.check_parameters()  # before the data are read, so that errors in the data do not hide these
    return method


def is_closed_form(method: Any) -> bool:
    """Return whether the method is computed without iterations."""
    return isinstance(method, methods.ClassicalEmbedding) and method.solver == "eigen"


def foreign_parameter(words: Sequence[str]) -> str | None:
    """Return the name of the first parameter, of any method, whose option is in `words`; None if there is none."""
    known = {field.name for method in METHODS.values() for field in parameters(method)}
    options = {option(name): name for name in known} | {f"--{short}": name for name, short in SHORT.items()}
    return next((options[word] for word in (word.partition("=")[0] for word in words) if word in options), None)


def _default(field: Field[Any]) -> str:
    default = SEED if field.name == "random_state" else field.default
    return "" if default is None or default is MISSING else f" (default: {default})"


def parameter_texts(method: type[Any]) -> dict[str, str]:
    """Return the description of each parameter from the numpydoc sections of a method's docstring.

    A parameter that is documented twice, by a base class and by the method itself, gets both texts.
    """
    texts: dict[str, list[str]] = {}
    for section in re.split(r"\n(?=[^\n]+\n-{4,}\n)", inspect.getdoc(method) or ""):
        if not section.startswith("Parameters"):
            continue
        for entry in re.split(r"\n(?=\w)", section.partition("-\n")[2]):
            names, _, text = entry.partition(" : ")
            first, _, rest = text.partition("\n")
            if TYPE.match(first):
                choices = re.sub(r", (optional|default=.*)$", "", first)
                is_choice = choices.startswith(("{", '"'))  # other types are in the option's placeholder
                text = f"{choices.translate(BRACES)}. {rest}" if is_choice else rest
            for name in names.split(", "):
                texts.setdefault(name.strip(), []).append(" ".join(text.split()))
    return {name: " ".join(reversed(parts)) for name, parts in texts.items()}
