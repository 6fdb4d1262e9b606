"""Writes runs in the form in which recorded outputs are read."""

from collections.abc import Mapping

from msgspec import to_builtins

from agentci.model.json import Json, JsonObject
from agentci.model.transcript import Message, ToolUse, Transcript


def row_of(case_id: str, attempt: int | None, transcript: Transcript) -> JsonObject:
    """A run as AgentV's cli provider would tell it, with the case that it belongs to.

    Args:
        attempt: which of several runs of the case it is.
    """
    usage = transcript.token_usage
    return {
        "id": case_id,
        **_present({"attempt": attempt}),
        "output_messages": [_message(each) for each in transcript.messages],
        **_present(
            {
                "token_usage": None if usage is None else _present(to_builtins(usage)),
                "cost_usd": transcript.cost_usd,
                "duration_ms": transcript.duration_ms,
                "start_time": transcript.start_time,
                "end_time": transcript.end_time,
            }
        ),
    }


def _message(message: Message) -> JsonObject:
    calls = [_use(each) for each in message.tool_calls]
    fields = {name: getattr(message, name) for name in Message.__struct_fields__}
    return _present({**fields, "tool_calls": calls or None})


def _use(use: ToolUse) -> JsonObject:
    return _present({name: getattr(use, name) for name in ToolUse.__struct_fields__})


def _present(fields: Mapping[str, Json]) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
