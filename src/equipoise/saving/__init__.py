"""State on disk without pickle."""
