"""List the versions of the site that are published side by side, each in a folder of its name.

    python docs/versions.py PAGES

writes PAGES/versions.json, which the menu of every page reads, and PAGES/index.html, which leads to the newest release,
or to `latest` before the first one.
"""

import json
import re
import sys
from pathlib import Path

REDIRECT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Equipoise</title><meta http-equiv="refresh" content="0; url={0}/"></head>
<body><a href="{0}/">Equipoise</a></body>
</html>
"""


def order(names):
    """Return `latest`, then the releases from new to old; other names are left out."""
    releases = [name for name in names if re.fullmatch(r"v?\d+(\.\d+)*", name)]
    numbers = {name: tuple(map(int, name.lstrip("v").split("."))) for name in releases}
    return ["latest"] * ("latest" in names) + sorted(releases, key=numbers.get, reverse=True)


def main(pages):
    versions = order([folder.name for folder in pages.iterdir() if (folder / "docs" / "index.html").is_file()])
    if not versions:
        sys.exit(f"{pages} has no folder with docs/index.html, named `latest` or after a release such as 1.2.0")
    newest = next((name for name in versions if name != "latest"), "latest")
    (pages / "versions.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(REDIRECT.format(newest), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
