"""Docstrings of the package as reStructuredText: sections, `name : text` entries, formulas set apart, plain prose."""

import re

ENTRY = re.compile(r"(\S[^:]*?) : (.+)")
QUOTED = re.compile(r"(`[^`]+`)")


def to_rest(lines):
    """Return the lines of a docstring as reStructuredText.

    A title underlined by dashes opens a section; `name : text` below it is an entry, which goes on where lines are
    indented. An indented block elsewhere is a formula, shown as it is, and `>>>` an example. In all other text only
    quotes mean anything.
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
    """Return text in which nothing but what stands between single quotes has a meaning."""
    parts = QUOTED.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*|_`])", r"\\\1", part) for part in parts)


def _block_end(lines, i, inside):
    while i < len(lines) and inside(lines[i]):
        i += 1
    return i


def _process(app, what, name, obj, options, lines):
    lines[:] = to_rest(lines)


def _skip(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to estimators."""
    return True if getattr(obj, "__module__", None) and obj.__module__.startswith("sklearn.") else None


def setup(app):
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True}
