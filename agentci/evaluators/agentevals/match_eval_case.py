"""Matches traces with eval cases, as agentevals 0.11.0 does, and with the rows of a dataset."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from itertools import islice
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from agentci._util.text import escape, truncate
from agentci._util.text.format import format_count
from agentci._util.text.suggest import quote_name, suggest_name
from agentci.model.case import (
    NO_RECORDED_RUN,
    NOT_RECORDED,
    QUESTION_NOT_RECORDED,
    Case,
    Dataset,
    DatasetRow,
    EvalCase,
    EvalSet,
)
from agentci.model.trace import OTHER_QUESTION, Trace, Turn
from agentci.model.values import Problem, replace

# The reasons are agentevals', to the letter.
NO_EVAL_SET: Final = "no eval set provided"
NO_TURNS: Final = "no turns to match"
NO_USER_INPUT: Final = "no user input to match"
NO_MATCH: Final = "no matching eval case"
AMBIGUOUS: Final = "ambiguous eval case"
# The recording leaves out what the user wrote, which agentevals does not know.
UNNAMED: Final = f"{QUESTION_NOT_RECORDED}; name its eval case with `case:` in `traces:`"
MATCHED_BY_ORDER: Final = (
    "several eval cases ask the same; the recorded runs belong to them in their order"
)
_MISSING_CASE, _NOT_FOUND = "eval case '", "' not found"
MAX_QUESTION: Final = 80
MATCHED_ALONE: Final = (
    "the run asks something else than its eval case; they are matched as the only ones"
)
OTHER_INPUT: Final = (
    "The case was recorded with another input than its eval case has; record it again"
)
SUPPLIED_QUESTION: Final = "the question is that of the eval case; the recording has none"


class EvalCaseMatcher:
    """Matches the traces of a run with eval cases, one trace at a time.

    Attributes:
        without_eval_set: ids of the cases that were recorded for eval cases, if there are none.
    """

    def __init__(self, eval_set: EvalSet | None, *, has_one_trace: bool) -> None:
        """Index the eval cases.

        Args:
            eval_set: None without an eval set.
            has_one_trace: whether the run has only one trace.
        """
        self._index = (
            None if eval_set is None else EvalCaseIndex(eval_set.cases, has_one_trace=has_one_trace)
        )
        self._known_ids: AbstractSet[str] | None = None
        self._ids = _UniqueIds()
        self._covered: set[str] = set()
        self._are_cases_recorded = False
        self.without_eval_set: list[str] = []

    def make_case(self, trace: Trace, row: DatasetRow | None = None) -> Case:
        """Make the case of a trace, with its eval case or the reason why there is none.

        Args:
            row: the dataset row that the agent's question came from.
        """
        found = NO_EVAL_SET if self._index is None else self._index.find(trace)
        self._are_cases_recorded = self._are_cases_recorded or bool(trace.asked)
        if row is not None:
            trace = supply_questions(trace, [row.query])
        if isinstance(found, str):
            return self._make_unmatched(trace, row, found)
        self._covered.add(found.id)
        if trace.asked:
            trace = _check_input(trace, found)
        if self._index is not None and self._index.is_matched_by_order(found):
            trace = _warn(trace, MATCHED_BY_ORDER)
        is_silent = _has_no_content(trace)
        if self._index is not None and not is_silent and self._index.is_matched_alone(found, trace):
            trace = _warn(trace, MATCHED_ALONE)
        # The error of a run that cannot be evaluated says why.
        if not trace.not_captured:
            trace = _warn_of_other_turns(trace, found)
        trace = supply_questions(trace, [turn.user_text for turn in found.turns])
        return Case(id=self._ids.unique(found.id), trace=trace, expected=found, dataset_row=row)

    def _make_unmatched(self, trace: Trace, row: DatasetRow | None, reason: str) -> Case:
        if row is None and self._index is not None:
            trace = self._check_eval_case_exists(trace)
        case_id = self._ids.unique(row.id if row else _name_run(trace))
        if row is None and self._index is None and trace.asked:
            self.without_eval_set.append(case_id)
        return Case(id=case_id, trace=trace, unmatched_reason=reason, dataset_row=row)

    def refuse_runs_of_others(self, known_ids: AbstractSet[str]) -> None:
        """Refuse runs that `agentci record --cases` recorded for other eval cases than these.

        Args:
            known_ids: of the eval cases of all configs.
        """
        self._known_ids = known_ids

    def _check_eval_case_exists(self, trace: Trace) -> Trace:
        """Refuse a run that was recorded for an eval case that no config has any more.

        Otherwise the checks of that case would be missing without a message.
        """
        name = self._find_removed_case(trace)
        if not name or trace.not_captured:
            return trace
        return replace(trace, not_captured=_explain_removed_case(name, self._known_ids or ()))

    def _find_removed_case(self, trace: Trace) -> str:
        """Return the eval case that a run was recorded for and no config has; else empty."""
        name, known = trace.eval_case_id or "", self._known_ids
        return name if trace.asked and known is not None and name not in known else ""

    def make_cases(self, traces: Iterable[Trace]) -> Iterator[Case]:
        """Make the cases of all traces.

        Those that were recorded for eval cases that no config has any more come last. One that
        asks what an eval case without a run does belongs to that, which has another id now.
        """
        removed: list[Trace] = []
        for trace in traces:
            if self._find_removed_case(trace):
                removed.append(trace)
            else:
                yield self.make_case(trace)
        for trace in removed:
            asked = (each for each in self.unmatched if digest_input(_ask(each)) == trace.asked)
            renamed = next(asked, None)
            yield self.make_case(trace) if renamed is None else self._make_renamed(trace, renamed)

    def _make_renamed(self, trace: Trace, eval_case: EvalCase) -> Case:
        self._covered.add(eval_case.id)
        self._are_cases_recorded = True
        reason = (
            f"The run was recorded as eval case {quote_name(trace.eval_case_id or '')}, whose id "
            f"is now {quote_name(eval_case.id)}; record it again"
        )
        trace = replace(trace, not_captured=trace.not_captured or reason)
        return Case(id=self._ids.unique(eval_case.id), trace=trace, expected=eval_case)

    def make_missing_cases(self) -> Iterator[Case]:
        """Make the cases that were not recorded from a file with cases, so that they have checks.

        Other recordings, such as those of users, need not have a run of each eval case.
        """
        for found in self.unmatched if self._are_cases_recorded else ():
            self._covered.add(found.id)
            yield Case(
                id=self._ids.unique(found.id),
                trace=Trace(id=found.id, key=found.id, turns=(), place=found.place),
                expected=found,
                missing_run_reason=NOT_RECORDED,
            )

    def count_runs(self, list_traces: Callable[[], Iterable[Trace]]) -> None:
        """Count the runs of each question if several eval cases ask the same.

        Args:
            list_traces: lists all traces, in the order in which ``make_case`` gets them.
        """
        if self._index is not None and self._index.has_repeated_dialogues:
            self._index.count_runs(list_traces())

    @property
    def unmatched(self) -> tuple[EvalCase, ...]:
        """Eval cases with turns that no trace matched."""
        usable = () if self._index is None else self._index.usable
        return tuple(each for each in usable if each.id not in self._covered)


def _warn(trace: Trace, warning: str) -> Trace:
    return replace(trace, warnings=tuple(sorted({*trace.warnings, warning})))


def digest_input(text: str) -> str:
    """Make a digest of what a case asks, so that a change to it is noticed."""
    return blake2b(_normalize_text(text).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _ask(eval_case: EvalCase) -> str:
    return eval_case.turns[0].user_text


def _explain_removed_case(name: str, known: Iterable[str]) -> str:
    meant = suggest_name(name, sorted(known))
    return (
        f"The run was recorded for eval case {quote_name(name)}, which does not exist"
        f"{f' ({meant})' if meant else ''}; restore the case, or record the others again"
    )


def find_missing_case(unmatched_reason: str | None) -> str:
    """Return the eval case that a run names and that does not exist; empty if it names none."""
    start, _, name = (unmatched_reason or "").removesuffix(_NOT_FOUND).partition(_MISSING_CASE)
    return "" if start else name


def _check_input(trace: Trace, eval_case: EvalCase) -> Trace:
    """Refuse a run that was asked something other than its eval case.

    What was recorded counts, too: rules of redaction may have changed it in both.
    """
    expected = eval_case.turns[0].user_text
    recorded = trace.turns[0].user_text if trace.turns else ""
    is_equal = _normalize_text(expected) == _normalize_text(recorded)
    if trace.not_captured or is_equal or digest_input(expected) == trace.asked:
        return trace
    return replace(trace, not_captured=OTHER_INPUT)


def _warn_of_other_turns(trace: Trace, eval_case: EvalCase) -> Trace:
    """Warn of another number of turns than the eval case has, and of other questions."""
    expected, recorded = len(eval_case.turns), len(trace.turns)
    if expected != recorded:
        trace = _warn(
            trace,
            f"the eval case has {format_count(expected, 'turn')}, the recorded run {recorded}",
        )
    if others := _list_other_questions(trace, eval_case):
        noun = "turn" if len(others) == 1 else "turns"
        trace = _warn(
            trace,
            f"{OTHER_QUESTION} in {noun} {', '.join(map(str, others))}; record it again, or "
            "correct the eval case",
        )
    return trace


def _list_other_questions(trace: Trace, eval_case: EvalCase) -> list[int]:
    """List the turns, the first being 1, whose user message lacks that of the eval case.

    An agent may put the question into a prompt. The first turn is what a run is matched by, unless
    its eval case is named: by the user on purpose, or by `agentci record`, which compares an input
    itself.
    """
    is_named_by_record = bool(trace.eval_case_id and trace.recorded_run) and not trace.asked
    pairs = enumerate(zip(trace.turns, eval_case.turns, strict=False), start=1)
    return [
        number
        for number, (turn, expected) in islice(pairs, 0 if is_named_by_record else 1, None)
        if turn.user_text_recorded
        and _normalize_text(expected.user_text) not in _normalize_text(turn.user_text)
    ]


def _name_run(trace: Trace) -> str:
    """Return a name that the run keeps when it is recorded again, if possible.

    The id of a trace is new in each recording, so its first question names it.
    """
    first = trace.turns[0] if trace.turns else None
    if first is None or first.trace_id is None or trace.key not in ("", trace.id):
        return trace.key or trace.id
    return truncate.short(escape.flatten_line(first.user_text), MAX_QUESTION) or trace.id


def name_eval_case(trace: Trace, names: Mapping[tuple[str, str], str]) -> Trace:
    """Note the eval case that the user names for a trace.

    Args:
        names: ids of eval cases by file and id of a run.
    """
    name = names.get((trace.place.file, trace.id))
    if name is None:
        return trace
    return replace(trace, eval_case_id=name, key=name, recorded_run="")


def supply_questions(trace: Trace, questions: Sequence[str]) -> Trace:
    """Fill in the questions that a recording leaves out, by turn."""
    if all(turn.user_text_recorded or turn.user_text for turn in trace.turns):
        return trace
    turns = tuple(
        turn
        if turn.user_text_recorded or turn.user_text or index >= len(questions)
        else replace(turn, user_text=questions[index])
        for index, turn in enumerate(trace.turns)
    )
    if turns == trace.turns:
        return trace
    warnings = {*trace.warnings, SUPPLIED_QUESTION} - {QUESTION_NOT_RECORDED}
    return replace(trace, turns=turns, warnings=tuple(sorted(warnings)))


def has_multi_turn_case(eval_set: EvalSet | None) -> bool:
    """Return whether any eval case has several turns, so that traces must be grouped."""
    return eval_set is not None and any(len(each.turns) > 1 for each in eval_set.cases)


class EvalCaseIndex:
    """The eval cases of one set, by id and by the user's first message.

    A run without content, which is an error of its case, only matches by the id of its session. If
    there is one trace and one usable eval case, they match whatever the user asked.
    """

    def __init__(self, eval_cases: Iterable[EvalCase], *, has_one_trace: bool) -> None:
        self.usable = tuple(each for each in eval_cases if each.turns)
        self._by_id = {each.id: each for each in reversed(self.usable)}
        self._by_text: defaultdict[str, list[EvalCase]] = defaultdict(list)
        for each in self.usable:
            self._by_text[_normalize_text(each.turns[0].user_text)].append(each)
        self._repeated = _find_repeated_dialogues(self.usable)
        # Of each repeated dialogue, the eval cases that belong to runs by order.
        self._ordered: dict[_Dialogue, Iterator[EvalCase]] = {}
        self._ordered_ids: set[str] = set()
        self._only = self.usable[0] if has_one_trace and len(self.usable) == 1 else None

    @property
    def has_repeated_dialogues(self) -> bool:
        """Whether several eval cases have the same user messages."""
        return bool(self._repeated)

    def is_matched_by_order(self, eval_case: EvalCase) -> bool:
        """Whether only its position determines which run belongs to an eval case."""
        return eval_case.id in self._ordered_ids

    def is_matched_alone(self, eval_case: EvalCase, trace: Trace) -> bool:
        """Whether a run that asks something else has an eval case because there is no other."""
        if trace.eval_case_id is not None or not (
            trace.turns and trace.turns[0].user_text_recorded
        ):
            return False
        asked, expected = trace.turns[0].user_text, eval_case.turns[0].user_text
        return _normalize_text(asked) != _normalize_text(expected)

    def count_runs(self, traces: Iterable[Trace]) -> None:
        """Match runs by order to eval cases with the same user messages if there are as many.

        An eval case that a run names belongs to that run.
        """
        named: defaultdict[_Dialogue, set[str]] = defaultdict(set)
        unnamed: Counter[_Dialogue] = Counter()
        for trace in traces:
            dialogue = _normalize_dialogue(trace.turns)
            if dialogue in self._repeated:
                found = trace.eval_case_id or _find_named(self._repeated[dialogue], trace)
                if found is None:
                    unnamed[dialogue] += 1
                else:
                    named[dialogue].add(found if isinstance(found, str) else found.id)
        for dialogue, count in unnamed.items():
            left = [each for each in self._repeated[dialogue] if each.id not in named[dialogue]]
            if len(left) == count:
                self._ordered[dialogue] = iter(left)
                self._ordered_ids |= {each.id for each in left}

    def find(self, trace: Trace) -> EvalCase | str:
        """Find the eval case of a trace, or return the reason why there is none."""
        if trace.eval_case_id is not None:
            return self._by_id.get(
                trace.eval_case_id, f"{_MISSING_CASE}{trace.eval_case_id}{_NOT_FOUND}"
            )
        if _has_no_content(trace) and trace.key in self._by_id:
            return self._by_id[trace.key]
        if not trace.turns:
            return NO_TURNS
        if not trace.turns[0].user_text_recorded:
            return self.usable[0] if len(self.usable) == 1 else UNNAMED
        return self._find_by_text(trace, _normalize_text(trace.turns[0].user_text))

    def _find_by_text(self, trace: Trace, text: str) -> EvalCase | str:
        if not text:
            return self._only or NO_USER_INPUT
        candidates = self._by_text.get(text, [])
        if not candidates:
            return self._only or NO_MATCH
        if len(candidates) > 1:
            candidates = [each for each in candidates if len(each.turns) == len(trace.turns)]
        return candidates[0] if len(candidates) == 1 else self._choose(candidates, trace)

    def _choose(self, candidates: Sequence[EvalCase], trace: Trace) -> EvalCase | str:
        """Choose among eval cases with the same first message and number of turns.

        agentevals does not choose; it reports them as ambiguous.
        """
        dialogue = _normalize_dialogue(trace.turns)
        same = [each for each in candidates if _normalize_dialogue(each.turns) == dialogue]
        if len(same) == 1:
            return same[0]
        return (
            _find_named(same, trace)
            or next(self._ordered.get(dialogue, iter(())), None)
            or AMBIGUOUS
        )


def _has_no_content(trace: Trace) -> bool:
    """Return whether a run has no message to match, and cannot be evaluated."""
    is_silent = not any(turn.user_text or turn.final_text for turn in trace.turns)
    return is_silent and (bool(trace.not_captured) or not trace.turns)


_Dialogue: TypeAlias = tuple[str, ...]


def _find_repeated_dialogues(
    eval_cases: Iterable[EvalCase],
) -> Mapping[_Dialogue, Sequence[EvalCase]]:
    found: defaultdict[_Dialogue, list[EvalCase]] = defaultdict(list)
    for each in eval_cases:
        found[_normalize_dialogue(each.turns)].append(each)
    return {dialogue: same for dialogue, same in found.items() if len(same) > 1}


def _find_named(candidates: Iterable[EvalCase], trace: Trace) -> EvalCase | None:
    """Return the eval case with the name of the run's session or file."""
    stem = PurePosixPath(trace.place.file.removesuffix(".gz")).stem
    return next((each for each in candidates if each.id in (trace.key, stem)), None)


def _normalize_dialogue(turns: Iterable[Turn]) -> _Dialogue:
    return tuple(_normalize_text(turn.user_text) for turn in turns)


def _normalize_text(text: str) -> str:
    return " ".join(text.split()).casefold()


class _UniqueIds:
    """Makes ids unique by numbering repeated ones: ``x``, ``x#2``, ``x#3``."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: Counter[str] = Counter()

    def unique(self, original: str) -> str:
        unique = ""
        while not unique or unique in self._taken:
            self._counts[original] += 1
            times = self._counts[original]
            unique = original if times == 1 else f"{original}#{times}"
        self._taken.add(unique)
        return unique


NO_RESPONSE: Final = "the row has no `response`, and no recorded runs are given"


class RowMatcher:
    """The rows of a dataset; each becomes a case, with or without a recorded run.

    A recorded run matches the row whose id it names as its eval case, or else the only row whose
    query it begins with.

    Attributes:
        problems: warnings about recorded runs without a row.
    """

    def __init__(self, dataset: Dataset, *, carries_runs: bool) -> None:
        """Index the rows.

        Args:
            carries_runs: whether rows hold the responses, so that there are no recorded runs.
        """
        self._rows = {row.id: row for row in dataset.rows}
        self._index = EvalCaseIndex(map(_make_row_case, self._rows.values()), has_one_trace=False)
        self._missing_run_reason = NO_RESPONSE if carries_runs else NO_RECORDED_RUN
        self.problems: list[Problem] = []

    def cases(self, traces: Iterable[Trace], matching: EvalCaseMatcher) -> Iterator[Case]:
        """Yield a case for each recorded run, then one for each row without a recorded run."""
        left = dict(self._rows)
        for trace in traces:
            found = self._index.find(trace)
            if isinstance(found, EvalCase):
                left.pop(found.id, None)
                yield matching.make_case(trace, self._rows[found.id])
            else:
                self.problems.append(_make_unmatched_problem(trace))
                yield matching.make_case(trace)
        for row in left.values():
            case = matching.make_case(make_row_trace(row), row)
            yield case if row.turn else replace(case, missing_run_reason=self._missing_run_reason)


def _make_row_case(row: DatasetRow) -> EvalCase:
    """Make an eval case with the fields of a row by which recorded runs are matched."""
    return EvalCase(id=row.id, turns=(Turn(id="", user_text=row.query),), place=row.place)


EMPTY_RESPONSE: Final = "The response of the row is empty, and it has no tool call"


def make_row_trace(row: DatasetRow) -> Trace:
    """Make a trace of the row's own turn; it has no turns if the row has no response.

    A turn without text and tool calls cannot be evaluated: it could be that of a failed agent.
    """
    turns = (row.turn,) if row.turn else ()
    did_nothing = row.turn is not None and not (row.turn.answer_parts or row.turn.tool_calls)
    return Trace(
        id=row.id,
        key=row.id,
        turns=turns,
        place=row.place,
        not_captured=EMPTY_RESPONSE if did_nothing else "",
    )


def _make_unmatched_problem(trace: Trace) -> Problem:
    query = f" (first message: {quote_name(trace.turns[0].user_text)})" if trace.turns else ""
    return Problem(
        message=f"a recorded run matches no row of the dataset{query}",
        place=trace.place,
        hint="its first message must be the query of a row, or its eval case the id of one",
        severity="warning",
    )
