"""What a word on the command line means to a parameter: a number, a word, an array in a file, an object by its name."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import divergences, kernels, optimize


def number_or_word(text: str) -> Any:
    """Return a number, several between commas, None, the array in an .npy file, or the word as it is."""
    if text.lower() == "none":
        return None
    if text.endswith(".npy"):
        return _array(text)
    if "," in text:
        return [number_or_word(part.strip()) for part in text.split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _array(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise argparse.ArgumentTypeError(f"{path!r} holds no array: {' '.join(str(error).split())}") from None


def whole_number(text: str) -> int:
    """Return a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def whole_number_or_none(text: str) -> int | None:
    """Return a whole number, or None for "none"."""
    return None if text.lower() == "none" else whole_number(text)


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def yes_or_no(text: str) -> bool:
    """Return a truth value."""
    values = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return values[text.lower()]


def _named(module: Any, kind: type) -> dict[str, Any]:
    """Return the concrete classes of one kind in a module, by name."""
    return {
        name: member
        for name, member in vars(module).items()
        if isinstance(member, type) and issubclass(member, kind) and member is not kind and not name.startswith("_")
    }


KERNELS = _named(kernels, kernels.Kernel)
DIVERGENCES = {**_named(divergences, divergences.Divergence), "KL": divergences.KL, "Hellinger": divergences.Hellinger}
OPTIMIZERS = {rule.__name__: rule for rule in (optimize.Momentum, optimize.GradientDescent, optimize.Accelerated)}


def object_of(makers: dict[str, Any]) -> Callable[[str], Any]:
    """Return a reader of objects written as in Python, such as StudentT(dof=0.5) or Gaussian, and of nothing else."""

    def read(text: str) -> Any:
        if text.lower() == "none":
            return None
        hint = f"write one of {', '.join(makers)}, with its arguments if need be, as in 'StudentT(dof=0.5)'"
        try:
            node = ast.parse(text, mode="eval").body
            call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
            positional = [ast.literal_eval(argument) for argument in call.args]
            named = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg is not None}
            make = makers[call.func.id] if isinstance(call.func, ast.Name) else None
        except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError):
            make = None
        if make is None:
            raise argparse.ArgumentTypeError(f"{text!r} is unknown; {hint}")
        try:
            return make(*positional, **named)
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None

    return read


# How the annotation of a parameter is read, and what stands for its value in the help.
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (whole_number, "N"),
    "int | None": (whole_number_or_none, "N"),
    "float": (number, "X"),
    "bool": (yes_or_no, "BOOL"),
    "str": (str, "WORD"),
    "Any": (number_or_word, "VALUE"),
    "Kernel | None": (object_of(KERNELS), "KERNEL"),
    "Divergence | None": (object_of(DIVERGENCES), "DIVERGENCE"),
    "Rule | None": (object_of(OPTIMIZERS), "RULE"),
}
