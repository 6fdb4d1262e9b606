"""Traces are matched with dataset rows, and every row is evaluated."""

from collections.abc import Sequence

import pytest

from agentci.evaluators.agentevals.match_eval_case import (
    EMPTY_RESPONSE,
    NO_RESPONSE,
    EvalCaseMatcher,
    RowMatcher,
)
from agentci.model.case import NO_RECORDED_RUN, Case, Dataset, DatasetRow, EvalCase, EvalSet
from agentci.model.trace import ToolCall, Trace, Turn
from agentci.model.values import Place, replace

PLACE = Place(file="data.jsonl", line=1)
TURN = Turn(id="", user_text="Where?", answer_parts=("Here.",))
ROWS = (
    DatasetRow(id="a", query="Where?", columns={"n": 1}, place=PLACE, turn=TURN),
    DatasetRow(id="b", query="When?", columns={"n": 2}, place=PLACE),
)
UNASKED = tuple(replace(row, turn=None) for row in ROWS)


def _trace(asked: str, *, names: str | None = None, key: str = "t") -> Trace:
    turn = Turn(id="1", user_text=asked, answer_parts=("x",))
    return Trace(id=key, key=key, turns=(turn,), place=PLACE, eval_case_id=names)


def _cases(
    rows: Sequence[DatasetRow], *traces: Trace, eval_set: EvalSet | None = None
) -> tuple[list[Case], list[str]]:
    paired = RowMatcher(Dataset(rows=tuple(rows), place=PLACE), carries_runs=not traces)
    cases = [*paired.cases(traces, EvalCaseMatcher(eval_set, has_one_trace=False))]
    return cases, [str(each) for each in paired.problems]


def _summary(cases: Sequence[Case]) -> list[tuple[str, str | None, str | None]]:
    return [
        (
            each.id,
            None if each.dataset_row is None else each.dataset_row.id,
            each.missing_run_reason,
        )
        for each in cases
    ]


def test_rows_provide_runs_without_traces() -> None:
    cases, problems = _cases(ROWS)
    assert _summary(cases) == [("a", "a", None), ("b", "b", NO_RESPONSE)]
    assert (cases[0].trace.turns, cases[1].trace.turns, problems) == ((TURN,), (), [])


@pytest.mark.parametrize(
    "trace", [_trace(" where? "), _trace("What?", names="a")], ids=["its query", "its id"]
)
def test_trace_matches_row_by_id_or_question(trace: Trace) -> None:
    cases, problems = _cases(UNASKED, trace)
    assert _summary(cases) == [("a", "a", None), ("b", "b", NO_RECORDED_RUN)]
    assert (cases[0].trace, problems) == (trace, [])


def test_each_trace_of_row_is_a_case() -> None:
    cases, _ = _cases(UNASKED[:1], _trace("Where?", key="1"), _trace("Where?", key="2"))
    assert _summary(cases) == [("a", "a", None), ("a#2", "a", None)]


def test_trace_without_row_is_evaluated_with_warning() -> None:
    cases, [problem] = _cases(UNASKED[:1], _trace("What?"))
    assert _summary(cases) == [("t", None, None), ("a", "a", NO_RECORDED_RUN)]
    assert problem.startswith(
        "data.jsonl:1: a recorded run matches no row of the dataset (first message: 'What?')"
    )
    silent = replace(_trace("What?"), turns=())
    assert _cases(UNASKED[:1], silent)[1][0].startswith(
        "data.jsonl:1: a recorded run matches no row of the dataset (its first message"
    )


def test_rows_with_same_question_match_only_by_id() -> None:
    twins = (UNASKED[0], replace(UNASKED[1], query="Where?"))
    cases, problems = _cases(twins, _trace("Where?"), _trace("Where?", names="b"))
    assert _summary(cases) == [("t", None, None), ("b", "b", None), ("a", "a", NO_RECORDED_RUN)]
    assert len(problems) == 1


def test_case_keeps_its_eval_case() -> None:
    eval_case = EvalCase(id="g", turns=(Turn(id="", user_text="Where?"),), place=PLACE)
    eval_set = EvalSet(id="s", cases=(eval_case,), place=PLACE)
    for traces in ((), (_trace("Where?"),)):
        cases, _ = _cases(ROWS[:1], *traces, eval_set=eval_set)
        assert [(each.id, each.expected, each.dataset_row) for each in cases] == [
            ("g", eval_case, ROWS[0])
        ]


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (replace(TURN, answer_parts=()), EMPTY_RESPONSE),
        (replace(TURN, answer_parts=(), tool_calls=(ToolCall(name="f"),)), ""),
        (TURN, ""),
    ],
)
def test_empty_response_is_not_evaluated(turn: Turn, reason: str) -> None:
    [case], _ = _cases([replace(ROWS[0], turn=turn)])
    assert case.trace.not_captured == reason
