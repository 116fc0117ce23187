"""`python -m equipoise.accel` runs scripts and modules as `python` does."""

import subprocess
import sys
import textwrap

import pytest

from equipoise.accel.run_program import main

SCRIPT = """
import sys, pickle, __main__
from sklearn.manifold import Isomap
class Own:
    pass
if __name__ == "__main__":
    print(sys.argv, __file__, __main__.Own is Own, type(pickle.loads(pickle.dumps(Own()))) is Own)
    import neighbour
    print(neighbour.VALUE, Isomap(n_neighbors=3).fit_transform([[float(i), i**0.5] for i in range(20)]).shape)
    sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "neighbour.py").write_text("VALUE = 5\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "fails.py").write_text("def f():\n    raise RuntimeError('from the script')\n\nf()\n")
    (tmp_path / "syntax.py").write_text("x = = 1\n")
    return tmp_path


def run(*arguments, cwd):
    return subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True)


def test_arguments_exit_codes_and_output_are_those_of_the_script(folder, tmp_path_factory):
    elsewhere, script = tmp_path_factory.mktemp("elsewhere"), str(folder / "script.py")
    plain = run(script, "3", "--flag", cwd=elsewhere)
    done = run("-m", "equipoise.accel", script, "3", "--flag", cwd=elsewhere)
    assert (plain.returncode, plain.stderr) == (3, "")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert textwrap.shorten(done.stderr.splitlines()[0], 200) == (
        "equipoise.accel: 1 call answered by Equipoise, 0 by the original"
    )
    assert done.stderr.splitlines()[2].startswith("sklearn.manifold.Isomap  equipoise.Isomap      1")


@pytest.mark.parametrize("script", ["fails.py", "syntax.py"])
def test_tracebacks_are_those_of_python(folder, script):
    plain = run(script, cwd=folder)
    done = run("-m", "equipoise.accel", script, cwd=folder)
    assert done.returncode == plain.returncode == 1
    shown = done.stderr.removesuffix("equipoise.accel: no calls\n")
    assert shown.splitlines()[-1] == plain.stderr.splitlines()[-1]
    assert "equipoise" not in shown
    assert [line.strip() for line in shown.splitlines() if "line " in line] == [
        line.strip().replace(str(folder / script), script) for line in plain.stderr.splitlines() if "line " in line
    ]


def test_modules_run_with_minus_m(folder):
    done = run("-m", "equipoise.accel", "-m", "script", "0", cwd=folder)
    assert done.returncode == 0
    assert "'0'] " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.py"], "equipoise.accel: can't open 'absent.py': No such file or directory"),
        (["--wrong"], "equipoise.accel: unknown option --wrong"),
        (["-m"], "equipoise.accel: -m needs the name of a module"),
        ([], "usage: python -m equipoise.accel script.py [arguments]"),
    ],
)
def test_wrong_arguments_are_explained(monkeypatch, capsys, arguments, message):
    monkeypatch.setattr(sys, "argv", ["accel", *arguments])
    with pytest.raises(SystemExit, match="2"):
        main()
    printed = capsys.readouterr()
    assert message in printed.err.splitlines()
    assert printed.out == ""


def test_help_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["accel", "--help"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert capsys.readouterr().out.startswith("usage: python -m equipoise.accel script.py")
