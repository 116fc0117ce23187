"""Interactive pages written by the command line: which columns and images of the data they show."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pytest
from PIL import Image
from support.command_line import embed, names, one_line_error, read_csv

from equipoise import data
from equipoise.cli import main, page_details
from equipoise.data import Dataset

pytest.importorskip("bokeh")

QUICK = ("--method", "pca")
X = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
KIND = np.array(["x", "y", "z"] * 10)


@pytest.fixture
def table(tmp_path):
    """Return the path of a table with the columns CD4, y1 and size, and the text `kind`."""
    lines = [f"{a!r},{b!r},{c!r},{kind}" for (a, b, c), kind in zip(X.tolist(), KIND, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["CD4,y1,size,kind", *lines]))
    return tmp_path / "t.csv"


@pytest.fixture
def folder(tmp_path):
    """Return the path of a folder of six colour images of 3 × 2 pixels, and their pixels in the order of the rows."""
    pixels = np.random.default_rng(0).integers(0, 256, size=(6, 2, 3, 3), dtype=np.uint8)
    for i, image in enumerate(pixels):
        (tmp_path / "images" / f"{i // 3}").mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "images" / f"{i // 3}" / f"{i}.png")
    return tmp_path / "images", pixels


def shown(path):
    """Return the columns by name and the images that a page contains."""
    text = re.search(r'<script type="application/json" id="facts">(.*?)</script>', path.read_text(encoding="utf-8"))
    facts = json.loads(text[1])

    def decode(part):
        kind = part["type"].removesuffix("Array").lower()
        return np.frombuffer(zlib.decompress(base64.b64decode(part["data"])), dtype=kind)

    columns = {column["name"]: decode(column["values"]) for column in facts["columns"]}
    image = facts["image"]
    if image is not None:
        image = decode(image["pixels"]).reshape(-1, image["height"], image["width"], image["channels"])
    return columns, image


def test_page_shows_embedded_columns_as_they_were_read(table, tmp_path, capsys):
    assert embed(table, *QUICK, "--standardize", "--pca", 2, "--out", tmp_path / "t.html") == 0
    assert (
        names(tmp_path) == ["t.csv", "t.html"]
        and f"wrote               {tmp_path / 't.html'}" in capsys.readouterr().out
    )
    columns, images = shown(tmp_path / "t.html")
    assert list(columns) == ["kind", "CD4", "y1_", "size"] and images is None
    np.testing.assert_array_equal(np.column_stack([columns[name] for name in ("CD4", "y1_", "size")]), X)


def test_kept_columns_are_shown_once(table, tmp_path):
    assert embed(table, *QUICK, "--keep", "size", "--format", "csv", "--out", tmp_path / "m.html") == 0
    assert list(shown(tmp_path / "m.html")[0]) == ["size", "kind", "CD4", "y1_"]
    assert read_csv(tmp_path / "m.csv")[0] == ["y1", "y2", "size", "kind"]
    assert embed(table, *QUICK, "--keep", "all", "--out", tmp_path / "all.html") == 0
    assert sorted(shown(tmp_path / "all.html")[0]) == ["CD4", "kind", "size", "y1_"]


@pytest.mark.parametrize("words", [("--metric", "mixed", "--method", "tsne"), ("--missing", "mean", *QUICK)])
def test_columns_with_missing_values_are_shown(table, tmp_path, words):
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], ",".join(["", *lines[1].split(",")[1:]]), *lines[2:]]))
    assert embed(table, *words, "--out", tmp_path / "m.html") == 0
    columns, _ = shown(tmp_path / "m.html")
    assert sorted(columns) == ["CD4", "kind", "size", "y1_"]
    assert np.isnan(columns["CD4"][0]) and columns["CD4"][1] == X[1, 0]


def test_many_columns_are_limited_and_the_limit_is_printed(tmp_path, capsys):
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([",".join(f"c{j}" for j in range(60)), *[",".join("123"[i % 3] * 60) for i in range(9)]]))
    assert embed(path, *QUICK, "--keep", "c58", "--out", tmp_path / "m.html") == 0
    assert list(shown(tmp_path / "m.html")[0]) == ["c58", *(f"c{j}" for j in range(50))]
    assert "page                shows 50 of 59 columns; --keep A,B,… adds others" in capsys.readouterr().out


def test_page_shows_the_images_of_a_folder(folder, tmp_path):
    path, pixels = folder
    assert embed(path, *QUICK, "--pca", 3, "--out", tmp_path / "m.html") == 0
    columns, images = shown(tmp_path / "m.html")
    assert list(columns) == ["id", "class"]
    np.testing.assert_array_equal(images, pixels)


def test_plot_shows_the_data_of_a_map(folder, table, tmp_path, capsys):
    path, pixels = folder
    assert embed(path, *QUICK, "--out", tmp_path / "m.csv") == 0
    assert main(["plot", str(tmp_path / "m.csv"), "--data", str(path), "--out", str(tmp_path / "m.html")]) == 0
    np.testing.assert_array_equal(shown(tmp_path / "m.html")[1], pixels)
    assert embed(table, *QUICK, "--out", tmp_path / "t.npy") == 0
    words = ["--data", str(table), "--color", "CD4", "--out", str(tmp_path / "t.html")]
    assert main(["plot", str(tmp_path / "t.npy"), *words]) == 0
    np.testing.assert_array_equal(shown(tmp_path / "t.html")[0]["CD4"], X[:, 0])
    capsys.readouterr()
    assert main(["plot", str(tmp_path / "m.csv"), "--data", str(table), "--out", str(tmp_path / "x.html")]) == 2
    assert "t.csv has 30 rows, but" in one_line_error(capsys)
    (path / "0" / "0.png").rename(path / "0" / "9.png")
    assert main(["plot", str(tmp_path / "m.csv"), "--data", str(path), "--out", str(tmp_path / "x.html")]) == 2
    assert "row 0 is '0/1.png' in" in one_line_error(capsys)


def test_large_images_are_averaged_over_blocks_or_left_out(monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, size=(2, 300, 200), dtype=np.uint8)
    dataset = Dataset("t", pixels.reshape(2, -1), None, (), image_shape=(300, 200))
    details = page_details.page_details(dataset)
    expected = pixels[:, :300, :198].reshape(2, 100, 3, 66, 3).mean(axis=(2, 4))
    np.testing.assert_array_equal(details.images, np.round(expected))
    assert details.notes == ("page                images of 200 × 300 pixels are reduced to 66 × 100",)
    monkeypatch.setattr(page_details, "MAX_PIXEL_BYTES", 200)
    assert page_details.page_details(dataset).notes == (
        "page                2 images would take too much space, and are left out",
    )


def test_digits_have_images_until_they_are_prepared():
    digits = data.load("digits")
    images = page_details.page_details(digits).images
    np.testing.assert_array_equal(images, np.round(255 * (digits.X / 16)).reshape(-1, 8, 8))
    assert data.prepare(digits).image_shape == (8, 8) and data.prepare(digits, pca=2).image_shape == ()
