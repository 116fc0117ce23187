"""Take the screenshots of docs/studio.md: open links to a studio in Chromium.

    python docs/studio_pictures.py docs/images

Needs Bokeh, Playwright and Chromium.
"""

import shutil
import sys
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

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


TABLE = [
    "penguin,species,island,bill_mm,mass_g,sex",
    *(
        f"N{i}A1,{('Adelie', 'Chinstrap', 'Gentoo')[i % 3]},{('Biscoe', 'Dream', 'Torgersen')[i % 5 % 3]},"
        f"{38 + i % 7 + i % 3},{'' if i % 20 == 3 else 3500 + 40 * (i % 13)},{('female', 'male', '')[i % 7 % 3]}"
        for i in range(100)
    ),
]


def picture_of_columns(browser: Browser, url: str, path: Path) -> None:
    """Upload a table, and take a picture of the form about its columns."""
    tab = browser.new_page(viewport={"width": 760, "height": 560})
    tab.goto(url)
    with tempfile.TemporaryDirectory() as temporary, tab.expect_file_chooser() as chooser:
        tab.get_by_role("button", name="Upload").click()
        file = Path(temporary) / "penguins.csv"
        file.write_text("\n".join(TABLE) + "\n")
        chooser.value.set_files(file)
        tab.locator("#table-form[open]").wait_for()
    tab.locator("#table-form").screenshot(path=path)


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
            picture_of_columns(browser, studio.url, folder / "studio_columns.png")
            browser.close()
    finally:
        studio.stop()
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
