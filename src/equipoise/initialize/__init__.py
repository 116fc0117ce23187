"""Initial maps."""
