"""Read, check and prepare data, load bundled data sets and toy shapes, and write maps."""

from __future__ import annotations

from .._lazy import import_lazily

__all__ = import_lazily(__name__)
