"""Eval files with a case a line, and the YAML file beside them that speaks for all."""

from collections.abc import Mapping

from agentci.config.nodes import Field, Fields, Items, Node, Scalar
from agentci.config.yaml_document import YamlDocument
from agentci.errors import InputError, RecordingError
from agentci.formats.documents import documents_of
from agentci.model.json import Json
from agentci.model.place import Place

# What the cases of such a file are called in AgentV 2, which reads them.
CASES = "cases"


def read_jsonl(data: bytes, *, file: str, sidecar: YamlDocument | None) -> YamlDocument:
    """Read an eval file of JSON Lines as if it were one of YAML.

    Args:
        sidecar: what holds for all cases; its places stay its own.

    Raises:
        InputError: a line is no JSON.
    """
    top = Place(file=file)
    if not data.strip():
        raise InputError.of("the file holds no cases", place=top)
    try:
        lines = [
            node_of(each.value, Place(file=file, line=each.line))
            for each in documents_of(iter([data]), file=file)
        ]
    except RecordingError as error:
        raise InputError([error.problem]) from None
    cases = Items(place=top, items=tuple(lines), size=1 + len(lines), height=1)
    shared = {} if sidecar is None else dict(sidecar.root.fields)
    fields = {**shared, CASES: Field(place=top, value=cases)}
    root = Fields(place=top, fields=fields, size=1 + len(fields), height=2)
    content = {} if sidecar is None else dict(sidecar.data)
    data_of_cases: list[Json] = [each.value for each in documents_of(iter([data]), file=file)]
    return YamlDocument(
        file=file,
        data={**content, CASES: data_of_cases},
        root=root,
        problems=() if sidecar is None else sidecar.problems,
    )


def node_of(value: Json, place: Place) -> Node:
    """A value all of whose parts stand on one line."""
    if value is None or isinstance(value, str | int | float):
        return Scalar(place=place, value=value, text=str(value), plain=False)
    if isinstance(value, Mapping):
        fields = {k: Field(place=place, value=node_of(each, place)) for k, each in value.items()}
        return Fields(place=place, fields=fields, size=1 + len(fields), height=1)
    items = tuple(node_of(each, place) for each in value)
    return Items(place=place, items=items, size=1 + len(items), height=1)
