"""Studio playback without a browser or server: shots, pictures, frame pacing, stages and trust colours."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from support.studio import SECONDS, wait_until

from equipoise import data, progress
from equipoise.studio.page import flow
from equipoise.studio.page.app import Page
from equipoise.studio.page.flow import AHEAD, TIMEOUT, Flow
from equipoise.studio.page.layout import Layout
from equipoise.studio.page.link import LinkedRun
from equipoise.studio.page.picture import Picture
from equipoise.studio.page.trust_colors import TrustWatch
from equipoise.studio.session import run
from equipoise.studio.session.player import Player
from equipoise.studio.session.python_source import python_source
from equipoise.studio.session.recipe import Recipe
from equipoise.studio.session.run import Run, loss_every
from equipoise.studio.session.stage import Stage
from equipoise.studio.session.worker import Shot

N = 90


@pytest.fixture
def digits():
    dataset = data.load("digits")
    return type(dataset)(dataset.name, dataset.X[:N], dataset.labels[:N], dataset.classes)


@pytest.fixture
def messages():
    return []


@pytest.fixture
def player(messages, digits):
    player = Player(messages.append, lambda: None, n_jobs=1)
    player.submit("", lambda: player.begin(digits.X, (LinkedRun(),), None))
    yield player
    player.close()
    player.worker.join(SECONDS)


def finish(player):
    """Wait until the worker has finished all tasks and their callbacks have run in this thread."""
    ended = []
    player.submit("", lambda: None, ended.append)
    wait_until(lambda: player.run_pending() or ended)


def other_data_of_same_size(dataset):
    return type(dataset)("other", dataset.X + 1.0, dataset.labels, dataset.classes)


def test_shot_of_other_data_of_the_same_size_is_ignored(digits):
    old, new = Run(digits.X, n_jobs=1), other_data_of_same_size(digits)
    picture = Picture("named:other", new)
    stale = Shot.of((old,), (old.frame,), None)
    assert picture.with_shot(stale) is picture
    with pytest.raises(ValueError, match="no map yet"):
        picture.export("csv", 0)
    fresh = Run(new.X, n_jobs=1)
    shown = picture.with_shot(Shot.of((fresh,), (fresh.step(3),), 5))
    content, name, _ = shown.export("csv", 1)
    assert name == "other-tsne-3.csv" and len(content.splitlines()) == N + 1
    view = shown.view("trust", 0)
    assert (view.data, view.color, view.point, view.runs[0].iteration) == ("named:other", "trust", 5, 3)


def test_starting_new_runs_discards_the_pending_shot(player, digits, messages):
    player.submit("", player.worker.publish)
    finish(player)
    assert not player.worker.frames.empty()
    player.submit("", lambda: player.begin(other_data_of_same_size(digits).X, (LinkedRun(),), None))
    finish(player)
    assert player.next_shot() is None and player.worker.shown is None and not messages


def test_stale_click_and_replay_are_ignored(player, digits, messages):
    arrived = []
    player.submit("", player.worker.publish)
    finish(player)
    seen = player.next_shot()
    small = digits.X[:20]
    player.replay([400], lambda: arrived.append("old"))
    player.submit("", lambda: player.begin(small, (LinkedRun(), LinkedRun(Recipe("umap"))), None))
    player.choose(N - 1, seen)
    player.step(lambda: arrived.append("step"))
    finish(player)
    finish(player)
    assert messages == [] and arrived == ["step"]
    shot = player.next_shot()
    assert shot.point is None and [frame.Y.shape for frame in shot.frames] == [(20, 2), (20, 2)]
    assert [frame.iteration for frame in shot.frames] == [1, 1]


def test_steps_continue_from_the_last_published_frame(player):
    for _ in range(3):  # before the page has drawn any frame
        player.step(lambda: None)
    finish(player)
    assert player.runs[0].iteration == 3
    player.look_back(1)
    player.step(lambda: None)
    finish(player)
    assert player.next_shot().frames[0].iteration == 2


def test_fast_slider_moves_are_merged_into_one_change(player):
    player.step(lambda: None)
    finish(player)
    busy = threading.Event()
    player.submit("", lambda: busy.wait(SECONDS))
    for value in np.linspace(2, 6, 41):
        player.change(0, "exaggeration", float(value), lambda: None)
    assert player.pending_changes == {(0, "exaggeration"): 6.0}
    busy.set()
    finish(player)
    assert not player.pending_changes
    assert [(event.name, event.value) for event in player.runs[0].recipe.events] == [("exaggeration", 6.0)]


@pytest.mark.parametrize("after", ["pause", "reset", "look back", "failure"])
def test_queued_play_can_be_cancelled(player, messages, after):
    player.step(lambda: None)
    finish(player)
    busy = threading.Event()
    player.submit("", lambda: busy.wait(SECONDS))
    if after == "failure":
        player.submit("", lambda: 1 / 0)
    player.play()
    assert player.play_requested and not player.playing
    if after == "look back":
        player.look_back(0)
    elif after == "reset":
        player.reset(lambda: None)
    elif after == "pause":
        player.pause()
    busy.set()
    finish(player)
    assert not player.play_requested and not player.playing and bool(messages) == (after == "failure")
    assert player.runs[0].iteration == int(after != "reset")
    player.play()
    finish(player)
    assert player.play_requested and player.playing


def test_shot_records_the_last_iteration_of_its_run(player):
    player.speed(5)
    for _ in range(2):
        player.step(lambda: None)
    player.look_back(5)
    finish(player)
    shot = player.next_shot()
    assert (shot.frames[0].iteration, shot.last) == (5, 10)
    player.reset(lambda: None)
    finish(player)
    assert player.next_shot().last == 0


def test_title_shows_the_iteration_of_an_older_loss(monkeypatch, digits):
    monkeypatch.setattr(run, "LARGE_N", N - 1)
    one, picture = Run(digits.X, n_jobs=1), Picture("named:digits", digits)

    def title():
        return picture.with_shot(Shot.of((one,), (one.frame,), None)).title(0)

    one.step(50)
    at_50 = title()
    assert at_50 == f"t-SNE · iteration 50 · loss {one.curve[-1][1]:.4g}"
    one.step(7)
    assert title() == at_50.replace("iteration 50", "iteration 57") + " at 50"


def test_infinite_value_from_a_client_shows_a_message():
    messages = []
    page = SimpleNamespace(layout=SimpleNamespace(updating=False), _show_message=messages.append)
    Page.make_listener(page, int)("value", 0, float("inf"))
    assert messages == ["cannot convert float infinity to integer"]


@pytest.fixture
def layout():
    pytest.importorskip("bokeh")
    tables = SimpleNamespace(limit=100, names=lambda: ["digits"])
    return Layout("session", tables, lambda name, value: None)


def test_history_slider_ends_at_the_last_iteration(layout):
    for at, last, end in [(120, 120, 120), (60, 120, 120), (70, 70, 70), (0, 0, 1), (5, 0, 5)]:
        layout.show_iteration(at, last)
        assert (layout.history.value, layout.history.end) == (at, end)


def test_loss_curves_are_hidden_until_they_have_data(layout):
    visible = [renderer.visible for renderer in layout.loss.renderers]
    assert visible == [False, False]
    layout.show_curves([[(0, 4.0), (1, 2.0)]], 0)
    layout.show_second(True, 1)
    assert [renderer.visible for renderer in layout.loss.renderers] == [True, False]
    layout.show_curves([[(0, 4.0), (1, 2.0)], [(0, 0.0), (1, 3.0)]], 1)
    assert [renderer.visible for renderer in layout.loss.renderers] == [True, True]
    assert [list(source.data["loss"]) for source in layout.curves] == [[1.0, 0.5], [0.0, 3.0]]
    layout.show_curves([[(0, 4.0), (1, 2.0)]], 0)
    assert [renderer.visible for renderer in layout.loss.renderers] == [True, False]


def test_frames_wait_until_the_browser_has_drawn_them(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(flow.time, "monotonic", lambda: now[0])
    pace = Flow()
    for _ in range(AHEAD):
        assert pace.ready()
        pace.sent()
    assert not pace.ready()
    pace.drawn(1)
    assert pace.ready()
    pace.sent()
    assert not pace.ready()
    now[0] += TIMEOUT + 0.1  # a hidden tab, or a page that is still loading
    assert pace.ready()
    pace.sent()
    assert not pace.ready()
    pace.drawn(1 + AHEAD)  # several frames at once
    pace.sent()
    assert pace.ready()
    now[0] += 0.25
    pace.drawn(9)
    assert pace.rate == pytest.approx(2 / (TIMEOUT + 0.35))


def test_stage_describes_task_share_and_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("equipoise.studio.session.stage.time.monotonic", lambda: now[0])
    stage = Stage()
    assert stage.description == "" and stage.share is None
    stage.clear("Reading the data")
    with progress.show_on(stage):
        assert stage.description == "Reading the data …"
        progress.stage("neighbours", 70_000)
        progress.advance_callback()(17_500)
        now[0] = 4.0
        assert stage.description == "Finding neighbours · 25% of 70,000 points · 4 s …" and stage.share == 0.25
        progress.stage("affinities")
        assert stage.description == "Computing affinities · 4 s …" and stage.share is None
    progress.stage("neighbours", 10)  # outside the context nothing is reported
    assert stage.description.startswith("Computing affinities")


def test_stage_text_includes_the_unit():
    stage = Stage()
    with progress.show_on(stage):
        progress.stage("optimise", 40, "iterations")
        progress.advance_callback()(10)
        assert stage.description == "optimise · 25% of 40 iterations …"


def test_stage_text_is_consistent_when_the_stage_ends_concurrently():
    stage, looking = Stage(), []

    class Total(int):
        def __bool__(self):
            if looking:
                stage.end()  # as another thread could
            return int(self) > 0

    stage.begin("neighbours", Total(8), "points", 2)
    looking.append(True)
    assert stage.description == "Finding neighbours · 25% of 8 points …"
    assert stage.description == "Finding neighbours …" and stage.share is None


def test_concurrent_advances_are_all_counted():
    stage = Stage()
    stage.begin("neighbours", 8, "points", 0)
    other = threading.Thread(target=lambda: stage.advance(3))

    class Slow(int):
        def __radd__(self, done):
            other.start()
            other.join(0.1)  # it interleaves, unless it has to wait for a lock
            return done + int(self)

    stage.advance(Slow(1))
    other.join()
    assert stage.share == 0.5


def test_trust_is_measured_on_the_newest_shot(digits):
    seen, errors = [], []
    watch = TrustWatch(lambda shot, colors: seen.append((shot, colors)), errors.append)
    one = Run(digits.X, n_jobs=1)
    shots = [Shot.of((one,), (one.step(5),), None) for _ in range(30)]
    for shot in shots:
        watch.watch(shot)
    wait_until(lambda: seen and seen[-1][0] is shots[-1])
    watch.stop()
    colors = seen[-1][1][0]
    assert colors.iteration == 150 and len(seen) < 30 and not errors
    assert colors.mean == pytest.approx(float(one.trust(shots[-1].frames[0])))
    assert colors.codes.dtype == np.uint8 and colors.codes.shape == (N,)


def test_loss_of_many_points_is_computed_rarely(monkeypatch, digits):
    monkeypatch.setattr(run, "LARGE_N", N - 1)
    assert loss_every(N) == 10 and loss_every(N - 1) == 1
    one = Run(digits.X, n_jobs=1)
    frames = [one.step() for _ in range(217)]
    assert [t for t, _ in one.curve] == list(range(0, 218, 10))
    assert frames[-1].loss == one.curve[-1][1] == frames[209].loss
    source = python_source(one, "X = data.load('digits').X", 217)
    namespace = {}
    exec(source.replace(".X\n", f".X[:{N}]\n"), namespace)
    assert np.array_equal(namespace["Y"], frames[-1].Y)
    one.change("exaggeration", 2.0)
    assert one.frame.loss == pytest.approx(one.problem.loss(one.frame.Y), rel=1e-5)
