"""Eval files with a case a line, and the YAML file beside them that speaks for all."""

from codecs import BOM_UTF8
from typing import Final

from agentci.config.agentv.tree import document_of, listed, node_of, of_fields, value_of
from agentci.config.detect import CASE_KEYS, RECORDING_HINT
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import Field, Items
from agentci.errors import InputError, RecordingError
from agentci.model.place import Place
from agentci.model.values import replace
from agentci.recordings.json_documents import BROKEN_HINT, documents_of
from agentci.recordings.registry import is_recording

# What the cases of such a file are called in AgentV 2, and in AgentV 4, which has assertions.
SEED_CASES: Final = "cases"
V4_CASES: Final = "tests"
V4_KEYS: Final = ("assertions", "assert")
HINT: Final = "each line is one case, as JSON; there are no comments in it"


def read_jsonl(data: bytes, *, file: str, sidecar: YamlDocument | None) -> YamlDocument:
    """Read an eval file of JSON Lines as if it were of YAML; of AgentV 4 where it has its words.

    Args:
        sidecar: what holds for all cases; its places stay its own.

    Raises:
        InputError: a line is no JSON, the sidecar has cases of its own, or it is a recording.
    """
    if is_recording(data):
        message = "the file lists no cases"
        raise InputError.of(message, place=Place(file=file), hint=RECORDING_HINT)
    cases = lines_of(data, file=file)
    shared = {} if sidecar is None else dict(sidecar.root.fields)
    if own := [shared[key] for key in CASE_KEYS if key in shared]:
        raise InputError.of(
            f"{file} lists the cases that this file is about, which has cases of its own",
            place=own[0].place,
            hint="name this file in place of the other, or leave the list out",
        )
    parts = (*cases.items, *(() if sidecar is None else (sidecar.root,)))
    is_v4 = any(value_of(part, key) is not None for part in parts for key in V4_KEYS)
    key = V4_CASES if is_v4 else SEED_CASES
    root = of_fields({**shared, key: Field(place=cases.place, value=cases)}, cases.place)
    return document_of(root, file=file, problems=() if sidecar is None else sidecar.problems)


def lines_of(data: bytes, *, file: str) -> Items:
    """The cases of a file of JSON Lines, each of which stands on one line.

    Raises:
        InputError: a line is no JSON, or there are none.
    """
    top = Place(file=file)
    data = data.removeprefix(BOM_UTF8)
    if not data.strip():
        raise InputError.of("the file holds no cases", place=top)
    try:
        read = [
            node_of(each.value, Place(file=file, line=each.line))
            for each in documents_of(iter([data]), file=file)
        ]
    except RecordingError as error:
        is_broken = error.problem.hint == BROKEN_HINT
        problem = replace(error.problem, hint=HINT) if is_broken else error.problem
        raise InputError([problem]) from None
    return listed(read, top)
