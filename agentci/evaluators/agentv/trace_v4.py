"""``trace`` of AgentV 4.x: a run as a list of events."""

from collections.abc import Iterator

from agentci.evaluators.agentv.casing import fields, messages, snake
from agentci.model.json import Json, JsonObject
from agentci.model.transcript import Message, ToolUse, Transcript

Event = dict[str, Json]


def trace_of(case_id: str, transcript: Transcript, summary: JsonObject) -> JsonObject:
    """The whole run; ``summary`` is its trace summary."""
    left = ("tool_names", "tool_calls_by_name")
    return {
        **{name: value for name, value in summary.items() if name not in left},
        "tool_calls": summary["tool_calls_by_name"],
        "messages": messages(transcript.messages, snake),
        "events": [
            {**event, "ordinal": ordinal} for ordinal, event in enumerate(_events(transcript))
        ],
        "metadata": {"eval_case_id": case_id},
    }


def _events(transcript: Transcript) -> Iterator[Event]:
    for index, message in enumerate(transcript.messages):
        yield _said(message, index, event_id=f"message-{index}", kind="message")
        for place, use in enumerate(message.tool_calls):
            yield from _used(use, index, place)
    if transcript.messages:
        last = len(transcript.messages) - 1
        final = _said(
            transcript.messages[last], last, event_id="final-response", kind="final_response"
        )
        yield {**final, "parent_event_id": f"message-{last}"}


def _said(message: Message, index: int, *, event_id: str, kind: str) -> Event:
    return {
        "event_id": event_id,
        "type": kind,
        "message": fields({"role": message.role, "content": message.content}, snake),
        "metadata": {"message_index": index},
    }


def _used(use: ToolUse, index: int, place: int) -> Iterator[Event]:
    call = f"message-{index}-tool-{place}"
    where: JsonObject = {"message_index": index, "tool_index": place}
    tool: JsonObject = {"name": use.tool, "call_id": use.id, "output": use.output}
    made: JsonObject = {
        "event_id": call,
        "parent_event_id": f"message-{index}",
        "type": "tool_call",
        "timestamp": use.start_time,
        "duration_ms": use.duration_ms,
        "tool": fields({**tool, "input": use.input, "status": use.status or "ok"}, snake),
        "metadata": where,
    }
    yield fields(made, snake)
    if use.output is not None:
        answered: JsonObject = {
            "event_id": f"{call}-result",
            "parent_event_id": call,
            "type": "tool_result",
            "timestamp": use.end_time,
            "tool": fields({**tool, "status": use.status or "ok"}, snake),
            "metadata": where,
        }
        yield fields(answered, snake)
