"""Pages of maps in curved spaces, in a real browser: the repeated torus and the movable disk."""

import csv

import numpy as np
import pytest
from support.browser import VIEW, map_pages, next_frames, on_screen, until

import equipoise as eq
from equipoise.geometry import Hyperbolic, Torus
from equipoise.views.charts import make_chart

PERIOD = 10.0


@pytest.fixture
def visit(browser, tmp_path):
    """Return a function that opens a page in the browser."""
    with map_pages(browser, tmp_path) as visit:
        yield visit


def position(tab, point):
    """Return the window coordinates of a point of the map."""
    return on_screen(tab, [point])[0]


def exported(tab):
    """Export the selection and return its rows and positions."""
    with tab.expect_download() as download:
        tab.click("#export")
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [int(row["row"]) for row in rows], np.array([[float(row["x"]), float(row["y"])] for row in rows])


@pytest.mark.browser
def test_torus_repeats_itself_on_all_sides(visit):
    pytest.importorskip("bokeh")
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(-1, 2) * PERIOD / 8
    Y = np.mod(grid + rng.uniform(-0.2, 0.2, grid.shape), PERIOD)
    torus, labels = Torus(PERIOD), np.where(Y[:, 0] < 5, "left", "right")
    points = make_chart(Y, torus).points
    tab = visit(eq.page(Y, labels, geometry=torus))
    shift = f"{VIEW}.model.x_range.setv({{start: {PERIOD / 2 - 1}, end: {1.5 * PERIOD + 1}}})"
    tab.evaluate(f"() => {{ {shift} }}")
    next_frames(tab)
    row = int(np.argmin(np.abs(points - [2.0, 5.0]).sum(axis=1)))
    tab.mouse.move(*position(tab, points[row] + [PERIOD, 0]))  # in the second square
    until(tab, f"document.getElementById('tip').dataset.row === '{row}'")
    tab.locator(".bk-tool-icon-box-select").first.click()
    low, high = np.array([8.0, 3.0]), np.array([12.0, 7.0])  # across the edge
    tab.mouse.move(*position(tab, low))
    tab.mouse.down()
    tab.mouse.move(*position(tab, high), steps=6)
    tab.mouse.up()
    until(tab, "!document.getElementById('export').disabled")
    inside = np.zeros(len(Y), bool)
    for image in (points, points + np.array([PERIOD, 0])):
        inside |= ((image > low) & (image < high)).all(axis=1)
    rows, positions = exported(tab)
    assert rows == np.flatnonzero(inside).tolist() and (points[rows, 0] < 5).any() and (points[rows, 0] > 5).any()
    np.testing.assert_allclose(positions, Y[rows], atol=1e-5)


@pytest.mark.browser
def test_click_moves_a_point_to_the_centre_of_the_disk(visit):
    pytest.importorskip("bokeh")
    angle, radius = 2 * np.pi * np.arange(12) / 12, np.tile([0.6, 0.9], 6)[:, None]
    Y = np.concatenate([[[0.05, 0.02]], radius * np.column_stack([np.cos(angle), np.sin(angle)])])
    plane = Hyperbolic(1.0)
    tab = visit(eq.page(Y, np.repeat(["a", "b"], [6, 7]), geometry=plane))
    tab.mouse.click(*position(tab, Y[3]))
    until(tab, "document.body.dataset.center === '3'")
    next_frames(tab)
    # The point has left the mouse, and its ring and tooltip are gone.
    until(tab, "document.getElementById('tip').hidden && document.getElementById('mark').hidden")
    tab.mouse.move(*position(tab, [0.3, 0.3]))
    tab.mouse.move(*position(tab, [0, 0]))
    until(tab, "document.getElementById('tip').dataset.row === '3'")
    moved = plane.map(plane.translated(plane.work(Y), plane.work(Y[3:4])[0]))  # an isometry that fixes directions at c
    tab.mouse.move(*position(tab, moved[0]))
    until(tab, "document.getElementById('tip').dataset.row === '0'")
    tab.locator("#legend button").first.click()
    rows, positions = exported(tab)
    np.testing.assert_allclose(positions, Y[rows], atol=1e-6)  # those of the map, not of the drawing
    tab.click("#reset")
    next_frames(tab)
    tab.mouse.move(*position(tab, Y[3]))
    until(tab, "document.getElementById('tip').dataset.row === '3'")


def drawn_lines(tab):
    """Return the lines of the graticule, as arrays (m, 2) with NaN where they are behind the globe."""
    data = "Bokeh.documents[0].get_model_by_name('graticule').data"
    lines = tab.evaluate(f"{data}.xs.map((line, k) => Array.from(line, (x, i) => [x, {data}.ys[k][i]]))")
    return [np.array(line, dtype=float) for line in lines]


@pytest.mark.browser
def test_globe_has_meridians_and_parallels_that_turn_with_it(visit):
    pytest.importorskip("bokeh")
    tab = visit(eq.page(np.concatenate([np.eye(3), -np.eye(3)]), list("abcdef"), geometry="sphere"))
    lines = drawn_lines(tab)
    assert len(lines) == 12 + 5
    assert max(np.nanmax(np.hypot(*line.T)) for line in lines) <= 1 + 1e-6
    heights = sorted(round(float(np.nanmean(line[:, 1])), 6) for line in lines if np.nanstd(line[:, 1]) < 1e-9)
    np.testing.assert_allclose(heights, np.sin(np.radians([-60, -30, 0, 30, 60])), atol=1e-6)  # seen from the side
    assert np.isnan(lines[-1]).any()  # the other side is hidden
    tab.fill("#search", "c")
    until(tab, "!document.getElementById('zoom').disabled")
    tab.click("#zoom")  # turns the pole to the front
    next_frames(tab)
    parallel = drawn_lines(tab)[-1]
    np.testing.assert_allclose(np.hypot(*parallel.T), 0.5, atol=1e-6)  # 60° north, around the pole


@pytest.mark.browser
def test_globe_faces_a_patch_of_points(visit):
    pytest.importorskip("bokeh")
    Y = np.array([[0.1, 0.0, 1.0], [-0.1, 0.0, 1.0], [0.0, 0.1, 1.0], [0.0, -0.1, 1.0], [0.0, 0.0, 1.0]])
    tab = visit(eq.page(Y / np.linalg.norm(Y, axis=1, keepdims=True), list("abcde"), geometry="sphere"))
    for _ in range(2):  # at first, and after the view was reset
        tab.mouse.move(*position(tab, [0, 0]))
        until(tab, "document.getElementById('tip').dataset.row === '4' && !document.getElementById('tip').hidden")
        tab.click("#reset")
        next_frames(tab)


@pytest.mark.browser
def test_globe_turns_when_it_is_dragged(visit):
    pytest.importorskip("bokeh")
    Y = 3.0 * np.concatenate([np.eye(3), -np.eye(3)])
    tab = visit(eq.page(Y, list("abcdef"), geometry="sphere"))
    hover = lambda point, row: (  # noqa: E731
        tab.mouse.move(*position(tab, point)),
        until(tab, f"document.getElementById('tip').dataset.row === '{row}' && !document.getElementById('tip').hidden"),
    )
    hover([0, 0], 4)  # −y is in front, x to the right and z upwards
    hover([1, 0], 0)
    hover([0, 1], 2)
    tab.mouse.move(*position(tab, [0, 0.3]))
    tab.mouse.down()
    tab.mouse.move(*position(tab, [0.5, 0.3]), steps=20)
    tab.mouse.up()
    until(tab, "document.body.dataset.turned === 'yes'")
    next_frames(tab)
    hover([np.sin(0.5), 0], 4)  # turned by 0.5, to the right
    hover([-np.cos(0.5), 0], 3)  # −x, which was at the left edge
    tab.fill("#search", "f")
    until(tab, "!document.getElementById('zoom').disabled")
    tab.click("#zoom")  # turns −z to the front, which was at the bottom
    next_frames(tab)
    hover([0, 0], 5)
    tab.click("#take")
    with tab.expect_download() as download:
        tab.click("#export")
    assert download.value.path().read_text(encoding="utf-8").splitlines() == ["row,x,y,z,class", "5,0,0,-1,f"]
    tab.click("#reset")
    next_frames(tab)
    hover([0, 0], 4)


def test_pages_of_flat_maps_have_no_frame():
    pytest.importorskip("bokeh")
    html = eq.page(np.random.default_rng(0).normal(size=(20, 2))).html
    assert '"period": null' in html and '"disk": false' in html


def test_map_in_three_dimensions_turns_and_is_exported_as_it_is(visit):
    rng = np.random.default_rng(0)
    Y = np.vstack([[5.0, 5.0, 40.0], rng.normal(size=(60, 3)) + 5])
    tab = visit(eq.page(Y, ["far"] + 60 * ["near"]))
    assert "This plot shows three dimensions; drag to turn them." in tab.inner_text("main")
    lines = f"{VIEW}.model.document.get_model_by_name('graticule').data.xs"
    assert tab.evaluate(f"{lines}.length") == 12
    before = tab.evaluate(lines)
    box = tab.locator("#dots").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + 80, y + 30, steps=4)
    tab.mouse.up()
    until(tab, "document.body.dataset.turned === 'yes'")
    after = tab.evaluate(lines)
    assert np.abs(np.array(before) - np.array(after)).max() > 0.05
    tab.locator("#legend button").filter(has_text="far").click()
    with tab.expect_download() as download:
        tab.click("#export")
    header, row = download.value.path().read_text().splitlines()
    assert header == "row,x,y,z,class"
    assert np.array(row.split(",")[1:4], float) == pytest.approx(Y[0], rel=1e-5)
