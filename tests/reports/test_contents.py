"""The contents of a report: beside the baseline, and selected within a budget."""

import json
from typing import Any

import pytest

from agentci.errors import InputError
from agentci.model.case import Case
from agentci.model.result import BaselineCheck, CheckResult, Report, Status
from agentci.model.trace import ToolCall, ToolResponse, Trace, Turn
from agentci.model.values import replace
from agentci.reports.contents import StoredContents, limit_contents, load_run
from agentci.reports.html.page import HtmlReport
from agentci.reports.json_report import JsonReport
from agentci.reports.outcomes import list_case_outcomes
from agentci.reports.run_content import make_case_summary
from tests.helpers.reports import PLACE, Chunks, make_report, make_result, text_of

CALL = ToolCall(name="search", args={"q": "x"})


def _turn(answer: str = "Yes.", *, result: str = "found", user: str = "Is it?") -> Turn:
    response = ToolResponse(name="search", output=result, call_index=0)
    return Turn(
        id="t",
        user_text=user,
        answer_parts=(answer,),
        tool_calls=(CALL,),
        tool_responses=(response,),
    )


class Builder:
    """Makes a report of cases with contents, and with a baseline."""

    def __init__(self) -> None:
        self.chunks = Chunks()
        self.results: list[CheckResult] = []
        self.baseline: dict[str, BaselineCheck] = {}

    def _store(self, name: str, turns: tuple[Turn, ...]) -> Any:
        trace = Trace(id=f"trace of {name}", key=name, turns=turns, place=PLACE)
        return make_case_summary(Case(id=name, trace=trace), self.chunks)

    def add(self, name: str, *turns: Turn, status: Status = "passed", **others: Any) -> None:
        """Add a case with the result of one check."""
        result = make_result(status, 1.0 if status == "passed" else 0.0, case=name, **others)
        self.results.append(replace(result, case=self._store(name, turns)))

    def add_before(self, name: str, *turns: Turn, status: Status = "passed") -> None:
        """Add the result of the last check in the baseline."""
        self.baseline[self.results[-1].id] = BaselineCheck(
            status=status, score=0.5, content=self._store(name, turns).content
        )

    def build(self) -> Report:
        """The report."""
        contents = StoredContents(chunks=self.chunks, redact=lambda content: content)
        return replace(make_report(self.results), contents=contents, baseline=self.baseline)

    def write(self, **options: Any) -> Any:
        """The report as ``results.json``."""
        report = limit_contents(self.build(), options.pop("limit", "budget"), **options)
        return json.loads(text_of(JsonReport(), report))


@pytest.fixture
def builder() -> Builder:
    return Builder()


class TestBaseline:
    def test_unchanged_turn_is_the_same(self, builder: Builder) -> None:
        builder.add("a", _turn(result="new"))
        builder.add_before("a", _turn(result="old"))
        [case] = builder.write()["cases"]
        assert case["turns"][0]["baseline"] == "same"
        assert (case["state"], case["answer_changed"]) == ("same", False)

    def test_changed_turn_shows_answer_and_calls_of_the_baseline(self, builder: Builder) -> None:
        builder.add("a", _turn("No."), status="failed")
        builder.add_before("a", _turn("Yes."))
        written = builder.write()
        [case] = written["cases"]
        assert case["turns"][0]["baseline"] == {
            "answer": "Yes.",
            "calls": [{"name": "search", "arguments": {"q": "x"}}],
        }
        assert (case["state"], case["answer_changed"]) == ("new_failure", True)
        assert written["results"][0]["baseline"] == {"status": "passed", "score": 0.5}

    def test_turn_that_only_the_baseline_has_is_missing(self, builder: Builder) -> None:
        builder.add("a", _turn())
        builder.add_before("a", _turn(), _turn("Bye.", user="Thanks"))
        [case] = builder.write()["cases"]
        last = case["turns"][-1]
        assert (last["user"], last["missing"], last["baseline"]["answer"]) == (
            "Thanks",
            True,
            "Bye.",
        )
        assert (case["turn_count"], case["answer_changed"]) == (1, True)

    def test_turn_that_the_baseline_lacks_has_none(self, builder: Builder) -> None:
        builder.add("a", _turn(), _turn())
        builder.add_before("a", _turn())
        [case] = builder.write()["cases"]
        assert "baseline" not in case["turns"][1]

    @pytest.mark.parametrize(
        ("before", "status", "state"),
        [
            ("passed", "failed", "new_failure"),
            ("failed", "failed", "still_failing"),
            ("skipped", "failed", "new_failure"),
            ("passed", "errored", "error"),
            ("errored", "errored", "still_errored"),
            ("skipped", "passed", "newly_evaluated"),
            ("failed", "passed", "fixed"),
            ("failed", "skipped", "not_evaluated"),
            ("passed", "passed", "same"),
        ],
    )
    def test_state_of_a_case(
        self, builder: Builder, before: Status, status: Status, state: str
    ) -> None:
        builder.add("a", _turn(), status=status)
        builder.add_before("a", _turn(), status=before)
        assert builder.write()["cases"][0]["state"] == state

    def test_case_that_the_baseline_lacks_is_new(self, builder: Builder) -> None:
        builder.add("a", _turn())
        builder.add_before("a", _turn())
        builder.add("b", _turn())
        second = builder.write()["cases"][1]
        assert (second["state"], "baseline" in second) == ("new_case", False)

    def test_case_without_a_baseline_has_no_state(self, builder: Builder) -> None:
        builder.add("a", _turn())
        [case] = builder.write()["cases"]
        assert {"state", "answer_changed", "baseline"} & {*case} == set()

    def test_change_of_an_excerpt_was_found_before(self, builder: Builder) -> None:
        builder.add("a", _turn("No."))
        builder.add_before("a", _turn("Yes."))
        [case] = builder.write(max_bytes=1)["cases"]
        assert (case["content"], case["answer_changed"]) == ("excerpt", True)
        assert case["turns"][0]["baseline"] == {"answer": "Yes."}


class TestBudget:
    @pytest.fixture(autouse=True)
    def fill(self, builder: Builder) -> None:
        long = "r" * 5_000
        builder.add("good", _turn(result=long))
        builder.add_before("good", _turn())
        builder.add("changed", _turn("No.", result=long))
        builder.add_before("changed", _turn("Yes."))
        builder.add("advisory", _turn(result=long), status="failed", required=False)
        builder.add("bad", _turn(result=long), status="errored")

    def _levels(self, builder: Builder, max_bytes: int) -> dict[str, str]:
        cases = builder.write(max_bytes=max_bytes)["cases"]
        return {each["id"]: each.get("content", "full") for each in cases}

    def test_all_are_full_if_they_fit(self, builder: Builder) -> None:
        written = builder.write()
        assert {each.get("content") for each in written["cases"]} == {None}
        assert written["content"] == {
            "limit": "budget",
            "full": 4,
            "without_results": 0,
            "excerpt": 0,
            "none": 0,
        }

    def test_passed_cases_lose_results_first(self, builder: Builder) -> None:
        assert self._levels(builder, 18_000) == {
            "good": "without_results",
            "changed": "full",
            "advisory": "full",
            "bad": "full",
        }

    def test_changed_answers_come_after_failures(self, builder: Builder) -> None:
        levels = self._levels(builder, 12_000)
        assert levels["changed"] == levels["good"] == "without_results"
        assert levels["advisory"] == levels["bad"] == "full"

    def test_required_failures_come_first(self, builder: Builder) -> None:
        levels = self._levels(builder, 5_300)
        assert (levels["bad"], levels["advisory"]) == ("full", "without_results")

    def test_what_does_not_fit_is_an_excerpt_and_counted(self, builder: Builder) -> None:
        written = builder.write(max_bytes=0)
        assert written["content"]["excerpt"] == 4
        assert written["cases"][0]["turns"][0]["user"] == "Is it?"
        assert "calls" not in written["cases"][0]["turns"][0]

    def test_without_a_budget_all_is_kept(self, builder: Builder) -> None:
        assert builder.write(limit="full", max_bytes=0)["content"]["full"] == 4

    def test_no_text_is_kept_if_none_is_asked(self, builder: Builder) -> None:
        builder.add("details", _turn(), details={"q": "Is it?"})
        report = limit_contents(builder.build(), "none")
        written = text_of(JsonReport(), report)
        assert [each for each in ("Is it?", "Yes.", "search", "rrr") if each in written] == []
        assert json.loads(written)["content"]["none"] == 5
        assert json.loads(written)["cases"][0]["turn_count"] == 1


def test_secrets_are_removed_before_texts_are_shortened() -> None:
    builder = Builder()
    builder.add("a", _turn(user="x" * 98 + "hunter22"))
    contents = StoredContents(
        chunks=builder.chunks,
        redact=lambda content: replace(
            content,
            turns=tuple(
                replace(turn, user=turn.user.replace("hunter22", "***")) for turn in content.turns
            ),
        ),
    )
    written = text_of(JsonReport(), replace(builder.build(), contents=contents))
    assert "hunter" not in written
    assert json.loads(written)["cases"][0]["redacted"] is True


class _LimitedChunks(Chunks):
    """Chunks on a disk that may be full; notes which are read."""

    is_full = False

    def __init__(self) -> None:
        super().__init__()
        self.numbers_read = set[int]()

    def append(self, chunk: bytes) -> int:
        if self.is_full:
            raise InputError.from_message("not enough disk space for the traces")
        return super().append(chunk)

    def read(self, number: int) -> bytes:
        self.numbers_read.add(number)
        return super().read(number)


def test_run_is_put_beside_the_baseline_once_for_all_reports(builder: Builder) -> None:
    builder.chunks = chunks = _LimitedChunks()
    builder.add("a", _turn("No."), status="failed")
    builder.add_before("a", _turn("Yes."))
    report = limit_contents(builder.build(), "budget")
    written = text_of(JsonReport(), report), text_of(HtmlReport(), report)
    chunks.numbers_read.clear()
    assert (text_of(JsonReport(), report), text_of(HtmlReport(), report)) == written
    assert chunks.numbers_read == {2}  # 0 and 1 are what both runs recorded


def test_full_disk_does_not_keep_reports_from_being_written(builder: Builder) -> None:
    builder.chunks = chunks = _LimitedChunks()
    builder.add("a", _turn("No."), status="failed")
    builder.add_before("a", _turn("Yes."))
    report = builder.build()
    chunks.is_full = True
    written = text_of(JsonReport(), report)
    chunks.is_full = False
    assert text_of(JsonReport(), replace(report)) == written


def test_report_without_contents_shows_excerpts_of_summaries() -> None:
    report = make_report([make_result("passed")])
    content = load_run(limit_contents(report, "budget"), report.results).content
    assert content.level == "excerpt"
    assert [turn.user for turn in content.turns] == ["Hello", "Book it"]


def test_baseline_without_contents_gives_only_the_state() -> None:
    result = make_result("failed", 0.1)
    baseline = {result.id: BaselineCheck(status="passed", score=1.0)}
    [outcome] = list_case_outcomes(replace(make_report([result]), baseline=baseline))
    assert (outcome.state, outcome.before) == ("new_failure", None)


def test_case_whose_content_was_not_stored_is_an_excerpt() -> None:
    builder = Builder()
    builder.add("a", _turn())
    builder.results.append(make_result("passed"))
    assert [each.get("content") for each in builder.write(max_bytes=0)["cases"]] == [
        "excerpt",
        "excerpt",
    ]
