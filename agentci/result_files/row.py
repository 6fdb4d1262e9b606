"""Rows of result files: what another tool found for one case and one metric; names of tools."""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from agentci._util.text import truncate
from agentci.errors import InputError
from agentci.model.result import Status
from agentci.model.values import Place, Problem, replace

AUTO_TOOL: Final = "auto"
TOOL_NAMES: Final = (
    *("promptfoo", "deepeval", "inspect", "pydantic-evals", "adk", "vitest-evals", "evalite"),
    *("agentv", "agentevals", "lm-eval", "otel", "ctrf", "junit", "csv", "jsonl"),
)

MAX_REASON_CHARACTERS: Final = 2_000
_DIGEST_DIGITS: Final = 16
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class ResultRow(Struct, frozen=True, kw_only=True):
    """One result of another tool.

    Attributes:
        case: the same in every run of the same suite.
        metric: the tool's name of the score; ``(case)`` for its verdict on the whole case.
        status: None if the tool states a score and no verdict.
        score: as in the file, on the tool's own scale; booleans are 1 and 0; None without one.
        threshold: only if the file states it for this row.
        reason: the first line of what the tool states; None if it states nothing.
        repeat: counted from 1 if the case was run several times, else None.
        definition: text or digest of what the file states about how the row was evaluated, such as
            the expected answer; empty if it states nothing.
        advisory: whether the tool itself does not count the row, as for metrics marked as flaky.
        seconds, cost_usd: of the case or the metric; None if the file does not state them.
    """

    case: str
    metric: str
    status: Status | None
    score: float | None = None
    threshold: float | None = None
    reason: str | None = None
    repeat: int | None = None
    definition: str = ""
    advisory: bool = False
    seconds: float | None = None
    cost_usd: float | None = None

    @property
    def key(self) -> tuple[str, str, int | None]:
        """What is unique in a file."""
        return self.case, self.metric, self.repeat


class ResultFile(Struct, frozen=True, kw_only=True):
    """The rows of one file.

    Attributes:
        file: as shown to the user.
        tool: its name in the table of tools.
        run: what the tool calls the run, different in each; empty if the file does not state it.
        warnings: about the file, such as an unknown version.
    """

    file: str
    tool: str
    rows: tuple[ResultRow, ...]
    run: str = ""
    warnings: tuple[Problem, ...] = ()


class CaseRun(Struct, frozen=True, kw_only=True):
    """The rows of one run of a case, before runs of the same case are numbered.

    Attributes:
        case: without a number.
        facts: what tells two different cases of the same name apart.
    """

    case: str
    rows: tuple[ResultRow, ...]
    facts: str = ""


def make_result_error(
    file: str, message: str, *, hint: str | None = None, line: int = 1, column: int | None = None
) -> InputError:
    """Make the error of a result file that cannot be used."""
    place = Place(file=file, line=line, column=column)
    return InputError.from_message(message, place=place, hint=hint)


def make_warning(file: str, message: str, *, hint: str | None = None) -> Problem:
    """Make a warning about a result file."""
    return Problem(message=message, place=Place(file=file), hint=hint, severity="warning")


def parse_version_number(text: str) -> int | None:
    """Return the number of a version, of a long one the first nine digits; None if it is none."""
    return int(text[:9]) if text.isdecimal() else None


def check_format_version(
    version: Any, known: Sequence[int], *, named: str, file: str
) -> tuple[Problem, ...]:
    """Check the version of a file format; returns a warning about one that is not known.

    Args:
        version: as in the file, such as 3 or "1.0.0"; only the first number counts.
        known: the versions that are read, in order.
        named: what the version is of.

    Raises:
        InputError: it is newer.
    """
    shown = as_text(version)
    major = parse_version_number(shown.partition(".")[0])
    if major is None or not isinstance(version, int | str):
        return (make_warning(file, f"unknown version {truncate.short(shown, 40)} of {named}"),)
    if major > known[-1]:
        read = " and ".join(map(str, known))
        message = f"{named} of version {truncate.short(shown, 40)}; agentci reads version {read}"
        raise make_result_error(file, message, hint="use a newer version of agentci")
    if major not in known:
        return (make_warning(file, f"unknown version {shown} of {named}"),)
    return ()


def digest_facts(*facts: Any) -> str:
    """Digest JSON values; equal digests mean the same values."""
    text = json.dumps(facts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]


def first_line(text: Any) -> str | None:
    """Return the first line that is not blank, without escape codes; None if there is none."""
    if not isinstance(text, str):
        return None
    for line in text.split("\n"):
        if words := " ".join(_ANSI.sub("", line).split()):
            return truncate.short(words, MAX_REASON_CHARACTERS)
    return None


def as_number(value: Any) -> float | None:
    """Return a number of a file as it is; None for everything else, also for booleans."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_score(value: Any) -> float | None:
    """Return a number as it is, and a boolean as 1 or 0; None for everything else."""
    return float(value) if isinstance(value, bool) else as_number(value)


def as_text(value: Any) -> str:
    """Return text as it is, and any other JSON value as JSON with sorted keys."""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def pass_or_fail(*, passed: bool) -> Status:
    """Convert the verdict of a tool."""
    return "passed" if passed else "failed"


def number_metrics(rows: Iterable[ResultRow]) -> tuple[ResultRow, ...]:
    """Name a second metric of the same name in one run of a case ``NAME#2``."""
    seen: Counter[str] = Counter()
    numbered: list[ResultRow] = []
    for row in rows:
        seen[row.metric] += 1
        count = seen[row.metric]
        numbered.append(row if count == 1 else replace(row, metric=f"{row.metric}#{count}"))
    return tuple(numbered)


def number_runs(runs: Iterable[CaseRun], *, repeats: int | None = None) -> Iterator[ResultRow]:
    """Number the runs of cases of the same name.

    Runs of one case are its repeats; another case of the same name is ``CASE #2``.

    Args:
        runs: in an order that is the same in every run of the suite.
        repeats: how often each case was run, if the file states it; else all runs with the same
            facts are repeats of one case.
    """
    by_case: dict[str, list[CaseRun]] = {}
    for run in runs:
        by_case.setdefault(run.case, []).append(run)
    for case, own in by_case.items():
        for number, group in enumerate(_split_runs(own, repeats), start=1):
            name = case if number == 1 else f"{case} #{number}"
            for ordinal, run in enumerate(group, start=1):
                repeat = ordinal if (repeats or len(group)) > 1 else None
                for row in run.rows:
                    yield replace(row, case=name, repeat=repeat)


def _split_runs(runs: Sequence[CaseRun], repeats: int | None) -> Iterable[Sequence[CaseRun]]:
    if repeats is not None:
        return [runs[start : start + repeats] for start in range(0, len(runs), repeats)]
    by_facts: dict[str, list[CaseRun]] = {}
    for run in runs:
        by_facts.setdefault(run.facts, []).append(run)
    return by_facts.values()


def check_unique(rows: Iterable[ResultRow], *, file: str) -> tuple[ResultRow, ...]:
    """Return the rows.

    Raises:
        InputError: there are none, or two have the same case, metric and repeat.
    """
    found: dict[tuple[str, str, int | None], ResultRow] = {}
    for row in rows:
        if row.key in found:
            shown = truncate.short(row.case, 80)
            repeat = "" if row.repeat is None else f", repeat {row.repeat}"
            message = f"two results of case `{shown}`, metric `{row.metric}`{repeat}"
            raise make_result_error(file, message, hint="give the cases different names")
        found[row.key] = row
    if not found:
        raise make_result_error(
            file, "the file has no results", hint="check that the evaluation ran"
        )
    return tuple(found.values())
