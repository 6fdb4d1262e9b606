"""Memory of smolagents: the steps of an agent (``get_full_steps()``), or a ``RunResult``."""

from collections.abc import Iterable, Iterator
from typing import Final

from agentci._util.text.json_text import dumps_readable
from agentci.model.values import Json, JsonObject
from agentci.recordings.json_documents import Document, DocumentFormatError
from agentci.recordings.telemetry.json_input import iterate_objects
from agentci.recordings.transcripts.reader import (
    TranscriptReader,
    TranscriptRun,
    as_object,
    as_text,
    iterate_first_objects,
    join_text,
    make_step,
)
from agentci.recordings.transcripts.turn_builder import MessageListBuilder

# The tool that a model answers with.
_ANSWER_TOOL: Final = "final_answer"
_CALL_ERRORS: Final = ("AgentToolCallError", "AgentToolExecutionError")
_SILENT_KEYS: Final = ("system_prompt", "output", "plan")


def _is_step(record: JsonObject) -> bool:
    return {"task", "task_images"} <= record.keys() or (
        "step_number" in record and not {"observations", "model_input_messages"}.isdisjoint(record)
    )


def _list_steps(document: Json) -> Json:
    """Return the steps in a document; None if it is one of them, or something else."""
    return document.get("steps") if isinstance(document, dict) else document


def _recognises(document: Json) -> bool:
    steps = _list_steps(document)
    return any(map(_is_step, iterate_first_objects(document if steps is None else steps)))


def _read(documents: Iterable[Document]) -> Iterator[TranscriptRun]:
    lines: MessageListBuilder | None = None
    first_line = 0
    for document in documents:
        steps = _list_steps(document.value)
        if steps is None:  # one step per line
            lines, first_line = lines or MessageListBuilder(), first_line or document.line
            steps = [document.value]
        run = MessageListBuilder() if lines is None else lines
        try:
            for step in iterate_objects(steps):
                _add_step(run, step)
        except DocumentFormatError as error:
            raise DocumentFormatError(str(error), line=document.line) from None
        if lines is None:
            yield run.build(document.line)
    if lines is not None:
        yield lines.build(first_line)


def _add_step(run: MessageListBuilder, step: JsonObject) -> None:
    if "task" in step:
        run.add_question(step.get("task"))
        return
    if not _is_step(step):
        if not any(key in step for key in _SILENT_KEYS):
            raise DocumentFormatError("not a step of smolagents")
        _start_reply(run, step)
        return
    if as_text(step.get("code_action")) is not None:
        raise DocumentFormatError(
            "the tools that the code of a `CodeAgent` calls are not in its memory; record it with "
            "OTLP (openinference-instrumentation-smolagents)"
        )
    _start_reply(run, step)
    error = as_object(step.get("error"))
    text, calls = _find_text(step), _find_calls(step)
    if not step.get("is_final_answer") or any(call[0] != _ANSWER_TOOL for call in calls):
        run.turns.add_text(text)
    _add_calls(run, [call for call in calls if call[0] != _ANSWER_TOOL], step, error)
    if step.get("is_final_answer"):
        answer = step.get("action_output")
        answer = _find_answer(calls) if answer is None else answer
        run.turns.add_text(answer if isinstance(answer, str) else dumps_readable(answer))


def _start_reply(run: MessageListBuilder, step: JsonObject) -> None:
    usage = as_object(step.get("token_usage"))
    message = as_object(step.get("model_output_message"))
    if not usage and not message:
        return
    tokens = usage.get("input_tokens"), usage.get("output_tokens")
    model = as_object(message.get("raw")).get("model")
    run.turns.start_step(make_step(model, *tokens))
    run.add_model(model)
    run.usage.add(None, *tokens)


def _find_text(step: JsonObject) -> str | None:
    """Return the text that the model wrote besides its calls."""
    written = as_text(step.get("model_output"))
    return written or join_text(as_object(step.get("model_output_message")).get("content"))


def _find_calls(step: JsonObject) -> list[tuple[str, Json, Json]]:
    """Return name, arguments and id of the calls; a step that failed has them in its message."""
    message = as_object(step.get("model_output_message"))
    found: list[tuple[str, Json, Json]] = []
    for call in iterate_objects(step.get("tool_calls") or message.get("tool_calls")):
        function = as_object(call.get("function"))
        name = as_text(function.get("name"))
        if name is None:
            raise DocumentFormatError("a tool call has no name")
        found.append((name, function.get("arguments"), call.get("id")))
    return found


def _add_calls(
    run: MessageListBuilder,
    calls: list[tuple[str, Json, Json]],
    step: JsonObject,
    error: JsonObject,
) -> None:
    for name, arguments, call_id in calls:
        run.turns.add_call(name, arguments, call_id)
    run.turns.end_step()
    if calls and not error:
        # One text has the results of all calls, one after the other.
        observed = as_text(step.get("observations")) or ""
        results = [observed] if len(calls) == 1 else observed.split("\n")
        if len(results) == len(calls):
            for (_, _, call_id), result in zip(calls, results, strict=True):
                run.turns.add_result(call_id, result)
    elif len(calls) == 1:  # which of several calls failed is not recorded
        run.turns.add_result(calls[0][2], error.get("message"), failed=True)
    elif not calls and (kind := as_text(error.get("type"))) in _CALL_ERRORS:
        run.turns.lost.append(f"a step failed with `{kind}` and holds no tool call")


def _find_answer(calls: list[tuple[str, Json, Json]]) -> Json:
    found = next((arguments for name, arguments, _ in calls if name == _ANSWER_TOOL), None)
    return found.get("answer") if isinstance(found, dict) else found


MEMORY: Final = TranscriptReader(recognises=_recognises, read=_read)
