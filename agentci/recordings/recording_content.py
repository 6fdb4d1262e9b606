"""Opens the content of a recording: JSON, text with JSON in it, or OTLP protobuf."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final, TypeAlias

from msgspec import Struct

from agentci.errors import RecordingError
from agentci.model.json import Json, JsonObject
from agentci.recordings import json_documents
from agentci.recordings.json_documents import Document, TextLine
from agentci.recordings.trace_format import make_recording_error

MAX_HEAD_BYTES: Final = 4096

# JSON has no control characters, and text hardly any; each span and log record has one.
_CONTROL_CHARACTER: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]")

ContentPart: TypeAlias = Document | TextLine


class RecordingContent(Struct, frozen=True, kw_only=True):
    """The content of a recording.

    Attributes:
        head: its first bytes, decompressed.
        content: all its bytes, as far as they have not been read.
        parts: its documents, and the lines of text between them.
    """

    head: bytes
    content: Iterator[bytes]
    parts: Iterator[ContentPart]


def open_content(chunks: Iterable[bytes], *, file: str) -> RecordingContent:
    """Open a recording.

    Raises:
        RecordingError: if it is a broken archive; the parts raise it if they cannot be read.
    """
    content = json_documents.decompress_content(chunks, file=file)
    head, content = json_documents.peek_content(content)
    start = head[:MAX_HEAD_BYTES]
    return RecordingContent(head=start, content=content, parts=_read_parts(start, content, file))


def _read_parts(head: bytes, content: Iterator[bytes], file: str) -> Iterator[ContentPart]:
    if _CONTROL_CHARACTER.search(head) is not None:
        from agentci.recordings import otlp_protobuf  # noqa: PLC0415 (most runs do not need it)

        data = b"".join(content)
        messages = otlp_protobuf.decode_file(data)
        if messages is not None:
            yield from _read_messages(messages, file)
            return
        if data[:1] == bytes([otlp_protobuf.TOP_TAG]):
            raise make_recording_error(
                file,
                "the file looks like OTLP protobuf, but is cut off or damaged",
                hint="record it again, and copy it as a binary file",
            )
        content = chain([data])
    text = json_documents.unpack_text(content, file=file)
    yield from json_documents.read_mixed_documents(
        text, file=file, find_value=partial(_find_node_value, file)
    )


def _read_messages(messages: Iterator[JsonObject], file: str) -> Iterator[Document]:
    from agentci.recordings.otlp_protobuf import ProtobufError  # noqa: PLC0415 (as above)

    try:
        for message in messages:
            yield Document(value=message, line=1)
    except ProtobufError as error:
        raise make_recording_error(
            file, f"invalid OTLP protobuf: {error}", hint="check that the file is complete"
        ) from None


def _find_node_value(file: str, text: str, start: int) -> tuple[Json, int] | None:
    """Return what Node's console exporters print at a position of a text."""
    from agentci.recordings import node_inspect  # noqa: PLC0415 (most runs do not need it)

    if node_inspect.NODE_OBJECT.match(text, start) is None:
        return None
    try:
        return node_inspect.parse_node_object(text, start)
    except node_inspect.NodeTextError as error:
        raise _make_node_error(file, text, error.position, str(error)) from None


def _make_node_error(file: str, text: str, position: int, message: str) -> RecordingError:
    return make_recording_error(
        file,
        f"output of Node's console exporter cannot be read: {message}",
        hint="export with OTLP instead (@opentelemetry/exporter-trace-otlp-http)",
        line=text.count("\n", 0, position) + 1,
        column=position - text.rfind("\n", 0, position),
    )
