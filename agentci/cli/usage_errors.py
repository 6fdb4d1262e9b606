"""Command lines that cannot be understood: which words, and what may have been meant."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentci._util.text.suggest import did_you_mean
from agentci.config.options import OPTIONS

CONFIGS: Final = "configs are named without an option, recordings with --traces"
LEFT_OVER: Final = "put a glob in quotes, and an option before each value"


def understood(parser: argparse.ArgumentParser, words: Sequence[str]) -> Mapping[str, Any]:
    """What ``words`` say.

    Raises:
        SystemExit: help was asked for, or there is a word that says nothing (code 2).
    """
    known, unknown = parser.parse_known_args(words)
    if unknown:
        hint = _hint(unknown[0], vars(known))
        parser.error(f"unrecognized arguments: {' '.join(unknown)} ({hint})")
    return vars(known)


def _hint(word: str, options: Mapping[str, object]) -> str:
    if not word.startswith("-"):
        return LEFT_OVER
    name = word.partition("=")[0]
    if name in ("--config", "-c") and "traces" in options:
        return CONFIGS
    names = [f"--{option.name}" for option in OPTIONS if option.name in options]
    more = f"`agentci {options['command']} --help` lists the options"
    return did_you_mean(name, names) or more
