"""The page of a studio and what its buttons do; one object for every page that is open."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlencode

import numpy as np

from ...data import Dataset
from .export import MIME, export
from .forces import Forces
from .history import Frame
from .layout import Layout
from .link import Shown, View, from_query, to_query
from .parameters import METHODS, Value
from .python_source import python_source
from .recipe import Recipe
from .run import Run
from .tables import Tables
from .trust import trust_colors
from .worker import Worker

TICK = 20  # milliseconds between looks for a new frame
AHEAD = 3  # frames that the page has been sent and has not drawn
PATIENCE = 0.5  # seconds after which another is sent all the same: to a hidden tab two in a second
CHUNK = 20  # iterations between looks at whether a replay is still wanted
TITLE = "Equipoise studio"


class Page:
    """One open page: widgets, a worker with its runs, and the frames that go from one to the other."""

    def __init__(self, document: Any, tables: Tables, pages: dict[str, Page], n_jobs: int | None):
        self.tables, self._pages, self._n_jobs = tables, pages, n_jobs
        self._id = str(document.session_context.id)
        self._host = document.session_context.request.headers.get("Host", "")
        self._done: SimpleQueue[Callable[[], None]] = SimpleQueue()  # what the worker leaves to be done here
        self._worker = Worker(lambda text: self._done.put(lambda: self._say(text)))
        self._data, self._dataset = "", Dataset("", np.zeros((0, 1)), None, ())
        self._frames: tuple[Frame, ...] = ()
        self._forces: tuple[Forces | None, ...] = ()
        self._active, self._color = 0, "class"
        self._sent = self._drawn = 0
        self._sent_at = 0.0
        self._times: deque[float] = deque(maxlen=20)
        self._looked = 0.0
        self._closed = False
        self.layout = Layout(self._id, tables, self._changed)
        self._wire()
        pages[self._id] = self
        document.title = TITLE
        document.template = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        for root in self.layout.roots:
            document.add_root(root)
        document.on_session_destroyed(lambda context: self.close())
        document.add_periodic_callback(self._tick, TICK)
        self._open(*self._asked(document.session_context.request.arguments))

    def close(self) -> None:
        """End the worker; the page is gone."""
        self._closed = True
        self._worker.stop()
        self._pages.pop(self._id, None)

    def _asked(self, arguments: dict[str, list[bytes]]) -> tuple[View, str]:
        """Return the view of the link by which the page was opened, and what was wrong with it."""
        own = {name: values for name, values in arguments.items() if not name.startswith("bokeh-")}
        try:
            view = from_query(urlencode({name: b",".join(values) for name, values in own.items()}))
        except ValueError as error:
            return View(self.tables.first), str(error)
        return view if "data" in own else replace(view, data=self.tables.first), ""

    def _wire(self) -> None:
        widgets = self.layout
        widgets.data.on_change("value", self._heard(lambda value: self._open(View(value, self._fresh()))))
        widgets.inbox.on_change("tags", self._heard(self._uploaded))
        widgets.method.on_change("value", self._heard(self._method_chosen))
        widgets.seed.on_change("value", self._heard(self._seed_chosen))
        widgets.which.on_change("active", self._heard(self._activate))
        widgets.compare.on_change("active", self._heard(self._compare))
        widgets.color.on_change("value", self._heard(self._color_chosen))
        widgets.history.on_change("value", self._heard(self._look_back))
        widgets.speed.on_change("value", self._heard(self._speed_chosen))
        widgets.ack.on_change("tags", lambda attribute, old, new: self._acknowledged())
        widgets.play.on_click(self._play)
        widgets.step.on_click(self._step)
        widgets.reset.on_click(self._reset)
        widgets.share.on_click(self._share)
        for panel in widgets.panels:
            panel.plot.on_event("tap", self._tapped(panel))

    def _heard(self, act: Callable[[Any], None]) -> Callable[[str, Any, Any], None]:
        """Return a listener that acts unless the studio itself moved the widget; what it cannot do is said."""

        def heard(attribute: str, old: Any, new: Any) -> None:
            if self.layout.quiet:
                return
            try:
                act(new)
            except (ValueError, TypeError) as error:
                self._say(str(error))

        return heard

    def _say(self, text: str) -> None:
        self.layout.message.text = text

    # What the worker does

    def _ask(self, words: str, command: Callable[[], Any], then: Callable[[Any], None] | None = None) -> None:
        """Have the worker do something, and then do something with the result here."""

        def work() -> None:
            result = command()
            if then is not None:
                self._done.put(lambda: then(result))

        self._worker.ask(words, work)

    def _open(self, view: View, message: str = "") -> None:
        """Load the data of a view and bring its runs to where they were; then say something."""
        self._pause()
        self._worker.point = None

        def build() -> tuple[str, Dataset]:
            dataset = self.tables.load(view.data)
            runs = [Run(dataset.X, shown.recipe, self._n_jobs) for shown in view.runs]
            if view.point is not None and view.point >= len(dataset.X):
                raise ValueError(f"the link chooses point {view.point}, but there are points 0 to {len(dataset.X) - 1}")
            self._worker.runs = runs
            return view.data, dataset

        def built(result: tuple[str, Dataset]) -> None:
            self._data, self._dataset, self._frames, self._forces = *result, (), ()
            self._say(message)
            self.layout.load(view.data, result[1], len(view.runs))
            self._active, self._color, self._worker.point = 0, "class", view.point
            self._replay([shown.iteration for shown in view.runs], view.color)

        self._ask("Finding neighbours …", build, built)

    def _replay(self, iterations: list[int], color: str = "class") -> None:
        """Step each run to an iteration, in pieces, so that the page stays alive and can turn to something else."""

        def go() -> bool:
            for run, goal in zip(self._worker.runs, iterations, strict=True):
                if run.iteration < goal:
                    run.step(min(CHUNK, goal - run.iteration))
                if run.iteration == goal:
                    run.follow()
            self._worker.publish()
            return all(run.iteration >= goal for run, goal in zip(self._worker.runs, iterations, strict=True))

        def gone(there: bool) -> None:
            if len(self._worker.runs) != len(iterations):
                return
            if not there:
                self._replay(iterations, color)
                return
            self._refresh()
            if color != "class":
                self._ask("", lambda: None, lambda _: self._color_chosen(color))

        self._ask("Replaying …" if any(iterations) else "", go, gone)

    def _refresh(self) -> None:
        """Bring everything beside the map up to date."""

        def look() -> tuple[list[list[tuple[int, float]]], str, Recipe, dict[str, Value]]:
            run = self._runs[self._active]
            shown = self._worker.shown
            at = shown[self._active].iteration if self._active < len(shown) else run.iteration
            code = python_source(run, self._data, at)
            return [list(run.curve) for run in self._worker.runs], code, run.recipe, run.values

        def show(result: tuple[list[list[tuple[int, float]]], str, Recipe, dict[str, Value]]) -> None:
            curves, code, recipe, values = result
            self.layout.show_run(recipe, values, len(self._dataset.X), self._active)
            self.layout.show_curves(curves)
            self.layout.code.text = code

        self._ask("", look, show)

    # What the page does

    def _tick(self) -> None:
        while True:
            try:
                self._done.get_nowait()()
            except Empty:
                break
        late = time.monotonic() - self._sent_at > PATIENCE  # what was sent before the page was there is not answered
        if self._sent - self._drawn < AHEAD or late:
            try:
                shot = self._worker.frames.get_nowait()
            except Empty:
                pass
            else:
                self._draw(shot.frames, shot.forces)
        self.layout.show_state(self._worker.busy, self._worker.playing, self._facts())
        if self._worker.playing and time.monotonic() - self._looked > 1.0:
            self._looked = time.monotonic()
            self._refresh()

    def _facts(self) -> str:
        n, D = self._dataset.X.shape
        span = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        rate = f" · {(len(self._times) - 1) / span:.0f} frames/s" if span and self._worker.playing else ""
        return f"{self._dataset.name} · {n:,} points × {D:,}{rate}" if n else ""

    def _acknowledged(self) -> None:
        self._drawn = self._sent if self._drawn >= self._sent else self._drawn + 1
        self._times.append(time.monotonic())

    def _draw(self, frames: tuple[Frame, ...], forces: tuple[Forces | None, ...]) -> None:
        if any(len(frame.Y) != len(self._dataset.X) for frame in frames):
            return  # of the data set before
        self._frames, self._forces = frames, forces
        methods = [run.recipe.method for run in self._worker.runs]
        for panel, frame, force, method in zip(self.layout.panels, frames, forces, methods, strict=False):
            title = f"{METHODS[method].title} · iteration {frame.iteration} · loss {frame.loss:.4g}"
            panel.draw(frame, title, self._worker.point, force)
        self.layout.show_iteration(frames, self._worker.playing)
        self.layout.show_forces(self._worker.point, self._dataset, forces[min(self._active, len(forces) - 1)])
        self._sent, self._sent_at = self._sent + 1, time.monotonic()

    def _play(self) -> None:
        if self._worker.playing:
            self._pause()
            self._ask("", lambda: None, lambda _: self._refresh())
            return
        back = self._frames[0].iteration if self._frames else 0
        self._say("")

        def go() -> None:
            self._wind_to(back)
            self._worker.playing = True

        self._times.clear()
        self._sent = self._drawn = 0
        self._ask("", go)

    def _pause(self) -> None:
        self._worker.playing = False

    def _wind_to(self, iteration: int) -> None:
        """Go on from the frame that is shown, if it is one of the past."""
        if self._runs[0].iteration > iteration:
            for run in self._worker.runs:
                run.rewind(iteration)

    def _step(self) -> None:
        self._pause()
        back = self._frames[0].iteration if self._frames else 0

        def go() -> None:
            self._wind_to(back)
            self._worker.publish(tuple(run.step(self._worker.speed) for run in self._worker.runs))

        self._ask("", go, lambda _: self._refresh())

    def _reset(self) -> None:
        self._pause()

        def go() -> None:
            for run in self._worker.runs:
                run.reset()
            self._worker.publish()

        self._ask("Finding neighbours …", go, lambda _: self._refresh())

    def _changed(self, name: str, value: Value) -> None:
        """A slider of the active run was moved."""
        back, active = (self._frames[0].iteration if self._frames else 0), self._active
        words = "Finding neighbours …" if name in ("perplexity", "n_neighbors") else ""

        def go() -> None:
            if not self._worker.playing:
                self._wind_to(back)
            self._worker.runs[active].change(name, value)
            if not self._worker.playing:
                self._worker.publish()

        def gone(_: Any) -> None:
            self._say("")
            self._refresh()

        self._ask(words, go, gone)

    def _look_back(self, iteration: int) -> None:
        self._pause()
        self._ask("", lambda: self._worker.publish(tuple(run.history.at(int(iteration)) for run in self._worker.runs)))

    def _speed_chosen(self, value: str) -> None:
        self._worker.speed = min(max(int(value), 1), 100)

    @property
    def _runs(self) -> list[Run]:
        if not self._worker.runs:
            raise ValueError("there is no map yet; choose data, or upload a table")
        return self._worker.runs

    def _fresh(self) -> tuple[Shown, ...]:
        """Return the runs of the page, each from its start and with the values of its method."""
        return tuple(Shown(Recipe(run.recipe.method, seed=run.recipe.seed)) for run in self._worker.runs) or (Shown(),)

    def _again(self, recipe: Recipe) -> None:
        """Begin the active run anew from another recipe; the other one stays."""
        self._pause()
        active, X = self._active, self._dataset.X

        def go() -> None:
            run = Run(X, recipe, self._n_jobs)
            self._worker.runs = [*self._worker.runs[:active], run, *self._worker.runs[active + 1 :]]
            self._worker.publish()

        self._ask("Finding neighbours …", go, lambda _: self._refresh())

    def _method_chosen(self, method: str) -> None:
        self._again(Recipe(method, seed=self._runs[self._active].recipe.seed))

    def _seed_chosen(self, seed: Any) -> None:
        run = self._runs[self._active]
        self._again(Recipe(run.recipe.method, tuple(run.values.items()), int(seed or 0)))

    def _activate(self, which: int) -> None:
        self._active = min(max(int(which), 0), max(0, len(self._worker.runs) - 1))
        self._refresh()

    def _compare(self, wanted: bool) -> None:
        """Put a second run beside the first, another method at the same iteration; or take it away."""
        self._pause()
        first = self._runs[0]
        X = self._dataset.X
        if not wanted:
            self._active = 0

            def alone() -> None:
                self._worker.runs = self._worker.runs[:1]
                self._worker.publish()

            self._ask("", alone, lambda _: self._refresh())
        else:
            self._active = 1
            other = Recipe("umap" if first.recipe.method != "umap" else "tsne", seed=first.recipe.seed)

            def beside() -> None:
                self._worker.runs = [first, Run(X, other, self._n_jobs)]

            self._ask("Finding neighbours …", beside, lambda _: self._replay([first.iteration, first.iteration]))
        self.layout.show_second(wanted)

    def _color_chosen(self, value: str) -> None:
        if value not in ("class", "trust"):
            raise ValueError(f"points are coloured by class or trust, not {value!r}")
        self._color = value
        self.layout.show_color(value)
        if value == "class":
            self.layout.color_by_class(self._dataset)
            return
        frames = self._frames

        def measure() -> list[Any]:
            runs = self._worker.runs
            shown = frames if len(frames) == len(runs) else tuple(run.frame for run in runs)
            return [trust_colors(run.trust(frame), len(run.X), frame) for run, frame in zip(runs, shown, strict=True)]

        self._ask("Measuring trust …", measure, self.layout.color_by_trust)

    def _tapped(self, panel: Any) -> Callable[[Any], None]:
        def tapped(event: Any) -> None:
            self._worker.point = panel.nearest(float(event.x), float(event.y))
            frames = self._frames
            if not self._worker.playing:
                self._ask("", lambda: self._worker.publish(frames))

        return tapped

    def _uploaded(self, tags: list[Any]) -> None:
        if len(tags) != 1 or not isinstance(tags[0], str):
            raise ValueError("the upload has no name")
        self._open(View(tags[0], self._fresh()))

    def _share(self) -> None:
        self._pause()
        frames, point = self._frames, self._worker.point

        def look() -> str:
            shown = tuple(
                Shown(run.recipe, frame.iteration) for run, frame in zip(self._worker.runs, frames, strict=True)
            )
            return to_query(View(self._data, shown, self._color, point))

        self._ask("", look, lambda query: self.layout.show_link(f"http://{self._host}/?{query}"))

    def export(self, kind: str) -> tuple[bytes, str, str]:
        """Return the active map as it is shown: a file, its name and its type."""
        if not self._frames:
            raise ValueError("there is no map yet")
        active = min(self._active, len(self._frames) - 1)
        frame, method = self._frames[active], self._worker.runs[active].recipe.method
        title = f"{self._dataset.name}, {METHODS[method].title}, iteration {frame.iteration}"
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in self._dataset.name)
        return export(kind, frame, self._dataset, title), f"{name}-{method}-{frame.iteration}.{kind}", MIME[kind]
