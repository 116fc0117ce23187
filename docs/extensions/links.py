"""Redirect links to scripts in examples/ to their gallery pages on the site."""

import posixpath
from pathlib import Path

from .gallery import EXAMPLES, FOLDER

INDEX = f"{FOLDER}/index"


def redirect(text, docname):
    """Return Markdown text with links to examples/ and its scripts replaced by links to the gallery."""
    up = posixpath.relpath(".", posixpath.dirname(docname) or ".")
    root = "" if up == "." else f"{up}/"
    text = text.replace(f"]({root}examples)", f"]({root}{INDEX}.md)")
    for script in sorted(EXAMPLES.glob("*.py")):
        text = text.replace(f"]({root}examples/{script.name})", f"]({root}{FOLDER}/{script.stem}.md)")
    return text


def _source_read(app, docname, source):
    if Path(app.env.doc2path(docname)).suffix == ".md":
        source[0] = redirect(source[0], docname)


def setup(app):
    app.connect("source-read", _source_read)
    return {"parallel_read_safe": True}
