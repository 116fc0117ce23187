"""Python code that reproduces the map of a run byte for byte."""

from __future__ import annotations

from ...optimize.rules import Schedule
from .parameters import METHODS, defaults
from .recipe import RESET_MOMENTUM
from .run import Run, loss_every

FRESH = """\
import equipoise as eq
from equipoise import data

X = {data}
method = eq.{name}(
{arguments}
)
Y = method.fit_transform(X)
"""

CHANGED = """\
from equipoise import data
from equipoise.studio import Recipe, Run

X = {data}
run = Run(X, Recipe("{method}", ({first}), seed={seed}))
{steps}
Y = run.frame.Y
"""


def data_source(name: str) -> str:
    """Return the Python expression for the table of a data set of the studio."""
    kind, _, rest = name.partition(":")
    if kind == "file":
        return f"data.read({rest!r}).X"
    return f"data.load({rest!r}).X" if kind == "named" else "...  # the table that was passed to the studio"


def python_source(run: Run, data: str, iteration: int) -> str:
    """Return a script for the map of a run at an iteration; `data` is the name of its data set.

    The script fits an estimator if no parameter has changed and early exaggeration ends at the same iteration, and
    otherwise repeats the run step by step.
    """
    events = [event for event in run.recipe.events if event.iteration <= iteration]
    X = data_source(data)
    if not events and iteration >= 2 * Schedule.EARLY:
        parameters = {
            **defaults(run.recipe.method, len(run.X)),
            **dict(run.recipe.first),
            "n_iter": iteration,
            "random_state": run.recipe.seed,
        }
        lines = [f"    {name}={value!r}," for name, value in parameters.items()]
        lines.append(
            f"    optimizer=eq.Momentum(every={loss_every(len(run.X))}, min_grad_norm=0, min_loss_change=0),"
            "  # do not stop early"
        )
        return FRESH.format(data=X, name=METHODS[run.recipe.method].make.__name__, arguments="\n".join(lines))
    first = "".join(f"({name!r}, {value!r}), " for name, value in run.recipe.first).rstrip(" ")
    steps, done = [], 0
    for event in events:
        if event.iteration > done:
            steps.append(f"run.step({event.iteration - done})")
            done = event.iteration
        change = f"run.change({event.name!r}, {event.value!r})"
        steps.append(f"run.rewind({event.iteration})" if event.name == RESET_MOMENTUM else change)
    if iteration > done:
        steps.append(f"run.step({iteration - done})")
    return CHANGED.format(data=X, method=run.recipe.method, first=first, seed=run.recipe.seed, steps="\n".join(steps))
