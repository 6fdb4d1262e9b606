"""``agentci calibrate``: compare evaluators with human labels."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from msgspec import Struct
from pydantic import ValidationError

from agentci._util.text.json_document import read_json
from agentci._util.text.suggest import quote_name
from agentci._util.workspace import Workspace, decode_utf8, read_file
from agentci.cli.session import Session
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.evaluators.fields import StrictModel, Text
from agentci.gate.agreement import Calibration, make_confusion_matrix, measure_flips
from agentci.github.events import find_missing_secrets_reason
from agentci.model.problem import COMMAND_LINE, Place, Problem
from agentci.model.result import EXIT_ERRORED, CheckResult
from agentci.model.values import replace
from agentci.reports.calibration import render_json, render_text
from agentci.reports.problems import render_problems
from agentci.runner.check import Check
from agentci.runner.plan import Plan, make_plan
from agentci.runner.prepare_judges import prepare_graders, prepare_judges
from agentci.runner.prepare_programs import prepare_programs
from agentci.runner.response_cache.open import close_response_cache, open_response_cache
from agentci.runner.run_checks import ProgressDisplay, run_checks
from agentci.runner.services import Services

MAX_LABEL_BYTES: Final = 64 * 1024**2
LABEL_HINT: Final = 'a line is like {"case": "c1", "human": "pass"}'


class Label(Struct, frozen=True, kw_only=True):
    """What people said of one case.

    Attributes:
        passed: whether they passed it.
        evaluator: whose business it is; empty for all of them.
        place: where it stands.
    """

    case: str
    passed: bool
    evaluator: str
    place: Place


class LabelLine(StrictModel):
    """A line of a file of labels.

    Attributes:
        note: for people.
    """

    case: Text
    human: Literal["pass", "fail"]
    evaluator: str = ""
    note: str = ""


def read_labels(name: str, workspace: Workspace) -> tuple[Label, ...]:
    """Read a file of labels, from the working directory.

    Raises:
        InputError: it is not there, or some lines are no labels or contradict each other.
    """
    path = workspace.cwd / name
    shown = workspace.display_path(path)
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
                f"the case {quote_name(label.case)} has a label already, in line {first.place.line}"
            )
            problems.append(Problem(message=message, place=place, hint="leave one of them out"))
    if problems:
        raise InputError(problems)
    if not labels:
        raise InputError.from_message(
            "there are no labels", place=Place(file=shown), hint=LABEL_HINT
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
        said = LabelLine.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"this is no label: {where and f'{where}: '}{first['msg']}"
        raise InputError.from_message(message, place=place, hint=LABEL_HINT) from None
    return Label(case=said.case, passed=said.human == "pass", evaluator=said.evaluator, place=place)


PASSED_BY_STATUS: Final = {"passed": True, "failed": False}


class _LabelledCheck(Struct, frozen=True, kw_only=True):
    check: Check
    passed: bool


def calibrate(
    settings: Settings, file: str, session: Session, *, repeats: int, as_json: bool
) -> int:
    """Judge the cases that have labels, and print how far that agrees with them.

    Args:
        file: of the labels.
        repeats: how often each case is judged; replies of earlier runs do for the first time.

    Raises:
        InputError: a config, a recording or a label cannot be used.
    """
    labels = read_labels(file, session.services.workspace)
    plan, services = prepare_programs(
        make_plan(settings, session.services), settings, session.services
    )
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
        _run_checks([each.check for each in labelled], plan, settings, services, anew=again > 0)
        for again in range(repeats)
    ]
    found = _calculate_calibrations(labelled, runs)
    session.out.write(render_json(found) if as_json else render_text(found))
    if plan.problems and not as_json:
        session.out.write(render_problems(plan.problems, "text"))
    return 0 if any(each.confusion.agreement.whole for each in found) else EXIT_ERRORED


def _find_labelled_checks(plan: Plan, labels: Sequence[Label]) -> list[_LabelledCheck]:
    """The checks that people said something of.

    Raises:
        InputError: a label is about nothing that is judged.
    """
    said = {(each.case, each.evaluator): each for each in labels}
    used: set[Label] = set()
    found: list[_LabelledCheck] = []
    for check in plan.checks:
        name = check.evaluator.identity.name
        label = said.get((check.case.id, name)) or said.get((check.case.id, ""))
        if label is not None:
            used.add(label)
            found.append(_LabelledCheck(check=check, passed=label.passed))
    if problems := [_make_unknown_label_problem(each) for each in labels if each not in used]:
        raise InputError(problems)
    return found


def _make_unknown_label_problem(label: Label) -> Problem:
    by = f" by {quote_name(label.evaluator)}" if label.evaluator else ""
    message = f"no case {quote_name(label.case)} is judged{by}"
    return Problem(message=message, place=label.place, hint="`agentci plan` lists what is")


def _select_labelled(plan: Plan, labelled: Sequence[_LabelledCheck]) -> Plan:
    """A plan without what nobody said anything of, so that nothing is asked in vain."""
    kept = {each.check.id for each in labelled}
    suites = tuple(
        replace(suite, checks=tuple(check for check in suite.checks if check.id in kept))
        for suite in plan.suites
    )
    return replace(plan, suites=suites)


def _run_checks(
    checks: Sequence[Check], plan: Plan, settings: Settings, services: Services, *, anew: bool
) -> tuple[CheckResult, ...]:
    progress = ProgressDisplay(len(checks), services, quiet=settings.quiet)
    replies, _ = (None, ()) if anew else open_response_cache(plan, settings, services)
    try:
        outcome = run_checks(
            checks,
            services=replace(services, cached_responses=replies),
            jobs=settings.jobs or services.processors,
            on_result=progress.count,
        )
    finally:
        tuple(close_response_cache(replies))
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
        judged = [
            PASSED_BY_STATUS[result.status]
            for result in results
            if result.status in PASSED_BY_STATUS
        ]
        votes[each.check.evaluator.identity.name].append((each.passed, judged))
    return [
        Calibration(
            evaluator=name,
            confusion=make_confusion_matrix(
                (human, judged[0]) for human, judged in cases if judged
            ),
            unscored=sum(not judged for _, judged in cases),
            flips=measure_flips(judged for _, judged in cases),
        )
        for name, cases in votes.items()
    ]
