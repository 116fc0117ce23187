"""Write the API reference: a page for each public module with all its public names, from the docstrings."""

import importlib
import inspect
import re
from pathlib import Path

import equipoise
from equipoise import methods

from . import docstrings

FOLDER = Path(__file__).parents[1] / "generated" / "api"
MODULES = (
    "equipoise",
    "equipoise.data",
    "equipoise.data.toys",
    "equipoise.evaluate",
    "equipoise.spaces",
    "equipoise.kernels",
    "equipoise.divergences",
    "equipoise.geometry",
    "equipoise.pair_losses",
    "equipoise.neighbors",
    "equipoise.affinities",
    "equipoise.anndata",
    "equipoise.distributed",
)
ELSEWHERE = {"equipoise.neighbors": ("Graph",)}  # public names of a module without __all__ that are defined elsewhere


def public_names(module):
    """Return the public names of a module: its __all__, or else the classes and functions it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
        and (inspect.isclass(value) or inspect.isfunction(value))
    ]
    return [*defined, *ELSEWHERE.get(module.__name__, ())]


def page(module):
    """Return the text of the page of a module."""
    name = module.__name__
    lines = [f"# {name}", "", *(_summary(module)), ""]
    body = []
    for public in public_names(module):
        value = getattr(module, public)
        if inspect.ismodule(value):
            lines += [f"- [`{public}`]({value.__name__}.md): {_first(value)}"]
        elif value in methods.ALL:
            lines += [f"- [`{public}`](../methods/{public}.md): {_first(value)}"]
        elif name != "equipoise" and getattr(equipoise, public, None) is value:
            lines += [f"- [`{public}`](equipoise.md): {_first(value)}"]
        else:
            lines += [f"- {{py:obj}}`~{name}.{public}`: {_first(value)}"]
            body += ["", "```{eval-rst}", *_directive(name, public, value), "```"]
    return "\n".join([*lines, *body, ""])


def _directive(module, name, value):
    if inspect.isclass(value):
        return [f".. autoclass:: {module}.{name}", "   :members:", "   :undoc-members:"]
    if callable(value):
        return [f".. autofunction:: {module}.{name}"]
    return [f".. autodata:: {module}.{name}", "   :no-value:"]


def _summary(module):
    return [" ".join(part.split()) for part in inspect.getdoc(module).split("\n\n")[:1]]


def _first(value):
    """Return the first sentence of a docstring, escaped for Markdown."""
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    sentence = re.split(r"\. (?=[A-Z])", text)[0].rstrip(".:") + "."
    return "".join(
        part if part.startswith("`") else part.replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")
        for part in docstrings.QUOTED.split(sentence)
    )


def write(folder):
    """Write the pages of all modules and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODULES:
        (folder / f"{name}.md").write_text(page(importlib.import_module(name)), encoding="utf-8")
    text = "All public names, from their docstrings. Names that begin with an underscore may change at any time."
    listed = "\n".join(MODULES)
    index = f"# Reference\n\n{text}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    (folder / "index.md").write_text(index, encoding="utf-8")


def _builder_inited(app):
    write(FOLDER)


def setup(app):
    app.connect("builder-inited", _builder_inited)
    return {"parallel_read_safe": True}
