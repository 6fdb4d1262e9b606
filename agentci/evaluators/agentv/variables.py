"""What the templates of judges may name: a case and its run, as texts."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from agentci._util.text.javascript import stringify
from agentci._util.text.templates import names_in
from agentci.evaluators.agentv.agent_prompt import prompt_of, segments
from agentci.evaluators.agentv.casing import authored, messages, snake
from agentci.evaluators.agentv.helpers import candidate_answer_of, reference_answer_of
from agentci.evaluators.agentv.rubrics import Rubrics
from agentci.model.json import Json, JsonObject
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript

# What holds something of what the agent did; without one of them there is nothing to judge.
CANDIDATE: Final = frozenset({"candidate_answer", "output", "output_messages", "tool_calls"})
# The author's own words. All else may be another's: questions of a test, too, attack on purpose.
TRUSTED: Final = frozenset({"criteria", "expected_outcome", "rubrics", "rubrics_json"})


class Matter(Struct, frozen=True, kw_only=True):
    """What is judged, and by which rubrics, where there are any."""

    sample: Sample
    transcript: Transcript
    rubrics: Rubrics | None = None


def values_for(template: str, matter: Matter) -> JsonObject:
    """The variables that a template names, those that there are."""
    known = (name for name in names_in(template) if name in VARIABLES)
    return {name: VARIABLES[name](matter) for name in known}


def words_of_others(matter: Matter) -> Mapping[str, Iterator[str]]:
    """All texts of a case and its run that its author does not vouch for."""
    sample, transcript = matter.sample, matter.transcript
    return {
        "candidate_answer": iter((candidate_answer_of(transcript),)),
        "output_messages": _texts(
            [
                *(each.content for each in transcript.messages),
                *(told for use in transcript.tool_uses for told in (use.input, use.output)),
            ]
        ),
        "input_messages": _texts([*segments(sample)]),
        "expected_messages": _texts([*sample.expected_messages]),
    }


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)
        case _:
            return


def _criteria(matter: Matter) -> str:
    return matter.sample.criteria.strip()


def _question(matter: Matter) -> str:
    return prompt_of(matter.sample).strip()


def _reference(matter: Matter) -> str:
    return reference_answer_of(matter.sample).strip()


def _candidate(matter: Matter) -> str:
    return candidate_answer_of(matter.transcript).strip()


def _input_messages(matter: Matter) -> str:
    return stringify([*segments(matter.sample)], indent=2)


def _expected_messages(matter: Matter) -> str:
    return stringify(authored(matter.sample.expected_messages, snake), indent=2)


def _output_messages(matter: Matter) -> str:
    return stringify(messages(matter.transcript.messages, snake), indent=2)


def _tool_calls(matter: Matter) -> str:
    uses = matter.transcript.tool_uses
    return "\n".join(f"- {use.tool} {stringify(use.input)}" for use in uses)


def _metadata(matter: Matter) -> str:
    return stringify(matter.sample.metadata, indent=2)


def _file_changes(_: Matter) -> str:
    """Nothing: what a run changed in files is not recorded."""
    return ""


def _rubrics(matter: Matter) -> str:
    return "" if matter.rubrics is None else matter.rubrics.told


def _rubrics_json(matter: Matter) -> str:
    return stringify([] if matter.rubrics is None else matter.rubrics.listed, indent=2)


# Of all generations: later ones call some by other names.
VARIABLES: Final[Mapping[str, Callable[[Matter], str]]] = {
    "candidate_answer": _candidate,
    "output": _candidate,
    "reference_answer": _reference,
    "expected_output": _reference,
    "question": _question,
    "input": _question,
    "criteria": _criteria,
    "expected_outcome": _criteria,
    "input_messages": _input_messages,
    "expected_messages": _expected_messages,
    "output_messages": _output_messages,
    "tool_calls": _tool_calls,
    "metadata": _metadata,
    "metadata_json": _metadata,
    "file_changes": _file_changes,
    "rubrics": _rubrics,
    "rubrics_json": _rubrics_json,
}
