"""The action: reads the inputs of a workflow step instead of a command line."""

import os
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from agentci._util.text.suggest import quote_name
from agentci.cli.commands.run import run
from agentci.cli.process import run_in_process
from agentci.cli.publish import publish_input_problems
from agentci.cli.session import Session, allow_caches, allow_variables, restrict_agents
from agentci.config.options import OPTIONS, REPORT_OPTIONS
from agentci.config.settings import (
    Settings,
    parse_allow_agents,
    parse_env_allow,
    parse_evaluator_caches,
    parse_settings,
)
from agentci.errors import InputError
from agentci.model.problem import Problem
from agentci.model.values import replace

if TYPE_CHECKING:
    from agentci.cli.record_step import RecordInputs

CONFIG_INPUT = "config"
MERGE_INPUT = "merge"
COMMENT_INPUT = "comment-report"
COMMENT_OPTIONS = ("comment", "check-run", "comment-template", "report-url", "offline")
RECORD_INPUTS = ("record", "cases", "replay", "record-to", "redact", "no-injection")
_UNSET = {option.name: {"", "false", option.default.casefold()} for option in OPTIONS}
_LIST_SYNTAX = re.compile(r"""\A(?:-\s|(["']).*\1\Z|\[\s*["'])""")


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
        from agentci.cli.commands.comment import post_report_comment  # noqa: PLC0415 (rarely used)

        return post_report_comment(other_report, settings, session)
    if reports:
        from agentci.cli.commands.merge import merge  # noqa: PLC0415 (rarely used)

        return merge(reports, settings, session)
    if recorded is None:
        return run(settings, session)
    return _record_and_run(recorded, settings, session, environ)


def _parse_record_inputs(inputs: Mapping[str, str], settings: Settings) -> "RecordInputs | None":
    if all(_is_unset(name, inputs.get(name, "")) for name in RECORD_INPUTS):
        return None
    from agentci.cli.record_step import parse_record_inputs  # noqa: PLC0415 (rarely used)

    return parse_record_inputs(inputs, settings)


def _record_and_run(
    inputs: "RecordInputs", settings: Settings, session: Session, environ: Mapping[str, str]
) -> int:
    """Record the agent, and evaluate what was recorded; a case that is not complete is an error."""
    from agentci.cli.record_step import record_in_step  # noqa: PLC0415 (rarely used)

    try:
        recording = record_in_step(inputs, settings, environ, session)
    except InputError as error:
        return publish_input_problems(error.problems, session)
    if session.services.interruption.is_requested():
        publish_input_problems(recording.problems, session)
        return recording.exit_code
    if not recording.has_traces:
        return publish_input_problems(recording.problems, session)
    traces = settings.traces or (recording.file,)
    return run(replace(settings, traces=traces), session, problems=recording.problems)


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
