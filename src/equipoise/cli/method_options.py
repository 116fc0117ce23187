"""The parameters of the methods as options: names, types, defaults and help from the estimators themselves."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from .. import methods
from .option_values import READERS

METHODS: dict[str, type[Any]] = {method.__name__.lower(): method for method in methods.ALL}
DEFAULT = "tsne"
SHORT = {"n_components": "components", "n_neighbors": "neighbors", "n_iter": "iterations", "random_state": "seed"}
UNREADABLE = ("callbacks", "verbose")  # functions; and the command line shows progress itself
SEED = 0  # the same command gives the same map


def method_named_in(words: Sequence[str]) -> str:
    """Return the method that a command line asks for, before the rest of it is understood."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--method", nargs="?", default=DEFAULT)
    name = first.parse_known_args([word for word in words if word != "--"])[0].method
    return name if name in METHODS else DEFAULT


def parameters(method: type[Any]) -> list[Field[Any]]:
    """Return the parameters of a method that a command line can give: its own first, those of every method last."""

    def age(field: Field[Any]) -> int:
        return max(i for i, cls in enumerate(method.__mro__) if field.name in vars(cls).get("__annotations__", ()))

    return sorted((field for field in fields(method) if field.name not in UNREADABLE), key=age)


def option(name: str) -> str:
    """Return the option for a parameter: n_iter is --n-iter."""
    return f"--{name.replace('_', '-')}"


def add_parameters(parser: argparse.ArgumentParser, name: str, *, several: bool) -> None:
    """Add --method, and an option for each parameter of the method `name`; with `several` each takes many values."""
    parser.add_argument(
        "--method",
        choices=sorted(METHODS),
        metavar="METHOD",
        default=DEFAULT,
        help=f"{', '.join(sorted(METHODS))} (default: {DEFAULT}); with --help it lists the parameters of that method",
    )
    method = METHODS[name]
    group = parser.add_argument_group(
        f"parameters of {method.__name__}",
        "several numbers are written 10,100, and an array is the name of an .npy file",
    )
    texts = parameter_texts(method)
    for field in parameters(method):
        read, metavar = READERS[str(field.type)]
        names = [option(field.name), *([f"--{SHORT[field.name]}"] if field.name in SHORT else [])]
        group.add_argument(
            *names,
            dest=field.name,
            type=read,
            nargs="+" if several else None,
            metavar=metavar,
            default=argparse.SUPPRESS,
            help=f"{texts.get(field.name, '')}{_default(field)}".replace("%", "%%"),
        )


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the method that the command line names."""
    names = [field.name for field in parameters(METHODS[args.method])]
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def make_method(args: argparse.Namespace, given: dict[str, Any]) -> Any:
    """Return the unfitted method that the command line asks for."""
    method = METHODS[args.method](**{"random_state": SEED, **given})
    if hasattr(args, "n_iter") and in_closed_form(method):
        raise ValueError(f"{args.method} has no n_iter in closed form; add --solver flow to iterate")
    return method


def in_closed_form(method: Any) -> bool:
    """Return whether there is nothing to iterate."""
    return isinstance(method, methods.ClassicalEmbedding) and method.solver == "eigen"


def foreign_parameter(words: Sequence[str]) -> str | None:
    """Return the first parameter among words that only other methods have."""
    known = {field.name for method in METHODS.values() for field in parameters(method)}
    spelt = {option(name): name for name in known} | {f"--{short}": name for name, short in SHORT.items()}
    return next((spelt[word] for word in (word.partition("=")[0] for word in words) if word in spelt), None)


def _default(field: Field[Any]) -> str:
    default = SEED if field.name == "random_state" else field.default
    return "" if default is None or default is MISSING else f" (default: {default})"


def parameter_texts(method: type[Any]) -> dict[str, str]:
    """Return what the docstring says of each parameter: first what holds for all methods of its kind, then its own."""
    texts: dict[str, list[str]] = {}
    for section in re.split(r"\n(?=[^\n]+\n-{4,}\n)", inspect.getdoc(method) or ""):
        if not section.startswith("Parameters"):
            continue
        for entry in re.split(r"\n(?=\w)", section.partition("-\n")[2]):
            names, _, text = entry.partition(" : ")
            for name in names.split(", "):
                texts.setdefault(name.strip(), []).append(" ".join(text.split()))
    return {name: "; ".join(reversed(found)) for name, found in texts.items()}
