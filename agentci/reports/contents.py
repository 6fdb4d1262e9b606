"""The contents of a report's cases: read one at a time, shortened, selected within a budget."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from msgspec import UNSET, Struct, field, json

from agentci._util.text import json_text
from agentci._util.text.json_text import dumps_compact
from agentci.errors import InputError
from agentci.model.case import CaseSummary, DialogueTurn, RunChanges
from agentci.model.result import (
    CallContent,
    CheckResult,
    ContentLevel,
    EvaluatorCalls,
    ExpectedCall,
    Report,
    RunContent,
    TurnContent,
)
from agentci.model.trace import INCOMPLETE_RUN, Milliseconds, PriceList, TokenTotals
from agentci.model.values import ContentLimit, IdentityKey, replace
from agentci.recordings.printed_lines import is_changed_output
from agentci.reports.compared_runs import read_run
from agentci.reports.find_run_changes import find_run_changes
from agentci.reports.groups_and_totals import case_key
from agentci.reports.run_content import (
    MAX_EXCERPT_CHARACTERS,
    add_baseline,
    add_baseline_durations,
    add_cost,
    decode_content,
    excerpt,
    find_answer_change,
    mark_failed_calls,
)

# Of all cases, in JSON; report.html has as much again for evaluator input and output.
MAX_CONTENT_BYTES: Final = 8 * 1024**2

KEPT_LEVELS: Final[tuple[ContentLevel, ...]] = ("full", "without_results")
_OTHERS: Final = 3
T = TypeVar("T")


class _Redact(Protocol):
    def __call__(self, value: T, /) -> T:
        """Return the value without secrets."""


class ChunkStore(Protocol):
    """Stored chunks of bytes."""

    def append(self, chunk: bytes) -> int:
        """Store ``chunk``; return its number."""

    def read(self, number: int) -> bytes:
        """Return the chunk of a number."""

    def get_size(self, number: int) -> int:
        """Return the bytes of the chunk of a number."""


class StoredContents(Struct, frozen=True, kw_only=True, eq=False):
    """The contents of a report's cases and of its baseline.

    Attributes:
        redact: removes secrets, before texts are shortened.
        levels: by number, how much remains of cases that are not kept in full.
    """

    chunks: ChunkStore
    redact: _Redact
    levels: Mapping[int, ContentLevel] = field(default_factory=dict)

    def load(self, number: int, prices: PriceList) -> RunContent:
        """Return the content with this number, as far as it is kept, with its cost."""
        stored = add_cost(decode_content(self.chunks.read(number)), prices)
        content = self.redact(stored)
        if content != stored:
            content = replace(content, redacted=True)
        content = mark_failed_calls(content)
        if self.chunks.get_size(number) > UNCUT_BYTES:
            content = cut_content(content)
        return reduce_content(content, self.levels.get(number, "full"))

    def are_equal(self, number: int | None, before: int) -> bool:
        """Whether two contents are stored alike, as of a recording that both runs read."""
        if number is None or self.get_size(number) != self.get_size(before):
            return False
        return self.chunks.read(number) == self.chunks.read(before)

    def compare(self, number: int, before: int, *, with_lines: bool) -> RunChanges:
        """Compare two contents, as ``find_run_changes`` does."""
        chunks = [self.chunks.read(each) for each in (number, before)]
        if chunks[0] == chunks[1]:
            return RunChanges()
        run, old = (self.redact(read_run(each)) for each in chunks)
        return find_run_changes(run, old, with_lines=with_lines)

    def get_size(self, number: int) -> int:
        """Return the bytes of the content before it is shortened."""
        return self.chunks.get_size(number)


class BaselineRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What reports read of a run in the baseline, besides the turns and steps beside those of now.

    Attributes:
        level: how much of it is kept.
        turn_count: number of recorded turns.
        start: as of ``find_start``.
        models: that the agent called; empty if they are not known of both runs.
        answer_changed: whether a final answer is another one now; None if that is not known.
    """

    level: ContentLevel
    turn_count: int
    start: int | None = None
    models: tuple[str, ...] = ()
    answer_changed: bool | None = None
    latency_ms: Milliseconds | None = None
    tokens: TokenTotals | None = None
    cost_usd: float | None = None
    priced: bool = False


class ReportedRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The run of a case as reports show it.

    Attributes:
        content: with the turns of the baseline and the durations of its steps.
        before: the run in the baseline; None without one.
    """

    content: RunContent
    before: BaselineRun | None = None


def load_run(report: Report, results: Sequence[CheckResult]) -> ReportedRun:
    """Load the run of a case beside that of the baseline.

    Args:
        results: all results of the case.
    """
    contents, number = report.contents, results[-1].case.content
    if not isinstance(contents, StoredContents) or number is None:
        return _prepare_run(report, results)
    prepared = _list_prepared_runs(IdentityKey(report))
    key = number, _find_baseline(report, results), results[-1].config
    if key in prepared:
        return _RUN_DECODER.decode(contents.chunks.read(prepared[key]))
    run = _prepare_run(report, results)
    with suppress(InputError):  # the disk is full: it is prepared again
        prepared[key] = contents.chunks.append(_RUN_ENCODER.encode(run))
    return run


# The numbers of both contents, and the config.
_PairKey: TypeAlias = tuple[int, int | None, str]


# Each report format reads all runs, and putting two side by side takes longer than reading both.
@lru_cache(maxsize=1)
def _list_prepared_runs(_: IdentityKey[Report]) -> dict[_PairKey, int]:
    """Return the numbers of the runs that were loaded before."""
    return {}


_RUN_ENCODER: Final = json.Encoder()
_RUN_DECODER: Final = json.Decoder(ReportedRun)


def _prepare_run(report: Report, results: Sequence[CheckResult]) -> ReportedRun:
    content, stored = _load_pair(report, results)
    if stored is None:
        return ReportedRun(content=content)
    before = reduce_content(stored, content.level)
    # Spans, which are not always kept, name further models.
    is_comparable = bool(stored.spans) == bool(content.spans)
    return ReportedRun(
        content=_add_turns(add_baseline_durations(content, stored), before),
        before=BaselineRun(
            level=before.level,
            turn_count=count_turns(before),
            start=find_start(before),
            models=list_models(stored) if is_comparable else (),
            answer_changed=find_answer_change(content, before),
            latency_ms=before.latency_ms,
            tokens=before.tokens,
            cost_usd=before.cost_usd,
            priced=before.priced,
        ),
    )


# Nanoseconds since 1970: earlier starts are of clocks that do not show the time of day.
EARLIEST_START: Final = 10**18


def find_start(content: RunContent) -> int | None:
    """Return when the first turn was recorded, in nanoseconds since 1970; None if not known."""
    starts = [turn.start for turn in content.turns if turn.start is not None]
    return min((start for start in starts if start >= EARLIEST_START), default=None)


def count_turns(content: RunContent) -> int:
    """Return the number of turns that the run has."""
    return sum(not turn.missing for turn in content.turns)


def list_models(content: RunContent) -> tuple[str, ...]:
    """List the models that the agent called, in order."""
    used = [step.model for turn in content.turns for step in turn.steps]
    used += [span.model for span in content.spans]
    return tuple(dict.fromkeys(filter(None, used)))


def is_incomplete(results: Sequence[CheckResult]) -> bool:
    """Return whether the run of a case has no answer to compare, such as one that failed."""
    return any(
        each.case.not_captured or (each.reason or "").startswith(INCOMPLETE_RUN) for each in results
    )


def _load_pair(
    report: Report, results: Sequence[CheckResult]
) -> tuple[RunContent, RunContent | None]:
    """Load the content of a case, and all that is kept of its baseline."""
    summary, before = results[-1].case, _find_baseline(report, results)
    contents, number = report.contents, summary.content
    prices = report.prices.get(results[-1].config, {})
    content = (
        make_excerpt(summary)
        if contents is None or number is None
        else contents.load(number, prices)
    )
    stored: RunContent | None = None
    if isinstance(contents, StoredContents) and before is not None:
        is_same = content.level == "full" and contents.are_equal(number, before)
        stored = content if is_same else contents.load(before, prices)
    if report.content_limit == "none":
        content = reduce_content(content, "none")
    return content, stored


def _add_turns(content: RunContent, before: RunContent) -> RunContent:
    return content if content.level == "none" else add_baseline(content, before)


def make_excerpt(case: CaseSummary) -> RunContent:
    """Make the content of a case if only its summary is known."""
    turns = (TurnContent(user=turn.question, answer=turn.answer) for turn in case.dialogue)
    return RunContent(turns=tuple(turns), level="excerpt")


def limit_contents(
    report: Report, limit: ContentLimit, *, max_bytes: int = MAX_CONTENT_BYTES
) -> Report:
    """Compare recorded runs with the baseline, and keep of them what ``limit`` allows.

    Args:
        max_bytes: the budget, of all contents in JSON.
    """
    report = replace(report, content_limit=limit, results=_add_changes(report, limit))
    if limit == "none":
        results = tuple(map(_drop_texts, report.results))
        gates = tuple(replace(each, case_values={}) for each in report.gates)
        policy = report.policy
        if policy is not None:
            changes = (replace(each, effect="") for each in policy.loosened)
            policy = replace(policy, loosened=tuple(changes))
        without = EvaluatorCalls()
        return replace(report, results=results, gates=gates, policy=policy, evaluator_calls=without)
    return _select_contents(report, max_bytes) if limit == "budget" else report


def _add_changes(report: Report, limit: ContentLimit) -> tuple[CheckResult, ...]:
    """Add to each case what changed since the baseline, as long as all of its content is known."""
    found: dict[tuple[str | None, ...], RunChanges | None] = {}
    for results in group_by_case(report.results):
        case = results[0].case
        contents, before = report.contents, _find_baseline(report, results)
        found[case_key(case)] = None
        if isinstance(contents, StoredContents) and case.content is not None and before is not None:
            # A replay that printed other lines than its own recording has a warning already.
            warnings = (text for each in results for text in each.case.warnings)
            with_lines = not any(map(is_changed_output, warnings))
            if limit != "none" and not is_incomplete(results):
                found[case_key(case)] = contents.compare(
                    case.content, before, with_lines=with_lines
                )
    return tuple(
        each
        if (changes := found[case_key(each.case)]) == each.case.changes
        else replace(each, case=replace(each.case, changes=changes))
        for each in report.results
    )


def _drop_texts(result: CheckResult) -> CheckResult:
    """Drop what quotes the recorded run; reasons and findings of evaluators stay."""
    blank = tuple(DialogueTurn(question="", answer=None) for _ in result.case.dialogue)
    judgement = result.judgement and replace(result.judgement, details={})
    return replace(result, case=replace(result.case, dialogue=blank), judgement=judgement)


def _select_contents(report: Report, max_bytes: int) -> Report:
    """Keep the contents of the worst cases in full, and of the others what fits the budget.

    If not all fit: first cases that failed or errored, then those whose answer changed or of
    which a tool newly fails or returns nothing, in full; then the others without results of tools.
    Of a case that does not fit, an excerpt is kept.
    """
    contents = report.contents
    if not isinstance(contents, StoredContents):
        return report
    cases = [each for each in group_by_case(report.results) if each[0].case.content is not None]
    if sum(_count_bytes(contents, report, each) for each in cases) <= max_bytes:
        return report
    levels: dict[int, ContentLevel] = {}
    left = max_bytes
    # One byte per case: there may be very many.
    ranks = bytes(_rank(each) for each in cases)
    for rank, results in ((r, cases[i]) for r in range(_OTHERS + 1) for i in _find_all(ranks, r)):
        content, stored = _load_pair(report, results)
        if stored is not None:
            content = _add_turns(content, reduce_content(stored, content.level))
        level, size = _choose_level(
            content, KEPT_LEVELS if rank < _OTHERS else KEPT_LEVELS[1:], left
        )
        left -= size
        if level != "full":
            levels[results[0].case.content or 0] = level
    return replace(report, contents=replace(contents, levels=levels))


def _find_all(ranks: bytes, rank: int) -> Iterator[int]:
    return (index for index, each in enumerate(ranks) if each == rank)


def _choose_level(
    content: RunContent, options: Sequence[ContentLevel], left: int
) -> tuple[ContentLevel, int]:
    """Return the first level whose content fits into ``left`` bytes, and its size."""
    for level in options:
        size = len(dumps_compact(reduce_content(content, level)).encode())
        if size <= left:
            return level, size
    return "excerpt", 0


def _rank(results: Sequence[CheckResult]) -> int:
    """Return how important the content of a case is, from 0 for the most important."""
    problems = [each for each in results if each.status in ("failed", "errored")]
    if problems:
        return 0 if any(each.evaluator.required for each in problems) else 1
    changes = results[0].case.changes or RunChanges()
    is_changed = changes.answer is not None or any(each.kind != "other" for each in changes.results)
    return _OTHERS - 1 if is_changed else _OTHERS


def _count_bytes(contents: StoredContents, report: Report, results: Sequence[CheckResult]) -> int:
    """Return at least what the content of a case and of its baseline take."""
    numbers = (results[0].case.content, _find_baseline(report, results))
    return sum(contents.get_size(each) for each in numbers if each is not None)


def _find_baseline(report: Report, results: Sequence[CheckResult]) -> int | None:
    """Return the number of the content that the case has in the baseline."""
    found = (report.baseline.get(result.id) for result in results)
    return next((each.content for each in found if each and each.content is not None), None)


def group_by_case(results: Sequence[CheckResult]) -> Iterator[list[CheckResult]]:
    """Group the results by case, in the order of their first result."""
    groups: dict[tuple[str | None, ...], list[CheckResult]] = {}
    for result in results:
        groups.setdefault(case_key(result.case), []).append(result)
    return iter(groups.values())


# Of one field: a text, or the JSON of arguments or of a result.
MAX_FIELD_CHARACTERS: Final = 64 * 1024
MAX_SPANS: Final = 1_000
# No field of a content that takes less can exceed its limit: a byte is at most six characters of
# JSON, and two more where it is indented or escaped again.
UNCUT_BYTES: Final = MAX_FIELD_CHARACTERS // 8

# From the most to the least that is kept.
LEVELS: Final[tuple[ContentLevel, ...]] = ("full", "without_results", "excerpt", "none")

_Call = TypeVar("_Call", CallContent, ExpectedCall)


def cut_content(content: RunContent) -> RunContent:
    """Shorten all fields beyond the limit; ``cut`` counts what is left out."""
    spans = FieldCutter(content.cut)
    kept = content.spans[:MAX_SPANS]
    if len(kept) < len(content.spans):
        spans.cut["spans"] = len(content.spans) - len(kept)
    columns = {name: spans.cut_value(f"columns.{name}", v) for name, v in content.columns.items()}
    return replace(
        content,
        turns=tuple(map(_cut_turn, content.turns)),
        spans=kept,
        subagents=tuple(
            replace(each, turns=tuple(map(_cut_turn, each.turns))) for each in content.subagents
        ),
        columns=columns,
        printed=content.printed and spans.cut_text("printed", content.printed),
        cut=spans.cut,
    )


def _cut_turn(turn: TurnContent) -> TurnContent:
    fields = FieldCutter(turn.cut)
    return replace(
        turn,
        user=fields.cut_text("user", turn.user),
        answer=None if turn.answer is None else fields.cut_text("answer", turn.answer),
        expected_answer=None
        if turn.expected_answer is None
        else fields.cut_text("expected_answer", turn.expected_answer),
        texts=fields.cut_texts("texts", turn.texts),
        calls=tuple(
            replace(
                fields.cut_arguments(f"calls[{index}]", call),
                result=fields.cut_value(f"calls[{index}].result", call.result),
            )
            for index, call in enumerate(turn.calls)
        ),
        expected_calls=None
        if turn.expected_calls is None
        else tuple(
            fields.cut_arguments(f"expected_calls[{index}]", call)
            for index, call in enumerate(turn.expected_calls)
        ),
        cut=fields.cut,
    )


class FieldCutter:
    """Shortens fields, and counts the characters that are left out by name of the field."""

    def __init__(self, cut: Mapping[str, int]) -> None:
        self.cut = dict(cut)

    def cut_text(self, name: str, text: str) -> str:
        """Shorten a text."""
        if len(text) <= MAX_FIELD_CHARACTERS:
            return text
        self.cut[name] = self.cut.get(name, 0) + len(text) - MAX_FIELD_CHARACTERS
        return text[:MAX_FIELD_CHARACTERS]

    def cut_value(self, name: str, value: Any) -> Any:
        """Shorten a text; of another value that is too long, the start of its JSON is kept."""
        if isinstance(value, str):
            return self.cut_text(name, value)
        if value is UNSET or value is None or isinstance(value, bool | int | float):
            return value
        text = json_text.dumps_compact(value)
        return value if len(text) <= MAX_FIELD_CHARACTERS else self.cut_text(name, text)

    def cut_texts(self, name: str, texts: Sequence[str]) -> tuple[str, ...]:
        """Shorten each text."""
        if not texts or max(map(len, texts)) <= MAX_FIELD_CHARACTERS:
            return tuple(texts)
        return tuple(self.cut_text(f"{name}[{index}]", each) for index, each in enumerate(texts))

    def cut_arguments(self, name: str, call: _Call) -> _Call:
        """Shorten the arguments of a call."""
        return replace(call, arguments=self.cut_value(f"{name}.arguments", call.arguments))


def reduce_content(content: RunContent, level: ContentLevel) -> RunContent:
    """Keep only what ``level`` includes; a content that has less stays as it is."""
    if level == content.level or LEVELS.index(level) < LEVELS.index(content.level):
        return content
    if level == "without_results":
        return replace(
            content,
            turns=tuple(map(_drop_results, content.turns)),
            spans=(),
            baseline_spans=(),
            subagents=(),
            level=level,
        )
    shorten = _make_excerpt if level == "excerpt" else _drop_turn_texts
    return replace(
        content,
        turns=tuple(map(shorten, content.turns)),
        spans=(),
        baseline_spans=(),
        subagents=(),
        columns={},
        printed=_keep_short(content.printed) if level == "excerpt" else None,
        level=level,
        cut={},
    )


def _keep_short(printed: str | None) -> str | None:
    return printed if printed is not None and len(printed) <= MAX_EXCERPT_CHARACTERS else None


def _drop_results(turn: TurnContent) -> TurnContent:
    calls = tuple(replace(call, result=UNSET) for call in turn.calls)
    return replace(turn, calls=calls, baseline_results=())


def _make_excerpt(turn: TurnContent) -> TurnContent:
    cut = {name: count for name, count in turn.cut.items() if name in ("user", "answer")}
    user, answer = excerpt(turn.user), None if turn.answer is None else excerpt(turn.answer)
    for name, shown, text in (("user", user, turn.user), ("answer", answer, turn.answer)):
        left = len(text or "") - len(shown or "")
        if left > 0:
            cut[name] = cut.get(name, 0) + left
    kept = _drop_turn_texts(turn)
    return replace(kept, user=user, answer=answer, user_recorded=turn.user_recorded, cut=cut)


def _drop_turn_texts(turn: TurnContent) -> TurnContent:
    return TurnContent(
        user="",
        answer=None,
        missing=turn.missing,
        latency_ms=turn.latency_ms,
        tokens=turn.tokens,
    )
