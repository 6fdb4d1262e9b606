"""An eval file with everything in its place: nothing in other files, every case by itself."""

from collections.abc import Callable, Mapping
from typing import Final

from agentci.config.agentv.custom_types import OwnTypes
from agentci.config.agentv.external_cases import ExternalCases
from agentci.config.agentv.file_references import Files
from agentci.config.agentv.ignored_keys import MISSED, OF_RUNNING, WITHOUT_EFFECT
from agentci.config.agentv.includes import Includes
from agentci.config.agentv.models import OF_EXECUTION
from agentci.config.agentv.placeholders import EnvironmentFiller
from agentci.config.agentv.schema import MEMBER_LISTS
from agentci.config.agentv.shared_values import TURNS, Shared
from agentci.config.agentv.tree import document_of, with_items, with_values
from agentci.config.detect import CASE_KEYS
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import Fields, Items, Node

# What AgentV 4 calls the cases, and reads the environment for.
TESTS: Final = "tests"
# Without effect where it is a mere name.
TARGET: Final = "target"
IDLE: Final = (*WITHOUT_EFFECT, *OF_RUNNING, *MISSED, "name", "description", "dataset", "version")


def assembled(
    document: YamlDocument, files: Files, *, variables: Mapping[str, str]
) -> YamlDocument:
    """``document`` with all that it refers to written out; every part keeps its own place.

    What is wrong on the way is among its problems.

    Args:
        variables: the environment, for files of AgentV 4.
    """
    root = document.root
    external, includes = ExternalCases(files=files), Includes(files=files)
    own_types = OwnTypes(files=files)
    root = _with_cases(root, external.written_out)
    root = _with_lists(root, lambda entries: own_types.written_out(includes.written_out(entries)))
    environment = EnvironmentFiller(variables=variables)
    if TESTS in root.fields:
        root = _where_it_counts(root, environment.filled)
    shared = Shared(root=root)
    root = _with_cases(root, lambda cases: _each(cases, shared.completed))
    steps = (external, includes, environment, shared)
    found = (problem for step in steps for problem in step.problems)
    return document_of(root, file=document.file, problems=(*document.problems, *found))


def _with_cases(root: Fields, change: Callable[[Node], Node]) -> Fields:
    return with_values(
        root, {key: change(root.fields[key].value) for key in CASE_KEYS if key in root.fields}
    )


def _each(nodes: Node, change: Callable[[Node], Node]) -> Node:
    """The items of a list, changed; anything else as it is."""
    return with_items(nodes, change) if isinstance(nodes, Items) else nodes


def _with_lists(node: Fields, change: Callable[[Node], Node]) -> Fields:
    """``node`` with every list of evaluators in it changed, those of its parts included."""

    def deeper(part: Node) -> Node:
        return _with_lists(part, change) if isinstance(part, Fields) else part

    values: dict[str, Node] = {}
    for key, field in node.fields.items():
        if key in MEMBER_LISTS:
            values[key] = _each(change(field.value), deeper)
        elif key in (*CASE_KEYS, TURNS):
            values[key] = _each(field.value, deeper)
        elif key == OF_EXECUTION:
            values[key] = deeper(field.value)
    return with_values(node, values)


def _where_it_counts(node: Fields, change: Callable[[Node], Node]) -> Fields:
    """``node`` with all parts changed that have an effect: others may name what is not there."""

    def deeper(part: Node) -> Node:
        return _where_it_counts(part, change) if isinstance(part, Fields) else change(part)

    values: dict[str, Node] = {}
    for key, field in node.fields.items():
        if key == TESTS:
            values[key] = _each(field.value, deeper)
        elif key == OF_EXECUTION:
            values[key] = deeper(field.value)
        elif _counts(key, field.value):
            values[key] = change(field.value)
    return with_values(node, values)


def _counts(key: str, value: Node) -> bool:
    """Whether what stands below ``key`` has an effect."""
    if key == TARGET:
        return isinstance(value, Fields)
    return key not in IDLE and not key.startswith("x-")
