"""Spans of OTLP JSON as the rows that tracing platforms export, each from its own convention."""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from agentci.recordings.otlp import decode_any_value


def list_spans(documents: list[Any]) -> list[dict[str, Any]]:
    """The spans of a recording, with their attributes as an object under ``fields``."""
    found = [
        {
            **span,
            "fields": {
                one["key"]: decode_any_value(one["value"]) for one in span.get("attributes", ())
            },
            "failed": span.get("status", {}).get("code") == 2,
        }
        for document in documents
        for batch in document.get("resourceSpans", ())
        for group in batch["scopeSpans"]
        for span in group["spans"]
    ]
    known = {span["spanId"] for span in found}
    for span in found:
        parent = span.get("parentSpanId")
        span["parentSpanId"] = parent if parent in known else None
    return found


def format_time(nanoseconds: Any, unit: str = "microseconds") -> str:
    moment = datetime.fromtimestamp(int(nanoseconds) // 1000 / 1e6, UTC)
    return moment.isoformat(timespec=unit).replace("+00:00", "Z")


def load(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def make_langsmith(spans: list[Any]) -> str:
    rows = [
        {
            "id": span["spanId"],
            "trace_id": span["traceId"],
            "dotted_order": f"20261123T000000000000Z{span['spanId']}",
            "parent_run_id": span["parentSpanId"],
            "name": span["name"],
            "run_type": str(span["fields"].get("langsmith.span.kind", "chain")).lower(),
            "start_time": format_time(span["startTimeUnixNano"]),
            "end_time": format_time(span["endTimeUnixNano"]),
            "inputs": load(span["fields"].get("gen_ai.prompt")),
            "outputs": load(span["fields"].get("gen_ai.completion")),
            "error": "Traceback" if span["failed"] else None,
            "extra": {
                "metadata": {"thread_id": span["fields"].get("langsmith.metadata.thread_id")}
            },
        }
        for span in spans
    ]
    return "\n".join(map(json.dumps, rows))


def make_langfuse(spans: list[Any]) -> str:
    prefix = "langfuse.observation."
    rows = [
        {
            "id": span["spanId"],
            "traceId": span["traceId"],
            "parentObservationId": span["parentSpanId"],
            "type": str(span["fields"].get(f"{prefix}type", "span")).upper(),
            "name": span["name"],
            "startTime": format_time(span["startTimeUnixNano"], "milliseconds"),
            "endTime": format_time(span["endTimeUnixNano"], "milliseconds"),
            "level": "ERROR" if span["failed"] else "DEFAULT",
            "sessionId": span["fields"].get("session.id")
            or span["fields"].get("langfuse.session.id"),
            "input": span["fields"].get(f"{prefix}input"),
            "output": span["fields"].get(f"{prefix}output"),
            "metadata": {
                "thread_id": span["fields"].get(f"{prefix}metadata.thread_id")
                or span["fields"].get("langfuse.trace.metadata.thread_id")
            },
        }
        for span in spans
    ]
    return json.dumps({"data": rows, "meta": {}})


def make_mlflow(spans: list[Any]) -> str:
    traces: dict[str, list[Any]] = {}
    for span in spans:
        traces.setdefault(span["traceId"], []).append(span)
    return "\n".join(
        json.dumps(
            {
                "info": {"trace_id": f"tr-{trace_id}", "trace_metadata": {}},
                "data": {"spans": list(map(_make_mlflow_span, own))},
            }
        )
        for trace_id, own in traces.items()
    )


def _make_mlflow_span(span: Mapping[str, Any]) -> dict[str, Any]:
    parent = span["parentSpanId"]
    return {
        "trace_id": _encode_id(span["traceId"]),
        "span_id": _encode_id(span["spanId"]),
        "parent_span_id": _encode_id(parent) if parent else None,
        "name": span["name"],
        "start_time_unix_nano": int(span["startTimeUnixNano"]),
        "end_time_unix_nano": int(span["endTimeUnixNano"]),
        "status": {"code": "STATUS_CODE_ERROR" if span["failed"] else "STATUS_CODE_OK"},
        "events": [],
        "attributes": span["fields"],
    }


def make_mlflow_2(spans: list[Any]) -> str:
    """The form of MLflow 2."""
    own = [
        {
            "context": {"trace_id": f"0x{span['traceId']}", "span_id": f"0x{span['spanId']}"},
            "parent_id": f"0x{span['parentSpanId']}" if span["parentSpanId"] else None,
            "name": span["name"],
            "start_time": int(span["startTimeUnixNano"]),
            "end_time": int(span["endTimeUnixNano"]),
            "status_code": "ERROR" if span["failed"] else "OK",
            "attributes": span["fields"],
        }
        for span in spans
    ]
    return json.dumps({"info": {"request_id": "1"}, "data": {"spans": own}})


def _encode_id(identifier: str) -> str:
    return base64.b64encode(bytes.fromhex(identifier)).decode()


def make_phoenix(spans: list[Any]) -> str:
    """A page of the API: newest first."""
    rows = [
        {
            "id": "U3Bhbg==",
            "name": span["name"],
            "context": {"trace_id": span["traceId"], "span_id": span["spanId"]},
            "span_kind": span["fields"].get("openinference.span.kind", "UNKNOWN"),
            "parent_id": span["parentSpanId"],
            "start_time": format_time(span["startTimeUnixNano"]),
            "end_time": format_time(span["endTimeUnixNano"]),
            "status_code": "ERROR" if span["failed"] else "OK",
            "attributes": span["fields"],
            "events": [],
        }
        for span in spans
    ]
    return json.dumps({"data": rows[::-1], "next_cursor": None})


def make_phoenix_rows(spans: list[Any]) -> str:
    """Rows of a DataFrame, with times in milliseconds, as pandas writes them by default."""
    columns = sorted({name for span in spans for name in _nest(span["fields"])})
    return "\n".join(
        json.dumps(
            {
                "name": span["name"],
                "span_kind": span["fields"].get("openinference.span.kind", "UNKNOWN"),
                "parent_id": span["parentSpanId"],
                "start_time": int(span["startTimeUnixNano"]) // 10**6,
                "end_time": int(span["endTimeUnixNano"]) // 10**6,
                "status_code": "ERROR" if span["failed"] else "OK",
                "events": [],
                "context.span_id": span["spanId"],
                "context.trace_id": span["traceId"],
                **{f"attributes.{name}": _nest(span["fields"]).get(name) for name in columns},
            }
        )
        for span in spans
    )


def _nest(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with lists of objects in the place of numbered names."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        words = name.split(".")
        index = next((at for at, word in enumerate(words) if word.isdigit()), None)
        if index is None:
            found[name] = value
            continue
        numbered = found.setdefault(".".join(words[:index]), {})
        numbered.setdefault(int(words[index]), {})[".".join(words[index + 1 :])] = value
    return {name: _list_numbered(value) for name, value in found.items()}


def _list_numbered(value: Any) -> Any:
    if isinstance(value, dict) and value and all(isinstance(key, int) for key in value):
        return [_nest(value[key]) for key in sorted(value)]
    return value


Maker = Callable[[list[Any]], str]
# Platforms by the frameworks whose recordings have their convention.
EXPORTS: Mapping[str, tuple[Maker, ...]] = {
    "langchain-langsmith-otel": (make_langsmith,),
    "langchain-langfuse": (make_langfuse,),
    "openai-agents-mlflow": (make_mlflow, make_mlflow_2),
    **dict.fromkeys(
        (
            *("langchain-openinference", "llamaindex-openinference", "crewai-openinference"),
            *("openai-agents-openinference", "openai-chat-openinference", "adk2-openinference"),
        ),
        (make_phoenix, make_phoenix_rows),
    ),
}


def list_exports() -> Iterator[tuple[str, Maker]]:
    """The frameworks and the exports of each."""
    return ((name, make) for name, makers in EXPORTS.items() for make in makers)
