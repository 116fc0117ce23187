"""Formulas as MathML, converted while the site is built: pages need neither a script nor a network to show them."""

import re
from html import escape

from latex2mathml.converter import convert

TAG = re.compile(r"\\tag\{(.+?)\}")
# \lvert is a fence that opens, which latex2mathml knows of \left alone.
FENCES = {r"\lvert": r"\left\vert", r"\rvert": r"\right\vert", r"\lVert": r"\left\Vert", r"\rVert": r"\right\Vert"}
# TeX sets a thin space around the names of functions and none around a slash.
FUNCTION = re.compile(r"<m[io]>(log|ln|exp|cos|arccos|max|min|tr|Tr)</m[io]>")
SLASH = "<mo>&#x0002F;</mo>"
BARS = re.compile(r'<mo stretchy="true"( fence="true" form="\w+">&#x0(?:2016|007C);</mo>)')  # as high as letters
# Unknown commands come back as identifiers that begin with a backslash.
UNKNOWN = re.compile(r"<m[io]>(\\[a-zA-Z]+)</m[io]>")


def inline(tex):
    """Return TeX as an inline formula."""
    return _checked(tex, "inline")


def display(tex):
    """Return TeX as a formula of its own line, with the number of its \\tag at the right."""
    tag = TAG.search(tex)
    number = f'<span class="number">({escape(tag.group(1))})</span>' if tag else ""
    body = "".join(f"<div>{_checked(part, 'block')}</div>" for part in _parts(TAG.sub("", tex)))
    return f'<div class="formula"><div class="body">{body}</div>{number}</div>'


def _parts(tex):
    """Return the formulas that \\qquad sets side by side: on a narrow page they stand below one another."""
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
        raise ValueError(f"{unknown.group(1)} is not known to latex2mathml, in the formula {tex.strip()!r}")
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
