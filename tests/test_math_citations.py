"""Equations of docs/math.md that other files name exist."""

from __future__ import annotations

import re

import pytest
from support.equations import ELSEWHERE
from support.source_tree import ROOT, needs

PAGE = ROOT / "docs" / "math.md"
pytestmark = needs("docs", "src")


@pytest.mark.parametrize("name", sorted(set(ELSEWHERE.values())))
def test_tests_of_other_equations_exist(name):
    file, _, function = name.partition("::")
    assert f"def {function}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_equations_cited_in_the_code_exist():
    """Comments cite equations as “docs/math.md, eq. (D1)”."""
    tags = set(re.findall(r"\\tag\{([^}]+)\}", PAGE.read_text(encoding="utf-8")))
    for file in (ROOT / "src" / "equipoise").rglob("*.py"):
        for cited in re.findall(r"math\.md, eq\. \(([^)]+)\)", file.read_text(encoding="utf-8")):
            assert cited in tags, f"{file.name} cites eq. ({cited})"
