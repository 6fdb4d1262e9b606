"""What the Evals API is sent and what it answers, in its own words."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeGuard

from agentci.errors import EvaluatorError
from agentci.model.grading import GradeRemotely, RemoteGrade
from agentci.model.json import Json, JsonObject

# A run that will not change any more.
COMPLETED: Final = "completed"
ENDED: Final = frozenset({COMPLETED, "failed", "canceled"})
# Of a result: what people read of it.
TOLD: Final = ("label", "reason")


def eval_body(request: GradeRemotely) -> JsonObject:
    """An eval whose items are graded as they are: nothing is sampled."""
    properties = {name: _schema(value) for name, value in request.items[0].items()}
    return {
        "name": request.name,
        "data_source_config": {
            "type": "custom",
            "item_schema": {
                "type": "object",
                "properties": properties,
                "required": [*properties],
            },
            "include_sample_schema": False,
        },
        "testing_criteria": [request.criterion],
    }


def run_body(request: GradeRemotely) -> JsonObject:
    """A run over all items."""
    content: Json = [{"item": item} for item in request.items]
    source: JsonObject = {"type": "file_content", "content": content}
    return {"name": request.name, "data_source": {"type": "jsonl", "source": source}}


def check_run(run: JsonObject, items: int) -> None:
    """See whether a run that has ended graded everything.

    Raises:
        EvaluatorError: it did not; says why.
    """
    if run.get("status") != COMPLETED:
        error = run.get("error")
        said = error.get("message") if isinstance(error, Mapping) else None
        raise EvaluatorError(f"the run of the service {run.get('status')}: {said or 'no reason'}")
    counts = run.get("result_counts")
    errored = counts.get("errored") if isinstance(counts, Mapping) else None
    if errored:
        raise EvaluatorError(f"the service could not grade {errored} of {items}")


def grades_of(found: Sequence[Json], items: int) -> tuple[RemoteGrade, ...]:
    """The grades of all items by their numbers, whatever order they came in.

    Raises:
        EvaluatorError: an item has none, or more than one.
    """
    grades = dict(map(_numbered, found))
    if len(found) != items or grades.keys() != set(range(items)):
        raise EvaluatorError(f"the service graded other items than the {items} that it was given")
    return tuple(grades[number] for number in range(items))


def _numbered(item: Json) -> tuple[int, RemoteGrade]:
    if isinstance(item, Mapping) and isinstance(number := item.get("datasource_item_id"), int):
        for result in _results(item):
            score, passed = result.get("score"), result.get("passed")
            if isinstance(passed, bool) and _is_number(score):
                details = {name: result[name] for name in TOLD if result.get(name) is not None}
                return number, RemoteGrade(score=float(score), passed=passed, details=details)
    raise EvaluatorError("the service gave no score for an item")


def _results(item: JsonObject) -> Iterator[JsonObject]:
    results = item.get("results")
    yield from (
        each for each in (results if isinstance(results, list) else ()) if isinstance(each, Mapping)
    )


def _is_number(value: Json) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _schema(value: Json) -> JsonObject:
    return {"type": "string"} if isinstance(value, str) else {}
