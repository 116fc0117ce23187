"""The studio in a browser: frame rate, time to the first map, and response time of a slider.

    python benchmarks/studio.py [--sizes 5000 70000] [--seconds 10] [--out benchmarks/results/studio.md]

A mixture of 20 Gaussians in 50 dimensions is saved as .npy and opened by a studio in its own process. Chromium shows
the page, driven by Playwright, headless and without a GPU: WebGL runs on the same cores. Frames drawn by the page are
counted in requestAnimationFrame. Each frame is one iteration of t-SNE, so the Python script that the page gives for its
map shows at which frame a change took effect.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SERVE = "import sys; from equipoise.studio import serve; serve(sys.argv[1], show=False)"
SETTLE = 2.0  # seconds of playing before frames are counted
MOVES = (1.5, 2.0, 1.2, 1.8, 1.0)  # values of the exaggeration slider, in this order
APART = 1.5  # seconds between moves

# Criteria for a usable page at the largest size; chosen.
USABLE = {
    "time to the first map": ("first", "≤ {:.0f} s", 30.0),
    "longest time without a progress message": ("silence", "≤ {:.0f} s", 3.0),
    "maps drawn per second": ("frames", "≥ {:.0f}", 4.0),
    "animation frames per second meanwhile": ("pictures", "≥ {:.0f}", 10.0),
    "from moving a slider to the map that reflects it": ("reaction", "≤ {:.0f} s", 1.0),
}

# Times at which the page drew a new map, at which the browser offered a frame, and at which the message changed.
WATCH = """() => {
    const watch = window.watch = {maps: [], pictures: [], news: [], map: null}
    const text = (name) => Bokeh.documents[0]?.get_model_by_name(name)?.text ?? ""
    let drawn = -1, said = null
    const look = () => {
        const now = performance.now()
        watch.pictures.push(now)
        if (typeof studio !== "undefined" && studio !== undefined) {
            if (watch.map === null && studio.scenes[0].ready) watch.map = now
            if (studio.drawn !== drawn) watch.maps.push([now, drawn = studio.drawn])
            const words = text("busy")
            if (words !== said) { watch.news.push(now); said = words }
        }
        requestAnimationFrame(look)
    }
    look()
}"""
MODEL = "Bokeh.documents[0].get_model_by_name('{}')"


def mixture(n: int) -> np.ndarray:
    """Return n points of a mixture of 20 Gaussians in 50 dimensions."""
    rng = np.random.default_rng(0)
    centers = 6 * rng.standard_normal((20, 50))
    return (centers[rng.integers(0, 20, n)] + rng.standard_normal((n, 50))).astype(np.float32)


@contextmanager
def served(path: Path) -> Any:
    """Serve a studio of a file in its own process, and yield its address."""
    with subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()  # type: ignore[union-attr]
            yield re.search(r"http\S+", line).group()  # type: ignore[union-attr]
        finally:
            process.terminate()
            process.communicate()


class Visit:
    """One visit to a page: opening it, playing for some seconds, and moving a slider several times."""

    def __init__(self, tab: Any, address: str, seconds: float):
        self.tab = tab
        tab.add_init_script(f"({WATCH})()")
        tab.goto(address)
        tab.wait_for_function("watch.map !== null", timeout=300_000)
        seen = self.seen()
        self.first = seen["map"] / 1e3
        news = [0.0, *(t for t in seen["news"] if t < seen["map"]), seen["map"]]
        self.silence = max(np.diff(news)) / 1e3
        self.press("Play")
        time.sleep(SETTLE)
        before = self.seen()
        time.sleep(seconds)
        after = self.seen()
        span = (after["now"] - before["now"]) / 1e3
        self.frames = (after["maps"][-1][1] - before["maps"][-1][1]) / span
        self.pictures = (len(after["pictures"]) - len(before["pictures"])) / span
        times = [t for t, _ in after["maps"] if t >= before["now"]]
        self.slowest = max(np.diff(times), default=np.nan) / 1e3
        self.reactions = self.move()
        self.reaction = median(self.reactions)

    def seen(self) -> Any:
        return self.tab.evaluate("({...watch, now: performance.now()})")

    def press(self, label: str) -> None:
        self.tab.get_by_role("button", name=label, exact=True).click()

    def move(self) -> list[float]:
        """Move the exaggeration slider, and return for each move the seconds until a map that reflects it was drawn."""
        moved = []
        for value in MOVES:
            slider = MODEL.format("exaggeration")
            script = f"() => {{ {slider}.value = Math.log10({value}); return performance.now() }}"
            moved.append(self.tab.evaluate(script))
            time.sleep(APART)
        self.press("Pause")
        self.tab.wait_for_function(f"{MODEL.format('play')}.label === 'Play'")
        time.sleep(2.0)
        at = int(re.search(r"iteration (\d+)", self.tab.evaluate(MODEL.format("title a") + ".text")).group(1))  # type: ignore[union-attr]
        code = self.tab.evaluate(MODEL.format("code") + ".text")
        changes, iteration = [], 0
        for line in code.splitlines():
            if found := re.match(r"run\.step\((\d+)\)", line):
                iteration += int(found.group(1))
            elif line.startswith("run.change"):
                changes.append(iteration)
        if iteration != at or len(changes) != len(MOVES):
            raise SystemExit(
                f"the script of the page does not match its map: changes {changes}, {iteration} steps, iteration {at}"
            )
        maps = self.seen()["maps"]
        last = maps[-1][1]  # frames drawn when the map was at iteration `at`
        return [
            (next(t for t, drawn in maps if at - (last - drawn) > change) - start) / 1e3
            for start, change in zip(moved, changes, strict=True)
        ]


def visit(browser: Any, n: int, seconds: float) -> Visit:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixture.npy"
        np.save(path, mixture(n))
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        try:
            with served(path) as address:
                return Visit(context.new_page(), address, seconds)
        finally:
            context.close()


def row(n: int, one: Visit) -> list[str]:
    reactions = f"{one.reaction:.2f} s ({min(one.reactions):.2f}–{max(one.reactions):.2f})"
    return [
        f"{n:,}",
        f"{one.first:.1f} s",
        f"{one.silence:.1f} s",
        f"{one.frames:.1f}",
        f"{one.slowest:.2f} s",
        f"{one.pictures:.0f}",
        reactions,
    ]


def judged(one: Visit) -> list[list[str]]:
    """Return the criteria, the measured values, and whether they are met."""
    rows = []
    for name, (key, form, limit) in USABLE.items():
        value = getattr(one, key)
        holds = value >= limit if form.startswith("≥") else value <= limit
        rows.append([name, form.format(limit), f"{value:.2f}", "yes" if holds else "no"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 70_000])
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds over which frames are counted")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/studio.md"))
    args = parser.parse_args()

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"skipped: no Chromium is installed ({', '.join(BROWSERS)})")
    from playwright.sync_api import sync_playwright

    from equipoise.methods.estimator import threads

    where = common.machine(max(1, threads(None) - 1), ["equipoise", "numpy", "bokeh", "tornado", "playwright"])
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        version = browser.version
        visits = {n: visit(browser, n, args.seconds) for n in args.sizes}
        browser.close()

    sizes = " ".join(map(str, args.sizes))
    command = f"python benchmarks/studio.py --sizes {sizes} --seconds {args.seconds:g}"
    columns = ["points", "first map", "longest time without a message before it", "maps drawn per second"]
    columns += ["longest time between two maps", "animation frames per second meanwhile"]
    columns += [f"slider to map, median of {len(MOVES)} (range)"]
    large = max(args.sizes)
    lines = [
        *common.header("The studio in a browser", command, where),
        f"Chromium {version}, headless and without a GPU, 1280 × 800. The time to the first map starts when the page",
        "is opened and includes its scripts, the neighbours, the affinities and the initial map. Each map drawn is one",
        "iteration of t-SNE further.",
        "",
        *common.table(columns, [row(n, one) for n, one in visits.items()]),
        "",
        f"Criteria for a usable page at {large:,} points:",
        "",
        *common.table(["criterion", "limit", "measured", "met"], judged(visits[large])),
    ]
    common.write(lines, args.out)


if __name__ == "__main__":
    main()
