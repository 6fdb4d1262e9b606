"""``agentci calibrate``: compare evaluators with human labels, and render the agreement."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from pydantic import ValidationError

from agentci._util.text import json_text
from agentci._util.text.escape import escape_for_log_line
from agentci._util.text.format import format_count, format_number
from agentci._util.text.json_document import read_json
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import ResolvedPath, Workspace, decode_utf8, limit_input, read_file
from agentci.cli.session import Session
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.evaluators.fields import StrictModel, Text
from agentci.gate.statistics import (
    Calibration,
    ConfusionMatrix,
    Proportion,
    make_confusion_matrix,
    measure_flips,
)
from agentci.github.events import find_missing_secrets_reason
from agentci.model.result import EXIT_ERRORED, CheckResult
from agentci.model.values import COMMAND_LINE, Json, JsonObject, Place, Problem, replace
from agentci.reports.problems import render_problems
from agentci.runner.check import Check
from agentci.runner.plan import Plan, make_plan
from agentci.runner.prepare import prepare_graders, prepare_judges, prepare_programs
from agentci.runner.response_cache.open import close_response_cache, open_response_cache
from agentci.runner.run_checks import ProgressDisplay, run_checks
from agentci.runner.services import Services

# Below these minimums an estimate is too uncertain; by common practice.
MIN_CASES: Final = 50
MIN_FAILED_CASES: Final = 15
SUBSTANTIAL_KAPPA: Final = 0.6


def render_text(found: Sequence[Calibration]) -> str:
    """Render a table per evaluator, with rates and notes."""
    return "\n".join("".join(f"{line}\n" for line in _lines(each)) for each in found)


def _lines(found: Calibration) -> list[str]:
    confusion = found.confusion
    kappa = "-" if confusion.kappa is None else format_number(confusion.kappa)
    cases = format_count(confusion.agreement.whole, "case")
    without = f", {found.without_result:,} more without a result" if found.without_result else ""
    lines = [
        f"{escape_for_log_line(found.evaluator)}: {cases} with a label{without}",
        f"{'':16}{'evaluator: pass':>17}{'evaluator: fail':>17}",
        f"  {'human: pass':14}{confusion.true_passes:>17,}{confusion.false_fails:>17,}",
        f"  {'human: fail':14}{confusion.false_passes:>17,}{confusion.true_fails:>17,}",
        f"  agreement     {_format_rate(confusion.agreement)}",
        f"  kappa         {kappa}",
        f"  passes found  {_format_rate(confusion.true_pass_rate)}",
        f"  fails found   {_format_rate(confusion.true_fail_rate)}",
    ]
    if found.flips.value is not None:
        pairs = format_count(found.flips.whole, "pair")
        lines.append(f"  flips         {_format_percent(found.flips.value)} of {pairs} of repeats")
    return [*lines, *(f"  note: {each}" for each in _list_notes(confusion))]


def _list_notes(confusion: ConfusionMatrix) -> list[str]:
    """List what limits the value of a calibration."""
    notes = []
    cases, fails = confusion.agreement.whole, confusion.true_fail_rate.whole
    if cases < MIN_CASES or fails < MIN_FAILED_CASES:
        notes.append(
            f"too few labels for a reliable estimate: {format_count(cases, 'case')}, {fails:,} of "
            f"them labelled fail; use at least {MIN_CASES} cases and {MIN_FAILED_CASES} fails"
        )
    if confusion.kappa is None:
        notes.append("kappa is undefined: it needs labels or results of both kinds")
    elif confusion.kappa < SUBSTANTIAL_KAPPA:
        notes.append(f"kappa is below {SUBSTANTIAL_KAPPA}; do not let this evaluator fail the gate")
    return notes


def _format_rate(rate: Proportion) -> str:
    if rate.value is None:
        return "-"
    if rate.interval is None:
        return _format_percent(rate.value)
    low, high = map(_format_percent, rate.interval)
    return f"{_format_percent(rate.value)} ({low} to {high})"


def _format_percent(share: float) -> str:
    return f"{format_number(100 * share, 1)}%"


def render_json(found: Sequence[Calibration]) -> str:
    """Render the calibrations as one line of JSON."""
    calibrations: list[Json] = [
        {
            "evaluator": each.evaluator,
            "cases": each.confusion.agreement.whole,
            "without_result": each.without_result,
            "confusion": {
                "true_passes": each.confusion.true_passes,
                "false_fails": each.confusion.false_fails,
                "false_passes": each.confusion.false_passes,
                "true_fails": each.confusion.true_fails,
            },
            "kappa": each.confusion.kappa,
            "agreement": _rate_to_json(each.confusion.agreement),
            "true_pass_rate": _rate_to_json(each.confusion.true_pass_rate),
            "true_fail_rate": _rate_to_json(each.confusion.true_fail_rate),
            "flip_rate": _rate_to_json(each.flips),
        }
        for each in found
    ]
    return f"{json_text.dumps(calibrations)}\n"


def _rate_to_json(rate: Proportion) -> JsonObject:
    interval: Json = None if rate.interval is None else list(rate.interval)
    return {"part": rate.part, "whole": rate.whole, "value": rate.value, "interval": interval}


MAX_LABEL_BYTES: Final = 64 * 1024**2
LABEL_HINT: Final = 'write lines such as {"case": "c1", "human": "pass"}'


class Label(Struct, frozen=True, kw_only=True):
    """A human label of one case.

    Attributes:
        passed: whether the label is ``pass``.
        evaluator: the evaluator that it applies to; empty for all.
    """

    case: str
    passed: bool
    evaluator: str
    place: Place


class LabelLine(StrictModel):
    """One line of a label file; ``note`` is ignored."""

    case: Text
    human: Literal["pass", "fail"]
    evaluator: str = ""
    note: str = ""


def read_labels(name: str, workspace: Workspace) -> tuple[Label, ...]:
    """Read a label file, relative to the working directory.

    Raises:
        InputError: it does not exist, or lines are invalid or contradict each other.
    """
    path = workspace.cwd / name
    shown = workspace.display_path(path)
    found = workspace.resolve_given(path, named=name, place=COMMAND_LINE)
    with limit_input(shown):
        return _read_labels(found, shown)


def _read_labels(path: ResolvedPath, shown: str) -> tuple[Label, ...]:
    data = read_file(path, name=shown, limit_bytes=MAX_LABEL_BYTES, place=COMMAND_LINE)
    labels: dict[tuple[str, str], Label] = {}
    problems: list[Problem] = []
    for place, line in _iter_label_lines(decode_utf8(data, file=shown), shown):
        try:
            label = _parse_label(line, place)
        except InputError as error:
            problems += error.problems
            continue
        first = labels.setdefault((label.case, label.evaluator), label)
        if first is not label:
            message = (
                f"case {quote_name(label.case)} already has a label in line {first.place.line}"
            )
            problems.append(Problem(message=message, place=place, hint="remove one of them"))
    if problems:
        # Without any label, the file is probably another one.
        raise InputError(problems if labels else problems[:1])
    if not labels:
        raise InputError.from_message(
            "the file has no labels", place=Place(file=shown), hint=LABEL_HINT
        )
    return tuple(labels.values())


def _iter_label_lines(text: str, file: str) -> Iterator[tuple[Place, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield Place(file=file, line=number), line


def _parse_label(line: str, place: Place) -> Label:
    try:
        value = read_json(line.encode(), file=place.file).value
    except InputError as error:
        raise InputError(
            [Problem(message=each.message, place=place, hint=each.hint) for each in error.problems]
        ) from None
    try:
        label = LabelLine.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"invalid label: {where and f'{where}: '}{first['msg']}"
        raise InputError.from_message(message, place=place, hint=LABEL_HINT) from None
    passed = label.human == "pass"
    return Label(case=label.case, passed=passed, evaluator=label.evaluator, place=place)


PASSED_BY_STATUS: Final = {"passed": True, "failed": False}


class _LabelledCheck(Struct, frozen=True, kw_only=True):
    check: Check
    passed: bool


def calibrate(
    settings: Settings, file: str, session: Session, *, repeats: int, as_json: bool
) -> int:
    """Evaluate the labelled cases and print how well the results agree with the labels.

    Args:
        file: the label file.
        repeats: runs of each check; only the first uses cached responses.

    Raises:
        InputError: a config, a recorded run or a label is invalid.
    """
    labels = read_labels(file, session.services.workspace)
    plan = make_plan(settings, session.services)
    plan, services = prepare_programs(plan, settings, session.services)
    if any(each.severity == "error" for each in plan.problems):
        raise InputError(plan.problems)
    labelled = _find_labelled_checks(plan, labels)
    plan, services = prepare_judges(
        _select_labelled(plan, labelled),
        settings,
        services,
        missing_secrets_reason=find_missing_secrets_reason(session.workflow.context),
    )
    services = prepare_graders(plan, settings, services)
    runs = [
        _run_checks(
            [each.check for each in labelled], plan, settings, services, use_cache=number == 0
        )
        for number in range(repeats)
    ]
    calibrations = _calculate_calibrations(labelled, runs)
    session.out.write(render_json(calibrations) if as_json else render_text(calibrations))
    if plan.problems and not as_json:
        session.out.write(render_problems(plan.problems, "text"))
    return 0 if any(each.confusion.agreement.whole for each in calibrations) else EXIT_ERRORED


def _find_labelled_checks(plan: Plan, labels: Sequence[Label]) -> list[_LabelledCheck]:
    """Find the checks that have a label.

    Raises:
        InputError: a label matches no check.
    """
    by_key = {(each.case, each.evaluator): each for each in labels}
    used: set[Label] = set()
    found: list[_LabelledCheck] = []
    for check in plan.checks:
        name = check.evaluator.identity.name
        label = by_key.get((check.case.id, name)) or by_key.get((check.case.id, ""))
        if label is not None:
            used.add(label)
            found.append(_LabelledCheck(check=check, passed=label.passed))
    if problems := [_make_unknown_label_problem(each) for each in labels if each not in used]:
        raise InputError(problems)
    return found


def _make_unknown_label_problem(label: Label) -> Problem:
    of = f" of evaluator {quote_name(label.evaluator)}" if label.evaluator else ""
    message = f"no check{of} has the case {quote_name(label.case)}"
    return Problem(message=message, place=label.place, hint="`agentci plan` lists all checks")


def _select_labelled(plan: Plan, labelled: Sequence[_LabelledCheck]) -> Plan:
    """Return the plan with only the labelled checks, so that only their judges are prepared."""
    ids = {each.check.id for each in labelled}
    suites = tuple(
        replace(suite, checks=tuple(check for check in suite.checks if check.id in ids))
        for suite in plan.suites
    )
    return replace(plan, suites=suites)


def _run_checks(
    checks: Sequence[Check], plan: Plan, settings: Settings, services: Services, *, use_cache: bool
) -> tuple[CheckResult, ...]:
    progress = ProgressDisplay(len(checks), services, quiet=settings.quiet)
    cache, _ = open_response_cache(plan, settings, services) if use_cache else (None, ())
    try:
        outcome = run_checks(
            checks,
            services=replace(services, cached_responses=cache),
            jobs=settings.jobs or services.processors,
            on_result=progress.count,
        )
    finally:
        tuple(close_response_cache(cache))
    progress.finish()
    services.interruption.raise_if_allowed()
    if outcome.bug is not None:
        raise outcome.bug
    return outcome.results


def _calculate_calibrations(
    labelled: Sequence[_LabelledCheck], runs: Sequence[Sequence[CheckResult]]
) -> list[Calibration]:
    votes: dict[str, list[tuple[bool, list[bool]]]] = defaultdict(list)
    for each, *results in zip(labelled, *runs, strict=True):
        passed = [
            PASSED_BY_STATUS[result.status]
            for result in results
            if result.status in PASSED_BY_STATUS
        ]
        votes[each.check.evaluator.identity.name].append((each.passed, passed))
    return [
        Calibration(
            evaluator=name,
            confusion=make_confusion_matrix(
                (human, passed[0]) for human, passed in cases if passed
            ),
            without_result=sum(not passed for _, passed in cases),
            flips=measure_flips(passed for _, passed in cases),
        )
        for name, cases in votes.items()
    ]
