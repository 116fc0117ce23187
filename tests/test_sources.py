"""docs/sources.md: all items of the three sources are listed, their names resolve, and their commands exist or run."""

import importlib
import re

import pytest
from support.source_tree import ROOT, needs, skip_module_without

import equipoise

skip_module_without("docs", "examples")
PAGE = ROOT / "docs" / "sources.md"
ITEMS = ROOT.parent / "shared" / "design" / "SEEDS.md"
SIZES = {"000": 46, "001": 65, "002": 46}  # items of each source
VERDICTS = ("works", "partly", "related work", "open problem", "diagram")


def read_tables(text):
    """Return the rows of cells of each table with five columns."""
    tables = re.findall(r"\| lines \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text)
    return [
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()] for table in tables
    ]


TEXT = PAGE.read_text(encoding="utf-8")
TABLES = dict(zip(SIZES, read_tables(TEXT), strict=True))
ROWS = [row for table in TABLES.values() for row in table]
COMMANDS = sorted({row[3].strip("`") for row in ROWS})


def starting_with(word):
    return [command for command in COMMANDS if command.startswith(word)]


def kind(verdict):
    """Return the kind of a verdict, or None."""
    return next((name for name in VERDICTS if re.match(rf"{name}\b", verdict)), None)


def in_backticks(text):
    return re.findall(r"`([^`]+)`", text)


def exists(path):
    """Return whether a file exists, or cannot because the source distribution has no benchmarks."""
    return (ROOT / path).is_file() or (path.startswith("benchmarks/") and not (ROOT / "benchmarks").exists())


def resolve(name):
    """Evaluate `eq.…`, or import `equipoise.….name`."""
    if name.startswith("eq."):
        return eval(name, {"eq": equipoise})
    parts = name.split(".")
    for n in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def heading_anchors(page):
    """Return the anchors of the headings of a Markdown page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_item_has_a_row_with_a_verdict():
    assert {source: len(rows) for source, rows in TABLES.items()} == SIZES
    for row in ROWS:
        assert len(row) == 5 and all(row), row
        assert kind(row[4]), f"{row[1]}: verdict {row[4]!r}"
        assert kind(row[4]) == "works" or len(row[4]) > 40, f"{row[1]}: no reason is given"


def test_summary_counts_the_verdicts():
    for source, rows in {**TABLES, "all": ROWS}.items():
        counts = [len(rows), *(sum(kind(row[4]) == name for row in rows) for name in VERDICTS)]
        assert f"| {source} | {' | '.join(map(str, counts))} |" in TEXT


@pytest.mark.skipif(not ITEMS.exists(), reason="../shared/design/SEEDS.md does not exist")
def test_items_are_in_the_order_of_the_sources():
    listed = re.findall(r"^\| (\d[^|]*) \|.*\|.*\|.*\|.*\|$", ITEMS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [row[0] for row in ROWS] == listed


def test_names_and_files_exist():
    for row in ROWS:
        for name in in_backticks(row[2]):
            if name.startswith(("eq.", "equipoise.")):
                assert resolve(name) is not None
            else:
                assert exists(name), f"{row[1]}: {name} does not exist"


def test_links_lead_to_pages_and_headings():
    links = re.findall(r"\]\(([\w./]+)(?:#([\w-]+))?\)", TEXT)
    assert len(links) > 30
    for path, anchor in links:
        page = PAGE.parent / path
        assert page.is_file(), path
        assert not anchor or anchor in heading_anchors(page), f"{path}#{anchor}"


def test_every_command_is_of_a_known_form():
    forms = r"pytest tests/[\w/]+\.py::test_\w+|python examples/\w+\.py|python -c \".+\"|" + (
        r"python benchmarks/papers/run\.py --short --only [\w ]+"
    )
    for command in COMMANDS:
        assert re.fullmatch(forms, command), command


def test_named_tests_exist():
    for command in starting_with("pytest"):
        path, name = command.removeprefix("pytest ").split("::")
        functions = re.findall(r"^def (test_\w+)", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert name in functions, command


def test_examples_are_run_by_the_tests():
    tested = (ROOT / "tests" / "test_examples.py").read_text(encoding="utf-8")
    for command in starting_with("python examples/"):
        name = command.removeprefix("python examples/")
        assert (ROOT / "examples" / name).is_file()
        assert f'run_example("{name}"' in tested, name


@needs("benchmarks")
def test_benchmarks_are_run_by_the_tests():
    sections = set(
        re.findall(r'^    "(\w+)": \w+,$', (ROOT / "benchmarks/papers/run.py").read_text(encoding="utf-8"), re.M)
    )
    for command in starting_with("python benchmarks/"):
        assert set(command.split("--only ")[1].split()) <= sections, command
    assert 'run.main(["--short"' in (ROOT / "tests" / "test_papers.py").read_text(encoding="utf-8")


def test_short_programs_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in starting_with("python -c"):
        exec(compile(command.removeprefix('python -c "').removesuffix('"'), command, "exec"), {})
