"""The live studio: a page in the browser in which the points move, and the parameters with them."""

from __future__ import annotations

from .server.serve import serve
from .session.recipe import Recipe
from .session.run import Run

__all__ = ["Recipe", "Run", "serve"]
