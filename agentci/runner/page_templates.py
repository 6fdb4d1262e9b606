"""Read and render the template of a repository for the summary and the comment."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci._util.child_programs import RENDER_PATH
from agentci._util.text import truncate
from agentci._util.text.suggest import suggest_name
from agentci._util.workspace import decode_utf8, limit_input, read_file
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.program_output import format_log_tail
from agentci.model.program import LocalProgram
from agentci.model.requests import RunProgram
from agentci.model.result import Report
from agentci.model.values import Place, Problem
from agentci.reports.page_template import (
    REPLACEABLE,
    VARIABLES,
    PageTemplateError,
    decode_page,
    encode_render_request,
)
from agentci.reports.report_format import is_invalid_input
from agentci.reports.sections import BlockName, join_blocks
from agentci.reports.workflow_commands import COMMENT_CHARACTERS
from agentci.runner.dispatch import run_program
from agentci.runner.services import Services

RENDER_SECONDS: Final = 10
RENDER_MB: Final = 256
MAX_TEMPLATE_BYTES: Final = 1024**2
# The rest is room for the marker of a comment.
MAX_PAGE_BYTES: Final = COMMENT_CHARACTERS - 4 * 1024


class PageTemplate:
    """A template of a repository; renders pages, and without it where it fails.

    Attributes:
        problems: a warning for each page that could not be rendered.
    """

    def __init__(self, file: str, text: str, *, report_url: str, services: Services) -> None:
        self.problems: list[Problem] = []
        self._place, self._text = Place(file=file), text
        self._report_url, self._services = report_url, services

    def arrange(self, page: str, blocks: Mapping[BlockName, str], report: Report) -> str:
        """Render a page of its blocks in the sandbox; a page of only errors has no template."""
        if is_invalid_input(report):
            return join_blocks(page, blocks, report)
        request = RunProgram(
            program=LocalProgram(path=RENDER_PATH),
            stdin=encode_render_request(self._text, page, blocks, report, self._report_url),
            timeout_seconds=RENDER_SECONDS,
            timeout_hint="simplify the template",
            network=False,
            memory_mb=RENDER_MB,
        )
        try:
            output = run_program(request, name=f"the {page}", services=self._services)
            if output.exit_code != 0:
                raise PageTemplateError(format_log_tail(output.stderr))
            text = decode_page(output.stdout, blocks)
            if truncate.count_utf8_bytes(text) > MAX_PAGE_BYTES:
                raise PageTemplateError(f"the {page} would be larger than {MAX_PAGE_BYTES:,} bytes")
        except (EvaluatorError, PageTemplateError) as error:
            message = f"the {page} is made without the template: {error}"
            self.problems.append(Problem(message=message, place=self._place, severity="warning"))
            return join_blocks(page, blocks, report)
        return text


def load_page_template(named: str, *, report_url: str, services: Services) -> PageTemplate:
    """Read and check a template, without running any of it.

    Raises:
        InputError: it is not in the workspace or invalid.
    """
    from jinja2 import TemplateSyntaxError, nodes  # noqa: PLC0415 (slow, rarely used)

    from agentci.evaluators.prompt_template import (  # noqa: PLC0415
        find_prompt_variables,
        parse_template,
    )

    path = services.workspace.resolve(Path(named), named=named)
    data = read_file(path, name=named, limit_bytes=MAX_TEMPLATE_BYTES)
    text = decode_utf8(data, file=named)
    place = Place(file=named)
    try:
        with limit_input(named):
            tree, variables = parse_template(text), find_prompt_variables(text)
    except TemplateSyntaxError as error:
        message = f"template syntax error: {error.message}"
        at = Place(file=named, line=error.lineno)
        raise InputError.from_message(message, place=at) from None
    except (RecursionError, ValueError):
        raise InputError.from_message("invalid template: nested too deeply", place=place) from None
    problems = [
        _make_unknown_problem("block", each.name, REPLACEABLE, Place(file=named, line=each.lineno))
        for each in tree.find_all(nodes.Block)
        if each.name not in REPLACEABLE
    ]
    known = (*REPLACEABLE, *VARIABLES)
    problems += [
        _make_unknown_problem("variable", name, known, place)
        for name in sorted(variables.difference(known))
    ]
    if problems:
        raise InputError(problems)
    return PageTemplate(named, text, report_url=report_url, services=services)


def _make_unknown_problem(noun: str, name: str, known: Sequence[str], place: Place) -> Problem:
    hint = suggest_name(name, known) or f"use one of {', '.join(known)}"
    return Problem(message=f"unknown {noun} `{name}` in the template", hint=hint, place=place)
