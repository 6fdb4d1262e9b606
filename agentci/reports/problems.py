"""Problems of configs and traces as text, JSON, SARIF or GitHub annotations."""

from collections.abc import Sequence

from agentci._util.text import escape, json_text
from agentci._util.text.format import format_count
from agentci.model.choices import ProblemFormat
from agentci.model.problem import Problem
from agentci.reports.report_format import format_problem, make_problem_annotation
from agentci.reports.workflow_commands import LEVELS, render_annotations


def render_problems(
    problems: Sequence[Problem], form: ProblemFormat, *, files: int | None = None
) -> str:
    """Render ``problems`` in their order.

    Args:
        form: ``text`` ends with the number of problems; ``github`` and ``sarif`` stay within
            GitHub's limits.
        files: number of files that were checked, for the last line of ``text``; None omits it.
    """
    if form == "json":
        return _json(problems)
    if form == "text":
        return _text(problems, files)
    if form == "sarif":
        from agentci.reports.sarif import render_sarif  # noqa: PLC0415 (most runs do not need it)

        return render_sarif(problems)
    return render_annotations(tuple(map(make_problem_annotation, problems)))


def _text(problems: Sequence[Problem], files: int | None) -> str:
    """Render ``FILE:LINE:COLUMN: error: MESSAGE`` lines for editors and problem matchers."""
    looked_at = "" if files is None else f" in {format_count(files, 'file')}"
    lines = [*map(_line, problems), f"{_counted(problems)}{looked_at}"]
    return "".join(f"{line}\n" for line in lines)


def _line(problem: Problem) -> str:
    return escape.escape_for_log_line(format_problem(problem, severity=True))


def _counted(problems: Sequence[Problem]) -> str:
    severities = [problem.severity for problem in problems]
    counts = (
        format_count(severities.count(level), level) for level in LEVELS if level in severities
    )
    return ", ".join(counts) or "no problems"


def _json(problems: Sequence[Problem]) -> str:
    """Render a JSON object, never empty output, with one problem per line."""
    lines = ",\n".join(f"  {json_text.dumps(each)}" for each in problems)
    return f'{{"problems": [\n{lines}\n]}}\n' if problems else '{"problems": []}\n'
