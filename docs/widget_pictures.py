"""Take the picture of docs/widget.md: the digits in a widget, with some points selected.

    python docs/widget_pictures.py docs/images

Needs anywidget, Playwright and Chromium.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.browser import launched, next_frames, watched
from support.widget_page import lasso, shown

import equipoise as eq


def main(folder: Path) -> None:
    digits = load_digits()
    ink = digits.data.mean(axis=1)
    model = eq.TSNE(random_state=0).fit(digits.data)
    widget = eq.widget(model, {"ink": ink}, color=digits.target, images=digits.images / 16, height=400)
    circle = [[0.42 + 0.13 * np.cos(t), 0.45 + 0.28 * np.sin(t)] for t in np.linspace(0, 6, 25)]
    with launched() as browser, watched(browser) as tab, shown(tab, widget):
        tab.set_viewport_size({"width": 900, "height": 600})
        next_frames(tab)
        lasso(tab, circle)
        box = tab.locator(".eq-stage").bounding_box()
        for step in (0, 2):
            tab.mouse.move(box["x"] + 0.42 * box["width"] + step, box["y"] + 0.45 * box["height"])
            tab.wait_for_timeout(500)
        tab.locator(".eq-widget").screenshot(path=folder / "widget.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
