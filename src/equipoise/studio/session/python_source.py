"""Writes Python code that reproduces the map of a run byte for byte."""

from __future__ import annotations

from ...optimize.rules import Schedule
from .method_run import MethodRun
from .metrics import METRICS
from .parameters import METHODS, OPTIMIZERS, defaults
from .recipe import RESET_MOMENTUM, Event, Recipe
from .run import Run

FRESH = """\
import equipoise as eq
from equipoise import data

{data}
method = eq.{name}(
{arguments}
)
{steps}
"""
FIT = "Y = method.fit_transform(X)"
PART = """\
problem = method.problem(X)
problem.descent().run({iteration})
Y = problem.Y"""

CHANGED = """\
from equipoise import data
from equipoise.studio import Recipe, Run

{data}
run = Run(X, Recipe("{method}", ({first}), seed={seed}{options}))
{steps}
Y = run.frame.Y
"""


def python_source(run: MethodRun, data: str, iteration: int) -> str:
    """Return a script that reproduces the map of a run at an iteration; `data` is code that defines the table X.

    The script fits an estimator if, up to this iteration, no parameter has changed and the momentum was not reset (as
    by a rewind). Otherwise it repeats the run step by step.
    """
    if not isinstance(run, Run):
        given = {**run.values, "random_state": run.recipe.seed}
        lines = [f"    {name}={value!r}," for name, value in given.items()] + _metric(run)
        name = METHODS[run.recipe.method].make.__name__
        return FRESH.format(data=data, name=name, arguments="\n".join(lines), steps=FIT)
    events = [event for event in run.recipe.events if event.iteration <= iteration]
    # An estimator with fewer iterations would end early exaggeration earlier as well.
    is_long = iteration >= 2 * Schedule.EARLY
    is_reported = iteration % run.rule.every == 0  # callbacks are called at this iteration
    # If early exaggeration was undone, the map shown where it ends is the one from which the next phase starts.
    restarted = run.early_undone and iteration == run.late_from
    if events or iteration == 0 or (restarted and not (is_long or is_reported)):
        return _repeated_run(run, data, iteration, events)
    parameters = {
        **defaults(run.recipe.method, len(run.X)),
        **dict(run.recipe.first),
        "n_iter": max(iteration, 2 * Schedule.EARLY),
        "random_state": run.recipe.seed,
    }
    lines = [f"    {name}={value!r}," for name, value in parameters.items()]
    lines += _metric(run)
    stops = run.settled is None or run.settled >= iteration
    if not stops or run.recipe.optimizer != Recipe.optimizer:
        comment = "" if stops else "  # do not stop early"
        lines.append(f"    optimizer={OPTIMIZERS[run.recipe.optimizer].code(stops)},{comment}")
    steps = FIT
    if not is_long and is_reported:
        lines.append(f"    callbacks=[lambda t, loss, Y: t >= {iteration}],  # stop at iteration {iteration}")
    elif not is_long:
        steps = PART.format(iteration=iteration)
    name = METHODS[run.recipe.method].make.__name__
    return FRESH.format(data=data, name=name, arguments="\n".join(lines), steps=steps)


def _metric(run: MethodRun) -> list[str]:
    """Return the line with the argument `metric`, unless it is the default."""
    return [] if run.metric == "euclidean" else [f"    metric={METRICS[run.metric].code},"]


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
    options = "" if recipe.optimizer == Recipe.optimizer else f", optimizer={recipe.optimizer!r}"
    options += "" if recipe.metric == Recipe.metric else f", metric={recipe.metric!r}"
    return CHANGED.format(
        data=data, method=recipe.method, first=first, seed=recipe.seed, options=options, steps="\n".join(steps)
    )
