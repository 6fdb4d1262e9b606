"""Entries of metrics that ask a model, in agentevals' words and in ours."""

from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from agentci.errors import InputError
from agentci.evaluators.agentevals.entries import BuiltinEntry
from agentci.evaluators.agentevals.judged_metric import JudgedEvaluator
from agentci.evaluators.agentevals.threshold import DEFAULT_THRESHOLD, bar_of
from agentci.evaluators.judge_config import Judges, JudgeSpec
from agentci.evaluators.metrics.judged.registry import JUDGED_METRICS
from agentci.model.identity import Identity
from agentci.model.judging import WantedPanel
from agentci.model.place import Place
from agentci.model.rubric import Rubric

RUBRIC_HINT = "write it as text, or as {rubric_id: ..., rubric_content: {text_property: ...}}"


def assemble_judged(
    entry: BuiltinEntry,
    judges: Judges,
    *,
    place: Place,
    place_of: Callable[[str], Place],
    turn_mismatch_fails: bool,
) -> JudgedEvaluator:
    """Make the evaluator.

    Raises:
        InputError: nobody said who judges, or a rubric cannot be read.
    """
    judge_place = place_of("judge" if entry.judge is not None else "name")
    if entry.credential_ref is not None:
        raise InputError.of(
            "credential_ref names a credential of agentevals, which is not there",
            place=place_of("credential_ref"),
            hint="name the variable with the key: `judge: {api_key_env: ...}`",
        )
    threshold = DEFAULT_THRESHOLD if entry.threshold is None else entry.threshold
    return JudgedEvaluator(
        identity=Identity(
            name=entry.name,
            type=entry.type,
            bar=bar_of(threshold),
            threshold=threshold,
            required=entry.required,
            place=place,
            needs_golden=JUDGED_METRICS[entry.name].needs_golden,
            repetition=entry.repetition,
        ),
        metric=entry.name,
        wanted=WantedPanel(
            panel=judges.panel(_own(entry), judge_place), name=entry.name, place=judge_place
        ),
        rubrics=tuple(_rubrics(entry.rubrics or [], place_of("rubrics"))),
        turn_mismatch_fails=turn_mismatch_fails,
    )


def _own(entry: BuiltinEntry) -> JudgeSpec:
    """What the entry says of the judge, in either words."""
    theirs = {"model": entry.judge_model, "base_url": entry.judge_base_url}
    given = {name: value for name, value in theirs.items() if value is not None}
    own = {} if entry.judge is None else entry.judge.model_dump(exclude_none=True)
    return JudgeSpec.model_validate({**given, **own})


def _rubrics(given: list[str | dict[str, JsonValue]], place: Place) -> Iterator[Rubric]:
    """Rubrics as ADK writes them, or as mere texts."""
    for number, each in enumerate(given, start=1):
        if isinstance(each, str):
            yield Rubric(id=f"rubric-{number}", text=each)
            continue
        rubric_id = each.get("rubric_id", each.get("rubricId"))
        content = each.get("rubric_content", each.get("rubricContent"))
        text = (
            content.get("text_property", content.get("textProperty"))
            if isinstance(content, Mapping)
            else None
        )
        if not isinstance(rubric_id, str) or not isinstance(text, str):
            message = f"rubric {number} has no id or no text"
            raise InputError.of(message, place=place, hint=RUBRIC_HINT)
        yield Rubric(id=rubric_id, text=text)
