"""Formulas quoted from docs/math.md, where each is written once, by number or by the title of their paragraph."""

import re
from pathlib import Path

MATH = Path(__file__).parents[1] / "math.md"
BLOCK = re.compile(r"```math\n(.*?)```|\$\$(.*?)\$\$", re.DOTALL)


def block(which):
    r"""Return the TeX of the equation with \tag{which}, or of the first one after "**which.**" or a heading."""
    text = MATH.read_text(encoding="utf-8")
    numbered = [found for found in BLOCK.finditer(text) if f"\\tag{{{which}}}" in found.group()]
    if numbered:
        return _tex(numbered[0])
    title = re.search(rf"^(## \d+\. {re.escape(which)}$|\*\*{re.escape(which)}\.?\*\*)", text, re.MULTILINE)
    found = title and BLOCK.search(text, title.end())
    if not found:
        raise ValueError(f"docs/math.md has no equation, paragraph or section {which!r}")
    return _tex(found)


def kernel_row(name):
    """Return the cells k and k'/k of a kernel in the table of section 2, with their dollars."""
    row = re.search(rf"^\| `{name}.*?\|(.+)\|$", MATH.read_text(encoding="utf-8"), re.MULTILINE)
    if not row:
        raise ValueError(f"the table of kernels in docs/math.md has no row for {name}")
    k, log_slope, _ = re.split(r"(?<!\\)\|", row.group(1))
    return k.strip(), log_slope.strip()


def section_anchor(number):
    """Return the heading of a section of docs/math.md and its anchor, as the repository and MyST make it."""
    heading = re.search(rf"^## ({number}\. .+)$", MATH.read_text(encoding="utf-8"), re.MULTILINE)
    if not heading:
        raise ValueError(f"docs/math.md has no section {number}")
    title = heading.group(1)
    return title, re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _tex(found):
    return (found.group(1) or found.group(2)).strip()
