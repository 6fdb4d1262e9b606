"""Spans of OTLP JSON as the console exporter of Python's SDK prints them, without scopes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from agentci.recordings.otlp import decode_any_value


def print_spans(document: Any, indent: int | None = 4) -> str:
    """A document of OTLP JSON as console output."""
    found = (*_convert_spans(document), *_convert_logs(document))
    return "".join(json.dumps(one, indent=indent) + "\n" for one in found)


def _convert_spans(document: Any) -> Iterator[Any]:
    for batch in document.get("resourceSpans", ()):
        resource = _convert_attributes(batch.get("resource", {}).get("attributes"))
        for group in batch["scopeSpans"]:
            for span in group["spans"]:
                parent = span.get("parentSpanId")
                yield {
                    "name": span["name"],
                    "context": {
                        "trace_id": f"0x{span['traceId']}",
                        "span_id": f"0x{span['spanId']}",
                        "trace_state": "[]",
                    },
                    "kind": "SpanKind.INTERNAL",
                    "parent_id": f"0x{parent}" if parent else None,
                    "start_time": _convert_time(span["startTimeUnixNano"]),
                    "end_time": _convert_time(span["endTimeUnixNano"]),
                    "status": {
                        "status_code": "ERROR"
                        if span.get("status", {}).get("code") in (2, "STATUS_CODE_ERROR")
                        else "UNSET"
                    },
                    "attributes": _convert_attributes(span.get("attributes")),
                    "events": [
                        {
                            "name": event["name"],
                            "timestamp": _convert_time(event["timeUnixNano"]),
                            "attributes": _convert_attributes(event.get("attributes")),
                        }
                        for event in span.get("events", ())
                    ],
                    "links": [],
                    "resource": {"attributes": resource, "schema_url": ""},
                }


def _convert_logs(document: Any) -> Iterator[Any]:
    for batch in document.get("resourceLogs", ()):
        for group in batch["scopeLogs"]:
            for log in group["logRecords"]:
                yield {
                    "body": decode_any_value(log.get("body")),
                    "severity_number": 9,
                    "severity_text": None,
                    "attributes": _convert_attributes(log.get("attributes")),
                    "timestamp": _convert_time(log.get("timeUnixNano", 0)),
                    "observed_timestamp": _convert_time(log.get("observedTimeUnixNano", 0)),
                    "trace_id": f"0x{log.get('traceId', '')}",
                    "span_id": f"0x{log.get('spanId', '')}",
                    "event_name": log.get("eventName"),
                }


def _convert_attributes(raw: Any) -> dict[str, Any]:
    return {one["key"]: decode_any_value(one["value"]) for one in raw or ()}


def _convert_time(nanoseconds: str | int) -> str:
    moment = datetime.fromtimestamp(int(nanoseconds) // 1000 / 1e6, UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
