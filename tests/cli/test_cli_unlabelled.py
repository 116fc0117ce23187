"""Rows without a label are left out of measures of classes, and drawn as "missing"."""

from __future__ import annotations

import numpy as np
import pytest
from support.command_line import embed, read_csv

from equipoise.cli import main

N = 60
BRIEF = ("--n-iter", 50, "--perplexity", 8)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    """A file with two distant classes; every tenth row has no label."""
    rng = np.random.default_rng(0)
    lines = ["a,b,kind"]
    for i in range(N):
        a, b = rng.normal(size=2) + 50 * (i % 2)
        lines.append(f"{a:.3f},{b:.3f},{'' if i % 10 == 3 else 'xy'[i % 2]}")
    path = tmp_path_factory.mktemp("clusters") / "clusters.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_without_a_label_do_not_count_as_errors(clusters, tmp_path, capsys):
    out, other = tmp_path / "one.csv", tmp_path / "two.csv"
    assert embed(clusters, "--label", "kind", *BRIEF, "--out", out) == 0
    assert "1-NN class error    0.0% (cross-validated; 6 rows without a label left out)\n" in capsys.readouterr().out
    header, rows = read_csv(out)
    assert [row[header.index("kind")] for row in rows].count("missing") == 6
    assert embed(clusters, "--label", "kind", "--random-state", 1, *BRIEF, "--out", other) == 0
    capsys.readouterr()
    for words in (
        ["evaluate", clusters, out, "--label", "kind"],
        ["compare", clusters, out, other, "--label", "kind"],
        ["evaluate", clusters, out, "--exclude", "kind"],  # the classes of the map
    ):
        assert main([*map(str, words)]) == 0
        text = capsys.readouterr().out
        assert "classes             6 rows without a label left out\n" in text
        line = next(line for line in text.splitlines() if line.startswith("nearest of another class"))
        assert " 0.0%" in line
        if words[0] == "evaluate":
            assert line.endswith(f" {1 - (30 / 54) ** 2 - (24 / 54) ** 2:.1%}")  # of a random map
