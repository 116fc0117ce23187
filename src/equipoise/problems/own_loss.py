"""A problem that is a loss and nothing else: any function of the map that PyTorch can differentiate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._optional import import_optional
from .._types import Array
from ..arrays.namespace import host, is_tensor
from ..data.checks.table import check_finite
from ..engines import choose_device
from ..geometry import Placed
from ..objectives import Objective
from ..optimize.rules import Accelerated, Rule
from ..optimize.schedule import Steady
from ..optimize.state import State
from .autograd import Autograd, AutogradProblem
from .forces import check_n_iter

if TYPE_CHECKING:
    from ..objectives.autograd.own_loss import OwnLoss


class LossProblem(AutogradProblem):
    """E(Y) of one's own over maps Y (n, d): its gradient by autograd, its descent by the library's loop.

    Parameters
    ----------
    loss : a function of the map, a tensor of PyTorch (n, d) in float64, that returns one number as a tensor
    Y0 : the initial map (n, d), where the loss is finite; a tensor gives maps that are tensors on its device
    n_iter : iterations, at most
    learning_rate : a number η, the step is −η ∇E (with `Momentum` a quarter of it); or "auto", 1/L: L is the largest
        curvature at Y0, by ten differences of gradients, or a larger one met on the way. A loss that is far stiffer at
        first than later gets short steps: give a number
    optimizer : `Accelerated()` by default; `GradientDescent()`, `Momentum()`
    device : where the loss runs: "cpu", "cuda", or "auto", a GPU if there is one

    Attributes
    ----------
    Y, loss_curve, n_iter, stopped : as those of a `Problem`

    The loss is not split, so that `attraction` and `repulsion` are refused, and a file cannot tell one function from
    another, so that a `Checkpoint` is.

    Examples
    --------
    >>> problem = eq.LossProblem(lambda Y: ((torch.cdist(Y, Y) - D) ** 2).sum(), Y0)
    >>> Y = problem.optimize()
    """

    objective: OwnLoss

    def __init__(
        self,
        loss: Callable[[Any], Any],
        Y0: Any,
        *,
        n_iter: int = 300,
        learning_rate: float | str = "auto",
        optimizer: Rule | None = None,
        device: str = "auto",
    ):
        import_optional("torch", "gpu", "LossProblem")
        from ..objectives.autograd.own_loss import OwnLoss

        if not callable(loss):
            raise TypeError(f"loss must be a function of the map, got {type(loss).__name__}")
        auto = isinstance(learning_rate, str) and learning_rate == "auto"
        number = isinstance(learning_rate, int | float | np.number)
        if not auto and not (number and 0 < float(learning_rate) < np.inf):
            raise ValueError(f'learning_rate must be a positive number or "auto", got {learning_rate!r}')
        if optimizer is not None and not hasattr(optimizer, "step"):
            raise ValueError(f"optimizer must be Accelerated(), GradientDescent() or Momentum(), got {optimizer!r}")
        start = host(Y0.detach() if is_tensor(Y0) else Y0)
        if start.ndim != 2 or start.dtype.kind not in "fiu" or not start.size:
            raise ValueError(f"Y0 must be a map (n, d) of some numbers, got shape {start.shape} of {start.dtype}")
        check_finite(start, "Y0")
        self._estimates_curvature = auto
        super().__init__(
            OwnLoss(loss, choose_device("torch", device)[1]),
            Placed(),
            Autograd(),
            start,
            Steady(check_n_iter(n_iter), learning_rate),
            Accelerated() if optimizer is None else optimizer,
        )
        self.given_on = Y0.device if is_tensor(Y0) else None

    def _start(self, Y: Array) -> State:
        self.objective.check(host(Y))  # a loss that cannot be differentiated says so before the first step
        return super()._start(Y)

    def _objective_to_descend(self) -> Objective:
        """Return the loss; without a learning rate, one that estimates its curvature during the descent."""
        from ..objectives.autograd.own_loss import watched

        return watched(self.objective) if self._estimates_curvature else super()._objective_to_descend()

    def attraction(self, Y: Array) -> Array:
        raise TypeError("a loss of one's own is not split into attraction and repulsion; ask for its gradient(Y)")

    def repulsion(self, Y: Array) -> Array:
        return self.attraction(Y)

    def _run(self, n_iter: int) -> dict[str, Any]:
        raise ValueError("a checkpoint cannot tell one loss of one's own from another; keep Y in a callback instead")
