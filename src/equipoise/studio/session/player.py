"""The commands of a page: the worker executes them, and the page shows the results."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from ..._types import Array
from ..page.link import Shown
from ..page.picture import NO_MAP
from .parameters import Value
from .recipe import Recipe
from .run import Run
from .worker import Shot, Worker

CHUNK = 20  # iterations of a replay between checks whether it has been cancelled
LIMITS = (1, 100)  # iterations per frame, minimum and maximum

Then = Callable[[], None]


class Player:
    """Plays, steps, rewinds and changes the runs of one page; independent of widgets.

    `say` is called with error messages, `wake` when `settle` or `take` has something to do.
    """

    def __init__(self, say: Callable[[str], None], wake: Callable[[], None], n_jobs: int | None):
        self._done: SimpleQueue[Then] = SimpleQueue()  # actions for the thread of the page
        self._wake, self._n_jobs = wake, n_jobs
        self.moving: dict[tuple[int, str], Value] = {}  # queued changes by run and parameter
        self.wanted = False  # the last Play or Pause, which the worker executes later
        self._say = say
        self.worker = Worker(self._failed, wake)

    @property
    def playing(self) -> bool:
        return self.worker.playing

    def _failed(self, text: str) -> None:
        """Report an error and stop playing; called by the worker."""
        self.wanted = False
        self.later(lambda: self._say(text))

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs; raises ValueError if there are none yet."""
        if not self.worker.runs:
            raise ValueError(NO_MAP)
        return self.worker.runs

    def later(self, act: Then) -> None:
        """Queue an action for the thread of the page."""
        self._done.put(act)
        self._wake()

    def settle(self) -> None:
        """Execute the queued actions; called by the page."""
        while True:
            try:
                act = self._done.get_nowait()
            except Empty:
                return
            act()

    def take(self) -> Shot | None:
        """Return the next shot, or None."""
        try:
            return self.worker.frames.get_nowait()
        except Empty:
            return None

    def ask(self, words: str, command: Callable[[], Any], then: Callable[[Any], None] | None = None) -> None:
        """Let the worker execute `command`, and then the page `then` with its result."""

        def work() -> None:
            result = command()
            if then is not None:
                self.later(lambda: then(result))

        self.worker.ask(words, work)

    # The runs

    def begin(self, X: Array, shown: tuple[Shown, ...], point: int | None) -> None:
        """Replace the runs by new ones on a table X, with a selected point or None; called by a command."""
        self.worker.runs = tuple(Run(X, one.recipe, self._n_jobs) for one in shown)
        self.worker.point = point

    def replay(self, iterations: list[int], then: Then) -> None:
        """Step each run to an iteration, in chunks, so that the page stays responsive and can cancel it."""
        runs = self.worker.runs

        def go() -> bool | None:
            if self.worker.runs is not runs:
                return None  # cancelled
            for run, goal in zip(runs, iterations, strict=True):
                if run.iteration < goal:
                    run.step(min(CHUNK, goal - run.iteration))
                if run.iteration == goal:
                    run.follow()
            self.worker.publish()
            return all(run.iteration >= goal for run, goal in zip(runs, iterations, strict=True))

        def gone(there: bool | None) -> None:
            if there is False:
                self.ask(words(), go, gone)
            elif there:
                then()

        def words() -> str:
            return f"Replaying, iteration {runs[0].iteration} of {iterations[0]}" if any(iterations) else ""

        self.ask(words(), go, gone)

    def again(self, which: int, recipe: Recipe, then: Then) -> None:
        """Restart one of the runs from another recipe; the other one stays."""
        self.pause()

        def go() -> None:
            runs = self.runs
            self.worker.runs = (*runs[:which], Run(runs[0].X, recipe, self._n_jobs), *runs[which + 1 :])
            self.worker.publish()

        self.ask("Finding neighbours", go, lambda _: then())

    def beside(self, then: Then) -> None:
        """Add a second run next to the first: another method, at the same iteration."""
        self.pause()

        def go() -> int:
            first = self.runs[0]
            other = Recipe("umap" if first.recipe.method != "umap" else "tsne", seed=first.recipe.seed)
            self.worker.runs = (first, Run(first.X, other, self._n_jobs))
            return first.iteration

        self.ask("Finding neighbours", go, lambda iteration: self.replay([iteration, iteration], then))

    def alone(self, then: Then) -> None:
        """Remove the second run."""
        self.pause()

        def go() -> None:
            self.worker.runs = self.runs[:1]
            self.worker.publish()

        self.ask("", go, lambda _: then())

    # Forward and back

    def play(self) -> None:
        """Continue from the frame that is shown, unless `pause` is called before the worker starts."""
        self.wanted = True

        def go() -> None:
            if self.wanted:
                self._wind()
                self.worker.playing = bool(self.runs)
            if not self.wanted:  # checked again after setting it, so that no pause is lost in between
                self.worker.playing = False

        self.ask("", go)

    def pause(self) -> None:
        self.wanted = False
        self.worker.playing = False

    def step(self, then: Then) -> None:
        """Take the iterations of one frame from the frame that is shown."""
        self.pause()

        def go() -> None:
            self._wind()
            self.worker.publish(tuple(run.step(self.worker.speed) for run in self.runs))

        self.ask("", go, lambda _: then())

    def reset(self, then: Then) -> None:
        self.pause()

        def go() -> None:
            for run in self.runs:
                run.reset()
            self.worker.publish()

        self.ask("Finding neighbours", go, lambda _: then())

    def change(self, which: int, name: str, value: Value, then: Then) -> None:
        """Change a parameter of one of the runs, from the frame that is shown on.

        A slider moves faster than runs of many points can follow: only the last of the queued values is used.
        """
        waits = (which, name) in self.moving
        self.moving[which, name] = value
        if waits:
            return

        def go() -> None:
            last = self.moving.pop((which, name))
            self._wind()
            self.runs[min(which, len(self.runs) - 1)].change(name, last)
            if not self.playing:
                self.worker.publish()

        self.ask("", go, lambda _: then())

    def look_back(self, iteration: int) -> None:
        """Show the stored maps of an iteration."""
        self.pause()
        self.ask("", lambda: self.worker.publish(tuple(run.history.at(iteration) for run in self.runs)))

    def choose(self, point: int | None, seen: Shot | None) -> None:
        """Show the forces on a point of the maps in the shot `seen`, or none."""

        def go() -> None:
            shown = self.worker.shown
            if seen is None or shown is None or shown.runs != seen.runs:
                return  # of a previous data set
            self.worker.point = point
            if not self.playing:
                self.worker.publish(shown.frames)

        self.ask("", go)

    def speed(self, iterations: int) -> None:
        """Set the iterations per frame."""
        self.worker.speed = min(max(iterations, LIMITS[0]), LIMITS[1])

    def close(self) -> None:
        self.pause()
        self.worker.stop()

    def _wind(self) -> None:
        """Rewind the runs to the frame that is shown, if it is an earlier one."""
        shown = self.worker.shown
        if shown is not None and self.runs[0].iteration > shown.frames[0].iteration:
            for run in self.runs:
                run.rewind(shown.frames[0].iteration)
