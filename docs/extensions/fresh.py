"""Skip generated files that are up to date."""


def is_newer(made, *sources):
    """Return whether a generated file exists and is newer than all of its sources."""
    return made.exists() and all(made.stat().st_mtime > source.stat().st_mtime for source in sources)
