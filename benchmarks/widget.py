"""The widget in JupyterLab: time from a lasso to the selection in Python, and time of a frame while the map moves.

    python benchmarks/widget.py [--sizes 200000 1000000] [--repeats 5] [--out benchmarks/results/widget.md]

JupyterLab runs on this machine, and Chromium shows a notebook without a window and without a graphics card: SwiftShader
draws WebGL on the same cores. The time of a lasso counts from the release of the mouse button to the call of an
observer of `selection` in the kernel; each lasso waits until the map of the previous one has been drawn. While the map
moves, the script of the page asks for a frame whenever the browser offers one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import common
import numpy as np

sys.path.insert(0, str(common.ROOT / "tests"))

from support.browser import launched
from support.jupyter import jupyter_lab, run_cell, write_notebook
from support.widget_page import lasso

LIMIT = 1.0  # seconds from the lasso to the selection at 200,000 points; required
MAKE = """
import time
import numpy as np
import equipoise as eq

Y = np.random.RandomState(0).normal(size=({n}, 2)) * [30, 20]
w = eq.widget(Y, {{"height": Y[:, 1]}}, color="height")

def record(change):
    with open("times.txt", "a") as file:
        print(time.time(), len(change.new), file=file)

w.observe(record, "selection")
w
"""
FRAMES = """async (seconds) => {
    const stage = document.querySelector(".eq-stage"), {left, top} = stage.getBoundingClientRect()
    const fire = (name, x, y) => stage.dispatchEvent(new PointerEvent(name,
        {clientX: left + 300 + x, clientY: top + 200 + y, pointerId: 1, button: 0, bubbles: true, cancelable: true}))
    stage.setPointerCapture = () => {}
    const next = () => new Promise((done) => requestAnimationFrame(done))
    const intervals = async (step) => {
        const times = []
        for (const end = performance.now() + 1000 * seconds; performance.now() < end;) {
            step(times.length)
            times.push(await next())
        }
        return times.slice(1).map((time, i) => time - times[i])
    }
    const still = await intervals(() => {})
    fire("pointerdown", 0, 0)
    const moving = await intervals((k) => fire("pointermove", 100 * Math.sin(k / 5), 60 * Math.cos(k / 5)))
    fire("pointerup", 0, 0)
    return {still, moving}
}"""


# Wait until ten frames in a row take less than 50 ms each: everything has been drawn.
DRAWN = """async () => {
    for (let quick = 0, last = performance.now(); quick < 10;) {
        const now = await new Promise((done) => requestAnimationFrame(done))
        quick = now - last < 50 ? quick + 1 : 0
        last = now
    }
}"""


def lines(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def lasso_time(tab: Any, times: Path, choose: bool) -> tuple[float, int]:
    """Return the seconds from the end of a lasso to the observer in the kernel, and the number of points selected."""
    before = len(lines(times))
    tab.evaluate(DRAWN)
    tab.evaluate("addEventListener('pointerup', () => { window.released = Date.now() }, {capture: true, once: true})")
    lasso(tab, choose=choose)
    while len(lines(times)) == before:
        time.sleep(0.01)
    called, count = lines(times)[-1]
    seconds = float(called) - tab.evaluate("window.released") / 1000
    tab.locator(".eq-stage").press("Escape")
    while len(lines(times)) < before + 2:
        time.sleep(0.01)
    return seconds, int(count)


def measure(browser: Any, n: int, repeats: int) -> dict[str, Any]:
    """Measure a widget of n points in a JupyterLab of its own."""
    with tempfile.TemporaryDirectory() as name, jupyter_lab(Path(name)) as address:
        folder = Path(name)
        write_notebook(folder / "map.ipynb", MAKE.format(n=n))
        tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        tab.set_default_timeout(240_000)
        tab.goto(address("map.ipynb"))
        run_cell(tab)
        tab.wait_for_selector(".eq-stage[data-view]")
        tab.wait_for_timeout(2000)
        found = [lasso_time(tab, folder / "times.txt", i == 0) for i in range(repeats)]
        tab.get_by_role("button", name="pan", exact=True).click()
        tab.locator(".eq-stage").scroll_into_view_if_needed()
        frames = tab.evaluate(FRAMES, 3)
        tab.close()
    return {"n": n, "seconds": [seconds for seconds, _ in found], "selected": found[0][1], **frames}


def span(values: list[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/widget.md"))
    args = parser.parse_args()
    where = common.machine(1, ["equipoise", "numpy", "anywidget", "ipywidgets", "jupyterlab", "playwright"])
    with launched() as browser:
        version = browser.version
        results = [measure(browser, n, args.repeats) for n in args.sizes]
    sizes = " ".join(map(str, args.sizes))
    rows = [
        [
            f"{one['n']:,}",
            f"{one['selected']:,}",
            span(one["seconds"], ".2f"),
            f"{median(one['moving']):.0f}",
            f"{np.quantile(one['moving'], 0.9):.0f}",
            f"{median(one['still']):.0f}",
        ]
        for one in results
    ]
    columns = ["points", "selected", f"lasso to `selection`, s, median of {args.repeats} (range)"]
    columns += ["frame while moving, ms, median", "90 % quantile", "frame at rest, ms, median"]
    held = max(results[0]["seconds"]) <= LIMIT
    text = [
        *common.header("The widget in JupyterLab", f"python benchmarks/widget.py --sizes {sizes}", where),
        f"Chromium {version} without a window and without a graphics card: SwiftShader draws WebGL on the same cores.",
        "A graphics card draws many times faster. The selection travels as 4 bytes per point.",
        "",
        *common.table(columns, rows),
        "",
        f"Every lasso at {results[0]['n']:,} points reached Python within {LIMIT:g} s: {'yes' if held else 'no'}.",
    ]
    common.write(text, args.out)


if __name__ == "__main__":
    main()
