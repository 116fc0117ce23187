"""The studio: a web page that shows a map during its optimisation and lets the user change the method's parameters."""

from __future__ import annotations

from .limits import Limits
from .server.serve import serve
from .session.recipe import Recipe
from .session.run import Run
from .table_choices import TableChoices

__all__ = ["Limits", "Recipe", "Run", "TableChoices", "serve"]
