"""JSON for the page's script: an index that it reads at once, and the contents of cases in blocks.

The index has what lists show of each check and case; a block has the recorded runs of some cases,
which the page reads when one of them is opened. Empty members are left out, which keeps a page of
10,000 checks fast to write and to open. Programs read ``results.json`` instead.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from msgspec import to_builtins

from agentci._util.text import json_text
from agentci._util.text.change import find_numbers
from agentci._util.text.format import format_count, format_number
from agentci.model.case import ChangedText
from agentci.model.requests import NO_JUDGEMENT, EvaluatorIdentity
from agentci.model.result import CheckResult, Report, RunContent, TurnContent
from agentci.model.values import JsonObject, replace
from agentci.reports.case_counts import (
    count_cases,
    format_case_line,
    format_notes,
    list_missing_cases,
)
from agentci.reports.case_states import CASE_CLASSES, has_lower_score
from agentci.reports.changed_runs import group_changed_facts
from agentci.reports.check_text import (
    format_cause,
    format_headline,
    format_reason,
    shorten_quotes,
)
from agentci.reports.contents import KEPT_LEVELS, find_start, load_run, reduce_content
from agentci.reports.differences import RunDifference, format_missing_turns
from agentci.reports.failures import Cause, list_causes, name_causes
from agentci.reports.groups_and_totals import group_by_evaluator
from agentci.reports.html.markup import Markup, tag
from agentci.reports.html.run_data import (
    MAX_CHANGES,
    Block,
    describe_baseline,
    describe_column,
    describe_evaluator,
    describe_lost,
    describe_policy,
    describe_time,
    describe_verdict,
    drop_empty,
    find_missing_contents,
    group_removed,
    list_messages,
    name_models,
)
from agentci.reports.outcomes import (
    LARGE_FACTOR_OF_CASE,
    NOTABLE_SHARE,
    NOTABLE_SHARE_OF_SLOWEST,
    Amounts,
    CaseOutcome,
    ReportMetrics,
    find_large_factor,
    list_case_outcomes,
    summarize_metrics,
)

BLOCK_CASES: Final = 64
BLOCK_CHARACTERS: Final = 512 * 1024


# Details of passed checks: of all of them, in JSON. Those of others are kept up to 64 KiB each.
MAX_PASSED_DETAILS: Final = 1024**2


MAX_DETAILS: Final = 64 * 1024


# Of the runs of cases that only the baseline has, in JSON.
MAX_MISSING_CHARACTERS: Final = 1024**2


# Causes that have a card in the overview. As many others have a line, of so many characters.
MAX_CAUSES: Final = 6


MAX_FACT: Final = 80

# Changed facts that have a line each.
MAX_COMMON_FACTS: Final = 3


class PageData:
    """The data of one page; the blocks come first, as the index says where each case is."""

    def __init__(self, report: Report, *, tool_version: str) -> None:
        self._report = report
        self._tool_version = tool_version
        self._blocks: list[Block] = []
        self._transcripts = {
            id_: number for number, id_ in enumerate(report.evaluator_calls.json_by_check)
        }
        self._details_left = MAX_PASSED_DETAILS
        # The texts around the numbers of reasons, in the order of their first check.
        self._reasons: dict[tuple[str, ...], int] = {}
        self._answers_changed: list[bool | None] = []
        self._calls_changed: list[bool] = []
        self._results_changed: list[bool] = []
        self._recorded: dict[str, int] = {}
        self._removed = group_removed(report.comparison)
        self._ranks: dict[int, int] = {}
        self._missing = find_missing_contents(report)
        groups = group_changed_facts(report)
        self._common_facts = [_show(common) for common, _ in groups[:MAX_COMMON_FACTS]]
        self._facts = {
            id(outcome): [*_show(each), number]
            for number, (_, group) in enumerate(groups)
            for outcome, each in group
        }

    def render_blocks(self) -> Iterator[Markup]:
        """Yield a script element per block of cases."""
        number, texts, size = 0, list[str](), 0
        for text in chain(self._render_contents(), self._render_missing_contents()):
            if texts and (len(texts) == BLOCK_CASES or size + len(text) > BLOCK_CHARACTERS):
                yield _make_block(number, texts)
                number, texts, size = number + 1, [], 0
            self._blocks.append(Block(number, len(texts)))
            texts.append(text)
            size += len(text)
        if texts:
            yield _make_block(number, texts)

    def _render_contents(self) -> Iterator[str]:
        for outcome in list_case_outcomes(self._report):
            run = load_run(self._report, outcome.results)
            content, before = run.content, run.before
            is_known = (
                before is not None
                and outcome.answer_changed is not None
                and {content.level, before.level} <= {*KEPT_LEVELS}
            )
            is_other = outcome.answer_changed and not _lacks_only_turns(content)
            self._answers_changed.append(is_other)
            self._calls_changed.append(is_known and any(map(_has_other_calls, content.turns)))
            self._results_changed.append(any(map(_has_other_results, content.turns)))
            self._note_start("now", find_start(content))
            self._note_start("before", before.start if before else None)
            yield json_text.dumps_for_html(self._make_content(content, outcome))

    def _render_missing_contents(self) -> Iterator[str]:
        """Yield the runs of cases that only the baseline has, without results of tools."""
        contents, left = self._report.contents, MAX_MISSING_CHARACTERS
        if contents is None:
            return
        for number in self._missing.values():
            content = reduce_content(contents.load(number, {}), "without_results")
            run = replace(content, columns={}, performance=None, printed=None)
            whole: dict[str, Any] = {"run": run, "checks": []}
            text = json_text.dumps_for_html(whole)
            left -= len(text)
            if left < 0:
                return
            yield text

    def _note_start(self, run: str, start: int | None) -> None:
        """Note when the first turn of a run was recorded, in milliseconds since 1970."""
        if start is not None:
            start //= 1_000_000
            self._recorded[run] = min(start, self._recorded.get(run, start))

    def render_transcripts(self) -> Iterator[Markup]:
        """Yield one script element per check that has recorded evaluator calls.

        Separate elements let the page parse only the calls that it shows.
        """
        calls = self._report.evaluator_calls.json_by_check
        for id_, number in self._transcripts.items():
            packed = Markup(calls[id_])
            yield tag("script", packed, type="application/json", id=f"transcript-{number}")

    def render_index(self) -> Iterator[str]:
        r"""Yield JSON for a script element: ASCII only, with ``<`` written as ``\u003c``."""
        report, numbers = self._report, _Numbering()
        yield '{"cases": '
        outcomes = list_case_outcomes(report)
        causes = list_causes(report)
        shown = (*causes.new[: 2 * MAX_CAUSES], *causes.known[:MAX_CAUSES])
        described = {id(group[0]): causes.describe(group) for group in shown}
        places = {id(outcome): place for place, outcome in enumerate(outcomes)}
        metrics = summarize_metrics(report)
        missing = dict(zip(self._missing, self._blocks[len(outcomes) :], strict=False))
        self._ranks = {
            id(each): rank
            for group in (*causes.new, *causes.known)
            for rank, each in enumerate(group)
        }
        known = (self._make_case(outcome, place, numbers) for place, outcome in enumerate(outcomes))
        without_run = list_missing_cases(report)["unrecorded"] if report.baseline else ()
        unrecorded = (
            {"id": each, "state": "unrecorded", "checks": []} for each in without_run[:MAX_CHANGES]
        )
        yield from json_text.format_array(map(json_text.dumps_for_html, chain(known, unrecorded)))
        members: dict[str, Any] = {
            "evaluators": [describe_evaluator(*key) for key in numbers.keys],
            "columns": [
                describe_column(each, report) for each in group_by_evaluator(report.results)
            ],
            **describe_verdict(report),
            **describe_baseline(report, self._removed, missing),
            "classes": [
                (
                    each.state,
                    each.count,
                    CASE_CLASSES[each.state].words,
                    format_notes(each),
                )
                for each in count_cases(report)
            ],
            "case_line": "" if report.baseline else format_case_line(report, ""),
            "causes": [
                _describe_cause(described[id(group[0])], [places[id(each)] for each in group])
                for group in causes.new[:MAX_CAUSES]
            ],
            "reasons": [*self._reasons],
            "cause_names": {
                f"{key}": name
                for key, name in (name_causes(report) | _name_by_facts(described.values())).items()
            },
            "more_causes": list(_list_lines(causes.new[MAX_CAUSES:], places, described)),
            "known": list(_list_lines(causes.known, places, described)),
            "facts": self._common_facts,
            "lost": describe_lost(causes.lost, report.comparison),
            "recorded": describe_time(**self._recorded),
            "noise": [NOTABLE_SHARE, NOTABLE_SHARE_OF_SLOWEST],
            "large_factor": LARGE_FACTOR_OF_CASE,
            "metrics": to_builtins(metrics),
            "models": name_models(metrics),
            "policy": describe_policy(report),
            "messages": list(list_messages(report)),
            "version": self._tool_version,
            "merged": report.evaluator_calls.kept_in_parts,
        }
        for name, value in drop_empty(members).items():
            yield f',\n"{name}": {json_text.dumps_for_html(value)}'
        yield "}"

    def _make_case(self, outcome: CaseOutcome, place: int, numbers: "_Numbering") -> JsonObject:
        case, state = outcome.summary, outcome.state
        configs = dict.fromkeys(each.config for each in outcome.results)
        is_lower = state == "same" and has_lower_score(self._report, outcome.results)
        question = next((turn.question for turn in case.dialogue if turn.question), "")
        # Evaluators are numbered in the order of the report.
        checks = {id(each): self._make_check(each, numbers) for each in outcome.results}
        return {
            "id": case.id,
            "block": list(self._blocks[place]),
            "checks": [checks[id(each)] for each in _sort_checks(outcome)],
            **drop_empty(
                {
                    "question": question,
                    "tags": outcome.tags,
                    "state": "lower_score" if is_lower else state,
                    "answer_changed": self._answers_changed[place],
                    "tools": outcome.failing_tools,
                    "facts": self._facts.get(id(outcome)),
                    "failed_facts": _list_failed_facts(outcome),
                    "calls_changed": self._calls_changed[place],
                    "results_changed": self._results_changed[place],
                    "not_compared": outcome.answer_changed is None
                    and state not in (None, "new_case"),
                    "removed": [
                        check
                        for config in configs
                        for check in self._removed.pop((config, case.id), ())
                    ],
                    "cluster": outcome.cluster,
                    # Among the cases of its cause; the first represents them.
                    "rank": self._ranks.get(id(outcome)) or None,
                    "amounts": _make_amounts(outcome.amounts),
                    "before": outcome.before and _make_amounts(outcome.before),
                    "large": _list_large(outcome, summarize_metrics(self._report)),
                }
            ),
        }

    def _make_check(self, result: CheckResult, numbers: "_Numbering") -> JsonObject:
        before = self._report.baseline.get(result.id)
        scored = result.status in {"passed", "failed"} or result.is_measurement
        calls = self._report.evaluator_calls
        reason = "" if result.status == "passed" else format_reason(result)
        # Details are decoded for it.
        short = shorten_quotes(reason, result) if reason else ""
        cause, varying = None, list[str]()
        if result.status in ("failed", "errored"):
            (first, *others), varying = find_numbers(format_cause(result))
            pieces = f"{result.evaluator.name}: {first}", *others
            cause = self._reasons.setdefault(pieces, len(self._reasons))
        return {
            "id": result.id,
            "evaluator": numbers.number((result.config, result.evaluator)),
            "seconds": round(result.seconds, 3),
            "status": result.status,
            **drop_empty(
                {
                    "score": result.score if scored else None,
                    "reason": reason,
                    "short": None if short == reason else short,
                    "cause": cause,
                    "numbers": varying,
                    "before": before and [before.status, before.score],
                    "cached": result.cached,
                    "transcript": self._transcripts.get(result.id),
                    "omitted": result.id in calls.omitted_checks,
                }
            ),
        }

    def _make_content(self, content: RunContent, outcome: CaseOutcome) -> JsonObject:
        case = outcome.summary
        return {
            "run": replace(content, performance=None, printed=None),
            "checks": [self._make_findings(each) for each in _sort_checks(outcome)],
            **drop_empty(
                {
                    "trace": case.trace_id,
                    "file": str(case.recording),
                    "eval_case": case.eval_case_id,
                    "unmatched_reason": case.unmatched_reason,
                    "warnings": case.shown_warnings,
                }
            ),
        }

    def _make_findings(self, result: CheckResult) -> JsonObject:
        judgement = result.judgement or NO_JUDGEMENT
        details: Any = judgement.details
        if details:
            size = len(json_text.dumps_compact(details))
            is_passed = result.status == "passed"
            if size > (min(self._details_left, MAX_DETAILS) if is_passed else MAX_DETAILS):
                details = {"omitted": f"{size:,} characters, which results.json may have"}
            elif is_passed:
                self._details_left -= size
        short = [shorten_quotes(each, result) for each in judgement.misses]
        return drop_empty(
            {
                "headline": format_headline(result),
                "turn_scores": judgement.turn_scores,
                "hits": judgement.hits,
                "misses": judgement.misses,
                # Where the page shows both sides beside the verdict.
                "short": short if short != [*judgement.misses] else None,
                "reasoning": judgement.reasoning,
                "details": details,
                "trials": result.trials,
                "repeats": result.repeats,
            }
        )


def _sort_checks(outcome: CaseOutcome) -> list[CheckResult]:
    """Return the checks of a case in the order of all reports: the decisive problem first."""
    others = (each for each in outcome.results if each.status in ("passed", "skipped"))
    return [*outcome.problems, *others]


def _describe_cause(cause: Cause, cases: list[int]) -> JsonObject:
    count = len(cases) - 1 - len(cause.similar)
    return {
        "cases": cases,
        "first": _describe_difference(cause.difference),
        **drop_empty(
            {
                "others": f"{format_count(count, 'more case')} {cause.format_likeness(count)}"
                if count
                else "",
                "notes": [note for _, note in cause.others],
                "more": cause.more or None,
                "more_note": cause.more_note,
                "similar": cause.format_similar(),
            }
        ),
    }


def _list_failed_facts(outcome: CaseOutcome) -> list[str] | None:
    """List the facts of the answer of a failed case in the baseline and now, if they differ."""
    changes = outcome.summary.changes
    if outcome.cluster is None or changes is None or not (changes.facts and changes.answer):
        return None
    return _show(changes.answer)


def _show(facts: ChangedText) -> list[str]:
    return [facts.before or "nothing", facts.after or "nothing"]


def _list_lines(
    groups: Sequence[Sequence[CaseOutcome]],
    places: Mapping[int, int],
    described: Mapping[int, Cause],
) -> Iterator[tuple[int, int, str]]:
    """Yield the first case, the number of cases and in short what happened, as in the comment."""
    for group in groups:
        cause = described.get(id(group[0]))
        shown = "" if cause is None else cause.fact.write(MAX_FACT, str, "`{}`".format)
        yield places[id(group[0])], len(group), shown


def _name_by_facts(causes: Iterable[Cause]) -> dict[int, str]:
    """Name causes of a single case by what happened in it."""
    found: dict[int, str] = {}
    for cause in causes:
        case = cause.case
        if cause.others or cause.similar or case.cluster is None or case.decisive is None:
            continue
        shown = cause.fact.write(MAX_FACT, str, str)
        # A single call is named better by how it differs.
        if shown and shown[0] not in "+-":
            found[case.cluster] = f"{case.decisive.evaluator.name}: {shown.replace('`', '')}"
    return found


def _lacks_only_turns(content: RunContent) -> bool:
    """Whether the answers of a run are those of the baseline, except in turns that are missing."""
    found = [each for each in content.turns if not each.missing]
    return (
        content.level in KEPT_LEVELS
        and 0 < len(found) < len(content.turns)
        and all(
            before == "same" or (before is not None and before.answer == each.answer)
            for each in found
            for before in [each.baseline]
        )
    )


def _has_other_calls(turn: TurnContent) -> bool:
    """Whether the tool calls of a turn are known to differ from those in the baseline."""
    before = turn.baseline
    if before is None or before == "same" or turn.calls_recorded is False:
        return False
    return [(each.name, each.arguments) for each in turn.calls] != [
        (each.name, each.arguments) for each in before.calls
    ]


def _has_other_results(turn: TurnContent) -> bool:
    """Whether a tool returned something else for the same calls as in the baseline."""
    return turn.baseline == "same" and any(each != "same" for each in turn.baseline_results)


def _make_block(number: int, texts: list[str]) -> Markup:
    content = Markup(f"[{','.join(texts)}]")
    return tag("script", content, type="application/json", id=f"cases-{number}")


class _Numbering:
    """Assigns indexes from 0 to evaluators of configs, in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, EvaluatorIdentity], int] = {}

    @property
    def keys(self) -> Iterator[tuple[str, EvaluatorIdentity]]:
        return iter(self._numbers)

    def number(self, key: tuple[str, EvaluatorIdentity]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _make_amounts(amounts: Amounts) -> JsonObject:
    tokens = amounts.tokens
    return drop_empty(
        {
            "ms": amounts.latency_ms,
            "tokens": None if tokens is None else tokens.input + tokens.output,
            "usd": amounts.cost_usd,
        }
    )


# By the attributes of ``Amounts``: the name of an amount in the page, and what follows its factor.
_LARGE_WORDS: Final = {
    "latency_ms": ("ms", "slower"),
    "cost_usd": ("usd", "the cost"),
    "tokens": ("tokens", "the tokens"),
}


def _list_large(outcome: CaseOutcome, metrics: ReportMetrics) -> JsonObject:
    """List the amounts that are much more than in the baseline, by how many times."""
    return {
        key: f"{format_number(factor, 1)}\N{MULTIPLICATION SIGN} {words}"
        for name, (key, words) in _LARGE_WORDS.items()
        if name in metrics.large and (factor := find_large_factor(outcome, name))
    }


def _describe_difference(difference: RunDifference | None) -> JsonObject | None:
    """Say which calls and answers the comment shows, so that the page shows the same."""
    if difference is None:
        return None
    answer = difference.answer
    return {
        "missing": format_missing_turns(difference.missing_turns),
        "more": difference.format_more(),
        **drop_empty(
            {
                "calls": [[each.turn, each.reference, each.rows] for each in difference.calls],
                "answer": answer and [answer.turn, answer.reference],
            }
        ),
    }
