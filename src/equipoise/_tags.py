"""Names under which classes and functions are stored in files, independent of the module they live in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_TAGS: dict[Any, str] = {}
_BY_TAG: dict[str, Any] = {}


def tagged(tag: str) -> Callable[[T], T]:
    """Return a decorator that gives a class or function its name in saved files.

    A tag never changes, even if the class is renamed or moved, so files written by earlier versions still load. The
    first tags are the module paths of version 0.1.0.
    """

    def register(thing: T) -> T:
        if tag in _BY_TAG:
            raise ValueError(f"the tag {tag!r} is used twice")
        _TAGS[thing], _BY_TAG[tag] = tag, thing
        return thing

    return register


def tag_of(thing: Any) -> str | None:
    """Return the tag of a class or function; None if it has none. A subclass does not inherit a tag."""
    return _TAGS.get(thing)


def from_tag(tag: str) -> Any:
    """Return the class or function with a tag; None if no imported module defines it."""
    return _BY_TAG.get(tag)
