"""Problems of configs and traces as text, JSON, GitHub annotations or SARIF 2.1.0.

SARIF: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. The subset that GitHub
reads: https://docs.github.com/code-security/reference/code-scanning/sarif-files.

GitHub's upload action sets two properties if they are missing, so they are omitted here:
``automationDetails``, from the workflow, the job and its matrix, and the fingerprint
``primaryLocationLineHash``, from the content of the line.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final
from urllib.parse import quote

from agentci._util.text import escape, json_text, truncate
from agentci._util.text.format import format_count
from agentci.model.values import Json, JsonObject, Place, Problem, ProblemFormat, Severity, replace
from agentci.reports import workflow_commands
from agentci.reports.groups_and_totals import (
    count_problems,
    format_problem,
    format_problem_text,
    list_first_names,
    make_problem_annotation,
    place_in_file,
)
from agentci.reports.workflow_commands import LEVELS, render_annotations
from agentci.version import __version__


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
        return render_sarif(problems)
    return render_annotations(tuple(map(make_problem_annotation, problems)))


MIN_JOINED: Final = 3


def join_problems(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Join many warnings of a file that differ only in one name, at the place of the first."""
    groups: dict[tuple[object, ...], list[Problem]] = {}
    for each in problems:
        file = each.place and each.place.file
        pieces = _CODE.split(each.message)
        key = (each.severity, each.hint, file, *pieces[::2], *pieces[3::2])
        groups.setdefault(key, []).append(each)
    for first, *others in groups.values():
        found = [_CODE.findall(each.message)[:1] for each in (first, *others)]
        names = dict.fromkeys(name for own in found for name in own)
        if first.severity != "error" and len(names) >= MIN_JOINED:
            before, _, after = _CODE.split(first.message, maxsplit=1)
            joined = list_first_names([*names], lambda name: f"`{name}`")
            yield replace(first, message=f"{before}{joined}{after}")
        else:
            yield from (first, *others)


_CODE: Final = re.compile(r"`([^`\n]+)`")


def _render_json(problems: Sequence[Problem]) -> str:
    """Render a JSON object, never empty output, with one problem per line."""
    lines = ",\n".join(f"  {json_text.dumps(each)}" for each in problems)
    return f'{{"problems": [\n{lines}\n]}}\n' if problems else '{"problems": []}\n'


SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# Base of relative paths, under the name that GitHub expects.
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "agentciProblem/v1"

_LEVELS: Final[dict[Severity, str]] = {"error": "error", "warning": "warning", "note": "note"}
# One rule per severity. Alerts are tracked by rule id, so the ids must never change.
_RULES: Final[dict[Severity, tuple[str, str, str]]] = {
    "error": (
        "unusable-input",
        "A config, or a file that it names, is invalid",
        "A run with it evaluates nothing and exits with code 2.",
    ),
    "warning": (
        "input-warning",
        "A config, or a file that it names, probably contains a mistake",
        "A run continues.",
    ),
    "note": (
        "input-note",
        "Information about a config, or a file that it names",
        "A run continues; no action is needed.",
    ),
}
# Viewers render ``[text](address)`` as a link.
_LINK: Final = re.compile(r"\](?=\()")


def render_sarif(problems: Sequence[Problem]) -> str:
    """Render a SARIF log of one run, on one line.

    Code scanning rejects results without a place. Problems without a file are notifications, and so
    is the count of problems above GitHub's limit.
    """
    placed = [(problem, place) for problem in problems if (place := place_in_file(problem.place))]
    if left := max(0, len(placed) - workflow_commands.SARIF_RESULTS):
        placed.sort(key=lambda each: LEVELS.index(each[0].severity))
    log: JsonObject = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver()},
                "invocations": [
                    _invocation([each for each in problems if not place_in_file(each.place)], left)
                ],
                "originalUriBaseIds": {ROOT: {"description": {"text": "the workspace"}}},
                "columnKind": "unicodeCodePoints",
                "results": [*_results(placed[: workflow_commands.SARIF_RESULTS])],
            }
        ],
    }
    return f"{json_text.dumps(log)}\n"


def _driver() -> JsonObject:
    return {
        "name": "agentci",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(level) for level in LEVELS],
    }


def _rule(severity: Severity) -> JsonObject:
    name, meaning, effect = _RULES[severity]
    return {
        "id": name,
        "shortDescription": {"text": f"{meaning}."},
        "fullDescription": {"text": f"{meaning}. {effect}"},
        "help": {"text": "`agentci validate` lists all problems with their places."},
        "defaultConfiguration": {"level": _LEVELS[severity]},
    }


def _invocation(placeless: Sequence[Problem], left: int) -> JsonObject:
    notifications: list[Json] = [
        {"level": _LEVELS[each.severity], "message": _message(each)} for each in placeless
    ]
    if left:
        omitted = (
            f"{format_count(left, 'problem')} omitted; GitHub accepts at most "
            f"{workflow_commands.SARIF_RESULTS:,}"
        )
        notifications.append({"level": "warning", "message": {"text": omitted}})
    return {
        "executionSuccessful": all(each.severity != "error" for each in placeless),
        "toolConfigurationNotifications": notifications,
    }


def _results(problems: Sequence[tuple[Problem, Place]]) -> Iterator[JsonObject]:
    seen = Counter[tuple[str, ...]]()
    for problem, place in problems:
        rule, _, _ = _RULES[problem.severity]
        # Without the line number, a problem that moves keeps its fingerprint.
        key = (rule, place.file, problem.message)
        mark = json_text.dumps([*key, seen[key]])
        seen[key] += 1
        yield {
            "ruleId": rule,
            "ruleIndex": LEVELS.index(problem.severity),
            "level": _LEVELS[problem.severity],
            "message": _message(problem),
            "locations": [{"physicalLocation": _location(place)}],
            "partialFingerprints": {FINGERPRINT: sha256(mark.encode()).hexdigest()},
        }


def _message(problem: Problem) -> JsonObject:
    text = _LINK.sub("] ", escape.flatten_line(format_problem_text(problem)))
    return {"text": truncate.characters(text, workflow_commands.SARIF_MESSAGE_CHARACTERS)}


def _location(place: Place) -> JsonObject:
    """Return a location; a file outside the workspace has an absolute path."""
    path = quote(escape.replace_surrogates(place.file))
    artifact = (
        {"uri": f"file://{path}"} if path.startswith("/") else {"uri": path, "uriBaseId": ROOT}
    )
    column = {} if place.column is None else {"startColumn": place.column}
    return {"artifactLocation": artifact, "region": {"startLine": place.line, **column}}
