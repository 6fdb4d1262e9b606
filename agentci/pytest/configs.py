"""What tests say of their evaluators, and what these tell them: the names of pytest-agent-evals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

DEFAULT_THRESHOLD = 0.5

# ``grade(sample, item)``; what it returns is looked at when it is there.
GraderFunction: TypeAlias = Callable[[dict[str, Any], dict[str, Any]], object]


@dataclass(frozen=True, slots=True)
class CustomCodeEvaluatorConfig:
    """An evaluator that is a function.

    Args:
        name: unique in its test file; results are found under it.
        grader: ``grade(sample, item)``, which returns a score from 0 to 1.
        threshold: the score from which on the result is "pass", from 0 to 1.
    """

    name: str
    grader: GraderFunction
    threshold: float = DEFAULT_THRESHOLD

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not callable(self.grader):
            raise TypeError(f"the grader of {self.name!r} is no function")
        if isinstance(self.threshold, bool) or not 0 <= self.threshold <= 1:
            raise ValueError(f"the threshold of {self.name!r} is no number from 0 to 1")


@dataclass(frozen=True, slots=True)
class CustomPromptEvaluatorConfig:
    """An evaluator that is a prompt for a language model.

    Args:
        name: unique in its test file; results are found under it.
        prompt: a Jinja2 template, or the path of a file with one, relative to the test file.
        threshold: a number, from which on the judge's own is a "pass", or the boolean that the
            judge has to say.
    """

    name: str
    prompt: str | Path
    threshold: bool | float

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not str(self.prompt).strip():
            raise ValueError(f"the prompt of {self.name!r} is empty")
        if not isinstance(self.threshold, int | float):
            raise TypeError(f"the threshold of {self.name!r} is neither a number nor a boolean")


EvaluatorConfig: TypeAlias = CustomCodeEvaluatorConfig | CustomPromptEvaluatorConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorResult:
    """What one evaluator says of one row.

    Attributes:
        score: of a function from 0 to 1; of a prompt what the judge said, on its own scale.
        reason: None where none was given.
    """

    result: Literal["pass", "fail"]
    score: bool | float
    reason: str | None
    threshold: bool | float


class EvaluatorResults:
    """What the evaluators of a test say, each under its name."""

    def __init__(self, results: Mapping[str, EvaluatorResult]) -> None:
        self._results = dict(results)

    def __getattr__(self, name: str) -> EvaluatorResult:
        """The result of the evaluator ``name``."""
        results = self.__dict__.get("_results", {})
        if name not in results:
            known = ", ".join(results) or "none"
            raise AttributeError(f"there is no evaluator {name!r} at this test; there are: {known}")
        found: EvaluatorResult = results[name]
        return found

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={result}" for name, result in self._results.items())
        return f"EvaluatorResults({told})"


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TypeError("the name of an evaluator has to be text")
