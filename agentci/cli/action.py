"""The action: reads the inputs of a workflow step instead of a command line."""

import os
import re
from collections.abc import Collection, Mapping

from agentci._util.text.suggest import quote_name
from agentci.cli.commands.run import run
from agentci.cli.process import run_in_process
from agentci.cli.publish import publish_input_problems
from agentci.cli.session import Session, allow_variables
from agentci.config.options import OPTIONS, REPORT_OPTIONS
from agentci.config.settings import parse_env_allow, parse_settings
from agentci.errors import InputError
from agentci.model.problem import Problem

CONFIG_INPUT = "config"
MERGE_INPUT = "merge"
COMMENT_INPUT = "comment-report"
COMMENT_OPTIONS = ("comment", "check-run", "offline")
_LIST_SYNTAX = re.compile(r"""\A(?:-\s|(["']).*\1\Z|\[\s*["'])""")


def main() -> int:
    """Run the action with the inputs in the environment."""
    inputs = {
        name: os.environ.get(f"INPUT_{name.upper()}", "")
        for name in (CONFIG_INPUT, *(option.name for option in OPTIONS if not option.cli_only))
    }
    return run_in_process(lambda session: run_action(inputs, session), os.environ)


def run_action(inputs: Mapping[str, str], session: Session) -> int:
    """Run the step that ``inputs`` describe; inputs with several values have one per line.

    The step's outputs are always written, even if the inputs are invalid.
    """
    repeated = {CONFIG_INPUT, *(option.name for option in OPTIONS if option.repeats)}
    values = {
        name: _split_lines(text) if name in repeated else (text,) for name, text in inputs.items()
    }
    try:
        _reject_list_syntax({name: values[name] for name in values if name in repeated})
        settings = parse_settings(values[CONFIG_INPUT], values)
        session = allow_variables(session, parse_env_allow(values))
        if reports := values[MERGE_INPUT]:
            _reject_unrelated_inputs(inputs, MERGE_INPUT, REPORT_OPTIONS)
        if other_report := inputs[COMMENT_INPUT].strip():
            _reject_unrelated_inputs(inputs, COMMENT_INPUT, COMMENT_OPTIONS)
    except InputError as error:
        return publish_input_problems(error.problems, session)
    if other_report:
        from agentci.cli.commands.comment import post_report_comment  # noqa: PLC0415 (rarely used)

        return post_report_comment(other_report, settings, session)
    if reports:
        from agentci.cli.commands.merge import merge  # noqa: PLC0415 (rarely used)

        return merge(reports, settings, session)
    return run(settings, session)


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
    unset = {option.name: {"", "false", option.default.casefold()} for option in OPTIONS}
    run_inputs = [option.name for option in OPTIONS if not option.input_only]
    others = [name for name in (CONFIG_INPUT, MERGE_INPUT, *run_inputs) if name != instead]
    values = {name: text.strip().casefold() for name, text in inputs.items()}
    problems = [
        Problem(
            message=f"input {name} has no effect with {instead}, which runs no checks",
            hint="move it to the steps that run checks",
        )
        for name in others
        if name not in allowed and values.get(name, "") not in unset.get(name, {""})
    ]
    if problems:
        raise InputError(problems)
