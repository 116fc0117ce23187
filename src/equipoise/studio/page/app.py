"""Connects the widgets of an open page of the studio with its runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np

from ..._plural import plural
from ...data import Dataset
from ..data_sources import FILE, DataSources, public_message
from ..limits import Limits
from ..preview import Preview
from ..session.finished_run import FinishedRun
from ..session.method_run import MethodRun
from ..session.parameters import METHODS, Value
from ..session.player import Player
from ..session.python_source import python_source
from ..session.recipe import Recipe
from ..session.worker import Shot
from .flow import Flow
from .layout import MAP_NAMES, Layout
from .link import COLORS, LinkedRun, View, from_query, to_query
from .picture import Picture
from .table_form import Answer
from .template import set_template
from .trust_colors import TrustColors, TrustWatch

TICK = 100  # milliseconds between checks for changes other than frames
TEXT_INTERVAL = 0.2  # seconds between updates of the texts while the map moves, slow enough to read
REFRESH_INTERVAL = 1.0  # seconds between updates of the loss curve and the Python code while the map moves


class Page:
    """An open page: its widgets, and the player that computes its runs."""

    def __init__(self, document: Any, tables: DataSources, pages: dict[str, Page], limits: Limits, n_jobs: int | None):
        self.tables, self._pages, self._document, self._limits = tables, pages, document, limits
        self._id = str(document.session_context.id)
        self._host = document.session_context.request.headers.get("Host", "")
        self._closed = False
        self._woken = True  # True until the first tick: Bokeh accepts no callbacks while it creates a session
        self._picture = Picture("", Dataset("", np.zeros((0, 1)), None, ()))
        self._texts_of: Shot | None = None  # the shot that the texts describe
        self._texts_at = self._refreshed_at = self._play_until = 0.0
        self._active, self._color = 0, "class"
        self._answers: dict[str, Answer] = {}  # the last choices about each file
        self._flow = Flow()
        self._player = Player(self._failed, self._wake, n_jobs, limits.memory)
        self._trust = TrustWatch(
            lambda shot, colors: self._player.run_on_page(lambda: self._show_trust(shot, colors)),
            lambda error: self._player.run_on_page(lambda: self._show_message(public_message(error))),
        )
        self.layout = Layout(self._id, tables, self._changed)
        self._connect_widgets()
        pages[self._id] = self
        set_template(document, self.layout.roots, self.layout.message)
        document.on_session_destroyed(lambda context: self.close())
        document.add_periodic_callback(self._tick, TICK)
        self._open(*self._read_link(document.session_context.request.arguments))

    def close(self) -> None:
        """Stop the threads of a closed page."""
        self._closed = True
        self._player.close()
        self._trust.stop()
        self._pages.pop(self._id, None)

    def _read_link(self, arguments: dict[str, list[bytes]]) -> tuple[View, str]:
        """Return the state in the link that opened the page, and an error message (empty if the link is valid)."""
        own = {name: values for name, values in arguments.items() if not name.startswith("bokeh-")}
        try:
            view = from_query(urlencode({name: b",".join(values) for name, values in own.items()}))
        except ValueError as error:
            return View(self.tables.first), str(error)
        return view if "data" in own else replace(view, data=self.tables.first), ""

    def _connect_widgets(self) -> None:
        widgets, player = self.layout, self._player
        widgets.data.on_change("value", self.make_listener(self._data_chosen))
        widgets.inbox.on_change("tags", self.make_listener(self._uploaded))
        widgets.columns.on_click(lambda: self._ask(self._picture.data))
        widgets.form.on_answer(self.make_listener, self._answered)
        widgets.method.on_change("value", self.make_listener(self._method_chosen))
        widgets.optimizer.on_change("value", self.make_listener(self._optimizer_chosen))
        widgets.metric.on_change("value", self.make_listener(self._metric_chosen))
        widgets.seed.on_change("value", self.make_listener(self._seed_chosen))
        widgets.which.on_change("active", self.make_listener(self._activate))
        widgets.compare.on_change("active", self.make_listener(self._compare))
        widgets.color.on_change("value", self.make_listener(self._color_chosen))
        widgets.history.on_change("value", self.make_listener(lambda value: player.look_back(int(value))))
        widgets.speed.on_change("value", self.make_listener(lambda value: player.speed(int(value))))
        widgets.maps.clicks.on_change("tags", self.make_listener(self._clicked))
        widgets.maps.ack.on_change("tags", self.make_listener(self._drawn))
        widgets.play.on_click(self._play)
        widgets.step.on_click(lambda: player.step(self._refresh))
        widgets.reset.on_click(lambda: player.reset(self._refresh))
        widgets.share.on_click(self._share)

    def make_listener(self, act: Callable[[Any], None]) -> Callable[[str, Any, Any], None]:
        """Return a listener that ignores changes made by the studio itself and shows errors on the page."""

        def listener(attribute: str, old: Any, new: Any) -> None:
            if self.layout.updating:
                return
            try:
                act(new)
            except (ValueError, TypeError, OverflowError) as error:
                self._show_message(str(error))

        return listener

    def _show_message(self, text: str) -> None:
        self.layout.message.text = text
        if text:
            self.layout.form.show_error(text)

    def _failed(self, text: str) -> None:
        """Show the error of a command, and set the widgets to the runs that remain."""
        self._show_message(text)
        if self._player.worker.runs:
            self._refresh()

    # From the runs to the page

    def _wake(self) -> None:
        """Schedule `_tick`; can be called from any thread."""
        if not (self._woken or self._closed):
            self._woken = True
            self._document.add_next_tick_callback(self._tick)

    def _tick(self) -> None:
        self._woken = False
        if self._closed:
            return
        self._player.run_pending()
        if self._flow.ready() and (shot := self._player.next_shot()) is not None:
            self._draw(shot)
        now, playing = time.monotonic(), self._player.playing
        if self._texts_of is not self._picture.shot and (not playing or now - self._texts_at > TEXT_INTERVAL):
            self._texts_at = now
            self._update_texts()
        stage = self._player.worker.stage
        self.layout.show_state(stage.description, stage.share, self._player.play_requested, self._facts())
        if playing and now > self._play_until:
            self._player.pause()
            self._show_message(f"Paused after {self._limits.play / 60:.3g} min; press Play to continue.")
        if playing and now - self._refreshed_at > REFRESH_INTERVAL:
            self._refreshed_at = now
            self._refresh()

    def _facts(self) -> str:
        dataset = self._picture.dataset
        n, D = dataset.X.shape
        rate = f" · {self._flow.rate:.0f} frames/s" if self._flow.rate and self._player.playing else ""
        return f"{dataset.name} · {n:,} points × {plural(D, 'column')}{rate}" if n else ""

    def _drawn(self, tags: list[Any]) -> None:
        self._flow.drawn(int(tags[0]) if tags else 0)
        self._tick()

    def _draw(self, shot: Shot) -> None:
        picture = self._picture.with_shot(shot)
        if picture is self._picture:
            return  # a shot of the previous data set
        self._picture = picture
        self.layout.maps.draw(shot)
        self._flow.sent()
        if self._color == "trust":
            self._trust.watch(shot)

    def _update_texts(self) -> None:
        """Update the titles, the iteration and the forces shown with the maps."""
        self._texts_of = shot = self._picture.shot
        if shot is None:
            return
        self.layout.show_titles([self._picture.title(which) for which in range(len(shot.frames))])
        self.layout.show_iteration(shot.iteration, shot.last)
        self.layout.show_forces(shot, self._picture.dataset, min(self._active, len(shot.runs) - 1))

    def _refresh(self) -> None:
        """Update the widgets around the map: method and sliders, the loss, the Python code."""
        data, choices, active = self._picture.data, self._picture.choices, self._active

        def read() -> tuple[MethodRun, list[list[tuple[int, float]]], list[tuple[int, float, float]], str]:
            runs = self._player.runs
            which = min(active, len(runs) - 1)
            run, shown = runs[which], self._player.worker.shown
            at = run.iteration if shown is None else shown.frames[which].iteration
            code = python_source(run, self.tables.code(data, choices), at)
            return run, [list(run.curve) for run in runs], list(run.energy), code

        def show(result: tuple[MethodRun, list[list[tuple[int, float]]], list[tuple[int, float, float]], str]) -> None:
            run, curves, energy, code = result
            if not self._player.pending_changes:  # does not touch a slider that the user is moving
                self.layout.show_run(run, self._active)
            self.layout.show_transport(any(run.iterates for run in self._player.worker.runs))
            if isinstance(run, FinishedRun) and run.warnings:
                self._show_message(f"{METHODS[run.recipe.method].title}: {'; '.join(run.warnings)}.")
            self.layout.show_curves(curves, min(active, len(curves) - 1))
            self.layout.energy.show(energy, "" if len(curves) == 1 else MAP_NAMES[self._active])
            self.layout.code.text = code

        self._player.submit("", read, show)

    # From the page to the runs

    def _open(self, view: View, message: str = "") -> None:
        """Load the data of a view, replay its runs, and show a message."""
        self._player.pause()
        self.layout.announce(view.data)

        def build() -> Dataset:
            try:
                dataset = self.tables.load(view.data, view.choices)
                if view.point is not None and view.point >= len(dataset.X):
                    last = len(dataset.X) - 1
                    raise ValueError(f"point {view.point} in the link does not exist; choose a point from 0 to {last}")
                self._player.begin(dataset.X, view.runs, view.point)
            except Exception:
                self._player.run_on_page(
                    lambda: self.layout.announce(self._picture.data)
                )  # back to the current data set
                raise
            return dataset

        def built(dataset: Dataset) -> None:
            self._picture = Picture(view.data, dataset, choices=view.choices)
            self.layout.form.close()
            self._active, self._color = view.active, "class"
            self._trust.watch(None)
            self._show_message(message)
            self.layout.load(dataset, len(view.runs), view.active)
            self.layout.columns.visible = view.data.startswith(FILE)
            self._player.replay([shown.iteration for shown in view.runs], lambda: self._finish_opening(view.color))

        self._player.submit("Reading the data", build, built)

    def _finish_opening(self, color: str) -> None:
        self._refresh()
        self._color_chosen(color)

    def _play(self) -> None:
        if self._player.play_requested:
            self._player.pause()
            self._player.submit("", lambda: None, lambda _: self._refresh())
            return
        self._show_message("")
        self._flow.begin()
        self._play_until = time.monotonic() + self._limits.play
        self._player.play()

    def _changed(self, name: str, value: Value) -> None:
        """Change a parameter of the active run."""
        self._show_message("")
        self._player.change(self._active, name, value, self._refresh)

    def _restarted_runs(self) -> tuple[LinkedRun, ...]:
        """Return new runs with the current methods and seeds and default parameters; t-SNE if there are no runs yet.

        The metric is that of the recipe `Recipe()`, because another table may not allow the current one.
        """
        runs = self._player.worker.runs
        recipes = (replace(run.recipe, first=(), events=(), metric=Recipe.metric) for run in runs)
        return tuple(map(LinkedRun, recipes)) or (LinkedRun(),)

    @property
    def _run(self) -> MethodRun:
        """The active run, which the sliders control."""
        return self._player.runs[min(self._active, len(self._player.runs) - 1)]

    def _data_chosen(self, name: str) -> None:
        if name.startswith(FILE):
            self._ask(name)
        else:
            self._open(View(name, self._restarted_runs()))

    def _ask(self, name: str) -> None:
        """Show the form about the columns of a file."""
        self._show_message("")
        self._player.pause()
        self.layout.announce(self._picture.data, name)  # until the form is answered

        def show(preview: Preview) -> None:
            self.layout.form.show(name, self.tables.title(name), preview, self._answers.get(name))

        self._player.submit("Reading the first rows", lambda: self.tables.preview(name), show)

    def _answered(self, answer: Answer | None) -> None:
        """Open a file with the choices of the user; None if the user cancelled."""
        self._show_message("")
        if answer is None:
            return
        self._answers[answer.data] = answer
        runs = [replace(run, recipe=replace(run.recipe, metric=answer.metric)) for run in self._restarted_runs()]
        self._open(View(answer.data, tuple(runs), choices=answer.choices))

    def _method_chosen(self, method: str) -> None:
        self._restart(replace(self._run.recipe, method=method, first=(), events=()))

    def _optimizer_chosen(self, optimizer: str) -> None:
        """Restart the active run with another optimiser and its current values."""
        self._restart(replace(self._kept_recipe(), optimizer=optimizer))

    def _metric_chosen(self, metric: str) -> None:
        self._restart(replace(self._kept_recipe(), metric=metric))

    def _seed_chosen(self, seed: Any) -> None:
        self._restart(replace(self._kept_recipe(), seed=int(seed or 0)))

    def _kept_recipe(self) -> Recipe:
        """Return a recipe that restarts the active run with its current values."""
        run = self._run
        return replace(run.recipe, first=tuple(run.values.items()), events=())

    def _restart(self, recipe: Recipe) -> None:
        """Restart the active run with another recipe."""
        self._show_message("")
        self._player.restart_run(self._active, recipe, self._refresh)

    def _activate(self, which: int) -> None:
        self._active = min(max(int(which), 0), len(self._player.runs) - 1)
        self._texts_of = None
        self._refresh()

    def _compare(self, wanted: bool) -> None:
        self._active = int(wanted)
        (self._player.add_second_run if wanted else self._player.remove_second_run)(self._refresh)
        self.layout.show_second(wanted, self._active)

    def _color_chosen(self, value: str) -> None:
        if value not in COLORS:
            raise ValueError(f"unknown colouring {value!r}; choose from {', '.join(COLORS)}")
        self._color = value
        self.layout.show_color(value)
        if value == "trust":
            self.layout.legend.text = "Measuring trust …"
            self._trust.watch(self._picture.shot)
        else:
            self._trust.watch(None)
            self.layout.color_by_class(self._picture.dataset)

    def _show_trust(self, shot: Shot, colors: list[TrustColors]) -> None:
        """Colour the maps by trust, if this colouring is still selected and these runs are still shown."""
        shown = self._picture.shot
        if self._color == "trust" and shown is not None and shown.runs == shot.runs:
            self.layout.color_by_trust(colors)

    def _clicked(self, tags: list[Any]) -> None:
        row = int(tags[0]) if tags else -1
        if row >= len(self._picture.dataset.X):
            raise ValueError(f"row {row} does not exist; choose one of the {len(self._picture.dataset.X):,} rows")
        self._player.choose(row if row >= 0 else None, self._picture.shot)

    def _uploaded(self, tags: list[Any]) -> None:
        if len(tags) != 1 or not isinstance(tags[0], str):
            raise ValueError("the name of the uploaded file is missing; upload it again")
        self._ask(tags[0])

    def _share(self) -> None:
        self._player.pause()
        picture, color, active = self._picture, self._color, self._active
        self._player.submit(
            "",
            lambda: to_query(picture.view(color, active)),
            lambda query: self.layout.show_link(f"http://{self._host}/?{query}"),
        )

    def export(self, kind: str) -> tuple[bytes, str, str]:
        """Return the active map as a file: its content, name and MIME type."""
        return self._picture.export(kind, self._active)
