"""Google's contents and parts, as Gemini and ADK record them, in the parts of the conventions."""

from agentci.model.json import Json, JsonObject
from agentci.recordings.telemetry.json_input import objects_in


def message(content: JsonObject, default_role: str) -> JsonObject:
    """A content as a message: ``model`` is the assistant, function responses come from a tool."""
    converted = parts(content.get("parts"))
    role = content.get("role") or default_role
    if converted and all(part["type"] == "tool_call_response" for part in converted):
        role = "tool"
    return {"role": "assistant" if role == "model" else role, "parts": converted}


def parts(raw: Json) -> list[JsonObject]:
    """The parts of a content."""
    return [_part(item) for item in objects_in(raw)]


def _part(raw: JsonObject) -> JsonObject:
    call, response = raw.get("function_call"), raw.get("function_response")
    if "text" in raw:
        return {"type": "reasoning" if raw.get("thought") else "text", "content": raw["text"]}
    if isinstance(call, dict):
        return {
            "type": "tool_call",
            "id": call.get("id"),
            "name": call.get("name"),
            "arguments": call.get("args"),
        }
    if isinstance(response, dict):
        return {
            "type": "tool_call_response",
            "id": response.get("id"),
            "name": response.get("name"),
            "response": response.get("response"),
        }
    return {"type": "other"}
