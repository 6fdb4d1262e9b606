"""``agentci calibrate``: hold what evaluators say against what people said."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from agentci._util.text.suggest import quoted
from agentci.cli.commands.labels import Label, read_labels
from agentci.config.settings import Settings
from agentci.errors import InputError
from agentci.gate.agreement import Calibration, confusion_of, flips
from agentci.model.problem import Problem
from agentci.model.result import EXIT_UNJUDGED, Result
from agentci.model.values import replace
from agentci.reports.calibration import render_json, render_text
from agentci.reports.problems import render_problems
from agentci.runner.check import Check
from agentci.runner.open_response_cache import close_replies, open_replies
from agentci.runner.plan import Plan, prepare
from agentci.runner.prepare_graders import engage
from agentci.runner.prepare_judges import seat
from agentci.runner.prepare_programs import equip
from agentci.runner.progress import Progress
from agentci.runner.run_checks import judge_all
from agentci.runner.services import World

JUDGED: Final = {"passed": True, "failed": False}


class _Labelled(Struct, frozen=True, kw_only=True):
    check: Check
    passed: bool


def calibrate(settings: Settings, file: str, world: World, *, repeats: int, as_json: bool) -> int:
    """Judge the cases that have labels, and print how far that agrees with them.

    Args:
        file: of the labels.
        repeats: how often each case is judged; replies of earlier runs do for the first time.

    Raises:
        InputError: a config, a recording or a label cannot be used.
    """
    labels = read_labels(file, world)
    plan, world = equip(prepare(settings, world), settings, world)
    if any(each.severity == "error" for each in plan.problems):
        raise InputError(plan.problems)
    labelled = _labelled(plan, labels)
    plan, world = seat(_of(plan, labelled), settings, world)
    world = engage(plan, settings, world)
    runs = [
        _judged([each.check for each in labelled], plan, settings, world, anew=again > 0)
        for again in range(repeats)
    ]
    found = _calibrations(labelled, runs)
    world.out.write(render_json(found) if as_json else render_text(found))
    if plan.problems and not as_json:
        world.out.write(render_problems(plan.problems, "text"))
    return 0 if any(each.confusion.agreed.whole for each in found) else EXIT_UNJUDGED


def _labelled(plan: Plan, labels: Sequence[Label]) -> list[_Labelled]:
    """The checks that people said something of.

    Raises:
        InputError: a label is about nothing that is judged.
    """
    said = {(each.case, each.evaluator): each for each in labels}
    used: set[Label] = set()
    found: list[_Labelled] = []
    for check in plan.checks:
        name = check.evaluator.identity.name
        label = said.get((check.case.id, name)) or said.get((check.case.id, ""))
        if label is not None:
            used.add(label)
            found.append(_Labelled(check=check, passed=label.passed))
    if problems := [_unknown(each) for each in labels if each not in used]:
        raise InputError(problems)
    return found


def _unknown(label: Label) -> Problem:
    by = f" by {quoted(label.evaluator)}" if label.evaluator else ""
    message = f"no case {quoted(label.case)} is judged{by}"
    return Problem(message=message, place=label.place, hint="`agentci plan` lists what is")


def _of(plan: Plan, labelled: Sequence[_Labelled]) -> Plan:
    """A plan without what nobody said anything of, so that nothing is asked in vain."""
    kept = {each.check.id for each in labelled}
    suites = tuple(
        replace(suite, checks=tuple(check for check in suite.checks if check.id in kept))
        for suite in plan.suites
    )
    return replace(plan, suites=suites)


def _judged(
    checks: Sequence[Check], plan: Plan, settings: Settings, world: World, *, anew: bool
) -> tuple[Result, ...]:
    progress = Progress(len(checks), world, quiet=settings.quiet)
    replies, _ = (None, ()) if anew else open_replies(plan, settings, world)
    try:
        outcome = judge_all(
            checks,
            world=replace(world, replies=replies),
            jobs=settings.jobs or world.processors,
            tell=progress.count,
        )
    finally:
        tuple(close_replies(replies))
    progress.finish()
    world.interruption.break_off()
    if outcome.bug is not None:
        raise outcome.bug
    return outcome.results


def _calibrations(
    labelled: Sequence[_Labelled], runs: Sequence[Sequence[Result]]
) -> list[Calibration]:
    votes: dict[str, list[tuple[bool, list[bool]]]] = defaultdict(list)
    for each, *results in zip(labelled, *runs, strict=True):
        judged = [JUDGED[result.status] for result in results if result.status in JUDGED]
        votes[each.check.evaluator.identity.name].append((each.passed, judged))
    return [
        Calibration(
            evaluator=name,
            confusion=confusion_of((human, judged[0]) for human, judged in cases if judged),
            unjudged=sum(not judged for _, judged in cases),
            flips=flips(judged for _, judged in cases),
        )
        for name, cases in votes.items()
    ]
