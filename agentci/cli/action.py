"""The action: reads the inputs of a workflow step instead of a command line.

Its inputs can also record the agent before it is evaluated.
"""

import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from agentci._util.text.suggest import join_with_or, quote_name
from agentci.cli.commands.run import run
from agentci.cli.publish import publish_input_problems
from agentci.cli.session import (
    Session,
    allow_caches,
    allow_variables,
    restrict_agents,
    run_in_process,
)
from agentci.config.options import DEFAULT_RECORDING, OPTIONS, REPORT_OPTIONS
from agentci.config.settings import (
    Settings,
    parse_allow_agents,
    parse_env_allow,
    parse_evaluator_caches,
    parse_settings,
)
from agentci.config.variables import is_reserved
from agentci.errors import InputError
from agentci.model.values import Problem, replace

if TYPE_CHECKING:
    from agentci.cli.commands.record import Recording
    from agentci.record.printed_answer import AnswerSource
    from agentci.record.replay import ReplayMode

CONFIG_INPUT = "config"
MERGE_INPUT = "merge"
COMMENT_INPUT = "comment-report"
COMMENT_OPTIONS = ("comment", "check-run", "comment-template", "report-url", "offline")
RECORD_INPUT: Final = "record"
# Inputs that have an effect only together with `record`.
DETAIL_INPUTS: Final = (
    "cases",
    "replay",
    "answer",
    "record-to",
    "record-timeout",
    "redact",
    "no-injection",
)
# Files with which a program acts on later steps of the job, and what the image sets for agentci.
_HIDDEN_VARIABLES: Final = frozenset(
    {
        *("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY"),
        "PYTHONSAFEPATH",
    }
)
_REPLAY_MODES: "Final[Mapping[str, ReplayMode | None]]" = {
    "": None,
    "false": None,
    "true": "strict",
    "strict": "strict",
    "fallback": "fallback",
}
_ANSWER_SOURCES: "Final[Mapping[str, AnswerSource]]" = {"model": "model", "stdout": "stdout"}
_VALUES: Final = {
    "replay": ("true", "false", "strict", "fallback"),
    "answer": tuple(_ANSWER_SOURCES),
    "no-injection": ("true", "false"),
}
RECORD_INPUTS: Final = (RECORD_INPUT, *DETAIL_INPUTS)
_UNSET = {option.name: {"", "false", option.default.casefold()} for option in OPTIONS}
_LIST_SYNTAX = re.compile(r"""\A(?:-\s|(["']).*\1\Z|\[\s*["'])""")


class _RecordInputs(Struct, frozen=True, kw_only=True):
    """The inputs of recording, parsed."""

    command: tuple[str, ...]
    out: str
    cases: tuple[str, ...]
    replay: "ReplayMode | None"
    redact: tuple[str, ...]
    is_injected: bool
    timeout: str
    answer: "AnswerSource | None"


def main() -> int:
    """Run the action with the inputs in the environment."""
    inputs = {
        name: os.environ.get(f"INPUT_{name.upper()}", "")
        for name in (CONFIG_INPUT, *(option.name for option in OPTIONS if not option.cli_only))
    }
    return run_in_process(lambda session: run_action(inputs, session, os.environ), os.environ)


def run_action(inputs: Mapping[str, str], session: Session, environ: Mapping[str, str]) -> int:
    """Run the step that ``inputs`` describe; inputs with several values have one per line.

    The step's outputs are always written, even if the inputs are invalid.

    Args:
        environ: the environment of a recorded agent.
    """
    repeated = {CONFIG_INPUT, *(option.name for option in OPTIONS if option.repeats)}
    values = {
        name: _split_lines(text) if name in repeated else (text,) for name, text in inputs.items()
    }
    try:
        _reject_list_syntax({name: values[name] for name in values if name in repeated})
        settings = parse_settings(values[CONFIG_INPUT], values)
        session = allow_variables(session, parse_env_allow(values))
        session = restrict_agents(session, allowed=parse_allow_agents(values))
        session = allow_caches(session, parse_evaluator_caches(values))
        if reports := values[MERGE_INPUT]:
            _reject_unrelated_inputs(inputs, MERGE_INPUT, REPORT_OPTIONS)
        if other_report := inputs[COMMENT_INPUT].strip():
            _reject_unrelated_inputs(inputs, COMMENT_INPUT, COMMENT_OPTIONS)
        recorded = _parse_record_inputs(inputs, settings)
    except InputError as error:
        return publish_input_problems(error.problems, session)
    if other_report:
        from agentci.cli.commands.reports import post_report_comment  # noqa: PLC0415 (rarely used)

        return post_report_comment(other_report, settings, session)
    if reports:
        from agentci.cli.commands.reports import merge  # noqa: PLC0415 (rarely used)

        return merge(reports, settings, session)
    if recorded is None:
        return run(settings, session)
    return _record_and_run(recorded, settings, session, environ)


def _record_and_run(
    inputs: _RecordInputs, settings: Settings, session: Session, environ: Mapping[str, str]
) -> int:
    """Record the agent, and evaluate what was recorded; a case that is not complete is an error."""
    try:
        recording = _record_in_step(inputs, settings, environ, session)
    except InputError as error:
        return publish_input_problems(error.problems, session)
    if session.services.interruption.is_requested():
        publish_input_problems(recording.problems, session)
        return recording.exit_code
    traces = settings.traces or (recording.file,)
    settings = replace(settings, traces=traces)
    is_replay = inputs.replay is not None
    return run(settings, session, problems=recording.problems, is_replay=is_replay)


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def _reject_list_syntax(values: Mapping[str, Collection[str]]) -> None:
    """Reject lists and quotes in inputs: to GitHub an input is plain text.

    Raises:
        InputError: an input is written as a YAML or JSON list, or in quotes.
    """
    problems = [
        Problem(
            message=f"input {name} has one plain value per line, found {quote_name(value)}",
            hint="remove `- `, quotes and brackets",
        )
        for name, lines in values.items()
        for value in lines
        if _LIST_SYNTAX.search(value)
    ]
    if problems:
        raise InputError(problems)


def _is_unset(name: str, text: str) -> bool:
    """Whether an input has no effect: it is empty, off, or its default."""
    return text.strip().casefold() in _UNSET.get(name, {""})


def _reject_unrelated_inputs(
    inputs: Mapping[str, str], instead: str, allowed: Collection[str]
) -> None:
    """Reject inputs that have no effect in a step that runs no checks.

    Args:
        inputs: all inputs.
        instead: the input that replaces running checks.
        allowed: inputs that have an effect together with it.

    Raises:
        InputError: inputs for running checks are set.
    """
    run_inputs = [option.name for option in OPTIONS if not option.input_only]
    others = [
        name for name in (CONFIG_INPUT, MERGE_INPUT, *RECORD_INPUTS, *run_inputs) if name != instead
    ]
    problems = [
        Problem(
            message=f"input {name} has no effect with {instead}, which runs no checks",
            hint="move it to the steps that run checks",
        )
        for name in others
        if name not in allowed and not _is_unset(name, inputs.get(name, ""))
    ]
    if problems:
        raise InputError(problems)


def _parse_record_inputs(inputs: Mapping[str, str], settings: Settings) -> _RecordInputs | None:
    """Parse and check the inputs; None if nothing is to be recorded.

    Raises:
        InputError: one problem for every invalid input.
    """
    given = {name: inputs.get(name, "").strip() for name in RECORD_INPUTS}
    mode = _REPLAY_MODES.get(given["replay"].casefold())
    problems = list(_find_record_problems(given))
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
    return _RecordInputs(
        command=command,
        out=out,
        cases=tuple(filter(None, map(str.strip, given["cases"].splitlines()))),
        replay=mode,
        redact=tuple(filter(None, map(str.strip, given["redact"].splitlines()))),
        is_injected=given["no-injection"].casefold() != "true",
        timeout=given["record-timeout"],
        answer=_ANSWER_SOURCES.get(given["answer"].casefold()),
    )


def _find_record_problems(given: Mapping[str, str]) -> Iterator[Problem]:
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


def _record_in_step(
    inputs: _RecordInputs, settings: Settings, environ: Mapping[str, str], session: Session
) -> "Recording":
    """Record the agent, without the credentials of the job and the files of the runner.

    What the agent prints is not in the log, where the runner would take it for commands.

    Raises:
        InputError: the inputs are invalid, or the command cannot be started.
    """
    from agentci.cli.commands.record import (  # noqa: PLC0415 (rarely used)
        RecordOptions,
        make_recording,
    )

    options = RecordOptions(
        command=inputs.command,
        out=inputs.out,
        cases=inputs.cases,
        jobs=settings.jobs or 1,
        replay=inputs.replay,
        redact=inputs.redact,
        is_injected=inputs.is_injected,
        timeout=inputs.timeout,
        answer=inputs.answer,
    )
    own = {
        name: value
        for name, value in environ.items()
        if not is_reserved(name) and name not in _HIDDEN_VARIABLES
    }
    return make_recording(options, own, session, shares_terminal=False)
