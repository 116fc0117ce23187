"""The state of a studio as the query of a link, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from ..session.parameters import METHODS, Value
from ..session.recipe import REST, Event, Recipe

LONGEST = 20_000  # iterations that a link may ask for
COLORS = ("class", "trust")
LENGTH = 8000  # characters of a link; browsers and proxies take at least as many


@dataclass(frozen=True)
class Shown:
    """One run of a link: its recipe, and the iteration to stop at."""

    recipe: Recipe = field(default_factory=Recipe)
    iteration: int = 0


@dataclass(frozen=True)
class View:
    """What a link restores: the data set, one run or two beside each other, the colours and the chosen point."""

    data: str = "named:digits"
    runs: tuple[Shown, ...] = field(default_factory=lambda: (Shown(),))
    color: str = "class"
    point: int | None = None


def to_query(view: View) -> str:
    """Return the query of a link, without the question mark."""
    pairs = [("data", view.data)]
    for mark, shown in zip(("", "b."), view.runs, strict=False):
        recipe = shown.recipe
        pairs += [(f"{mark}method", recipe.method), (f"{mark}seed", str(recipe.seed))]
        pairs += [(f"{mark}{name}", _written(value)) for name, value in recipe.first]
        events = [event for event in recipe.events if event.iteration <= shown.iteration]
        if events:
            pairs.append((f"{mark}changes", "_".join(map(_event_written, events))))
        pairs.append((f"{mark}iteration", str(shown.iteration)))
    if view.color != "class":
        pairs.append(("color", view.color))
    if view.point is not None:
        pairs.append(("point", str(view.point)))
    query = urlencode(pairs, safe=":")
    if len(query) > LENGTH:
        raise ValueError("this run has had too many changes for a link; reset it, or copy the Python")
    return query


def from_query(query: str) -> View:
    """Return the state of a link; ValueError names what cannot be read."""
    if len(query) > 2 * LENGTH:
        raise ValueError(f"a link has at most {LENGTH} characters")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=60)
    except ValueError as error:
        raise ValueError(f"the link cannot be read: {error}") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError("the link names something twice")
    given.pop("token", None)
    data = given.pop("data", View.data)
    color = given.pop("color", "class")
    if color not in COLORS:
        raise ValueError(f"color in the link must be one of {', '.join(COLORS)}, got {color!r}")
    point = _whole("point", given.pop("point")) if "point" in given else None
    second = {name[2:]: given.pop(name) for name in list(given) if name.startswith("b.")}
    runs = (_shown(given), _shown(second)) if second else (_shown(given),)
    return View(data, runs, color, point)


def _shown(given: dict[str, str]) -> Shown:
    method = given.get("method", Recipe.method)
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; choose from {', '.join(METHODS)}")
    seed = _whole("seed", given.get("seed", "0"))
    iteration = _whole("iteration", given.get("iteration", "0"))
    if iteration > LONGEST:
        raise ValueError(f"a link may ask for {LONGEST} iterations at most, not {iteration}")
    events = tuple(_event_read(text) for text in given.get("changes", "").split("_") if text)
    first = tuple(
        (name, _value(name, text))
        for name, text in given.items()
        if name not in ("method", "seed", "iteration", "changes")
    )
    return Shown(Recipe(method, first, seed, events), iteration)


def _written(value: Value) -> str:
    return value if isinstance(value, str) else repr(value)


def _event_written(event: Event) -> str:
    if event.name == REST:
        return f"{event.iteration}:{REST}"
    return f"{event.iteration}:{event.name.replace('_', '-')}:{_written(event.value)}"


def _event_read(text: str) -> Event:
    parts = text.split(":")
    if len(parts) == 2 and parts[1] == REST:
        return Event(_whole("changes", parts[0]), REST)
    if len(parts) != 3:
        raise ValueError(f"changes in the link are written iteration:name:value, got {text[:40]!r}")
    name = parts[1].replace("-", "_")
    return Event(_whole("changes", parts[0]), name, _value(name, parts[2]))


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise ValueError(f"{name} in the link must be a whole number, got {text[:20]!r}")
    return int(text)


def _value(name: str, text: str) -> Value:
    if text == "auto":
        return text
    if re.fullmatch(r"[0-9]{1,10}", text) and name == "n_neighbors":
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} in the link must be a number, got {text[:20]!r}") from None
