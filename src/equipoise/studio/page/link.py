"""Convert the state of the studio to the query of a link and back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from ..session.parameters import METHODS, Value
from ..session.recipe import RESET_MOMENTUM, Event, Recipe
from ..table_choices import TableChoices

MAX_ITERATIONS = 20_000  # maximum iteration in a link, which is replayed when the link is opened
COLORS = ("class", "trust")
TABLE = "table."  # prefix of the choices about a file
MAX_LENGTH = 8000  # characters of a link; browsers and proxies accept at least this many


@dataclass(frozen=True)
class LinkedRun:
    """A run in a link: its recipe, and the iteration up to which it is replayed."""

    recipe: Recipe = field(default_factory=Recipe)
    iteration: int = 0


@dataclass(frozen=True)
class View:
    """The state in a link: the data set, one or two runs, the colouring, the chosen point and the active run.

    `choices` describe how an uploaded file becomes a table; None if there are none.
    """

    data: str = "named:digits"
    runs: tuple[LinkedRun, ...] = field(default_factory=lambda: (LinkedRun(),))
    color: str = "class"
    point: int | None = None
    active: int = 0  # the run that the sliders control
    choices: TableChoices | None = None


def to_query(view: View) -> str:
    """Return the query of a link, without the question mark; raise ValueError if no link can describe the state."""
    furthest = max(shown.iteration for shown in view.runs)
    if furthest > MAX_ITERATIONS:
        raise ValueError(
            f"a link replays at most {MAX_ITERATIONS:,} iterations, but the run is at iteration {furthest:,}; reset it,"
            " or copy the Python code"
        )
    pairs = [("data", view.data)]
    if view.choices is not None:
        pairs += [(f"{TABLE}{name}", text) for name, text in view.choices.to_texts().items()] or [(TABLE, "")]
    for prefix, shown in zip(("", "b."), view.runs, strict=False):
        recipe = shown.recipe
        pairs += [(f"{prefix}method", recipe.method), (f"{prefix}seed", str(recipe.seed))]
        if recipe.optimizer != Recipe.optimizer:
            pairs.append((f"{prefix}optimizer", recipe.optimizer))
        if recipe.metric != Recipe.metric:
            pairs.append((f"{prefix}metric", recipe.metric))
        pairs += [(f"{prefix}{name}", _format_value(value)) for name, value in recipe.first]
        events = [event for event in recipe.events if event.iteration <= shown.iteration]
        if events:
            pairs.append((f"{prefix}changes", "_".join(map(_format_event, events))))
        pairs.append((f"{prefix}iteration", str(shown.iteration)))
    if view.color != "class":
        pairs.append(("color", view.color))
    if view.point is not None:
        pairs.append(("point", str(view.point)))
    if view.active:
        pairs.append(("active", str(view.active)))
    query = urlencode(pairs, safe=":")
    if len(query) > MAX_LENGTH:
        raise ValueError(
            f"the link would be longer than {MAX_LENGTH:,} characters, because it lists every change of a parameter;"
            " reset the run, or copy the Python code"
        )
    return query


def from_query(query: str) -> View:
    """Return the state encoded in the query of a link; raise ValueError if the query is not valid."""
    if len(query) > 2 * MAX_LENGTH:
        raise ValueError(f"the link is longer than {2 * MAX_LENGTH} characters; copy it again")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=60)
    except ValueError as error:
        raise ValueError(f"the link is not valid: {error}; copy it again") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the link sets {twice[:20]!r} twice; remove one of the two values")
    given.pop("token", None)
    data = given.pop("data", View.data)
    chosen = {name.removeprefix(TABLE): given.pop(name) for name in list(given) if name.startswith(TABLE)}
    color = given.pop("color", "class")
    if color not in COLORS:
        raise ValueError(f"unknown color {color!r} in the link; choose from {', '.join(COLORS)}")
    point = _parse_integer("point", given.pop("point")) if "point" in given else None
    active = _parse_integer("active", given.pop("active")) if "active" in given else 0
    second = {name[2:]: given.pop(name) for name in list(given) if name.startswith("b.")}
    runs = (_parse_run(given), _parse_run(second)) if second else (_parse_run(given),)
    if active >= len(runs):
        raise ValueError(f"active={active} in the link must be less than the number of runs, {len(runs)}")
    return View(data, runs, color, point, active, _parse_choices(chosen) if chosen else None)


def _parse_choices(texts: dict[str, str]) -> TableChoices:
    texts.pop("", None)  # choices that are all the default
    try:
        return TableChoices.from_texts(texts)
    except ValueError as error:
        raise ValueError(f"the choices about the table in the link are not valid: {error}") from None


def _parse_run(given: dict[str, str]) -> LinkedRun:
    method = given.get("method", Recipe.method)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r} in the link; choose from {', '.join(METHODS)}")
    seed = _parse_integer("seed", given.get("seed", "0"))
    iteration = _parse_integer("iteration", given.get("iteration", "0"))
    if iteration > MAX_ITERATIONS:
        raise ValueError(f"the iteration in the link must be at most {MAX_ITERATIONS:,}, got {iteration:,}")
    events = tuple(_parse_event(text) for text in given.get("changes", "").split("_") if text)
    first = tuple(
        (name, _parse_value(name, text))
        for name, text in given.items()
        if name not in ("method", "optimizer", "metric", "seed", "iteration", "changes")
    )
    optimizer = given.get("optimizer", Recipe.optimizer)
    metric = given.get("metric", Recipe.metric)
    recipe = Recipe(method, first, seed, events, optimizer, metric)
    return LinkedRun(recipe, iteration if METHODS[method].iterates else 0)


def _format_value(value: Value) -> str:
    return value if isinstance(value, str) else repr(value)


def _format_event(event: Event) -> str:
    if event.name == RESET_MOMENTUM:
        return f"{event.iteration}:{RESET_MOMENTUM}"
    return f"{event.iteration}:{event.name.replace('_', '-')}:{_format_value(event.value)}"


def _parse_event(text: str) -> Event:
    parts = text.split(":")
    if len(parts) == 2 and parts[1] == RESET_MOMENTUM:
        return Event(_parse_integer("the iteration of a change", parts[0]), RESET_MOMENTUM)
    if len(parts) != 3:
        raise ValueError(f"each change in the link must have the form iteration:name:value, got {text[:40]!r}")
    name = parts[1].replace("-", "_")
    return Event(_parse_integer("the iteration of a change", parts[0]), name, _parse_value(name, parts[2]))


def _parse_integer(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise ValueError(f"{name} in the link must be a non-negative integer of at most 10 digits, got {text[:20]!r}")
    return int(text)


def _parse_value(name: str, text: str) -> Value:
    if text == "auto":
        return text
    if re.fullmatch(r"[0-9]{1,10}", text) and name in ("n_neighbors", "n_iter"):
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} in the link must be a number, got {text[:20]!r}") from None
