"""The inputs of the action that record the agent before it is evaluated."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from agentci._util.text.suggest import join_with_or
from agentci.cli.commands.record import Recording, RecordOptions, make_recording
from agentci.cli.session import Session
from agentci.config.options import DEFAULT_RECORDING
from agentci.config.settings import Settings
from agentci.config.variables import is_reserved
from agentci.errors import InputError
from agentci.model.problem import Problem
from agentci.record.replay import ReplayMode

RECORD_INPUT: Final = "record"
# Inputs that have an effect only together with `record`.
DETAIL_INPUTS: Final = ("cases", "replay", "record-to", "redact", "no-injection")
# Files with which a program acts on later steps of the job, and what the image sets for agentci.
_HIDDEN_VARIABLES: Final = frozenset(
    {
        *("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
        "PYTHONSAFEPATH",
    }
)
_REPLAY_MODES: Final[Mapping[str, ReplayMode | None]] = {
    "": None,
    "false": None,
    "true": "strict",
    "strict": "strict",
    "fallback": "fallback",
}
_VALUES: Final = {
    "replay": ("true", "false", "strict", "fallback"),
    "no-injection": ("true", "false"),
}


class RecordInputs(Struct, frozen=True, kw_only=True):
    """The inputs, parsed."""

    command: tuple[str, ...]
    out: str
    cases: tuple[str, ...]
    replay: ReplayMode | None
    redact: tuple[str, ...]
    is_injected: bool


def parse_record_inputs(inputs: Mapping[str, str], settings: Settings) -> RecordInputs | None:
    """Parse and check the inputs; None if nothing is to be recorded.

    Raises:
        InputError: one problem for every invalid input.
    """
    given = {name: inputs.get(name, "").strip() for name in (RECORD_INPUT, *DETAIL_INPUTS)}
    mode = _REPLAY_MODES.get(given["replay"].casefold())
    problems = list(_find_problems(given))
    if given[RECORD_INPUT] and settings.shard is not None:
        message = "each shard would run the agent"
        hint = "record in an earlier job, and pass its traces to the shards"
        problems.append(Problem(message=message, hint=hint))
    if given[RECORD_INPUT] and settings.fetch_settings.offline and mode != "strict":
        message = "`offline` runs no agent that asks a model"
        problems.append(Problem(message=message, hint="set `replay: true`"))
    command: tuple[str, ...] = ()
    try:
        command = tuple(shlex.split(given[RECORD_INPUT]))
    except ValueError as error:
        message = f"input record cannot be split into words: {error}"
        problems.append(Problem(message=message, hint="close each quote"))
    if problems:
        raise InputError(problems)
    if not command:
        return None
    out = given["record-to"] or DEFAULT_RECORDING
    return RecordInputs(
        command=command,
        out=out,
        cases=tuple(filter(None, map(str.strip, given["cases"].splitlines()))),
        replay=mode,
        redact=tuple(filter(None, map(str.strip, given["redact"].splitlines()))),
        is_injected=given["no-injection"].casefold() != "true",
    )


def _find_problems(given: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the values that are not valid, and inputs without effect."""
    for name, values in _VALUES.items():
        if given[name].casefold() not in ("", *values):
            message = f"input {name} must be {join_with_or(values)}, not {given[name]!r}"
            yield Problem(message=message)
    if not given[RECORD_INPUT]:
        for name in DETAIL_INPUTS:
            if name != "record-to" and given[name].casefold() not in ("", "false"):
                message = f"input {name} has no effect without record"
                yield Problem(message=message, hint="add `record`")


def record_in_step(
    inputs: RecordInputs, settings: Settings, environ: Mapping[str, str], session: Session
) -> Recording:
    """Record the agent, without the credentials of the job and the files of the runner.

    What the agent prints is not in the log, where the runner would take it for commands.

    Raises:
        InputError: the inputs are invalid, or the command cannot be started.
    """
    options = RecordOptions(
        command=inputs.command,
        out=inputs.out,
        cases=inputs.cases,
        jobs=settings.jobs or 1,
        replay=inputs.replay,
        redact=inputs.redact,
        is_injected=inputs.is_injected,
    )
    own = {
        name: value
        for name, value in environ.items()
        if not is_reserved(name) and name not in _HIDDEN_VARIABLES
    }
    return make_recording(options, own, session, shares_terminal=False)
