"""Results and reports for tests of the gate and of report files."""

from collections.abc import Sequence
from typing import Any

from agentci.gate.decision import compute_totals, decide, decide_shard
from agentci.model.case import Case, EvalCase
from agentci.model.gate import GatePolicy, GateThresholds
from agentci.model.requests import EvaluatorIdentity, Judgement
from agentci.model.result import CheckResult, Provenance, Report, Shard, ShardInfo, Status
from agentci.model.trace import Trace, Turn
from agentci.model.values import FailOn, Place, Problem, replace
from agentci.reports.annotations import make_annotations
from agentci.reports.contents import StoredContents
from agentci.reports.registry import ReportWriter
from agentci.reports.run_content import make_case_summary
from agentci.reports.workflow_commands import render_annotations

PLACE = Place(file="recordings.json", line=1)
CONFIG = "evals/eval_config.yaml"
LINES = {"response_quality": 2, "tool_trajectory_avg_score": 7, "tone": 11}


def text_of(writer: ReportWriter, report: Report) -> str:
    """The complete text of a rendered report."""
    return "".join(writer.render(report))


def annotated(report: Report) -> str:
    """The workflow commands for the annotations of a report."""
    return render_annotations(make_annotations(report))


class Chunks:
    """Stored chunks in memory, for the contents of cases."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def append(self, chunk: bytes) -> int:
        """Store ``chunk``; return its number."""
        self._chunks.append(chunk)
        return len(self._chunks) - 1

    def read(self, number: int) -> bytes:
        """Return the chunk of a number."""
        return self._chunks[number]

    def get_size(self, number: int) -> int:
        """Return the bytes of the chunk of a number."""
        return len(self._chunks[number])


def make_case(case: str = "books_a_flight", *, warnings: Sequence[str] = ()) -> Case:
    """A recorded run with two turns and its eval case."""
    place = Place(file=f"evals/recordings/{case}.json", line=3)
    turns = (Turn(id="t1", user_text="Hello"), Turn(id="t2", user_text="Book it"))
    return Case(
        id=case,
        trace=Trace(
            id=f"trace-of-{case}", key=case, turns=turns, place=place, warnings=tuple(warnings)
        ),
        expected=EvalCase(id=case, turns=turns, place=Place(file="evals/eval_set.json", line=5)),
    )


def make_result(
    status: Status = "passed",
    score: float | None = None,
    *,
    case: str = "books_a_flight",
    evaluator: str = "response_quality",
    warnings: Sequence[str] = (),
    **others: Any,
) -> CheckResult:
    """A result; ``others`` are fields of its judgement, its evaluator or the result itself."""
    given = {k: others.pop(k) for k in ("misses", "hits", "reasoning", "details") if k in others}
    own = ("type", "criterion", "threshold", "required", "place")
    identified: dict[str, Any] = {k: others.pop(k) for k in own if k in others}
    passed = {"passed": True, "failed": False}.get(status)
    judgement = None
    if passed is not None or score is not None:
        judgement = Judgement(score=score, passed=passed, **given)
    config = others.setdefault("config", CONFIG)
    return CheckResult(
        id=f"id of {config}, {case}, {evaluator}",
        case=make_case_summary(make_case(case, warnings=warnings)),
        evaluator=EvaluatorIdentity(
            name=evaluator,
            **{
                "type": "code",
                "criterion": "score >= 0.7",
                "threshold": 0.7,
                "required": True,
                "place": Place(file=config, line=LINES.get(evaluator, 1)),
                **identified,
            },
        ),
        status=status,
        judgement=judgement,
        **others,
    )


def make_report(
    results: Sequence[CheckResult],
    *,
    thresholds: GateThresholds | None = None,
    problems: Sequence[Problem] = (),
    complete: bool = True,
    fail_on: FailOn = "failed",
    provenance: Sequence[Provenance] = (),
) -> Report:
    """A report with the decision of the real gate, one per config."""
    by_config: dict[str, list[CheckResult]] = {}
    for result in results:
        by_config.setdefault(result.config, []).append(result)
    policy = GatePolicy(overall=thresholds or GateThresholds())
    return Report(
        complete=complete,
        decision=decide(
            [(policy, group) for group in by_config.values()],
            problems=problems,
            complete=complete,
            fail_on=fail_on,
        ),
        totals=compute_totals(results),
        results=tuple(results),
        problems=tuple(problems),
        provenance=tuple(provenance),
    )


def with_contents(report: Report, chunks: Chunks) -> Report:
    """The report with the contents of its cases, made again from their ids."""
    results = tuple(
        replace(
            each,
            case=make_case_summary(make_case(each.case.id, warnings=each.case.warnings), chunks),
        )
        for each in report.results
    )
    contents = StoredContents(chunks=chunks, redact=lambda content: content)
    return replace(report, results=results, contents=contents)


def shard_report(results: Sequence[CheckResult], **others: Any) -> Report:
    """The report of shard 2 of 3, with the decision of the real gate."""
    report = make_report(results, **others)
    shard = Shard(index=2, total=3)
    decision = decide_shard(
        [(GatePolicy(), results)],
        shard=shard,
        problems=report.problems,
        complete=report.complete,
        fail_on="failed",
    )
    portion = ShardInfo(shard=shard, plan_digest="0" * 64, checks=("0" * 16,))
    return replace(report, decision=decision, shard_info=portion)


def mixed_report() -> Report:
    """A report with every kind of result: the source of the snapshots."""
    comparisons = [
        {
            "invocation_id": "t1",
            "expected": [{"name": "greet", "args": {}}],
            "actual": [{"name": "greet", "args": {}}],
            "matched": True,
        },
        {
            "invocation_id": "t2",
            "expected": [
                {"name": "search_flights", "args": {"from": "BER", "to": "ROM"}},
                {"name": "hold_seat", "args": {"flight": "AZ 423"}},
                {"name": "book_flight", "args": {"flight": "AZ 423", "seat": "12A"}},
            ],
            "actual": [
                {"name": "search_flights", "args": {"from": "BER", "to": "FCO"}},
                {"name": "book_flight", "args": {"flight": "AZ 423", "seat": "12A"}},
                {"name": "charge_card", "args": {"amount": 120.5}},
            ],
            "matched": False,
        },
    ]
    guessed = "a span without a name was taken for a tool call"
    return make_report(
        [
            make_result("passed", 0.9, hits=["says the price"], seconds=1.25),
            make_result(
                "failed",
                0.5,
                evaluator="tool_trajectory_avg_score",
                type="builtin",
                misses=["turn 2: hold_seat was not called"],
                details={"comparisons": comparisons},
            ),
            make_result("failed", 0.6999, case="cancels", reasoning="It never says sorry.\nBad."),
            make_result(
                "skipped",
                case="cancels",
                evaluator="tool_trajectory_avg_score",
                type="builtin",
                reason="no matching eval case",
                warnings=[guessed],
            ),
            make_result("errored", case="refunds", reason="exit code 3\nTraceback | of <its> own"),
            make_result(
                "failed",
                0.95,
                case="refunds",
                evaluator="tone",
                required=False,
                reason="1 turn of the golden case is missing",
                warnings=[guessed],
            ),
        ],
        problems=[
            Problem(
                message="lies beside no config and was found from the working directory",
                place=Place(file="traces/old.json"),
                severity="note",
            ),
            Problem(
                message="'treshold' is no key of an evaluator",
                place=Place(file=CONFIG, line=4, column=3),
                hint="did you mean 'threshold'?",
                severity="warning",
            ),
        ],
        provenance=[
            Provenance(
                config="evals/eval_config.yaml",
                evaluator="quality",
                source="github",
                repository="org/evaluators",
                revision="main",
                ref="evaluators/quality/quality.py",
                commit="8c1f" * 10,
                digest="5d41" * 16,
            ),
        ],
    )
