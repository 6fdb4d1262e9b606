"""How a program ended that did not do as it should, in words for its author."""

import signal
from contextlib import suppress
from typing import Final

from agentci._util.text import truncate
from agentci.evaluators.sandbox_hints import hint_at_walls
from agentci.model.requests import ProgramReply

MAX_LOG_LINES: Final = 20
MAX_LOG_CHARACTERS: Final = 2_000
SDK: Final = "agentevals_evaluator_sdk"


def ending(reply: ProgramReply, *, network: bool, in_image: bool, jailed: bool = True) -> str:
    """Say how a program ended whose exit code is not 0, and what it may have run into.

    Args:
        network: whether it had one.
        in_image: whether it ran in an image.
        jailed: whether there were any walls.
    """
    how = f"exited with code {reply.exit_code}"
    if reply.exit_code < 0:
        how = f"was killed by {_signal(-reply.exit_code)}"
    said = last_lines(reply.stderr)
    hint = hint_at_walls(reply.stderr, network=network, in_image=in_image) if jailed else ""
    return f"{how}{': ' if said else ''}{said}{_hint(reply, in_image=in_image)}{hint}"


def silence(reply: ProgramReply, example: str) -> str:
    """Say that a program printed nothing, and what it should have printed."""
    said = last_lines(reply.stderr)
    log = f"\nEvaluator stderr:\n{said}" if said else ""
    return f"produced no output on stdout; print a result such as {example}{log}"


def last_lines(log: str) -> str:
    """The end of what a program wrote to stderr."""
    return truncate.end("\n".join(log.strip().splitlines()[-MAX_LOG_LINES:]), MAX_LOG_CHARACTERS)


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _hint(reply: ProgramReply, *, in_image: bool) -> str:
    if not in_image and f"No module named '{SDK}'" in reply.stderr:
        return f"\n(install {SDK.replace('_', '-')} beside agentci; the action's image has it)"
    if reply.exit_code == -signal.SIGKILL:
        return " (the machine may have run out of memory)"
    if reply.exit_code == 127:  # noqa: PLR2004 (every shell's word for it)
        return " (127: a command that it calls is not there)"
    with suppress(ValueError):
        # What shells and container engines make of it.
        passed_on = signal.Signals(reply.exit_code - 128)
        return f" ({reply.exit_code}: as after signal {passed_on.value}, {passed_on.name})"
    return ""
