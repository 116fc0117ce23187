"""Names of parameters: suggestions for unknown ones, and the docstrings that classes inherit."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from .._suggest import did_you_mean
from .other_libraries import differing_names

# Names in other libraries, and ours. Where there are two of ours, the first that the method has is suggested.
FOREIGN: dict[str, tuple[str, ...]] = {
    **differing_names(),
    "dims": ("n_components",),
    "distance": ("metric",),
    "final_momentum": ("optimizer",),
    "initial_momentum": ("optimizer",),
    "initialization": ("init",),
    "lr": ("learning_rate",),
    "max_iterations": ("n_iter",),
    "method": ("engine", "solver"),  # scikit-learn: method="exact"
    "metric_kwds": ("metric",),
    "momentum": ("optimizer",),
    "n_dims": ("n_components",),
    "n_epochs": ("n_iter",),
    "n_neighbors": ("perplexity",),
    "n_threads": ("n_jobs",),
    "negative_gradient_method": ("engine",),
    "neighbors": ("engine",),
    "num_neighbors": ("n_neighbors", "perplexity"),
    "num_threads": ("n_jobs",),
    "perplexity": ("n_neighbors",),
    "repulsion_strength": ("exaggeration",),
    "seed": ("random_state",),
    "theta": ("tol",),
}


@cache
def parameters_of(method: Any) -> tuple[str, ...] | None:
    """Return the names of the parameters of a class, in order; None if its constructor takes any keyword."""
    parameters = [*inspect.signature(method.__init__).parameters.values()][1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters)


def equivalent_parameter(name: str, known: Collection[str]) -> str | None:
    """Return the known parameter that corresponds to one of another library, or None."""
    return next((ours for ours in FOREIGN.get(name, ()) if ours in known), None)


def suggest_parameter(name: str, known: Collection[str], otherwise: str) -> str:
    """Return "use X" for a parameter of another library, "did you mean X?" for a misspelling, else `otherwise`."""
    ours = equivalent_parameter(name, known)
    return f"use {ours}" if ours is not None else did_you_mean(name, known, otherwise)


def check_parameter_names(cls: type, names: Iterable[str]) -> None:
    """Raise TypeError, with a suggestion, if the constructor of a class has no parameter of a name."""
    known = parameters_of(cls)
    for name in names:
        if known is not None and name not in known:
            suggestion = suggest_parameter(name, known, f"its parameters are {', '.join(known)}")
            raise TypeError(f"{cls.__name__} has no parameter {name!r}; {suggestion}")


def inherit_parameters(cls: type) -> None:
    """Append the parameters in the docstring of the parent class to the docstring of a class."""
    parent = cls.__mro__[1]
    title = f"Parameters of every {parent.__name__}"
    if not cls.__doc__ or title in cls.__doc__:
        return
    shared = (parent.__doc__ or "").partition("    Parameters\n")
    cls.__doc__ = f"{cls.__doc__}\n    {title}\n    {'-' * len(title)}{shared[2][14:]}"
