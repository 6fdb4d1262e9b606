"""Turns in the shape that ADK 2.13 insists on."""

from pydantic import BaseModel


class Strict(BaseModel, extra="forbid"):
    pass


class FunctionCall(Strict):
    id: str | None
    name: str
    args: dict


class FunctionResponse(Strict):
    id: str | None
    name: str
    response: dict


class Part(Strict):
    text: str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(Strict):
    role: str
    parts: list[Part]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.text)


class InvocationEvent(Strict):
    author: str
    content: Content


class InvocationEvents(Strict):
    invocation_events: list[InvocationEvent]


class Invocation(Strict):
    invocation_id: str
    user_content: Content
    final_response: Content | None
    intermediate_data: InvocationEvents
