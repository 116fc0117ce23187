"""Formulas as MathML, converted while the site is built: pages need neither a script nor a network to show them."""

import re
from html import escape

from latex2mathml.converter import convert

TAG = re.compile(r"\\tag\{(.+?)\}")
# Unknown commands come back as identifiers that begin with a backslash.
UNKNOWN = re.compile(r"<m[io]>(\\[a-zA-Z]+)</m[io]>")


def inline(tex):
    """Return TeX as an inline formula."""
    return _checked(tex, "inline")


def display(tex):
    """Return TeX as a formula of its own line, with the number of its \\tag at the right."""
    tag = TAG.search(tex)
    number = f'<span class="number">({escape(tag.group(1))})</span>' if tag else ""
    return f'<div class="formula"><div class="body">{_checked(TAG.sub("", tex), "block")}</div>{number}</div>'


def _checked(tex, mode):
    result = convert(tex.strip(), display=mode)
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
