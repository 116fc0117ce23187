"""Fuzzed `embed`: a map and exit code 0, or one error line and exit code 2, and never a partial file."""

import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import read_csv

from equipoise.cli import main

CELLS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.sampled_from(["", "a", "NaN", "1e400", "true", "0x1f", '"1"', '"', "ü", "1 ", " 2", "1;2", "-", "null"]),
    st.text(max_size=4),
)
ORDINARY = st.integers(-99, 99).map(str)


@st.composite
def tables(draw):
    """Draw the bytes of a CSV file: usually a valid table with a few odd cells, sometimes random bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    rows, columns = draw(st.integers(0, 9)), draw(st.integers(1, 3))
    table = [[draw(ORDINARY) for _ in range(columns)] for _ in range(rows)]
    for _ in range(draw(st.integers(0, 2))):
        if rows:
            i = draw(st.integers(0, rows - 1))
            table[i][draw(st.integers(0, columns - 1))] = draw(CELLS)
            table[i] += [draw(CELLS)] * draw(st.sampled_from([0, 0, 0, 1]))
    head = [",".join("abc"[:columns])] if draw(st.booleans()) else []
    end = draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
    text = end.join([*head, *(",".join(row) for row in table)]) + draw(st.sampled_from(["", end]))
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "latin-1", "utf-16"])), errors="replace")


WORDS = st.one_of(
    st.sampled_from(["tsne", "umap", "pca", "mds", "isomap", "lle"]).map(lambda name: ["--method", name]),
    st.tuples(
        st.sampled_from(
            ["--perplexity", "--n-components", "--n-neighbors", "--tol", "--seed", "--metric", "--pca", "--init"]
        ),
        st.one_of(st.sampled_from(["1", "2", "0", "-1", "1e9", "nan", "inf", "auto", "a", "1,2", "none", ""]), CELLS),
    ).map(list),
    st.sampled_from([["--standardize"], ["--log1p"], ["--label", "c"], ["--id", "a"], ["--columns", "a,b"], ["--dof"]]),
)


@settings(max_examples=120, derandomize=True)
@given(content=tables(), words=st.lists(WORDS, max_size=2), suffix=st.sampled_from([".csv", ".csv", ".tsv", ".npy"]))
def test_embed_writes_a_map_or_prints_one_error_line(content, words, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, f"table{suffix}"), Path(folder, "out")
        path.write_bytes(content)
        words = [word for part in words for word in part]
        errors, screen = StringIO(), TextIOWrapper(BytesIO())
        iterations = [] if {"pca", "isomap", "lle"} & {*words} else ["--n-iter", "3"]
        with redirect_stdout(screen), redirect_stderr(errors), warnings.catch_warnings():
            warnings.simplefilter("default")
            try:
                code = main(["embed", str(path), "--plot", "none", "--out", str(out), *iterations, *words])
            except SystemExit as stop:
                code = stop.code
        lines = errors.getvalue().splitlines()
        assert all(line.startswith(("equipoise: warning: ", "equipoise: error: ")) for line in lines), lines
        assert sum(line.startswith("equipoise: error: ") for line in lines) == (code == 2), lines
        if code == 0:
            assert [path.name for path in out.iterdir()] == ["table-map.csv"]
            header, rows = read_csv(out / "table-map.csv")
            places = [[row[header.index(name)] for name in header if name[0] == "y"] for row in rows]
            assert np.isfinite(np.array(places, dtype=float)).all()
        else:
            assert code == 2 and not out.exists()
