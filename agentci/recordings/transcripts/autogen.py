"""Messages of AutoGen: of teams and agents (0.4 and later), of their states, and of 0.2."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from agentci._util.text.json_text import dumps_readable
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.transcripts import provider_messages
from agentci.recordings.transcripts.reader import as_object, as_text, join_text, make_step
from agentci.recordings.transcripts.turn_builder import MessageListBuilder

CODE_TOOL: Final = "code_execution"
_STRUCTURED: Final = "StructuredMessage"
_CALLS: Final = "ToolCallRequestEvent"
_RESULTS: Final = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")
_THOUGHT: Final = "ThoughtEvent"
_CHATS: Final = ("TextMessage", "MultiModalMessage")
_CONTEXT: Final = ("UserMessage", "AssistantMessage")
_SILENT: Final = (
    *("SystemMessage", "ModelClientStreamingChunkEvent", "UserInputRequestedEvent", _THOUGHT),
    *("MemoryQueryEvent", "SelectSpeakerEvent", "SelectorEvent", "StopMessage", "HandoffMessage"),
)
_SUMMARY: Final = "ToolCallSummaryMessage"
_GENERATED: Final = "CodeGenerationEvent"
_EXECUTED: Final = "CodeExecutionEvent"
_MARKS: Final = frozenset(
    {_CALLS, *_RESULTS, *_CHATS, *_CONTEXT, *_SILENT, _SUMMARY, _GENERATED, _EXECUTED}
) - {"SystemMessage"}
# Fields of 0.2 besides those of OpenAI, and how it reports code that ran.
_RESPONSES: Final = "tool_responses"
_EXIT_CODE: Final = "exitcode: "
# Fields that are added to those of AutoGen.
_IS_PERSON: Final = "is_person"
_PARENT: Final = "parent_call"


def is_marked(message: JsonObject) -> bool:
    """Return whether a message can only be of this format."""
    return _find_type(message) in _MARKS and (
        isinstance(message.get("source"), str) or message.get("type") == _RESULTS[1]
    )


def _find_type(message: JsonObject) -> str | None:
    """Return the type of a message; typed answers have the name of their type in brackets."""
    kind = message.get("type")
    if not isinstance(kind, str) or "role" in message:
        return None
    return _CHATS[0] if kind.partition("[")[0] == _STRUCTURED else kind


def find_messages(document: JsonObject) -> Sequence[Json] | None:
    """Return the messages in the state of a team or an agent, or in a ``ChatResult``; else None."""
    history = document.get("chat_history")
    if isinstance(history, list) and "human_input" in document:
        # Marked, as most messages of 0.2 look like those of OpenAI.
        return [{_RESPONSES: [], **one} if isinstance(one, dict) else one for one in history]
    states = as_object(document.get("agent_states")).values()
    context = as_object(document.get("llm_context")).get("messages")
    threads = (as_object(state).get("message_thread") for state in (document, *states))
    return next((found for found in (*threads, context) if isinstance(found, list)), None)


def is_history(message: JsonObject) -> bool:
    """Return whether a message can only be one of AutoGen 0.2."""
    return isinstance(message.get(_RESPONSES), list)


def may_be_history(messages: Sequence[JsonObject]) -> bool:
    """Return whether the roles of messages may be those that AutoGen 0.2 writes.

    A person who starts a chat is the assistant there; in a group, all are users.
    """
    spoken = [one for one in messages if one.get("role") in ("user", "assistant")]
    if not all(as_text(one.get("name")) for one in spoken if not one.get("tool_calls")):
        return False
    users = {as_text(one.get("name")) for one in spoken if one.get("role") == "user"}
    has_answer = any(one.get("role") == "assistant" for one in spoken)
    return bool(users) and (spoken[0].get("role") == "assistant" if has_answer else len(users) > 1)


def find_persons(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Note which messages of an AutoGen 0.2 chat are by the person, who wrote the first one."""
    spoken = (one for one in messages if one.get("role") in ("user", "assistant"))
    person = as_text(next(spoken, {}).get("name"))
    return [
        {**one, _IS_PERSON: one.get("name") == person and not one.get("tool_calls")}
        if person is not None
        else {**one, _IS_PERSON: one.get("role") == "user"}
        for one in messages
    ]


def add_history_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message of AutoGen 0.2 that ``find_persons`` returned."""
    role, content = message.get("role"), message.get("content")
    if responses := list(iterate_objects(message.get(_RESPONSES))):
        for response in responses:
            run.turns.add_result(response.get("tool_call_id"), response.get("content"))
    elif role in ("user", "assistant") and message.get(_IS_PERSON):
        if isinstance(content, str) and content.startswith(_EXIT_CODE):
            code = content.removeprefix(_EXIT_CODE).partition(" ")[0]
            run.turns.add_call(CODE_TOOL, None)
            run.turns.add_result(None, content, failed=code != "0", name=CODE_TOOL)
        elif content:  # the automatic reply of a user proxy is empty
            run.add_question(content)
    elif role == "user":
        provider_messages.add_openai_message(run, {**message, "role": "assistant"})
    else:
        provider_messages.add_openai_message(run, message)


def prepare(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Note who wrote each message: a person, the agent, or a sub-agent that a tool call started.

    Thoughts become a field of the message after them, as in the states of agents.
    """
    people = _find_people(messages)
    parents = _find_parent_calls(messages)
    return [
        {
            "thought": before.get("content") if before.get("type") == _THOUGHT else None,
            **message,
            _PARENT: parent,
            _IS_PERSON: as_text(message.get("source")) in people,
        }
        for before, message, parent in zip(({}, *messages), messages, parents, strict=False)
    ]


def _find_parent_calls(messages: Sequence[JsonObject]) -> Iterator[str | None]:
    """Yield for each message the id of the tool call that its agent was started by.

    Messages of others between a tool call and its result are of the agent that the tool ran.
    """
    ends: defaultdict[str, list[int]] = defaultdict(list)
    for index, message in enumerate(messages):
        if message.get("type") in _RESULTS:
            for call_id in _list_ids(message, "call_id"):
                ends[call_id].append(index)
    running: list[tuple[str, str | None, int]] = []
    for index, message in enumerate(messages):
        source = as_text(message.get("source"))
        running = [one for one in running if one[2] > index]
        yield running[0][0] if running and source != running[0][1] else None
        if message.get("type") in (_CALLS, "AssistantMessage"):
            for call_id in _list_ids(message, "id"):
                end = next((one for one in ends[call_id] if one > index), index)
                running.append((call_id, source, end))


def _list_ids(message: JsonObject, key: str) -> Iterator[str]:
    for one in iterate_objects(message.get("content")):
        if (found := as_text(one.get(key))) is not None:
            yield found


def _find_people(messages: Sequence[JsonObject]) -> set[str]:
    """Return the sources of messages that people wrote: the task, and input that was asked for."""
    people, agents, given = {"user"}, set[str](), set[str]()
    for message in messages:
        kind, source = _find_type(message), as_text(message.get("source"))
        if source is None:
            continue
        if kind == "UserInputRequestedEvent":
            people.add(source)
        elif kind == "UserMessage":
            given.add(source)
        elif kind not in _CHATS or as_object(message.get("models_usage")):
            agents.add(source)
    # What an agent was given is written by people, or by the other agents of its team.
    people |= given - agents
    first = as_text(messages[0].get("source")) if messages else None
    return people if first is None or first in agents else {*people, first}


def add_message(run: MessageListBuilder, message: JsonObject) -> None:
    """Add one message that ``prepare`` returned."""
    kind, content = _find_type(message), message.get("content")
    if (parent := as_text(message.get(_PARENT))) is not None:
        source = as_text(message.get("source"))
        run = run.subagent(parent, None if message.get(_IS_PERSON) else source)
    if kind in (*_CHATS, *_CONTEXT):
        _add_chat(run, message)
    elif kind == _CALLS:
        _start_reply(run, message)
        _add_calls(run, content)
    elif kind in _RESULTS:
        _add_results(run, content)
    elif kind == _SUMMARY:
        # Without `reflect_on_tool_use`, the agent answers with the results of its tools.
        run.turns.add_text(content)
    elif kind in (_GENERATED, _EXECUTED):
        _add_code(run, message)
    elif kind not in _SILENT:
        raise DocumentFormatError(f"a message of type `{str(kind)[:40]}` is not read")


def _add_chat(run: MessageListBuilder, message: JsonObject) -> None:
    kind, content = _find_type(message), message.get("content")
    if kind != "AssistantMessage" and message.get(_IS_PERSON):
        run.add_question(content)
        return
    if kind != "UserMessage":
        _start_reply(run, message)
    if kind == "AssistantMessage" and any("arguments" in one for one in _objects(content)):
        _add_calls(run, content)
    else:
        is_typed = isinstance(content, dict)
        run.turns.add_text(dumps_readable(content) if is_typed else join_text(content))


def _objects(content: Json) -> list[JsonObject]:
    return list(iterate_objects(content))


def _start_reply(run: MessageListBuilder, message: JsonObject) -> None:
    """Start a reply of the model, with the text that it wrote before its calls."""
    usage = as_object(message.get("models_usage"))
    if usage or message.get("type") in (_CALLS, "AssistantMessage"):
        tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
        run.turns.start_step(make_step(None, *tokens))
        run.usage.add(None, *tokens)
    run.turns.add_text(message.get("thought"))


def _add_calls(run: MessageListBuilder, content: Json) -> None:
    if not isinstance(content, list) or len(_objects(content)) != len(content):
        raise DocumentFormatError("the tool calls of a message are not a list of objects")
    for call in _objects(content):
        run.turns.add_call(call.get("name"), call.get("arguments"), call.get("id"))


def _add_results(run: MessageListBuilder, content: Json) -> None:
    for result in iterate_objects(content):
        flag = result.get("is_error")
        failed = flag if isinstance(flag, bool) else None
        run.turns.add_result(result.get("call_id"), result.get("content"), failed=failed)


def _add_code(run: MessageListBuilder, message: JsonObject) -> None:
    """Add code that an agent wrote and ran, or the result of code in an earlier text."""
    if message.get("type") == _GENERATED:
        run.turns.start_step()
        run.turns.add_call(CODE_TOOL, {"code_blocks": message.get("code_blocks")})
        return
    result = as_object(message.get("result"))
    code = result.get("exit_code")
    if not run.turns.is_waiting(CODE_TOOL):
        run.turns.add_call(CODE_TOOL, None)
    failed = code != 0 if isinstance(code, int) else None
    run.turns.add_result(None, result.get("output"), failed=failed, name=CODE_TOOL)
