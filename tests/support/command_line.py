"""Helpers that run the command line."""

from equipoise.cli import main


def embed(*arguments):
    """Run `equipoise embed` and return its exit code."""
    return main(["embed", *map(str, arguments)])


def one_line_error(capsys):
    """Return the message on stderr after checking that it is one line without a traceback."""
    message = capsys.readouterr().err
    assert message.startswith("equipoise: error: ") and message.count("\n") == 1, message
    return message


def read_csv(path):
    """Return the header and the rows of a CSV file without quotes."""
    header, *rows = (line.split(",") for line in path.read_text(encoding="utf-8").splitlines())
    return header, rows


def names(folder):
    """Return the sorted file names in a folder."""
    return sorted(path.name for path in folder.iterdir())
