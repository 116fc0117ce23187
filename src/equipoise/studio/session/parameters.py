"""Lists the methods of the studio and those of their parameters that can change during a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...affinities.perplexity import resolve_perplexity
from ...inputs.neighbor_graphs import resolve_neighbors
from ...methods import (
    GSNE,
    LLE,
    MDS,
    PCA,
    SNE,
    TSNE,
    UMAP,
    ClassicalEmbedding,
    ClassicalMDS,
    Isomap,
    LaplacianEigenmaps,
    NeighborEmbedding,
    PowerSNE,
    SphericalSNE,
    SymmetricSNE,
)
from ...optimize.dynamics import Dynamics
from ...optimize.rules import Momentum, Rule

Value = float | str
Method = NeighborEmbedding | UMAP | ClassicalEmbedding | MDS


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method. Its slider goes from `low` to `high`, on a logarithmic scale if `log` is True."""

    label: str
    low: float
    high: float
    step: float  # of the base-10 logarithm if `log`
    log: bool = False
    integer: bool = False
    rebuilds: bool = False  # a new value requires new affinities


# The ranges are those of the papers, somewhat extended; chosen.
PARAMETERS = {
    "perplexity": Parameter("perplexity", 2, 500, 0.01, log=True, rebuilds=True),
    "n_neighbors": Parameter("neighbours", 2, 200, 1, integer=True, rebuilds=True),
    "early_exaggeration": Parameter("early exaggeration", 1, 32, 0.01, log=True),
    "exaggeration": Parameter("exaggeration", 0.25, 32, 0.01, log=True),
    "alpha": Parameter("α, order of the divergence", -3, 0.95, 0.05),  # α ≥ 1 needs the affinities of all pairs
    "beta": Parameter("β, exponent of the kernel", 1, 6, 0.05),
    "eta": Parameter("η, unit of the map", 0.01, 10, 0.01, log=True),
    "rho": Parameter("ρ, sharpness of the kernel", 0, 0.99, 0.01),
    "dof": Parameter("ν, degrees of freedom", 0.2, 20, 0.01, log=True),
    "min_dist": Parameter("min_dist", 0, 0.99, 0.01),
    "reg": Parameter("regularisation", 1e-8, 1, 0.01, log=True, rebuilds=True),
    "n_iter": Parameter("maximum number of iterations", 10, 5000, 0.01, log=True, integer=True, rebuilds=True),
    "learning_rate": Parameter("learning rate", 1, 1e6, 0.01, log=True),
}
STEPS = ("early_exaggeration", "exaggeration", "learning_rate")


@dataclass(frozen=True)
class Choice:
    """A method that the user can choose: its title, its class `make`, and the names of its parameters.

    `own` lists the parameters that not all methods have. Methods that iterate also have the parameters in STEPS; the
    others are shown when they are finished.
    """

    title: str
    make: type[Method]
    own: tuple[str, ...]
    iterates: bool = True
    has_metric: bool = True

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters of the method, in their order on the page."""
        if not self.iterates:
            return self.own
        return (self.own[0], *STEPS[:2], *self.own[1:], STEPS[2])


METHODS = {
    "tsne": Choice("t-SNE", TSNE, ("perplexity", "dof")),
    "sne": Choice("SNE", SNE, ("perplexity",)),
    "symmetricsne": Choice("symmetric SNE", SymmetricSNE, ("perplexity",)),
    "powersne": Choice("p-SNE", PowerSNE, ("perplexity", "beta")),
    "gsne": Choice("g-SNE", GSNE, ("perplexity", "alpha", "beta", "eta")),
    "sphericalsne": Choice("s-SNE, on a sphere", SphericalSNE, ("perplexity", "rho")),
    "umap": Choice("UMAP", UMAP, ("n_neighbors", "min_dist")),
    "pca": Choice("PCA", PCA, (), iterates=False, has_metric=False),
    "classicalmds": Choice("classical MDS", ClassicalMDS, (), iterates=False),
    "mds": Choice("MDS", MDS, ("n_iter",), iterates=False),
    "isomap": Choice("Isomap", Isomap, ("n_neighbors",), iterates=False),
    "lle": Choice("LLE", LLE, ("n_neighbors", "reg"), iterates=False),
    "laplacianeigenmaps": Choice("Laplacian eigenmaps", LaplacianEigenmaps, ("n_neighbors",), iterates=False),
}


@dataclass(frozen=True)
class Optimizer:
    """An optimiser that the user can choose: its title, its class, and its arguments as Python code."""

    title: str
    make: type[Any]
    arguments: tuple[tuple[str, float], ...]

    def rule(self) -> Rule:
        """Return the rule with these arguments."""
        return self.make(**dict(self.arguments))

    def code(self, stops: bool) -> str:
        """Return Python code for the rule; if `stops` is False, for a rule that never stops early."""
        given = dict(self.arguments) if stops else {**dict(self.arguments), "min_grad_norm": 0, "min_loss_change": 0}
        return f"eq.{self.make.__name__}({', '.join(f'{name}={value}' for name, value in given.items())})"


OPTIMIZERS = {
    "momentum": Optimizer("momentum and gains", Momentum, ()),
    "dynamics": Optimizer("mass and friction", Dynamics, ()),
    "frictionless": Optimizer("mass, no friction", Dynamics, (("friction", 0),)),
}


def check_value(method: str, name: str, value: Any) -> Value:
    """Return the value of a parameter as int, float or "auto"; raise ValueError if it is not valid."""
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose from {', '.join(METHODS)}")
    if name not in METHODS[method].parameters:
        raise ValueError(f"{method} has no parameter {name!r}; choose from {', '.join(METHODS[method].parameters)}")
    if name == "learning_rate" and value == "auto":
        return "auto"
    parameter = PARAMETERS[name]
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if not parameter.low <= value <= parameter.high:
        raise ValueError(f"{name} must be between {parameter.low:g} and {parameter.high:g}, got {value:g}")
    return int(value) if parameter.integer else float(value)


def defaults(method: str, n: int) -> dict[str, Value]:
    """Return the default values of a method's parameters for n points; the learning rate stays "auto"."""
    estimator: Any = METHODS[method].make()
    values = {name: getattr(estimator, name) for name in METHODS[method].parameters}
    if "perplexity" in values:
        values["perplexity"] = float(resolve_perplexity(values["perplexity"], n)[0])
    if "n_neighbors" in values:
        auto = values["n_neighbors"] == "auto"  # of classical methods
        values["n_neighbors"] = resolve_neighbors("auto", n) if auto else min(values["n_neighbors"], n)
    if "early_exaggeration" in values:
        values["early_exaggeration"] = float(estimator.resolve_early_exaggeration())
    return values
