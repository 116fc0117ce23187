"""Neighbour embedding and manifold learning as a balance of attraction and repulsion."""

from __future__ import annotations

from ._lazy import import_lazily

__all__ = import_lazily(__name__)
