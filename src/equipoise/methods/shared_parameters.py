"""Checks of the parameters that the estimators share; none needs the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._suggest import described
from ..arrays.namespace import is_auto, is_finite, is_integer, is_positive
from ..engines.choose import check_device_name, check_engine_name
from ..initialize.start import check_init_name
from ..inputs.make import check_metric_name
from ..kernels import Kernel
from ..optimize.dynamics import Dynamics
from ..optimize.rules import Momentum, Rule
from ..saving.checkpoint import Checkpoint


def check_verbose(verbose: Any) -> bool:
    """Return whether to report progress; raise unless `verbose` is a finite number or a bool."""
    if not (is_finite(verbose) or isinstance(verbose, bool | np.bool_)):
        raise ValueError(f"verbose must be an integer, got {verbose!r}")
    return bool(verbose)


def check_n_components(n_components: Any) -> None:
    """Raise unless n_components is a positive integer."""
    if not (is_integer(n_components) and n_components >= 1):
        raise ValueError(f"n_components must be an integer >= 1, got {n_components!r}")


def check_forces(method: Any) -> None:
    """Raise unless the parameters that all methods of attraction and repulsion share are valid."""
    check_n_components(method.n_components)
    check_metric_name(method.metric)
    check_init_name(method.init)
    check_engine_name(method.engine)
    check_device_name(method.device)
    if not is_auto(method.learning_rate) and not is_positive(method.learning_rate):
        raise ValueError(f'learning_rate must be a positive number or "auto", got {method.learning_rate!r}')
    early = method.resolve_early_exaggeration()
    for name, value in (("early_exaggeration", early), ("exaggeration", method.exaggeration)):
        if not is_positive(value):
            raise ValueError(f"{name} must be a positive number, got {value!r}")
    if not isinstance(method.deterministic, bool | np.bool_):
        raise ValueError(f"deterministic must be True or False, got {method.deterministic!r}")
    if not (is_positive(method.tol) and method.tol < 1):
        raise ValueError(f"tol must be a number above 0 and below 1, got {method.tol!r}")


def check_kernel_parameter(kernel: Any) -> Kernel | None:
    """Return the parameter `kernel` of a method; raise ValueError unless it is a hashable kernel or None."""
    if not isinstance(kernel, Kernel | None):
        raise ValueError(f"kernel must be an equipoise.kernels.Kernel or None, got {described(kernel)}")
    if type(kernel).__hash__ is None:
        raise ValueError(f"kernel={kernel!r} is not hashable; declare its class with @dataclass(frozen=True)")
    return kernel


def check_optimizer(optimizer: Any, n_iter: Any) -> Rule:
    """Return the optimiser rule, `Momentum()` for None; raise if it is not a rule, or never ends for n_iter="auto"."""
    if optimizer is None:
        return Momentum()
    if isinstance(optimizer, type) or not hasattr(optimizer, "step"):
        raise ValueError(f"optimizer must be Momentum(), GradientDescent() or Dynamics(), got {described(optimizer)}")
    if is_auto(n_iter) and isinstance(optimizer, Dynamics) and optimizer.conserves_energy:
        raise ValueError(
            'n_iter="auto" needs friction, without which the points never rest; use a number of iterations, or'
            ' Dynamics(friction="auto")'
        )
    return optimizer


def check_callbacks(callbacks: Any, random_state: Any) -> None:
    """Raise unless callbacks is a sequence of functions and checkpoints; checkpoints need an integer random_state."""
    if not (isinstance(callbacks, Sequence) and all(callable(c) or isinstance(c, Checkpoint) for c in callbacks)):
        raise ValueError(
            f"callbacks must be a list of functions of (iteration, loss, Y) and Checkpoint objects, got {callbacks!r}"
        )
    for callback in callbacks:
        if isinstance(callback, Checkpoint):
            if not isinstance(random_state, int | np.integer):
                raise ValueError(f"Checkpoint requires an integer random_state, got {random_state!r}")
            callback.check()
