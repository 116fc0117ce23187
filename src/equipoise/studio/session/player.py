"""Passes the commands of a page, such as Play, to its worker thread, and the results back to the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from ..._types import Array
from ...memory import DISTANCE_PAIR, EIGEN_PAIR, estimate_memory
from ..limits import GB, Limits
from ..page.link import LinkedRun
from ..page.picture import NO_MAP
from .finished_run import FinishedRun
from .method_run import MethodRun
from .metrics import AUTO, EVERY_KIND, allowed_metrics
from .parameters import METHODS, Value, defaults
from .recipe import Event, Recipe
from .run import Run
from .worker import Shot, Worker, lead

CHUNK = 20  # iterations of a replay between checks whether it has been cancelled
# Bytes per row of MDS: up to 10,000 rows, δ of half of all pairs in float32 (2n); beyond that it samples pairs, for
# which 11,000 bytes were measured.
MDS_ROW = 20_000
SMALL = 1000  # rows below which the memory of a run is not checked; chosen
LIMITS = (1, 100)  # iterations per frame, minimum and maximum

Then = Callable[[], None]


class Player:
    """Plays, steps, rewinds and changes the runs of one page; independent of widgets.

    `show_error` is called with each error message. `wake` is called when an action waits for `run_pending`, or a shot
    (a frame of each run) for `next_shot`. `memory` is the maximum memory of all runs together, in bytes; the memory is
    estimated before the runs start.
    """

    def __init__(
        self,
        show_error: Callable[[str], None],
        wake: Callable[[], None],
        n_jobs: int | None,
        memory: int = Limits.memory,
    ):
        self._pending: SimpleQueue[Then] = SimpleQueue()  # actions for the thread of the page
        self._wake, self._n_jobs, self._memory = wake, n_jobs, memory
        self.pending_changes: dict[tuple[int, str], Value] = {}  # queued changes by run and parameter
        self.play_requested = False  # True after Play, False after Pause; the worker follows later
        self._show_error = show_error
        self.worker = Worker(self._failed, wake)

    @property
    def playing(self) -> bool:
        return self.worker.playing

    def _failed(self, text: str) -> None:
        """Report an error and stop playing; called by the worker."""
        self.play_requested = False
        self.run_on_page(lambda: self._show_error(text))

    @property
    def runs(self) -> tuple[MethodRun, ...]:
        """The runs; raises ValueError if there are none yet."""
        if not self.worker.runs:
            raise ValueError(NO_MAP)
        return self.worker.runs

    def run_on_page(self, act: Then) -> None:
        """Queue an action for the thread of the page."""
        self._pending.put(act)
        self._wake()

    def run_pending(self) -> None:
        """Execute the queued actions; called by the page."""
        while True:
            try:
                act = self._pending.get_nowait()
            except Empty:
                return
            act()

    def next_shot(self) -> Shot | None:
        """Return the next shot (a frame of each run); None if none is waiting."""
        try:
            return self.worker.frames.get_nowait()
        except Empty:
            return None

    def submit(self, description: str, command: Callable[[], Any], then: Callable[[Any], None] | None = None) -> None:
        """Queue `command` for the worker. After the command, the thread of the page calls `then` with its result.

        The page shows `description` while the command runs. If the command fails, `then` is not called.
        """

        def work() -> None:
            result = command()
            if then is not None:
                self.run_on_page(lambda: then(result))

        self.worker.submit(description, work)

    # The runs

    def begin(self, X: Array, shown: tuple[LinkedRun, ...], point: int | None) -> None:
        """Replace the runs by a new run on a table X for each recipe in `shown`, and select `point` (None: no point).

        Call this only in a command, because only the thread of the worker may change the runs.
        """
        check_memory(X, [linked.recipe for linked in shown], self._memory)
        self.worker.runs = tuple(make_run(X, linked.recipe, self._n_jobs) for linked in shown)
        self.worker.point = point

    def replay(self, iterations: list[int], then: Then) -> None:
        """Step each run to the iteration listed for it, and then call `then`.

        The steps are taken in chunks, so that the page stays responsive and can cancel the replay.
        """
        runs = self.worker.runs

        def advance() -> bool | None:
            """Take a chunk of iterations; return whether the replay is complete, or None if it was cancelled."""
            if self.worker.runs is not runs:
                return None
            for run, goal in zip(runs, iterations, strict=True):
                if run.iterates and run.iteration < goal:
                    run.step(min(CHUNK, goal - run.iteration))
                if run.iteration == goal:
                    run.apply_due_changes()
            self.worker.publish()
            return all(run.iteration >= goal for run, goal in zip(runs, iterations, strict=True) if run.iterates)

        def continue_or_finish(finished: bool | None) -> None:
            if finished is False:
                self.submit(description(), advance, continue_or_finish)
            elif finished:
                then()

        def description() -> str:
            first = lead(runs)
            return f"Replaying, iteration {runs[first].iteration} of {iterations[first]}" if any(iterations) else ""

        self.submit(description(), advance, continue_or_finish)

    def restart_run(self, which: int, recipe: Recipe, then: Then) -> None:
        """Replace run `which` (0 or 1) by a new run with another recipe, but not the other run; then call `then`."""
        self.pause()

        def go() -> None:
            runs = self.runs
            recipes = [recipe if i == which else run.recipe for i, run in enumerate(runs)]
            check_memory(runs[0].X, recipes, self._memory)
            self.worker.runs = (*runs[:which], make_run(runs[0].X, recipe, self._n_jobs), *runs[which + 1 :])
            self.worker.publish()

        self.submit("Finding neighbours", go, lambda _: then())

    def add_second_run(self, then: Then) -> None:
        """Add a second run and step it to the iteration of the first. It uses UMAP, or t-SNE if the first uses UMAP."""
        self.pause()

        def go() -> int:
            first = self.runs[0]
            method = "umap" if first.recipe.method != "umap" else "tsne"
            other = replace(first.recipe, method=method, first=(), events=())
            check_memory(first.X, [first.recipe, other], self._memory)
            self.worker.runs = (first, make_run(first.X, other, self._n_jobs))
            return first.iteration

        self.submit("Finding neighbours", go, lambda iteration: self.replay([iteration, iteration], then))

    def remove_second_run(self, then: Then) -> None:
        """Remove the second run."""
        self.pause()

        def go() -> None:
            self.worker.runs = self.runs[:1]
            self.worker.publish()

        self.submit("", go, lambda _: then())

    # Forward and back

    def play(self) -> None:
        """Play from the displayed frame, unless `pause` is called before the worker executes this command."""
        self.play_requested = True

        def go() -> None:
            if self.play_requested:
                self._rewind_to_shown()
                self.worker.playing = any(run.iterates for run in self.runs)
                self.play_requested = self.worker.playing
            if not self.play_requested:  # checked again, so that a pause in between is not lost
                self.worker.playing = False

        self.submit("", go)

    def pause(self) -> None:
        self.play_requested = False
        self.worker.playing = False

    def step(self, then: Then) -> None:
        """Pause, return to the displayed frame, and take the iterations of one frame."""
        self.pause()

        def go() -> None:
            self._rewind_to_shown()
            self.worker.publish(tuple(run.step(self.worker.speed) for run in self.runs))

        self.submit("", go, lambda _: then())

    def reset(self, then: Then) -> None:
        self.pause()

        def go() -> None:
            for run in self.runs:
                run.reset()
            self.worker.publish()

        self.submit("Finding neighbours", go, lambda _: then())

    def change(self, which: int, name: str, value: Value, then: Then) -> None:
        """Change a parameter of one of the runs, starting at the displayed frame.

        A slider can move faster than a large run can follow, so only the last of the queued values is used.
        """
        is_queued = (which, name) in self.pending_changes
        self.pending_changes[which, name] = value
        if is_queued:
            return

        def go() -> None:
            last = self.pending_changes.pop((which, name))
            self._rewind_to_shown()
            run = self.runs[min(which, len(self.runs) - 1)]
            changed = run.recipe.with_event(Event(run.iteration, name, last))  # raises for an invalid value
            recipes = [changed if other is run else other.recipe for other in self.runs]
            check_memory(run.X, recipes, self._memory)
            run.change(name, last)
            if not self.playing:
                self.worker.publish()

        self.submit("", go, lambda _: then())

    def look_back(self, iteration: int) -> None:
        """Pause, and show the last stored map of each run at or before an iteration."""
        self.pause()
        self.submit("", lambda: self.worker.publish(tuple(run.history.at(iteration) for run in self.runs)))

    def choose(self, point: int | None, seen: Shot | None) -> None:
        """Show the forces on a point, or none if `point` is None; `seen` is the shot in which the user clicked it."""

        def go() -> None:
            shown = self.worker.shown
            if seen is None or shown is None or shown.runs != seen.runs:
                return  # the click was on a previous data set
            self.worker.point = point
            if not self.playing:
                self.worker.publish(shown.frames)

        self.submit("", go)

    def speed(self, iterations: int) -> None:
        """Set the number of iterations per frame, limited to the range from 1 to 100."""
        self.worker.speed = min(max(iterations, LIMITS[0]), LIMITS[1])

    def close(self) -> None:
        self.pause()
        self.worker.stop()

    def _rewind_to_shown(self) -> None:
        """Rewind the runs to the displayed frame if they are ahead of it."""
        shown = self.worker.shown
        if shown is not None and self.runs[lead(self.runs)].iteration > shown.iteration:
            for run in self.runs:
                run.rewind(shown.iteration)


def make_run(X: Array, recipe: Recipe, n_jobs: int | None) -> MethodRun:
    """Return a new run of the method of a recipe on a table X (n, D)."""
    return (Run if METHODS[recipe.method].iterates else FinishedRun)(X, recipe, n_jobs)


def check_memory(X: Array, recipes: list[Recipe], limit: int) -> None:
    """Raise ValueError if runs with these recipes on a table X (n, D) need more than `limit` bytes of memory.

    Tables with fewer than SMALL rows are always accepted.
    """
    n, D = X.shape
    if n < SMALL:
        return
    need = 0
    for recipe in recipes:
        if not METHODS[recipe.method].iterates:
            # Copies of the table and, if there are any, neighbours, as for t-SNE; and what is stored of all pairs.
            neighbors = {**defaults(recipe.method, n), **recipe.values()}.get("n_neighbors", 3)
            within = min(max(float(neighbors) / 3, 1.0), (n - 1) / 3)
            need += estimate_memory(n, D, perplexity=within).peak + _bytes_of_pairs(X, recipe)
            continue
        values = {**defaults(recipe.method, n), **recipe.values()}
        # t-SNE stores three neighbours per unit of perplexity; UMAP states their number.
        perplexity = float(values["perplexity"]) if "perplexity" in values else float(values["n_neighbors"]) / 3
        within = min(max(perplexity, 1.0), (n - 1) / 3)  # the run itself rejects other values
        need += estimate_memory(n, D, perplexity=within, kl=recipe.method == "tsne").peak
    if need > limit:
        raise ValueError(
            f"runs on a table of {n:,} × {D:,} values need about {need / GB:.1f} GB, but a page may use only"
            f" {limit / GB:.1f} GB; use fewer rows, a smaller perplexity, fewer neighbours, or one run instead of two"
        )


def _bytes_of_pairs(X: Array, recipe: Recipe) -> int:
    """Return how many bytes a finished method stores for pairs of rows, besides neighbours."""
    n, method = len(X), recipe.method
    metric = allowed_metrics(X)[0] if recipe.metric == AUTO else recipe.metric
    if method == "isomap" or (method == "classicalmds" and metric != "euclidean"):
        return int(EIGEN_PAIR) * n**2
    if method == "lle" and metric in EVERY_KIND:  # weights from distances instead of coordinates
        return int(DISTANCE_PAIR) * n**2
    return MDS_ROW * n if method == "mds" else 0
