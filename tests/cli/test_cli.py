"""The command-line parser: help, errors, examples, and the studio verb."""

import re
import shlex
from contextlib import nullcontext

import numpy as np
import pytest
from support.command_line import one_line_error
from support.row_tables import write_zarr

import equipoise
from equipoise.cli import main, parser

VERBS = [
    "embed",
    "transform",
    "evaluate",
    "compare",
    "sweep",
    "stability",
    "plot",
    "studio",
    "data",
    "info",
    "completion",
]


def help_of(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["fly"], ["embed"], ["embed", "iris", "--method", "no"], ["transform", "x"]])
def test_invalid_command_line_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: equipoise" in one_line_error(capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["emebd", "iris"], "invalid choice: 'emebd'; did you mean embed?"),
        (["fly"], "invalid choice: 'fly'; choose from embed, transform, evaluate"),
        (["completion", "bsh"], "invalid choice: 'bsh'; did you mean bash?"),
        (["plot", "m.csv", "--drak"], "unknown argument: --drak; did you mean --dark?"),
    ],
)
def test_typos_get_suggestions(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in one_line_error(capsys)


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"equipoise {equipoise.__version__}\n"


def test_help_lists_every_verb(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = help_of([], capsys)
    assert max(map(len, text.splitlines())) <= 80
    assert (
        re.findall(r"^  ([a-z]+) +\w", text.partition("commands:")[2].partition("examples:")[0], re.MULTILINE) == VERBS
    )


@pytest.mark.parametrize("verb", VERBS)
def test_verb_help_fits_80_columns_and_has_examples(verb, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = help_of([verb], capsys)
    assert text.startswith(f"usage: equipoise {verb}")
    assert "examples:\n  " in text
    options = text.partition("examples:")[0].splitlines()
    assert max(map(len, options)) <= 80


def examples(verb):
    """Yield the example commands of a verb without shell syntax."""
    (verbs,) = (action for action in parser.make_parser("tsne")._actions if action.dest == "verb")
    for line in verbs.choices[verb].epilog.splitlines()[1:]:
        for command in re.split(r"&&|;|\|", re.sub(r"  in .*|[<>] \S+", "", line)):
            program, *words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", command.strip()))
            assert program in ("equipoise", "source"), line
            if program == "equipoise":
                yield words


@pytest.mark.parametrize("verb", VERBS)
def test_help_examples_run(verb, tmp_path, monkeypatch):
    """Run each example in the folder left by the previous ones, with fewer iterations."""
    pytest.importorskip("bokeh")
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("zarr")
    write_zarr(tmp_path / "big.zarr", np.random.default_rng(0).normal(size=(400, 60)).astype(np.float32))
    for words in examples(verb):
        if words[-1] == "--help" or words[0] == "studio" or "-" in words:  # these exit, serve, or wait for input
            with pytest.raises(SystemExit) if words[-1] == "--help" else nullcontext():
                parser.parse(words)
            continue
        iterates = words[0] in ("embed", "sweep", "stability") and "pca" not in words
        assert main([*words, *(["--n-iter", "50"] if iterates else [])]) == 0, words


def test_studio_passes_options_to_serve(monkeypatch, tmp_path):
    pytest.importorskip("bokeh")
    calls = []
    monkeypatch.setattr(
        "equipoise.studio.server.serve.serve", lambda *data, **settings: calls.append((*data, settings))
    )
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n3,y\n")
    assert main(["studio"]) == 0
    assert main(["studio", str(tmp_path / "t.csv"), "--label", "kind", "--port", "5006", "--no-browser"]) == 0
    local = {"address": "127.0.0.1"}
    assert calls[0] == (None, {"port": 0, "show": True, **local})
    dataset, settings = calls[1]
    assert settings == {"port": 5006, "show": False, **local}
    assert dataset.dataset.X.tolist() == [[1.0], [3.0]] and dataset.dataset.classes == ("x", "y")
