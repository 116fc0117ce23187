"""Tags: the names by which saved files refer to classes and functions, whatever module defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_TAGS: dict[Any, str] = {}
_BY_TAG: dict[str, Any] = {}


def tagged(tag: str) -> Callable[[T], T]:
    """Return a decorator that registers a class or function under `tag`, its name in saved files.

    A tag never changes, even if the class is renamed or moved, so files written by earlier versions still load. The
    first tags were chosen as the module paths of version 0.1.0.
    """

    def register(thing: T) -> T:
        if tag in _BY_TAG:
            raise ValueError(f"the tag {tag!r} is already in use; choose another")
        _TAGS[thing], _BY_TAG[tag] = tag, thing
        return thing

    return register


def tag_of(thing: Any) -> str | None:
    """Return the tag of a class or function; None if it has none. Subclasses do not inherit a tag."""
    return _TAGS.get(thing)


def from_tag(tag: str) -> Any:
    """Return the class or function registered under a tag; None if no imported module registers it."""
    return _BY_TAG.get(tag)
