"""Dates and identifiers as colour: a scale from early to late, and one colour."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

import equipoise as eq
from equipoise.views.column import Classes, Numbers, read_column
from equipoise.views.dates import iso_length

N = 400
DAYS = np.datetime64("2024-01-01") + np.arange(N)
SECONDS = DAYS.astype("datetime64[s]").astype(np.float64)


@pytest.mark.parametrize(
    "values",
    [
        DAYS,
        DAYS.astype("datetime64[ns]"),
        pd.Series(DAYS),
        DAYS.astype(str),
        [str(day).replace("-", "/") for day in DAYS],
        [f"{day}T02:00:00+02:00" for day in DAYS],
        [f"{day} 00:00:00.000Z" for day in DAYS],
        DAYS.astype(object),
        [datetime.datetime.combine(d, datetime.time(), datetime.timezone.utc) for d in DAYS.tolist()],
    ],
    ids=["datetime64", "ns", "pandas", "text", "slashes", "zone", "time", "date", "datetime"],
)
def test_dates_are_read_as_seconds(values):
    column = read_column(values, N, "when")
    assert isinstance(column, Numbers) and column.dates and np.array_equal(column.values, SECONDS)
    assert iso_length(column.values) == 10


def test_missing_dates_few_dates_and_other_text():
    gaps = DAYS.astype(str).astype(object)
    gaps[3] = None
    assert np.isnan(read_column(gaps, N, "when").values[3])
    for spelling in ("", "n/a"):
        gaps[3] = spelling
        column = read_column(gaps, N, "when")
        assert column.dates and np.flatnonzero(np.isnan(column.values)).tolist() == [3]
    assert read_column(np.array(["2024-01-01", "2024-06-01"] * 5), 10, "when").names == ("2024-01-01", "2024-06-01")
    for wrong in ("2024-13-01", "2024-01-01 25:00", "yesterday", "20240101"):
        column = read_column([*DAYS.astype(str)[1:], wrong], N, "when")
        assert isinstance(column, Classes) and column.is_identifier
    for step, length in ((60, 16), (1, 19), (0.25, 23)):
        assert iso_length(np.arange(5) * float(step)) == length


@pytest.mark.parametrize("last", ["9999-12-31", "9999-12-31T23:59:59", "9999-12-31T23:59:59.5", "0001-01-01"])
def test_the_years_1_to_9999_are_dates_to_their_last_second(last):
    column = read_column([*DAYS.astype(str)[1:], last], N, "when")
    assert isinstance(column, Numbers) and column.dates
    assert column.values[-1] == np.datetime64(last, "ms").astype(np.float64) / 1000


@pytest.mark.parametrize("outside", ["9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "0000-12-31"])
def test_dates_outside_the_years_1_to_9999_are_text(outside):
    assert isinstance(read_column([*DAYS.astype(str)[1:], outside], N, "when"), Classes)


def test_plot_has_a_colour_bar_with_dates():
    figure = eq.plot(np.random.default_rng(0).normal(size=(N, 2)), pd.Series(DAYS, name="when"))
    figure.draw_without_rendering()
    bar = figure.axes[1]
    assert bar.get_ylabel() == "when" and not figure.axes[0].texts
    assert any(re.match(r"2024|2025", label.get_text()) for label in bar.get_yticklabels())


def test_plot_of_identifiers_has_one_colour_and_a_note():
    ids = [f"cell {i}" for i in range(N)]
    figure = eq.plot(np.random.default_rng(0).normal(size=(N, 2)), pd.Series(ids, name="barcode"))
    axes = figure.axes[0]
    assert len(np.unique(axes.collections[0].get_facecolors(), axis=0)) == 1 and not axes.texts
    assert axes.get_xlabel() == "barcode has 400 values, too many for colours"


def test_page_offers_dates_and_not_identifiers():
    pytest.importorskip("bokeh")
    Y = np.random.default_rng(0).normal(size=(N, 2))
    table = {"when": DAYS.astype(str), "barcode": [f"cell {i}" for i in range(N)]}
    html = eq.page(Y, "barcode", table=table).html
    assert "barcode has 400 different values, too many for colours." in html and '"color": -1' in html
    assert '"name": "when", "kind": "number", "iso": 10, "colored": true' in html
    assert html.count('"colored": true') == 1


def test_page_shows_and_exports_dates(browser, tmp_path):
    pytest.importorskip("bokeh")
    from support.browser import until, watched

    eq.page(np.random.default_rng(0).normal(size=(N, 2)), "when", table={"when": DAYS}).save(tmp_path / "page.html")
    with watched(browser) as tab:
        tab.goto((tmp_path / "page.html").as_uri())
        tab.wait_for_selector("body[data-ready=yes]")
        assert tab.locator("#scale .ends span").all_inner_texts()[0].startswith("2024-01-0")
        tab.fill("#search", "2024-02-29")
        until(tab, "document.getElementById('matches').textContent === '1 point found'")
        tab.click("#take")
        with tab.expect_download() as download:
            tab.click("#export")
        assert download.value.path().read_text().splitlines()[1].endswith(",2024-02-29")
