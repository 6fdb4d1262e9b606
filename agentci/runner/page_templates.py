"""Templates of a repository that replace blocks of the summary and the comment.

A template is rendered by ``child/programs/render_template.py`` in a sandbox, which returns the
values that it printed apart from the template's own text. Blocks of the page are inserted as they
are, and all other values as escaped Markdown, so that text of an agent cannot format the page or
mention users.
A pull request may change the template, so the verdict, its reasons and the policy are always shown.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from agentci._util.child_programs import RENDER_PATH
from agentci._util.text import truncate
from agentci._util.text.escape import markdown_prose
from agentci._util.text.json_text import dumps_compact
from agentci._util.text.suggest import suggest_name
from agentci._util.workspace import decode_utf8, limit_input, read_file
from agentci.errors import EvaluatorError, InputError
from agentci.evaluators.program_output import format_log_tail
from agentci.model.program import LocalProgram
from agentci.model.requests import RunProgram
from agentci.model.result import CheckResult, Report
from agentci.model.values import Json, JsonObject, Place, Problem
from agentci.reports.check_text import format_reason
from agentci.reports.groups_and_totals import (
    group_by_evaluator,
    is_invalid_input,
)
from agentci.reports.outcomes import (
    CaseOutcome,
    format_metrics,
    list_case_outcomes,
    summarize_metrics,
)
from agentci.reports.sections import BLOCKS, BlockName, join_blocks, make_case_url
from agentci.reports.verdict import format_conclusion, format_title
from agentci.reports.workflow_commands import COMMENT_CHARACTERS
from agentci.runner.dispatch import run_program
from agentci.runner.services import Services

# The name by which a template extends the page.
PAGE_NAME: Final = "page"
FIXED: Final[tuple[BlockName, ...]] = ("verdict", "reasons", "policy")
REPLACEABLE: Final = tuple(name for name in BLOCKS if name not in FIXED)
_PAGE: Final = "".join(
    f"{{% block {name} %}}{{{{ {name} }}}}{{% endblock %}}" for name in REPLACEABLE
)
# Variables besides the blocks.
VARIABLES: Final = ("page", "report", "cases", "checked", "run")
MAX_CASES: Final = 200


class PageTemplateError(Exception):
    """A template could not be rendered; the message says why."""


class _Rendered(Struct, frozen=True):
    text: str
    values: tuple[tuple[str, str], ...]


def encode_render_request(
    template: str, page: str, blocks: Mapping[BlockName, str], report: Report, report_url: str
) -> str:
    """Encode what ``child/programs/render_template.py`` reads.

    Args:
        page: ``summary`` or ``comment``.
        report_url: of ``report.html``; empty if it is not known.
    """
    shown: dict[str, Json] = {name: blocks[name] for name in REPLACEABLE}
    variables = {**shown, "page": page, **_make_variables(report, report_url)}
    return dumps_compact(
        {"template": template, "templates": {PAGE_NAME: _PAGE}, "variables": variables}
    )


def decode_page(output: bytes, blocks: Mapping[BlockName, str]) -> str:
    """Make the page from the output of ``child/programs/render_template.py``.

    Raises:
        PageTemplateError: the template changed a placeholder, or the page is too large.
    """
    try:
        rendered = msgspec.json.decode(output, type=_Rendered)
        own, *others = rendered.text.split("\0")
        parts = [*(blocks[name] for name in FIXED), own]
        left = MAX_PAGE_BYTES - sum(map(truncate.count_utf8_bytes, parts))
        for number, words in zip(others[::2], others[1::2], strict=True):
            name, text = rendered.values[int(number)]
            added = [text if name in REPLACEABLE else markdown_prose(text), words]
            left -= sum(map(truncate.count_utf8_bytes, added))
            if left < 0:  # the rest would take seconds to escape
                break
            parts += added
    except (ValueError, IndexError):
        raise PageTemplateError("the template changes a value after it was printed") from None
    if left < 0:
        raise PageTemplateError(f"it would be larger than {MAX_PAGE_BYTES:,} bytes")
    return "".join(parts)


def _make_variables(report: Report, report_url: str) -> JsonObject:
    run = report.run
    shown = (each for each in list_case_outcomes(report) if each.problems or each.state == "fixed")
    return {
        "report": {
            "passed": report.decision.passed,
            "conclusion": format_conclusion(report),
            "title": format_title(report),
            "score": report.totals.score,
            "checks": report.totals.checks,
            "passed_checks": report.totals.passed,
            "failed_checks": report.totals.failed,
            "errored_checks": report.totals.errored,
            "skipped_checks": report.totals.skipped,
            "metrics": format_metrics(summarize_metrics(report)),
            "url": report_url,
        },
        "cases": [_describe_case(each, report, report_url) for each in islice(shown, MAX_CASES)],
        "checked": [
            {
                "config": each.representative.config,
                "evaluator": each.representative.evaluator.name,
                "passed": each.totals.passed,
                "failed": each.totals.failed,
                "errored": each.totals.errored,
                "skipped": each.totals.skipped,
                "score": each.totals.score,
                "criterion": each.representative.evaluator.criterion,
                "required": each.representative.evaluator.required,
            }
            for each in group_by_evaluator(report.results)
        ],
        "run": {
            "repository": run.repository,
            "branch": run.branch,
            "commit": report.commit,
            "url": run.url,
            "pull_request": run.pull_request,
            "title": run.title,
        },
    }


def _describe_case(case: CaseOutcome, report: Report, report_url: str) -> JsonObject:
    return {
        "id": case.summary.id,
        "question": next((each.question for each in case.summary.dialogue if each.question), ""),
        "state": case.state,
        "tags": list(case.tags),
        "url": make_case_url(report_url, case.summary.id),
        "problems": [_describe_problem(each, report) for each in case.problems],
    }


def _describe_problem(result: CheckResult, report: Report) -> dict[str, Json]:
    before = report.baseline.get(result.id)
    return {
        "evaluator": result.evaluator.name,
        "status": result.status,
        "score": result.score,
        "threshold": result.evaluator.threshold,
        "required": result.evaluator.required,
        "reason": format_reason(result),
        "baseline_status": None if before is None else before.status,
        "baseline_score": None if before is None else before.score,
    }


RENDER_SECONDS: Final = 10
RENDER_MB: Final = 256
MAX_TEMPLATE_BYTES: Final = 1024**2
# The rest is room for the marker of a comment.
MAX_PAGE_BYTES: Final = COMMENT_CHARACTERS - 4 * 1024


class PageTemplate:
    """A template of a repository; renders pages, or the usual ones if it fails.

    Attributes:
        problems: a warning for each page that could not be rendered.
    """

    def __init__(self, file: str, text: str, *, report_url: str, services: Services) -> None:
        self.problems: list[Problem] = []
        self._place, self._text = Place(file=file), text
        self._report_url, self._services = report_url, services

    def arrange(self, page: str, blocks: Mapping[BlockName, str], report: Report) -> str:
        """Render a page from its blocks in the sandbox; a page of only errors has no template."""
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
            return decode_page(output.stdout, blocks)
        except (EvaluatorError, PageTemplateError) as error:
            message = f"the {page} is made without the template: {error}"
            self.problems.append(Problem(message=message, place=self._place, severity="warning"))
            return join_blocks(page, blocks, report)


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
