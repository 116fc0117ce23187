"""Parse option values: numbers, words, arrays in files, objects written as in Python."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import divergences, kernels, optimize, pair_losses
from ..affinities import FixedWidth


def number_or_word(text: str) -> Any:
    """Parse a number, "none" or a comma-separated list, or load an .npy file; return any other text unchanged."""
    if text.lower() == "none":
        return None
    if text.endswith(".npy"):
        return _load_array(text)
    if "," in text:
        return [number_or_word(part.strip()) for part in text.split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _load_array(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise argparse.ArgumentTypeError(
            f"cannot read {path!r}: {reason}; the file must contain an array saved by numpy.save"
        ) from None


def integer(text: str) -> int:
    """Parse an integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None


def integer_or_none(text: str) -> int | None:
    """Parse an integer; return None for "none"."""
    return None if text.lower() == "none" else integer(text)


def number(text: str) -> float:
    """Parse a float."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def number_or_none(text: str) -> float | None:
    """Parse a float; return None for "none"."""
    return None if text.lower() == "none" else number(text)


def yes_or_no(text: str) -> bool:
    """Parse a boolean: true, yes, 1, false, no or 0."""
    values = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} is not a boolean; use true or false")
    return values[text.lower()]


def _subclasses(module: Any, kind: type) -> dict[str, Any]:
    """Return the public subclasses of `kind` in a module, by name."""
    return {
        name: member
        for name, member in vars(module).items()
        if isinstance(member, type) and issubclass(member, kind) and member is not kind and not name.startswith("_")
    }


DERIVED = kernels.DerivedKernel  # functions of another kernel, which cannot be written as text
KERNELS = {name: kind for name, kind in _subclasses(kernels, kernels.Kernel).items() if not issubclass(kind, DERIVED)}
DIVERGENCES = {
    **_subclasses(divergences, divergences.Divergence),
    "KL": divergences.KL,
    "Hellinger": divergences.Hellinger,
}
PAIR_LOSSES = _subclasses(pair_losses, pair_losses.PairLoss)
RULES = (optimize.Momentum, optimize.GradientDescent, optimize.Accelerated, optimize.Dynamics)
OPTIMIZERS = {rule.__name__: rule for rule in RULES}


def object_parser(classes: dict[str, Any]) -> Callable[[str], Any]:
    """Return a function that parses an object of one of these classes, written as in Python: StudentT(dof=0.5).

    For the text "none" that function returns None.
    """

    def parse(text: str) -> Any:
        if text.lower() == "none":
            return None
        hint = f"choose from {', '.join(classes)}, with arguments in parentheses if needed"
        try:
            node = ast.parse(text, mode="eval").body
            call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
            positional = [ast.literal_eval(argument) for argument in call.args]
            named = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg is not None}
            cls = classes[call.func.id] if isinstance(call.func, ast.Name) else None
        except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError):
            cls = None
        if cls is None:
            raise argparse.ArgumentTypeError(f"cannot parse {text!r}; {hint}")
        try:
            return cls(*positional, **named)
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(f"{text!r} is invalid: {error}") from None

    return parse


def affinity(text: str) -> Any:
    """Parse the name of an affinity, or an object written as in Python: FixedWidth(2.0) or a kernel."""
    return object_parser({"FixedWidth": FixedWidth, **KERNELS})(text) if "(" in text else text


def data_kernel(text: str) -> Any:
    """Parse the name of a kernel on the data, or a kernel written as in Python: StudentT(dof=0.5)."""
    return object_parser(KERNELS)(text) if "(" in text else text


# The parser of each type of parameter, and the placeholder in the help.
PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (integer, "N"),
    "int | None": (integer_or_none, "N"),
    "float": (number, "X"),
    "float | None": (number_or_none, "X"),
    "DataKernel": (data_kernel, "KERNEL"),
    "bool": (yes_or_no, "BOOL"),
    "str": (str, "WORD"),
    "Any": (number_or_word, "VALUE"),
    "Affinity": (affinity, "AFFINITY"),
    "Kernel | None": (object_parser(KERNELS), "KERNEL"),
    "Divergence | None": (object_parser(DIVERGENCES), "DIVERGENCE"),
    "PairLoss | None": (object_parser(PAIR_LOSSES), "LOSS"),
    "Rule | None": (object_parser(OPTIMIZERS), "RULE"),
}
