"""Problems of configs and traces as text, JSON, SARIF or GitHub annotations."""

from collections.abc import Sequence

from agentci._util.text import escape, json_text
from agentci._util.text.format import format_count
from agentci.model.values import Problem, ProblemFormat
from agentci.reports.report_format import count_problems, format_problem, make_problem_annotation
from agentci.reports.workflow_commands import render_annotations


def render_problems(
    problems: Sequence[Problem], form: ProblemFormat, *, files: int | None = None
) -> str:
    """Render ``problems`` in their order.

    Args:
        form: ``github`` and ``sarif`` stay within GitHub's limits.
        files: number of files that were checked, for the last line of ``text``. Without it, the
            last line counts the problems if there are several.
    """
    if form == "json":
        return _render_json(problems)
    if form == "text":
        lines = [escape.escape_for_log_line(format_problem(each)) for each in problems]
        if files is not None:
            lines.append(f"{count_problems(problems)} in {format_count(files, 'file')}")
        elif len(problems) > 1:
            lines.append(count_problems(problems))
        return "".join(f"{line}\n" for line in lines)
    if form == "sarif":
        from agentci.reports.sarif import render_sarif  # noqa: PLC0415 (most runs do not need it)

        return render_sarif(problems)
    return render_annotations(tuple(map(make_problem_annotation, problems)))


def _render_json(problems: Sequence[Problem]) -> str:
    """Render a JSON object, never empty output, with one problem per line."""
    lines = ",\n".join(f"  {json_text.dumps(each)}" for each in problems)
    return f'{{"problems": [\n{lines}\n]}}\n' if problems else '{"problems": []}\n'
