"""Writes Python code that reproduces the map of a run byte for byte."""

from __future__ import annotations

from ...optimize.rules import Schedule
from .parameters import METHODS, OPTIMIZERS, defaults
from .recipe import RESET_MOMENTUM, Event, Recipe
from .run import Run, loss_every

FRESH = """\
import equipoise as eq
from equipoise import data

{data}
method = eq.{name}(
{arguments}
)
Y = method.fit_transform(X)
"""

CHANGED = """\
from equipoise import data
from equipoise.studio import Recipe, Run

{data}
run = Run(X, Recipe("{method}", ({first}), seed={seed}{optimizer}))
{steps}
Y = run.frame.Y
"""


def python_source(run: Run, data: str, iteration: int) -> str:
    """Return a script that reproduces the map of a run at an iteration; `data` is code that defines the table X.

    The script fits an estimator if, up to this iteration, no parameter has changed and the momentum was not reset (as
    by a rewind), and if the estimator can stop at this iteration. Otherwise it repeats the run step by step.
    """
    events = [event for event in run.recipe.events if event.iteration <= iteration]
    every = loss_every(len(run.X))
    # An estimator that ended earlier would end early exaggeration earlier as well; callbacks are called every
    # `every` iterations.
    is_long = iteration >= 2 * Schedule.EARLY
    if not events and iteration > 0 and (is_long or iteration % every == 0):
        parameters = {
            **defaults(run.recipe.method, len(run.X)),
            **dict(run.recipe.first),
            "n_iter": max(iteration, 2 * Schedule.EARLY),
            "random_state": run.recipe.seed,
        }
        lines = [f"    {name}={value!r}," for name, value in parameters.items()]
        rule = OPTIMIZERS[run.recipe.optimizer].code(every)
        lines.append(f"    optimizer={rule},  # do not stop early")
        if not is_long:
            lines.append(f"    callbacks=[lambda t, loss, Y: t >= {iteration}],  # stop at iteration {iteration}")
        return FRESH.format(data=data, name=METHODS[run.recipe.method].make.__name__, arguments="\n".join(lines))
    return _repeated_run(run, data, iteration, events)


def _repeated_run(run: Run, data: str, iteration: int, events: list[Event]) -> str:
    """Return a script that repeats a run with its changes."""
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
    recipe = run.recipe
    optimizer = "" if recipe.optimizer == Recipe.optimizer else f", optimizer={recipe.optimizer!r}"
    return CHANGED.format(
        data=data, method=recipe.method, first=first, seed=recipe.seed, optimizer=optimizer, steps="\n".join(steps)
    )
