"""Convert the docstrings of the package to reStructuredText: sections, `name : text` entries, formulas, prose."""

import re

ENTRY = re.compile(r"(\S[^:]*?) : (.+)")
QUOTED = re.compile(r"(`[^`]+`)")


def to_rest(lines):
    """Return the lines of a docstring as reStructuredText.

    A title underlined with dashes starts a section; `name : text` below it is an entry, continued by indented lines.
    Elsewhere an indented block is a formula, shown literally, and `>>>` starts an example. In all other text only
    single backquotes are markup.
    """
    result, entries, i = [], False, 0
    while i < len(lines):
        line = lines[i]
        indented = line.startswith("    ")
        if i + 1 < len(lines) and line.strip() and re.fullmatch(r"-{3,}", lines[i + 1].strip()):
            result += ["", f".. rubric:: {plain(line.strip())}", ""]
            entries, i = True, i + 2
            continue
        if line.lstrip().startswith(">>>"):
            end = _block_end(lines, i, lambda text: bool(text.strip()))
            result += ["", *lines[i:end], ""]
            i, entries = end, False
            continue
        if indented and not entries:
            end = _block_end(lines, i, lambda text: text.startswith("    ") or not text.strip())
            result += ["", "::", "", *lines[i:end], ""]
            i = end
            continue
        entry = ENTRY.fullmatch(line) if entries else None
        if entry:
            name, text = entry.groups()
            names = ", ".join(f"``{part.strip()}``" for part in name.split(","))
            result += [names, f"    {plain(text)}"]
        elif entries and indented:
            result.append(f"    {plain(line.strip())}")
        else:
            result.append(plain(line))
        i += 1
    return result


def plain(text):
    """Escape all markup in a text except what is between single backquotes."""
    parts = QUOTED.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*|_`])", r"\\\1", part) for part in parts)


def _block_end(lines, i, inside):
    while i < len(lines) and inside(lines[i]):
        i += 1
    return i


def _process(app, what, name, obj, options, lines):
    lines[:] = to_rest(lines)


def _skip(app, what, name, obj, skip, options):
    """Skip members that estimators inherit from scikit-learn."""
    return True if getattr(obj, "__module__", None) and obj.__module__.startswith("sklearn.") else None


def setup(app):
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}
