"""Reports of many checks, merged and compared: time and memory grow with the checks only."""

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agentci.gate.decision import compute_totals, decide
from agentci.model.case import CaseSummary, DialogueTurn
from agentci.model.gate import Gate, GatePolicy
from agentci.model.requests import EvaluatorIdentity, Judgement
from agentci.model.result import CheckResult, Report
from agentci.model.values import JsonObject, Place
from agentci.reports.json_report import JsonReport
from benchmarks.processes import run_in_turns

EVALUATORS: Final = 5
COMPARED: Final = 10_000
MAX_SECONDS: Final = 3.0
MERGED: Final = 100_000
MAX_BYTES: Final = 500_000_000
CONFIG: Final = "agentci.yaml"


def measure(times: int) -> bool:
    """Print what comparing and merging take; tell whether that is within the limits.

    Args:
        times: how often each command runs, in turns.
    """
    compare, merge = (
        [sys.executable, "-m", "agentci", *given]
        for given in (["compare", "base", "head"], ["merge", "base", "--quiet"])
    )
    with tempfile.TemporaryDirectory() as folder:
        write_reports(Path(folder, "some"), COMPARED)
        write_reports(Path(folder, "many"), MERGED)
        [some] = run_in_turns([compare], cwd=Path(folder, "some"), times=times)
        many = run_in_turns([compare, merge], cwd=Path(folder, "many"), times=1)
    print("large reports")
    print(f"  compare {COMPARED:7,} checks {some}  (at most {MAX_SECONDS:g} s)")
    for name, runs in zip(("compare", "merge  "), many, strict=True):
        print(f"  {name} {MERGED:7,} checks {runs}  (at most {MAX_BYTES / 1e6:.0f} MB)")
    return some.seconds <= MAX_SECONDS and max(each.peak_bytes for each in many) <= MAX_BYTES


def write_reports(folder: Path, checks: int) -> None:
    """Write the reports ``base`` and ``head``, in which all checks passed."""
    document = json.loads("".join(JsonReport().render(_make_report())))
    for name in ("base", "head"):
        (folder / name).mkdir(parents=True)
        with (folder / name / "results.json").open("w", encoding="utf-8") as file:
            file.writelines(_render(document, checks))


def _render(document: dict[str, Any], checks: int) -> Iterable[str]:
    """Repeat the case of a report and its results; this process has to stay small."""
    before = "{"
    for name, value in document.items():
        yield f"{before}\n{json.dumps(name)}: "
        if name in ("results", "cases"):
            items = (
                json.dumps({**each, **_number(name, case, index)})
                for case in range(checks // EVALUATORS)
                for index, each in enumerate(value)
            )
            yield f"[{next(items)}"
            yield from (f",\n{item}" for item in items)
            yield "]"
        else:
            yield json.dumps(value)
        before = ","
    yield "}\n"


def _number(array: str, case: int, index: int) -> dict[str, Any]:
    own = f"case-{case}"
    if array == "cases":
        return {"id": own, "eval_case": own, "group": own}
    return {"id": f"{case * EVALUATORS + index:016x}", "case": own, "eval_case": own}


def _make_report() -> Report:
    calls: list[JsonObject] = [
        {"name": "get_weather", "args": {"city": "Oslo", "days": 2, "units": ["celsius"]}}
    ]
    comparison: JsonObject = {"expected": calls, "actual": calls, "matched": True}
    case = CaseSummary(
        id="case",
        trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
        group="case",
        eval_case_id="case",
        recording=Place(file="traces.jsonl"),
        dialogue=(DialogueTurn(question="Weather in Oslo?", answer="It is sunny, 21 degrees."),),
        performance='{"latency": {"overall": {"p50": 900.0}}, "tokens": {"total": 1880}}',
    )
    results = tuple(
        CheckResult(
            id="0" * 16,
            config=CONFIG,
            case=case,
            evaluator=EvaluatorIdentity(
                name=f"evaluator_{number}",
                type="builtin",
                criterion="score >= 0.5",
                threshold=0.5,
                required=True,
                place=Place(file=CONFIG, line=3 + number, column=5),
            ),
            status="passed",
            judgement=Judgement(
                score=1.0, passed=True, turn_scores=(1.0,), details={"comparisons": [comparison]}
            ),
            seconds=0.01,
            fingerprint="c0de" * 4,
        )
        for number in range(EVALUATORS)
    )
    policy = GatePolicy()
    names = tuple(each.evaluator.name for each in results)
    return Report(
        complete=True,
        decision=decide([(policy, results)], problems=(), complete=True, fail_on="failed"),
        totals=compute_totals(results),
        results=results,
        gates=(Gate(config=CONFIG, policy=policy, evaluators=names),),
    )
