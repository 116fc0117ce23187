"""Convert formulas to MathML while the site is built, so that pages need neither JavaScript nor a network."""

import re
from html import escape

from latex2mathml.converter import convert

TAG = re.compile(r"\\tag\{(.+?)\}")
# latex2mathml knows opening and closing fences only with \left and \right.
FENCES = {r"\lvert": r"\left\vert", r"\rvert": r"\right\vert", r"\lVert": r"\left\Vert", r"\rVert": r"\right\Vert"}
# As in TeX: a thin space around function names, none around a slash.
FUNCTION = re.compile(r"<m[io]>(log|ln|exp|cos|arccos|max|min|tr|Tr)</m[io]>")
SLASH = "<mo>&#x0002F;</mo>"
BARS = re.compile(r'<mo stretchy="true"( fence="true" form="\w+">&#x0(?:2016|007C);</mo>)')  # not stretched
# latex2mathml returns unknown commands as identifiers that begin with a backslash.
UNKNOWN = re.compile(r"<m[io]>(\\[a-zA-Z]+)</m[io]>")


def inline(tex):
    """Return the MathML of an inline formula."""
    return _checked(tex, "inline")


def display(tex):
    """Return the HTML of a displayed formula, with the number of its \\tag on the right."""
    tag = TAG.search(tex)
    number = f'<span class="number">({escape(tag.group(1))})</span>' if tag else ""
    body = "".join(f"<div>{_checked(part, 'block')}</div>" for part in _parts(TAG.sub("", tex)))
    return f'<div class="formula"><div class="body">{body}</div>{number}</div>'


def _parts(tex):
    """Split a formula at \\qquad, so that the parts can be stacked on a narrow page."""
    parts = tex.split(r"\qquad")
    whole = all(part.count("{") == part.count("}") and part.count(r"\left") == part.count(r"\right") for part in parts)
    return parts if whole else [tex]


def _checked(tex, mode):
    for fence, form in FENCES.items():
        tex = tex.replace(fence, form)
    result = convert(tex.strip(), display=mode)
    result = FUNCTION.sub(r'<mo form="prefix" lspace="0.17em" rspace="0.17em">\1</mo>', result)
    result = BARS.sub(r'<mo stretchy="false"\1', result)
    result = result.replace(SLASH, '<mo lspace="0" rspace="0">/</mo>')
    unknown = UNKNOWN.search(result)
    if unknown:
        raise ValueError(f"{unknown.group(1)} is unknown to latex2mathml, in the formula {tex.strip()!r}")
    return result


def _visit_math(writer, node):
    from docutils.nodes import SkipNode

    writer.body.append(inline(node.astext()))
    raise SkipNode


def _visit_math_block(writer, node):
    from docutils.nodes import SkipNode

    writer.body.append(display(node.astext()))
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
