"""Take the screenshots of docs/studio.md: open links to a studio in Chromium.

    python docs/studio_pictures.py docs/images

Needs Bokeh, Playwright and Chromium.
"""

import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

from equipoise.studio.server.serve import Studio

LINKS = {
    "studio.png": "?data=named:digits&iteration=300&point=40",
    "studio_compare.png": "?data=named:digits&iteration=300&b.method=gsne&b.iteration=300&color=trust",
}
# Wait until the maps have reached iteration 300 and no text on the page changes for a second.
READY = """async () => {
    let last = "", quiet = 0
    while (quiet < 10) {
        await new Promise((go) => setTimeout(go, 100))
        const names = ["title a", "title b", "code", "legend", "forces", "busy"]
        const texts = names.map((name) => Bokeh.documents[0]?.get_model_by_name(name)?.text ?? "")
        const now = texts.join()
        quiet = now === last && texts[0].includes("iteration 300") && !now.includes("…") ? quiet + 1 : 0
        last = now
    }
}"""


def main(folder: Path) -> None:
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    studio = Studio()
    thread = threading.Thread(target=studio.run)
    thread.start()
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
            for name, link in LINKS.items():
                tab = browser.new_page(viewport={"width": 1280, "height": 800})
                tab.goto(studio.url + link)
                tab.evaluate(READY)
                tab.screenshot(path=folder / name)
            browser.close()
    finally:
        studio.stop()
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
