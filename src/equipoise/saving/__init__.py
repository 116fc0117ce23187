"""Save and read state on disk, without pickle."""
