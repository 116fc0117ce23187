"""The studio: a web application that shows a map while it is optimised and lets the user change its parameters."""

from __future__ import annotations

from .limits import Limits
from .server.serve import serve
from .session.recipe import Recipe
from .session.run import Run

__all__ = ["Limits", "Recipe", "Run", "serve"]
