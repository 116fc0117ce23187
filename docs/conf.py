"""Configuration of the site. Build it with `sphinx-build -W -c docs . OUT` in the repository root; no network needed.

The source directory is the root, so that links between README, docs/ and benchmarks/results/ are the same on the site
as in the repository. docs/generated/ is written at build time and not committed: a page and pictures for each method,
a page for each script of examples/, and the API reference.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

import equipoise  # noqa: E402

project = "Equipoise"
author = "The Equipoise developers"
copyright = author
version = release = equipoise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "extensions.docstrings",
    "extensions.mathml",
    "extensions.links",
    "extensions.method_pages",
    "extensions.gallery",
    "extensions.api_pages",
]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "benchmarks/results/*.md"]
exclude_patterns = ["build", "dist", "src", "tests", "examples", "**/.*", ".*", "docs/extensions", "docs/templates"]

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]  # ```math, as on GitHub
myst_heading_anchors = 3  # math.md#16-umap, as on GitHub

default_role = "py:obj"  # single backquotes in docstrings: a link if it is a public name, otherwise code
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
python_maximum_signature_line_length = 100
highlight_language = "none"  # a block without a language is printed output
add_module_names = False
toc_object_entries = False

templates_path = ["templates"]
html_additional_pages = {"index": "redirect.html"}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("versions.js", {"defer": "defer"})]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme = "furo"
html_title = f"Equipoise {release}"
html_copy_source = False
html_show_sphinx = False
