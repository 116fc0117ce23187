"""The studio in a real browser: playback, sliders, links, forces, comparison and files."""

import csv
import json

import numpy as np
import pytest
from support.browser import SECONDS, next_frames, until
from support.studio import MODEL, finish_commands, inject_markup, running, text, wait_until

from equipoise import data

# Number of pixels of the first map that are covered by points.
INK_PIXELS = """() => {
    const {canvas} = studio.scenes[0]
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d")
    studio.scenes[0].draw()
    copy.drawImage(canvas, 0, 0)
    const {data} = copy.getImageData(0, 0, canvas.width, canvas.height)
    return data.filter((value, i) => i % 4 === 3 && value > 0).length
}"""


# Text of the element with the focus, which may be in nested shadow roots.
FOCUSED = """() => {
    let found = document.activeElement
    while (found.shadowRoot?.activeElement) found = found.shadowRoot.activeElement
    return found.textContent
}"""


@pytest.fixture(scope="module")
def studio():
    pytest.importorskip("bokeh")
    with running("two_lines", limit=20_000) as studio:
        yield studio


def is_problem(message):
    """Return whether a console message is an error or warning other than the harmless ones
    about WebGL, hidden figures and rejected uploads."""
    known = ("GL Driver Message", "could not set initial ranges", "status of 400", "status of 403")
    return message.type in ("error", "warning") and not any(words in message.text for words in known)


@pytest.fixture
def visit(browser):
    """Return a function that opens a page of the studio; fail on console errors and requests to other hosts."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    problems = []

    def visit(address):
        tab = context.new_page()
        tab.set_default_timeout(1000 * SECONDS)
        tab.on("console", lambda message: problems.append(message.text) if is_problem(message) else None)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        own = ("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")
        tab.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
        tab.goto(address)
        until(tab, f"{text('title a')}.includes('iteration')")
        return tab

    yield visit
    assert not problems
    context.close()


def get(tab, name, attribute):
    return tab.evaluate(f"{MODEL.format(name=name)}.{attribute}")


def put(tab, name, attribute, value):
    """Set a widget as a user does: its model changes and notifies the server."""
    tab.evaluate(f"(value) => {{ {MODEL.format(name=name)}.{attribute} = value }}", value)


def positions(tab, name="a"):
    return np.array(tab.evaluate(f"Array.from({MODEL.format(name='points')}.data.{name})")).reshape(-1, 2)


def iteration(tab):
    return int(get(tab, "title a", "text").split("iteration ")[1].split()[0])


def press(tab, label):
    tab.get_by_role("button", name=label, exact=True).click()


def play_to(studio, tab, goal):
    put(tab, "speed", "value", "10")
    press(tab, "Play")
    until(tab, f"{MODEL.format(name='history')}.value >= {goal}")
    press(tab, "Pause")
    until(tab, f"{MODEL.format(name='play')}.label === 'Play'")
    settle(studio, tab)


def page_of(studio, tab):
    """Return the page of the studio that a tab shows."""
    args = f"{MODEL.format(name='save csv')}.js_event_callbacks.button_click[0].args"
    return studio.pages[tab.evaluate(f"{args}.session ?? {args}.get('session')")]


def settle(studio, tab):
    """Wait until the studio has executed all commands and the browser shows their results."""
    page = page_of(studio, tab)
    finish_commands(page)
    wait_until(lambda: page._player.worker.frames.empty() and page._texts_of is page._picture.shot)
    finish_commands(page)
    titles = {f"title {panel.name}": panel.title.text for panel in page.layout.maps.panels}
    for name, shown in {**titles, "code": page.layout.code.text}.items():
        until(tab, f"{text(name)} === {json.dumps(shown)}")
    next_frames(tab)


def test_sliders_move_points_and_a_link_restores_the_view(studio, visit):
    tab = visit(studio.url)
    assert tab.title() == "Equipoise studio" and len(positions(tab)) == 200
    start = positions(tab)
    play_to(studio, tab, 120)
    moved = positions(tab)
    assert not np.allclose(moved, start)
    losses = get(tab, "curve a", "data.loss")
    losses = list(losses.values()) if isinstance(losses, dict) else losses
    assert losses[-1] < 0.8 * losses[0]

    at = iteration(tab)
    put(tab, "dof", "value", float(np.log10(5)))  # a change during the run leaves the points in place
    until(tab, f"{text('code')}.includes(\"run.change('dof', 5.0)\")")
    assert np.array_equal(positions(tab), moved) and iteration(tab) == at
    press(tab, "Step")
    until(tab, f"{MODEL.format(name='history')}.value === {at + 10}")
    settle(studio, tab)
    assert not np.array_equal(positions(tab), moved)

    press(tab, "Share link")
    until(tab, f"{MODEL.format(name='link')}.value.includes('changes')")
    link = get(tab, "link", "value")
    assert f"iteration={at + 10}" in link and tab.url == link
    other = visit(link)
    until(other, f"{text('title a')} === {get(tab, 'title a', 'text')!r}")
    settle(studio, other)
    assert np.array_equal(positions(other), positions(tab))
    assert get(other, "dof", "value") == pytest.approx(np.log10(5), abs=1e-3)
    assert get(other, "code", "text") == get(tab, "code", "text")

    put(tab, "history", "value", 60)  # rewind, then continue
    until(tab, f"{text('title a')}.includes('iteration {max(t for t in range(0, 61, 10))} ')")
    press(tab, "Step")
    until(tab, f"{text('code')}.includes('run.rewind(60)')")
    assert iteration(tab) == 70


def test_energies_are_shown_for_points_with_mass(studio, visit):
    tab = visit(studio.url)
    assert not get(tab, "energy", "visible")
    put(tab, "optimizer", "value", "frictionless")
    settle(studio, tab)
    play_to(studio, tab, 30)
    until(tab, f"{MODEL.format(name='energy')}.visible")
    assert "eq.Dynamics(friction=0)" in get(tab, "code", "text")
    put(tab, "optimizer", "value", "momentum")
    until(tab, f"!{MODEL.format(name='energy')}.visible")


def test_points_of_the_previous_data_set_are_cleared(studio, visit):
    tab = visit(studio.url)
    settle(studio, tab)
    assert tab.evaluate(INK_PIXELS) > 0
    put(tab, "points", "data", {})  # as `Maps.load` does before the next frame
    until(tab, "studio.scenes[0].at === undefined")
    assert tab.evaluate(INK_PIXELS) == 0


def test_click_shows_the_forces_on_a_point(studio, visit):
    tab = visit(studio.url)
    play_to(studio, tab, 40)
    here = positions(tab)
    d2 = ((here[:, None] - here[None]) ** 2).sum(axis=2) + np.diag(np.full(len(here), np.inf))
    row = int(d2.min(axis=1).argmax())
    x, y = tab.evaluate(
        """(row) => {
            const {view, at} = studio.scenes[0]
            const {left, top} = view.el.getBoundingClientRect()
            return [left + view.frame.x_scale.compute(at[2 * row]), top + view.frame.y_scale.compute(at[2 * row + 1])]
        }""",
        row,
    )
    tab.mouse.move(x + 2, y)
    tip = tab.locator("#tip")
    tip.wait_for()
    assert tip.inner_text().split("\n") == [f"row {row}", "left" if row < 100 else "right"]
    tab.mouse.click(x, y)
    until(tab, f"{text('forces')}.includes('attraction')")
    assert f"Row {row}, " in get(tab, "forces", "text")
    assert get(tab, "arrows a", "data.x0.length") == 2 and get(tab, "pulls a", "data.x0.length") == 30
    painted = tab.evaluate(INK_PIXELS)
    assert painted > 1000  # WebGL has drawn the points
    press(tab, "Step")  # the arrows follow the point
    settle(studio, tab)
    assert tab.evaluate(f"{MODEL.format(name='arrows a')}.data.x0[0]") == pytest.approx(
        positions(tab)[row, 0], rel=1e-5
    )


def test_two_runs_side_by_side_with_trust_colours(studio, visit):
    tab = visit(studio.url)
    play_to(studio, tab, 30)
    tab.get_by_role("button", name="Compare two runs").click()
    until(tab, f"{text('title b')}.startsWith('2 · UMAP')")
    settle(studio, tab)
    assert get(tab, "method", "value") == "umap" and get(tab, "n_neighbors", "visible")
    assert not get(tab, "perplexity", "visible")
    assert get(tab, "title b", "text").split(" · ")[2] == get(tab, "title a", "text").split(" · ")[2]
    first = positions(tab)
    put(tab, "min_dist", "value", 0.7)
    press(tab, "Step")
    until(tab, f"{text('code')}.includes('min_dist')")
    settle(studio, tab)
    assert not np.array_equal(positions(tab), first)  # both runs advance
    put(tab, "color", "value", "trust")
    until(tab, f"{text('legend')}.includes('0.99 or more')")
    assert set(tab.evaluate(f"Array.from({MODEL.format(name='colors')}.data.b)")) <= {0, 1, 2, 3}
    after = iteration(tab) + 10
    press(tab, "Step")  # the colours follow the map
    until(tab, f"{text('legend')}.includes('at iteration ' + {after})")
    press(tab, "Share link")
    until(tab, f"{MODEL.format(name='link')}.value.includes('b.method=umap')")
    other = visit(get(tab, "link", "value"))
    until(other, f"{text('title b')} === {get(tab, 'title b', 'text')!r}")
    until(other, f"{text('legend')}.includes('0.99 or more')")
    assert np.array_equal(positions(other, "b"), positions(tab, "b"))


def test_files_are_exported_and_uploaded(studio, visit, tmp_path):
    tab = visit(studio.url)
    play_to(studio, tab, 20)
    saved = {}
    for kind in ("CSV", "PNG", "HTML"):
        with tab.expect_download() as download:
            press(tab, kind)
        saved[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[kind])
    with open(saved["CSV"], newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["y1", "y2", "class"] and {row[2] for row in rows[1:]} == {"left", "right"}
    assert np.allclose(np.array([row[:2] for row in rows[1:]], float), positions(tab), rtol=1e-5, atol=1e-6)
    assert saved["PNG"].read_bytes()[:4] == b"\x89PNG" and "two_lines" in saved["HTML"].name
    assert b"<title>two_lines, t-SNE" in saved["HTML"].read_bytes()

    def upload(name, content):
        (tmp_path / name).write_bytes(content)
        with tab.expect_file_chooser() as chooser:
            tab.get_by_role("button", name="Upload").click()
        chooser.value.set_files(tmp_path / name)

    upload("big.csv", b"1,2\n" * 10_000)
    until(tab, f"{text('message')}.includes('big.csv exceeds the upload limit of 20 kB')")
    tab.route("**/upload?*", lambda route: route.continue_(url=route.request.url.replace("session=", "session=x")))
    upload("lost.csv", b"1,2\n3,4\n")
    until(tab, f"{text('message')} === 'this page is no longer open in the studio; reload it'")
    tab.unroute("**/upload?*")
    upload("ragged.csv", b"1,2\n3\n")
    until(tab, f"{text('message')}.includes('line 2: expected 2 cells')")
    iris = data.load("iris")
    lines = [",".join(map(str, [*row, iris.classes[c]])) for row, c in zip(iris.X, iris.labels, strict=True)]
    upload("flowers.csv", ("a,b,c,d,kind\n" + "\n".join(lines)).encode())
    press(tab, "Make the map")
    until(tab, f"{text('facts')}.startsWith('flowers · 150 points × 4 columns')")
    until(tab, f"{MODEL.format(name='points')}.data.a.length === 300")
    assert "setosa" in get(tab, "legend", "text")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("data=file:../../secret.csv", "outside the studio's folder"),
        ("data=named:nonesuch", "unknown data set"),
        ("perplexity=many", "perplexity in the link must be a number"),
    ],
)
def test_invalid_links_show_the_reason(studio, browser, query, message):
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(studio.url + "?" + query)
    until(tab, f"{text('message')}.includes({message!r})")
    context.close()


def test_space_plays_and_pauses_because_the_button_keeps_the_focus(studio, visit):
    tab = visit(studio.url)
    settle(studio, tab)
    tab.get_by_role("button", name="Play", exact=True).focus()
    tab.keyboard.press("Space")
    until(tab, f"{MODEL.format(name='play')}.label === 'Pause' && {MODEL.format(name='history')}.value >= 5")
    until(tab, f"({FOCUSED})() === 'Pause'")
    tab.keyboard.press("Space")
    until(tab, f"{MODEL.format(name='play')}.label === 'Play'")
    settle(studio, tab)
    assert not page_of(studio, tab)._player.playing


@pytest.mark.parametrize(("width", "height"), [(900, 700), (1024, 768), (1280, 800)])
def test_all_panels_fit_in_small_windows(studio, visit, width, height):
    tab = visit(studio.url)
    tab.set_viewport_size({"width": width, "height": height})
    settle(studio, tab)
    until(tab, f"document.documentElement.clientWidth === {width}")
    next_frames(tab)
    scrolled = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert scrolled == [width, height]
    side = tab.locator("#side").bounding_box()
    slider = tab.locator("#transport .noUi-target").bounding_box()
    assert side["x"] + side["width"] <= width and slider["width"] > 150
    assert slider["x"] + slider["width"] <= side["x"]


def test_tooltip_follows_the_points_when_the_map_moves_or_is_zoomed(studio, visit):
    tab = visit(studio.url)
    settle(studio, tab)
    x, y = tab.evaluate(
        """() => {
            const {view, at} = studio.scenes[0]
            const {left, top} = view.el.getBoundingClientRect()
            return [left + view.frame.x_scale.compute(at[0]), top + view.frame.y_scale.compute(at[1])]
        }"""
    )
    tab.mouse.move(x, y)
    tab.locator("#tip").wait_for()
    under = """(() => {
        const scene = studio.scenes[0], {x_scale, y_scale} = scene.view.frame
        const row = scene.nearest(x_scale.invert(scene.mouse[0]), y_scale.invert(scene.mouse[1]))
        const tip = document.getElementById("tip")
        return row < 0 ? tip.hidden : tip.textContent.startsWith(`row ${row}\\n`)
    })()"""
    put(tab, "speed", "value", "25")
    for _ in range(3):
        page_of(studio, tab)._player.step(lambda: None)  # the mouse stays where it is
        settle(studio, tab)
        until(tab, under)
    tab.mouse.wheel(0, -800)
    until(tab, under)


def test_injected_script_and_event_handler_do_not_run(studio, browser, monkeypatch):
    inject_markup(monkeypatch, "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">")
    context, blocked = browser.new_context(), []
    tab = context.new_page()
    tab.set_default_timeout(1000 * SECONDS)
    tab.on("console", lambda message: blocked.append(message.text) if "Content Security" in message.text else None)
    tab.goto(studio.url)
    until(tab, f"{text('title a')}.includes('iteration')")
    next_frames(tab)
    assert tab.title() == "Equipoise studio"
    assert len(blocked) == 4 and all("inline" in message for message in blocked)
    context.close()
