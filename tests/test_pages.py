"""The pages of docs/: their code runs, in the order in which it is read, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
RUN = [*sorted(DOCS.glob("start/*.md")), *sorted(DOCS.glob("howto/*.md")), *sorted(DOCS.glob("migration/*.md"))]


def blocks(page):
    """Every block of Python on a page, with the line on which it begins."""
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"```python\n(.*?)```", text, flags=re.DOTALL):
        yield text.count("\n", 0, found.start(1)), found.group(1)


@pytest.mark.parametrize("page", RUN, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for line, block in blocks(page):  # each goes on from the one before; errors name the line of the page
        exec(compile("\n" * line + block, str(page), "exec"), namespace)


