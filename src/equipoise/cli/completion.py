"""`equipoise completion`: scripts that complete verbs, options, methods and data sets in a shell.

The package shtab generates a script from the parser once. Completing a word then does not start Python, which would
take more than a second to import the methods. A script offers the options of all methods, whatever the value of
--method.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from functools import partial
from typing import Any

from ..data import DATASETS
from .method_options import DEFAULT, METHODS
from .options import add_verb

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """\
  eval "$(equipoise completion bash)"           in ~/.bashrc
  eval "$(equipoise completion zsh)"            in ~/.zshrc, after compinit
  equipoise completion fish | source            in ~/.config/fish/config.fish"""
NAMES = shlex.join(DATASETS)
DATASET_OR_FILE = {
    "bash": "_equipoise_dataset_or_file",
    "zsh": "_equipoise_dataset_or_file",
    "fish": f"(printf '%s\\n' {NAMES}; __fish_complete_path (commandline -ct))",
    "preamble": {
        "bash": f'_equipoise_dataset_or_file() {{ compgen -W "{NAMES}" -- "$1"; compgen -f -- "$1"; }}',
        "zsh": f"_equipoise_dataset_or_file() {{ _alternative 'd:data set:({NAMES})' 'f:file:_files' }}",
    },
}
PATHS = ("FILE", "PATH", "MAP", "MODEL")  # metavars of arguments that are files

MakeParser = Callable[[str], argparse.ArgumentParser]


def add(verbs: Any, make_parser: MakeParser) -> None:
    """Add the verb `completion`; `make_parser(name)` returns a parser with the parameters of the method `name`."""
    description = "print a script that sets up tab completion in a shell"
    verb = add_verb(verbs, "completion", description, "bash|zsh|fish", EXAMPLES, partial(run, make_parser))
    verb.add_argument("shell", choices=SHELLS)


def run(make_parser: MakeParser, args: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    import shtab

    print(shtab.complete(_complete_parser(make_parser), args.shell))
    return 0


def _complete_parser(make_parser: MakeParser) -> argparse.ArgumentParser:
    """Return a parser with the options of all methods, and with completion rules for data sets and files."""
    import shtab

    parser = make_parser(DEFAULT)
    verbs = _verbs(parser)
    for method in METHODS:
        for name, verb in _verbs(make_parser(method)).items():
            known = verbs[name]._option_string_actions
            for action in verb._actions:
                if action.option_strings and action.option_strings[0] not in known:
                    verbs[name]._add_action(action)
    for verb in verbs.values():
        for action in verb._actions:
            if action.metavar == "DATA":
                action.complete = DATASET_OR_FILE  # type: ignore[attr-defined]
            elif action.metavar in PATHS:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar == "NAME":
                action.choices = list(DATASETS)
    return parser


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return a dictionary from the names of the verbs to their parsers."""
    (verbs,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(verbs.choices)
