"""Fingerprints of 10,000 checks of several evaluators, with graders that share a file."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentci._util.workspace import find_workspace
from agentci.cli.session import make_session
from agentci.config.overrides import Overrides
from agentci.evaluators.evaluator import ComparableEvaluator
from agentci.model.case import AgentvCase, EvalCase, Expectation
from agentci.model.trace import ToolCall, Turn
from agentci.model.values import JsonObject, Place
from agentci.runner.fingerprints import Fingerprints
from agentci.runner.load_configs import load_suite

CHECKS: Final = 10_000
MAX_SECONDS: Final = 1.0
GRADERS: Final = 50
PLACE: Final = Place(file="e")
CONFIGS: Final = {
    "metrics": "- {name: tool_trajectory_avg_score, type: builtin}\n"
    "- {name: response_match_score, type: builtin}\n",
    "programs": "".join(
        f"- {{name: p{each}, type: code, path: own.py, config: {{a: {each}}}}}\n"
        for each in range(5)
    ),
    "graders in one file": "".join(
        f"- {{name: g{each}, type: grader, grader: 'graders.py:grade_{each}'}}\n"
        for each in range(GRADERS)
    ),
    "openai_eval": "- {name: o, type: openai_eval, grader: {type: string_check, operation: eq}}\n",
}
EVAL_FILE: Final = (
    "tests:\n  - id: a\n    input: q\n    assertions:\n"
    "      - {name: own, type: code-grader, command: [python3, own.py]}\n"
    "      - {name: field, type: field-accuracy, fields: [{path: a, match: exact}]}\n"
)


def measure() -> bool:
    """Print how long fingerprints take; return whether that is within the limit."""
    print(f"fingerprints of {CHECKS:,} checks (at most {MAX_SECONDS:g} s each)")
    with tempfile.TemporaryDirectory() as folder:
        taken = [
            _measure(Path(folder), name, f"traces: t.json\nevaluators:\n{entries}")
            for name, entries in CONFIGS.items()
        ]
        taken.append(_measure(Path(folder), "AgentV", EVAL_FILE))
    return max(taken) <= MAX_SECONDS


def _measure(folder: Path, name: str, config: str) -> float:
    evaluators = _load(folder, config)
    expectations = [*_make_expectations(CHECKS // len(evaluators))]
    started = time.process_time()
    fingerprints = Fingerprints(find_workspace(folder, root=folder))
    for expectation in expectations:
        for evaluator in evaluators:
            fingerprints.compute(evaluator, expectation)
    seconds = time.process_time() - started
    print(f"  {name:20} {seconds:.2f} s")
    return seconds


def _load(folder: Path, config: str) -> tuple[ComparableEvaluator, ...]:
    (folder / "own.py").write_text("import helper\nprint(helper.SCORE)\n")
    (folder / "helper.py").write_text("SCORE = 1\n")
    graders = (
        f"def grade_{each}(sample, item):\n    return helper.SCORE + {each}\n\n"
        for each in range(GRADERS)
    )
    (folder / "graders.py").write_text("".join(("import helper\n\n", *graders)))
    (folder / "e.yaml").write_text(config)
    services = make_session({"GITHUB_WORKSPACE": str(folder)}).services
    return load_suite(folder / "e.yaml", Overrides(), services).suite.evaluators


def _make_expectations(count: int) -> Iterator[Expectation]:
    for number in range(count):
        turns = tuple(
            Turn(
                id=f"{number}",
                user_text=f"Question {number}?",
                answer_parts=(f"Answer {number}. " * 20,),
                tool_calls=(ToolCall(name="search", args={"city": f"{number}", "days": 3}),) * 3,
            )
            for _ in range(3)
        )
        messages: tuple[JsonObject, ...] = tuple(
            {"role": "assistant", "content": {"a": number}} for _ in turns
        )
        yield Expectation(
            eval_case=EvalCase(id=f"{number}", turns=turns, place=PLACE),
            agentv_case=AgentvCase(
                id=f"{number}",
                criteria="It is right.",
                input_messages=({"role": "user", "content": f"Question {number}?"},),
                expected_messages=messages,
                place=PLACE,
            ),
        )
