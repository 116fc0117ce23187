"""What need not be made again."""


def is_newer(made, *sources):
    """Return whether a file exists and is newer than all that it is made of."""
    return made.exists() and all(made.stat().st_mtime > source.stat().st_mtime for source in sources)
