"""Write a gallery page for each script of examples/: its description, its pictures and output, and its code.

The scripts are run while the site is built, as a user would run them, on one core. Those in SHOWN are not run, because
they take five seconds or more or need data that is not in the repository; their pages show the pictures in docs/images.
"""

import ast
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .fresh import is_newer

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FOLDER = "docs/generated/gallery"
SHOWN = {
    "canonical_forms.py": ("canonical_forms.png",),
    "flow.py": ("flow.png",),
    "readme_pictures.py": ("digits.png", "family.png", "forces.png"),
    "shape_retrieval.py": ("shape_retrieval.png",),
    "spectrum.py": ("spectrum.png",),
    "stability.py": ("figure_1.png", "stability.png"),
    "sweep.py": ("toys.png",),
}
AT_ONCE = 2  # scripts that run in parallel


def write(folder):
    """Write the gallery into a folder: pictures, pages, and an index with the first picture of each script."""
    folder.mkdir(parents=True, exist_ok=True)
    scripts = sorted(EXAMPLES.glob("*.py"))
    index = ["# Gallery", "", "Each page shows a script of `examples/` and its output when this site was built.", ""]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda script: _write_page(script, folder / f"{script.stem}.md"), scripts))
    for script in scripts:  # a list, which the style sheet lays out as a grid
        title, _ = _described(script)
        pictures = [f"[![{title}]({picture})]({script.stem}.md) " for picture in _pictures(script, folder)[:1]]
        index.append(f"- {''.join(pictures)}[{title}]({script.stem}.md)")
    index.append("")
    names = "\n".join(script.stem for script in scripts)
    index += [f"```{{toctree}}\n:hidden:\n\n{names}\n```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def _write_page(script, page):
    if is_newer(page, script, Path(__file__)):
        return
    title, text = _described(script)
    folder = page.parent / script.stem
    output = "" if script.name in SHOWN else _run(script, folder)
    lines = [f"# {title}", "", text, ""]
    for picture in _pictures(script, page.parent):
        lines += [f"![{title}]({picture})", ""]
    for extra in sorted(folder.glob("*.html")):
        lines += [f"The page it writes: [{extra.name}]({script.stem}/{extra.name}).", ""]
    if output:
        lines += ["It prints:", "", "```text", output.rstrip(), "```", ""]
    else:
        lines += ["The script was not run for this page; the pictures are kept in the repository.", ""]
    code = script.read_text(encoding="utf-8").split('"""', 2)[2].strip()
    lines += [f"## examples/{script.name}", "", "```python", code, "```", ""]
    page.write_text("\n".join(lines), encoding="utf-8")


def _run(script, folder):
    """Run a script with a folder for its output, and return what it prints."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as here:
        done = subprocess.run(
            [sys.executable, str(script), str(folder)],
            cwd=here,
            env={**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    if done.returncode:
        raise RuntimeError(f"examples/{script.name} failed:\n{done.stderr}")
    return done.stdout


def _pictures(script, folder):
    """Return the paths of a script's pictures, relative to its page."""
    if script.name in SHOWN:
        return [f"../../images/{name}" for name in SHOWN[script.name]]
    return [f"{script.stem}/{path.name}" for path in sorted((folder / script.stem).glob("*.png"))]


def _described(script):
    """Return a title and the docstring of a script; the title ends at the first colon, question mark or bracket."""
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    title = re.match(r"[^:?(]+\??", text.partition("\n\n")[0]).group()
    return " ".join(title.split()).rstrip("."), text


def _builder_inited(app):
    write(ROOT / FOLDER)


def setup(app):
    app.connect("builder-inited", _builder_inited)
    return {"parallel_read_safe": True}
