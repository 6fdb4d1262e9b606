"""What a code judge reads on stdin, in the words of each generation of AgentV, or of all at once.

The union of all of them is taken by both generations of SDKs, and by judges that read the JSON
themselves.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from agentci._util.text.javascript import stringify
from agentci.evaluators.agentv.casing import authored, camel, fields, messages, snake
from agentci.evaluators.agentv.helpers import (
    ASSISTANT,
    candidate_answer_of,
    question_of,
    reference_answer_of,
)
from agentci.evaluators.agentv.trace_summary import summary_of
from agentci.evaluators.agentv.trace_v4 import trace_of
from agentci.model.json import Json, JsonObject
from agentci.model.sample import Sample
from agentci.model.transcript import Transcript

Wire: TypeAlias = Literal["union", "camel", "snake", "v4"]

COUNTED_BY_NAME: Final = "tool_calls_by_name"
# What the generation that spoke camelCase did not know.
_TIMES: Final = ("start_time", "end_time", "duration_ms")
_SINCE_SNAKE_CASE: Final = ("llm_call_count", "tool_durations", "start_time", "end_time")


def payload(sample: Sample, transcript: Transcript, config: JsonObject | None, wire: Wire) -> str:
    """JSON as AgentV prints it: two spaces a level, all letters as they are."""
    matter = _Matter(sample=sample, transcript=transcript, config=config)
    return stringify(_SHAPES[wire](matter), indent=2)


class _Matter(Struct, frozen=True, kw_only=True):
    sample: Sample
    transcript: Transcript
    config: JsonObject | None


def _camel(matter: _Matter) -> dict[str, Json]:
    """Early 2026 (1.6.0): camelCase, and no config."""
    return fields(
        {
            "question": question_of(matter.sample),
            "expected_outcome": matter.sample.criteria,
            "expected_messages": authored(matter.sample.expected_messages, camel),
            "reference_answer": reference_answer_of(matter.sample),
            "candidate_answer": candidate_answer_of(matter.transcript),
            "output_messages": messages(matter.transcript.messages, camel, without=_TIMES),
            "guideline_files": matter.sample.guideline_files,
            "input_files": matter.sample.input_files,
            "input_messages": authored(matter.sample.input_messages, camel),
            "trace_summary": fields(
                summary_of(matter.transcript), camel, without=_SINCE_SNAKE_CASE
            ),
        },
        camel,
    )


def _snake(matter: _Matter) -> dict[str, Json]:
    """From 1.6.1 to 2.x: ``criteria`` was called ``expected_outcome`` before."""
    return {
        "question": question_of(matter.sample),
        "criteria": matter.sample.criteria,
        "expected_outcome": matter.sample.criteria,
        "expected_messages": authored(matter.sample.expected_messages, snake),
        "reference_answer": reference_answer_of(matter.sample),
        "candidate_answer": candidate_answer_of(matter.transcript),
        "output_messages": messages(matter.transcript.messages, snake),
        "guideline_files": matter.sample.guideline_files,
        "input_files": matter.sample.input_files,
        "input_messages": authored(matter.sample.input_messages, snake),
        "trace_summary": summary_of(matter.transcript),
        "file_changes": None,
        "workspace_path": None,
        "config": matter.config,
    }


def _v4(matter: _Matter) -> dict[str, Json]:
    """4.x."""
    summary = summary_of(matter.transcript)
    metered = ("token_usage", "cost_usd", "duration_ms", "start_time", "end_time")
    recorded = messages(matter.transcript.messages, snake)
    if all(message.role == ASSISTANT for message in matter.transcript.messages):
        recorded = [*authored(matter.sample.input_messages, snake), *recorded]
    return {
        "criteria": matter.sample.criteria,
        "expected_output": authored(matter.sample.expected_messages, snake),
        "output": candidate_answer_of(matter.transcript),
        "messages": recorded,
        "input_files": matter.sample.input_files,
        "input": authored(matter.sample.input_messages, snake),
        **({"metadata": matter.sample.metadata} if matter.sample.metadata else {}),
        "trace": trace_of(matter.sample.id, matter.transcript, summary),
        "trace_summary": _renamed(
            {name: value for name, value in summary.items() if name not in metered}
        ),
        **{name: summary[name] for name in metered if name in summary},
        "file_changes": None,
        "workspace_path": None,
        "config": matter.config,
    }


def _union(matter: _Matter) -> dict[str, Json]:
    """All of them. The SDKs make one of both spellings, so the summaries hold the same."""
    summary = summary_of(matter.transcript)
    both = {**fields(summary, camel), **summary, "tool_calls": summary[COUNTED_BY_NAME]}
    return {
        **_camel(matter),
        **_v4(matter),
        **_snake(matter),
        "traceSummary": both,
        "trace_summary": both,
    }


def _renamed(summary: JsonObject) -> JsonObject:
    """The summary of 4.x, which has no ``tool_names``."""
    counted = {"tool_calls": summary[COUNTED_BY_NAME]}
    return {
        **{k: v for k, v in summary.items() if k not in ("tool_names", COUNTED_BY_NAME)},
        **counted,
    }


_SHAPES: Final[Mapping[Wire, Callable[[_Matter], JsonObject]]] = {
    "union": _union,
    "camel": _camel,
    "snake": _snake,
    "v4": _v4,
}
