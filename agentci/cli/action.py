"""The action: reads the inputs of a workflow step instead of a command line."""

import os
import re
from collections.abc import Collection, Mapping

from agentci._util.text.suggest import quote_name
from agentci.cli.commands.run import run
from agentci.cli.process import run_in_process
from agentci.cli.publish import publish_input_problems
from agentci.cli.session import Session
from agentci.config.options import OPTIONS, REPORT_OPTIONS
from agentci.config.settings import parse_settings
from agentci.errors import InputError
from agentci.model.problem import Problem

CONFIG_INPUT = "config"
MERGE_INPUT = "merge"
COMMENT_INPUT = "comment-report"
COMMENT_OPTIONS = ("comment", "check-run", "offline")
_LIST_SYNTAX = re.compile(r"""\A(?:-\s|(["']).*\1\Z|\[\s*["'])""")


def main() -> int:
    """Run the action on the inputs that the environment holds."""
    inputs = {
        name: os.environ.get(f"INPUT_{name.upper()}", "")
        for name in (CONFIG_INPUT, *(option.name for option in OPTIONS if not option.cli_only))
    }
    return run_in_process(lambda session: run_action(inputs, session), os.environ)


def run_action(inputs: Mapping[str, str], session: Session) -> int:
    """Judge as ``inputs`` say, one value a line where an input takes several.

    Outputs are written on every way out, also when the inputs themselves are wrong.
    """
    repeated = {CONFIG_INPUT, *(option.name for option in OPTIONS if option.repeats)}
    values = {
        name: _split_lines(text) if name in repeated else (text,) for name, text in inputs.items()
    }
    try:
        _reject_list_syntax({name: values[name] for name in values if name in repeated})
        settings = parse_settings(values[CONFIG_INPUT], values)
        if reports := values[MERGE_INPUT]:
            _reject_unrelated_inputs(inputs, MERGE_INPUT, REPORT_OPTIONS)
        if foreign := inputs[COMMENT_INPUT].strip():
            _reject_unrelated_inputs(inputs, COMMENT_INPUT, COMMENT_OPTIONS)
    except InputError as error:
        return publish_input_problems(error.problems, session)
    if foreign:
        from agentci.cli.commands.comment import post_report_comment  # noqa: PLC0415 (likewise)

        return post_report_comment(foreign, settings, session)
    if reports:
        from agentci.cli.commands.merge import merge  # noqa: PLC0415 (of no use to most steps)

        return merge(reports, settings, session)
    return run(settings, session)


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.split("\n") if line.strip())


def _reject_list_syntax(values: Mapping[str, Collection[str]]) -> None:
    """An input of GitHub's is text, whatever it looks like.

    Raises:
        InputError: one is written as a list of YAML or JSON, or in quotes.
    """
    problems = [
        Problem(
            message=f"{name} takes one value a line as it is, not {quote_name(value)}",
            hint="leave out `- `, quotes and brackets",
        )
        for name, given in values.items()
        for value in given
        if _LIST_SYNTAX.search(value)
    ]
    if problems:
        raise InputError(problems)


def _reject_unrelated_inputs(
    inputs: Mapping[str, str], instead: str, kept: Collection[str]
) -> None:
    """Let nobody think that something is judged beside.

    Args:
        inputs: all that were given.
        instead: the one that says what is done instead of judging.
        kept: those that mean something beside it.

    Raises:
        InputError: inputs are given that say what to judge, and how.
    """
    unsaid = {option.name: {"", "false", option.default.casefold()} for option in OPTIONS}
    judging = [option.name for option in OPTIONS if not option.input_only]
    others = [name for name in (CONFIG_INPUT, MERGE_INPUT, *judging) if name != instead]
    given = {name: text.strip().casefold() for name, text in inputs.items()}
    problems = [
        Problem(
            message=f"{name} has no effect beside {instead}, which judges nothing",
            hint="give it to the steps that judge",
        )
        for name in others
        if name not in kept and given.get(name, "") not in unsaid.get(name, {""})
    ]
    if problems:
        raise InputError(problems)
