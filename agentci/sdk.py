"""What evaluators in Python are made of: a function that judges, and the protocol around it.

Names and fields are those of ``agentevals_evaluator_sdk``, so evaluators change one line to use it.
It imports the standard library alone: programs start in a moment, and this file works anywhere.
"""

import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum, StrEnum
from functools import update_wrapper
from reprlib import repr as shown
from types import UnionType
from typing import Any, Final, Generic, NoReturn, ParamSpec, SupportsFloat, TypeVar, get_args

VERSION: Final = "1.1"
STDOUT: Final = 1
STDERR: Final = 2

P = ParamSpec("P")
Judged = TypeVar("Judged", bound="EvalResult | Coroutine[Any, Any, EvalResult]")


@dataclass(slots=True, kw_only=True)
class ToolCallData:
    """A tool that the agent called; ``id`` is None where the recording has none."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(slots=True, kw_only=True)
class ToolResponseData:
    """What a tool answered: ``output`` as text, ``response`` as recorded."""

    name: str
    output: str = ""
    status: str | None = None
    id: str | None = None
    response: Any = None


@dataclass(slots=True, kw_only=True)
class IntermediateStepData:
    """What the agent did between the user's words and its own."""

    tool_calls: list[ToolCallData] = field(default_factory=list)
    tool_responses: list[ToolResponseData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class InvocationData:
    """One turn of a conversation; ``final_response`` is None where the agent gave none."""

    invocation_id: str = ""
    user_content: str = ""
    final_response: str | None = None
    intermediate_steps: IntermediateStepData = field(default_factory=IntermediateStepData)
    performance_metrics: dict[str, Any] | None = None
    trace_id: str | None = None
    span_id: str | None = None


@dataclass(slots=True, kw_only=True)
class EvalInput:
    """What there is to judge: the turns of a recording, and of its golden case where it has one."""

    protocol_version: str = VERSION
    metric_name: str
    threshold: float = 0.5
    config: dict[str, Any] = field(default_factory=dict)
    invocations: list[InvocationData] = field(default_factory=list)
    expected_invocations: list[InvocationData] | None = None

    @classmethod
    def from_json(cls, text: str) -> "EvalInput":
        """Read what a program gets on stdin; raises ValueError where it is something else."""
        given: EvalInput = _read(cls, json.loads(text), "it")
        return given


class EvalStatus(StrEnum):
    """A verdict of the evaluator's own, which counts for more than its score."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    NOT_EVALUATED = "NOT_EVALUATED"


@dataclass(slots=True, kw_only=True)
class EvalResult:
    """A judgement; raises ValueError where it is none.

    Attributes:
        score: 0 to 1.
        status: None leaves it to score and threshold.
        per_invocation_scores: in the order of the turns, None for one without.
        details: whatever is worth knowing; ``issues``, a list of texts, is shown beside a failure.
    """

    score: float
    status: EvalStatus | None = None
    per_invocation_scores: Sequence[float | None] = field(default_factory=list)
    details: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        score = _number(self.score)
        if score is None or not 0 <= score <= 1:
            raise ValueError(f"score is {shown(self.score)}, not a number from 0 to 1")
        if self.status is not None and self.status not in list(EvalStatus):
            raise ValueError(f"status is {shown(self.status)}; take one of EvalStatus, or None")
        if not isinstance(self.details, dict | None):
            raise TypeError(f"details is {shown(self.details)}, not a dict or None")
        self.score = score
        self.status = None if self.status is None else EvalStatus(self.status)
        self.per_invocation_scores = _turn_scores(self.per_invocation_scores)


class Evaluator(Generic[P, Judged]):
    """A function that judges: called as ever, and a program once it is run."""

    def __init__(self, judge: Callable[P, Judged]) -> None:
        self._judge = judge
        update_wrapper(self, judge)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Judged:
        """Judge in this process, as tests do."""
        return self._judge(*args, **kwargs)

    def run(self) -> None:
        """Read EvalInput from stdin and print EvalResult; failing that, exit 1 and say why."""
        out = sys.stdout
        with _logs_on_stderr():
            answer = _answer(self._judge, _input(sys.stdin.read()))
        out.write(f"{answer}\n")
        out.flush()
        if out is sys.__stdout__:
            os.dup2(STDERR, STDOUT)  # C libraries empty their buffers as the process ends


def evaluator(judge: Callable[P, Judged]) -> Evaluator[P, Judged]:
    """Make an evaluator of a function from EvalInput to EvalResult, async or not."""
    return Evaluator(judge)


@contextmanager
def _logs_on_stderr() -> Iterator[None]:
    """Keep stdout for the result, whoever prints: the evaluator, its libraries, their children."""
    sys.stdout.flush()
    kept = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, STDOUT)
        os.close(kept)


def _input(text: str) -> EvalInput:
    if not text.strip():
        _fail("No input received on stdin")
    try:
        given = EvalInput.from_json(text)
    except (ValueError, TypeError, RecursionError) as error:
        _fail(f"Failed to parse input: {error}")
    if given.protocol_version.partition(".")[0] != VERSION.partition(".")[0]:
        theirs = shown(given.protocol_version)
        sys.stderr.write(f"warning: the input speaks protocol {theirs}, agentci.sdk {VERSION}\n")
    return given


def _answer(judge: Callable[..., object], given: EvalInput) -> str:
    try:
        result = judge(given)
        if inspect.iscoroutine(result):
            import asyncio  # noqa: PLC0415 (slow to load, and seldom needed)

            result = asyncio.run(result)
        text = _written(result) if isinstance(result, EvalResult) else None
    except Exception as error:  # noqa: BLE001 (an author's code may raise anything)
        import traceback  # noqa: PLC0415 (likewise)

        _fail(f"Evaluator function raised: {error}\n{traceback.format_exc().rstrip()}")
    if text is None:
        got = f"{type(result).__name__} of {type(result).__module__}"
        hint = "`from agentci.sdk import EvalResult`, and `return EvalResult(score=...)`"
        _fail(f"Evaluator function must return EvalResult, got {got}; write {hint}")
    return text


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"{message}\n")
    raise SystemExit(1)


def _read(wanted: Any, given: Any, at: str) -> Any:
    """``given`` as what a field is declared to be; keys that are not declared are left out."""
    if isinstance(wanted, UnionType):  # with None
        return None if given is None else _read(get_args(wanted)[0], given, at)
    kind = getattr(wanted, "__origin__", wanted)
    if is_dataclass(kind) and isinstance(given, dict):
        known = {each.name: each.type for each in fields(kind) if each.name in given}
        return wanted(**{key: _read(of, given[key], f"{at}.{key}") for key, of in known.items()})
    if kind is list and isinstance(given, list):
        return [_read(get_args(wanted)[0], each, f"{at}[{i}]") for i, each in enumerate(given)]
    if kind is float and type(given) is int:
        return float(given)
    if kind is Any or isinstance(given, kind):
        return given
    raise TypeError(f"{at} is {shown(given)}, not of type {kind.__name__}")


def _number(given: object) -> float | None:
    """``given`` as a float, numbers of libraries too; None where it is none."""
    if isinstance(given, bool) or not isinstance(given, SupportsFloat):
        return None
    number = float(given)
    return number if math.isfinite(number) else None


def _turn_scores(given: object) -> list[float | None]:
    if isinstance(given, list | tuple):
        scores = [_number(each) for each in given]
        if scores.count(None) == given.count(None):
            return scores
    raise ValueError(f"per_invocation_scores is {shown(given)}, not a list of numbers and None")


def _written(result: EvalResult) -> str:
    result.__post_init__()  # its fields may have been changed
    # There and back, so that what JSON has no number for becomes null.
    values = json.loads(json.dumps(result, default=_plain), parse_constant=lambda _: None)
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def _plain(value: Any) -> Any:
    """What JSON says in place of a value that it has no form for."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, set | frozenset):
        return list(value)
    return value.value if isinstance(value, Enum) else str(value)
