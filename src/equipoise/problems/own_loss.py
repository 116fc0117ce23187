"""Problems defined by a loss alone: any function of the map that PyTorch can differentiate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._optional import import_optional
from .._suggest import described
from .._types import Array
from ..arrays.namespace import check_finite, from_cupy, is_auto, is_cupy, is_positive, is_tensor, to_cupy, to_numpy
from ..engines import choose_device
from ..geometry import Placed
from ..optimize.descent import State
from ..optimize.gradient_steps import EngineForces
from ..optimize.rules import Accelerated, Rule, Steady, check_n_iter
from .autograd import Autograd, AutogradProblem

if TYPE_CHECKING:
    from ..objectives.autograd.user_loss import OwnLoss


class LossProblem(AutogradProblem):
    """A user-defined loss E(Y) over maps Y (n, d), minimised by gradient descent with gradients from autograd.

    The loss is not split into attraction and repulsion, so `attraction` and `repulsion` raise TypeError. A function
    cannot be saved in a file, so `optimize` with a `Checkpoint` raises ValueError.

    Parameters
    ----------
    loss : callable
        Takes the map, a float64 PyTorch tensor (n, d), and returns a tensor with one element.
    Y0 : ndarray, Tensor or CuPy array of shape (n, d)
        The initial map, at which the loss must be finite. The final map is of the same type as Y0 and, for a tensor or
        CuPy array, on the same device.
    n_iter : int, default=300
        Maximum number of iterations.
    learning_rate : float or "auto", default="auto"
        The rate η of the step −η ∇E; `Momentum` divides η by 4. "auto" is 1/L, where L is the largest curvature
        found so far; the first L is estimated at Y0 from ten gradient differences. If the curvature is much larger at
        first than later, the later steps of "auto" are too short; pass a number for such a loss.
    optimizer : Accelerated, GradientDescent or Momentum, optional
        `Accelerated()` by default.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device on which the loss is evaluated; "auto" is a GPU if one is available.

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
        from ..objectives.autograd.user_loss import OwnLoss

        if not callable(loss):
            raise TypeError(f"loss must be a function of the map, got {type(loss).__name__}")
        auto = is_auto(learning_rate)
        if not auto and not is_positive(learning_rate):
            raise ValueError(f'learning_rate must be a positive number or "auto", got {learning_rate!r}')
        if optimizer is not None and (isinstance(optimizer, type) or not hasattr(optimizer, "step")):
            raise ValueError(
                f"optimizer must be Accelerated(), GradientDescent(), Momentum() or None, got {described(optimizer)}"
            )
        given = from_cupy(Y0) if is_cupy(Y0) else Y0
        start = to_numpy(given)
        if start.ndim != 2 or start.dtype.kind not in "fiu" or not start.size:
            raise ValueError(
                f"Y0 must be a non-empty numeric array (n, d), got shape {start.shape} and dtype {start.dtype}"
            )
        check_finite(start, "Y0")
        super().__init__(
            OwnLoss(loss, choose_device("torch", device)[1]),
            Placed(),
            Autograd(),
            start,
            Steady(check_n_iter(n_iter), learning_rate if auto else float(learning_rate)),
            Accelerated() if optimizer is None else optimizer,
        )
        self.output_device = given.device if is_tensor(given) else None
        self.convert_tensor = to_cupy if is_cupy(Y0) else None

    def _start(self, Y: Array) -> State:
        self.objective.check(to_numpy(Y))  # raise before the first step if the loss has no gradient
        return super()._start(Y)

    def _forces(self, state: State) -> EngineForces:
        if self.schedule.learning_rate != "auto":
            return super()._forces(state)
        from ..objectives.autograd.user_loss import watched

        return EngineForces(watched(self.objective), self.engine)  # each descent estimates the curvature as it runs

    def attraction(self, Y: Array) -> Array:
        raise TypeError("a user-defined loss is not split into attraction and repulsion; use gradient(Y)")

    def repulsion(self, Y: Array) -> Array:
        return self.attraction(Y)

    def _describe_run(self, starts: Sequence[Any], n_iter: int) -> dict[str, Any]:
        raise ValueError("Checkpoint cannot save a function such as a user-defined loss; save Y in a callback instead")
