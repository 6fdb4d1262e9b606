"""``agentci merge``: one report and one decision of the reports of shards, or of whole runs."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from agentci._util.files import open_folder
from agentci._util.workspace import is_folder, read_file
from agentci.cli.publish import publish, publish_crash, refuse
from agentci.config.discovery import matches
from agentci.config.settings import BASE, Settings
from agentci.errors import InputError
from agentci.gate.decision import decide, totals
from agentci.github.baseline.compare import beside
from agentci.model.problem import Problem
from agentci.model.result import Report
from agentci.reports.merge.merge import merged
from agentci.reports.merge.part import MAX_REPORT_BYTES, REPORT_NAME, Part
from agentci.reports.merge.read import read_report
from agentci.runner.services import World

NAMED: Final = (
    f"name files, folders that hold {REPORT_NAME}, or globs of files, as shards/*/{REPORT_NAME}"
)


def merge(given: Sequence[str], settings: Settings, world: World) -> int:
    """Merge reports, and return the exit code of the decision over all of them.

    As a run, it writes reports also where the input is wrong.

    Args:
        given: reports, folders that hold some, and globs.
        settings: what is to become of the merged report.
        world: what the reports are read from, and published to.
    """
    try:
        open_folder(settings.output_dir, world.workspace)
    except InputError as error:
        return refuse(error.problems, world)
    try:
        report = _merged(given, settings, world)
        world.interruption.at_once = False
        if settings.baseline == BASE:
            from agentci.github.baseline.save import keep  # noqa: PLC0415 (of no use to most)

            report = keep(report, settings, world)
        report = publish(report, settings, world)
    except Exception:
        publish_crash(world)
        raise
    return report.decision.exit_code


def _merged(given: Sequence[str], settings: Settings, world: World) -> Report:
    try:
        return merged(
            _parts(given, world),
            fail_on=settings.fail_on,
            beside=partial(beside, settings, world),
        )
    except InputError as error:
        decision = decide(
            (), problems=error.problems, uncovered=0, complete=True, fail_on=settings.fail_on
        )
        return Report(
            complete=True,
            decision=decision,
            totals=totals(()),
            results=(),
            problems=error.problems,
        )


def _parts(given: Sequence[str], world: World) -> list[Part]:
    """All reports that are named, each once.

    Raises:
        InputError: some are not there or are no reports, with every problem.
    """
    files: dict[str, Path] = {}
    problems: list[Problem] = []
    for text in given:
        found = tuple(_files(text, world))
        files.update((world.workspace.name_of(path), path) for path in found)
        if not found:
            what = "lies below" if is_folder(world.workspace.cwd / text) else "is or matches"
            problems.append(Problem(message=f"no report {what} {text}", hint=NAMED))
    parts: list[Part] = []
    for name, path in files.items():
        try:
            data = read_file(path, name=name, limit_bytes=MAX_REPORT_BYTES)
            parts.append(Part(file=name, report=read_report(data, file=name)))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return parts


def _files(text: str, world: World) -> Iterator[Path]:
    for path in matches(world.workspace.cwd, text):
        yield from matches(path, f"**/{REPORT_NAME}") if is_folder(path) else (path,)
