"""`equipoise completion`: a script by which a shell completes verbs, options, methods and names of data sets."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..data import DATASETS
from .method_options import DEFAULT, METHODS
from .options import add_verb

EXAMPLES = """\
  eval "$(equipoise completion bash)"           in ~/.bashrc
  eval "$(equipoise completion zsh)"            in ~/.zshrc, after compinit
  equipoise completion fish | source            in ~/.config/fish/config.fish"""


@dataclass
class Option:
    """An option of a verb: its spellings, a line of help, the words it takes, and the methods that have it."""

    spellings: tuple[str, ...]
    line: str
    takes_value: bool
    choices: tuple[str, ...]
    methods: list[str] = field(default_factory=list)


@dataclass
class Verb:
    """A verb with its line of help and its options."""

    line: str
    options: dict[str, Option]

    def of(self, method: str) -> Iterator[Option]:
        """Yield the options that the verb has with one method."""
        return (option for option in self.options.values() if method in option.methods)


def add(verbs: Any) -> None:
    """Declare the verb."""
    line = "print a script that completes this command line in a shell"
    verb = add_verb(verbs, "completion", line, "bash|zsh|fish", EXAMPLES, run)
    verb.add_argument("shell", choices=SCRIPTS)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(SCRIPTS[args.shell](_verbs()))
    return 0


def _verbs() -> dict[str, Verb]:
    """Return every verb, with the options of every method, as the parsers have them."""
    from .parser import make_parser

    found: dict[str, Verb] = {}
    for method in METHODS:
        (listed,) = (a for a in make_parser(method)._actions if isinstance(a, argparse._SubParsersAction))
        lines = {action.dest: action.help or "" for action in listed._choices_actions}
        for name, parser in listed.choices.items():
            verb = found.setdefault(name, Verb(lines[name], {}))
            for action in parser._actions:
                if action.option_strings:
                    option = verb.options.setdefault(action.option_strings[-1], _option(action))
                    option.methods.append(method)
    return found


def _option(action: argparse.Action) -> Option:
    line = (action.help or "").partition(";")[0].partition(" (default")[0].replace("%%", "%")
    choices = tuple(map(str, action.choices or ()))
    return Option(tuple(action.option_strings), line, action.nargs != 0, choices)


def _spellings(options: Iterator[Option]) -> str:
    return " ".join(spelling for option in options for spelling in option.spellings)


def _values(verbs: dict[str, Verb]) -> dict[str, tuple[str, ...]]:
    """Return what the options with a choice take."""
    return {
        spelling: option.choices
        for verb in verbs.values()
        for option in verb.options.values()
        for spelling in option.spellings
        if option.choices
    }


def _cases(verbs: dict[str, Verb], written: Callable[[Iterator[Option]], str], form: str) -> str:
    """Return the branches of a case over VERB:METHOD; a verb that is the same for all methods has one branch."""
    lines = []
    for name, verb in verbs.items():
        whole = {method: written(verb.of(method)) for method in METHODS}
        if len(set(whole.values())) == 1:
            whole = {"*": whole[DEFAULT]}
        lines += [form.format(f"{name}:{method}", text) for method, text in whole.items()]
    return "\n".join(lines)


def _bash(verbs: dict[str, Verb]) -> str:
    values = "\n".join(f'        {name}) words="{" ".join(words)}" ;;' for name, words in _values(verbs).items())
    return f"""\
_equipoise() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local verb="${{COMP_WORDS[1]}}" method={DEFAULT} words="" options="" i
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W "{" ".join(verbs)} --help --version" -- "$current"))
        return
    fi
    for (( i = 2; i < COMP_CWORD; i++ )); do
        [[ "${{COMP_WORDS[i-1]}}" == --method ]] && method="${{COMP_WORDS[i]}}"
    done
    case "$previous" in
{values}
    esac
    case "$verb" in
        completion) words="{" ".join(SCRIPTS)}" ;;
        data) words="{" ".join(DATASETS)}" ;;
    esac
    if [[ -n "$words" ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$current"))
        return
    fi
    case "$verb:$method" in
{_cases(verbs, _spellings, '        {}) options="{}" ;;')}
    esac
    if [[ "$current" == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ "$previous" != -* ]]; then
        COMPREPLY=($(compgen -W "{" ".join(DATASETS)}" -- "$current"; compgen -f -- "$current"))
    fi
}}
complete -o filenames -o bashdefault -o default -F _equipoise equipoise"""


def _zsh(verbs: dict[str, Verb]) -> str:
    def described(options: Iterator[Option]) -> str:
        return " ".join(_quoted(f"{name}:{option.line}") for option in options for name in option.spellings)

    values = "\n".join(f"        {name}) compadd -- {' '.join(v)}; return ;;" for name, v in _values(verbs).items())
    return f"""\
#compdef equipoise
_equipoise() {{
    local verb=$words[2] method={DEFAULT} i
    local -a verbs options
    if (( CURRENT == 2 )); then
        verbs=({" ".join(_quoted(f"{name}:{verb.line}") for name, verb in verbs.items())})
        _describe verb verbs
        return
    fi
    for (( i = 3; i < CURRENT; i++ )); do
        [[ $words[i-1] == --method ]] && method=$words[i]
    done
    case $words[CURRENT-1] in
{values}
    esac
    case $verb in
        completion) compadd -- {" ".join(SCRIPTS)}; return ;;
        data) compadd -- {" ".join(DATASETS)}; return ;;
    esac
    case $verb:$method in
{_cases(verbs, described, "        {}) options=({}) ;;")}
    esac
    if [[ $words[CURRENT] == -* ]]; then
        _describe option options
    else
        [[ $words[CURRENT-1] != -* ]] && compadd -- {" ".join(DATASETS)}
        _files
    fi
}}
compdef _equipoise equipoise"""


def _fish(verbs: dict[str, Verb]) -> str:
    lines = [
        "function __equipoise_method",
        "    set -l words (commandline -opc)",
        "    set -l at (contains -i -- --method $words)",
        f"    and echo $words[(math $at + 1)]; or echo {DEFAULT}",
        "end",
        "complete -c equipoise -n __fish_use_subcommand -f",
    ]
    for name, verb in verbs.items():
        lines.append(f"complete -c equipoise -n __fish_use_subcommand -a {name} -d {_quoted(verb.line)}")
        seen = f"__fish_seen_subcommand_from {name}"
        for option in verb.options.values():
            where = seen
            if len(option.methods) < len(METHODS):
                where += f"; and contains (__equipoise_method) {' '.join(option.methods)}"
            words = [f"-l {spelling[2:]}" for spelling in option.spellings if spelling.startswith("--")]
            if option.choices:
                words.append(f"-x -a {_quoted(' '.join(option.choices))}")
            elif option.takes_value:
                words.append("-r")
            lines.append(f"complete -c equipoise -n '{where}' {' '.join(words)} -d {_quoted(option.line)}")
    lines.append(f"complete -c equipoise -f -n '__fish_seen_subcommand_from completion' -a '{' '.join(SCRIPTS)}'")
    names = "embed evaluate compare sweep studio data"
    lines.append(f"complete -c equipoise -n '__fish_seen_subcommand_from {names}' -a '{' '.join(DATASETS)}'")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return text between single quotes, as every one of the shells reads it."""
    return "'" + text.replace("'", "’") + "'"


SCRIPTS: dict[str, Callable[[dict[str, Verb]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
