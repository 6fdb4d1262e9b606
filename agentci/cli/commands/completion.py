"""``agentci completion``: scripts with which shells complete commands and options."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Final, TextIO, TypeAlias

from agentci.cli.arguments import list_actions, make_parser

SHELLS: Final = ("bash", "zsh", "fish")

# By command, and by command and action: its options, each with its help and whether it has a value.
_Option: TypeAlias = tuple[str, str, bool]
_Commands: TypeAlias = Mapping[tuple[str, ...], tuple[_Option, ...]]


def print_completion(shell: str, out: TextIO) -> int:
    """Print the script of a shell."""
    commands = dict(_list_commands(make_parser(), ()))
    lines = _format_fish(commands) if shell == "fish" else _format_bash(commands)
    start = ["#compdef agentci", "autoload -U +X bashcompinit && bashcompinit"]
    out.write("\n".join((*(start if shell == "zsh" else ()), *lines, "")))
    return 0


def _list_commands(
    parser: argparse.ArgumentParser, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[_Option, ...]]]:
    """Yield each command with its options, those that contain others first."""
    actions = list_actions(parser)
    yield (
        path,
        tuple(
            (name, "" if action.help is None else action.help, action.nargs != 0)
            for action in actions
            for name in action.option_strings
            if name.startswith("--") and action.help != argparse.SUPPRESS
        ),
    )
    for action in actions:
        if isinstance(action.choices, dict):
            for name, inner in action.choices.items():
                yield from _list_commands(inner, (*path, name))


def _list_inner(commands: _Commands, path: tuple[str, ...]) -> list[str]:
    return [each[-1] for each in commands if each and each[:-1] == path]


def _format_bash(commands: _Commands) -> Iterator[str]:
    yield "_agentci() {"
    yield '  local current="${COMP_WORDS[COMP_CWORD]}" words='
    yield '  case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in'
    for path in sorted((each for each in commands if each), key=len, reverse=True):
        words = [*_list_inner(commands, path), *(name for name, _, _ in commands[path])]
        pattern = f'"{" ".join(path)}"' if len(path) > 1 else f'"{path[0]} "*'
        yield f'    {pattern}) words="{" ".join(words)}" ;;'
    yield "  esac"
    yield '  if [ "$COMP_CWORD" -eq 1 ]; then'
    first = [*_list_inner(commands, ()), *(name for name, _, _ in commands[()])]
    yield f'    words="{" ".join(first)}"'
    yield "  fi"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield "complete -o default -F _agentci agentci"


def _format_fish(commands: _Commands) -> Iterator[str]:
    for path, options in commands.items():
        inner = _list_inner(commands, path)
        seen = " ".join(f"; and __fish_seen_subcommand_from {name}" for name in path)[6:]
        condition = seen or "__fish_use_subcommand"
        if inner:
            also = f"; and not __fish_seen_subcommand_from {' '.join(inner)}" if path else ""
            yield f"complete -c agentci -f -n '{condition}{also}' -a '{' '.join(inner)}'"
        for name, text, has_value in options:
            described = " ".join(text.split()).replace("\\", "").replace("'", "")
            value = " -r" if has_value else ""
            yield f"complete -c agentci -n '{condition}' -l {name[2:]}{value} -d '{described}'"
