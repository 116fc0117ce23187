"""The live studio: a page in the browser in which the points move, and the parameters with them."""

from __future__ import annotations

from .recipe import Recipe
from .run import Run
from .server import serve

__all__ = ["Recipe", "Run", "serve"]
