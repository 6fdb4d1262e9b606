"""Expand an eval file: insert content of other files and complete every case."""

from collections.abc import Callable, Mapping
from typing import Final

from agentci.config.agentv.external_files import CustomTypes, ExternalCases, IncludedEvaluators
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.ignored_keys import (
    IGNORED_EXECUTION_KEYS,
    IGNORED_KEYS,
    UNSUPPORTED_KEYS,
)
from agentci.config.agentv.models import EXECUTION_KEY
from agentci.config.agentv.schema import MEMBER_LIST_KEYS
from agentci.config.agentv.shared_values import TURNS_KEY, EnvironmentSubstitution, SharedValues
from agentci.config.agentv.tree import change_items, make_document, replace_values
from agentci.config.discovery import CASE_KEYS
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import MappingNode, Node, SequenceNode

# The cases in AgentV 4, which also substitutes environment variables.
TESTS_KEY: Final = "tests"
# Ignored if it is only a name.
TARGET_KEY: Final = "target"
KEYS_WITHOUT_EFFECT: Final = (
    *IGNORED_KEYS,
    *IGNORED_EXECUTION_KEYS,
    *UNSUPPORTED_KEYS,
    "name",
    "description",
    "dataset",
    "version",
)


def expand_eval_file(
    document: YamlDocument, files: FileResolver, *, variables: Mapping[str, str]
) -> YamlDocument:
    """Write out everything that ``document`` refers to; every part keeps its own position.

    Errors are added to the problems of the document.

    Args:
        variables: environment variables, for files of AgentV 4.
    """
    root = document.root
    external, includes = ExternalCases(files=files), IncludedEvaluators(files=files)
    own_types = CustomTypes(files=files)
    root = _change_case_lists(root, external.expand)
    root = _change_evaluator_lists(root, lambda entries: own_types.expand(includes.expand(entries)))
    environment = EnvironmentSubstitution(variables=variables)
    if TESTS_KEY in root.fields:
        root = _change_effective_values(root, environment.substitute)
    shared = SharedValues(root=root)
    root = _change_case_lists(root, lambda cases: _change_items(cases, shared.complete_case))
    steps = (external, includes, environment, shared)
    found = (problem for step in steps for problem in step.problems)
    return make_document(root, file=document.file, problems=(*document.problems, *found))


def _change_case_lists(root: MappingNode, change: Callable[[Node], Node]) -> MappingNode:
    return replace_values(
        root, {key: change(root.fields[key].value) for key in CASE_KEYS if key in root.fields}
    )


def _change_items(nodes: Node, change: Callable[[Node], Node]) -> Node:
    """Change the items of a list; other nodes are returned unchanged."""
    return change_items(nodes, change) if isinstance(nodes, SequenceNode) else nodes


def _change_evaluator_lists(node: MappingNode, change: Callable[[Node], Node]) -> MappingNode:
    """Change every list of evaluators in ``node``, including nested ones."""

    def deeper(part: Node) -> Node:
        return _change_evaluator_lists(part, change) if isinstance(part, MappingNode) else part

    values: dict[str, Node] = {}
    for key, field in node.fields.items():
        if key in MEMBER_LIST_KEYS:
            values[key] = _change_items(change(field.value), deeper)
        elif key in (*CASE_KEYS, TURNS_KEY):
            values[key] = _change_items(field.value, deeper)
        elif key == EXECUTION_KEY:
            values[key] = deeper(field.value)
    return replace_values(node, values)


def _change_effective_values(node: MappingNode, change: Callable[[Node], Node]) -> MappingNode:
    """Change all parts of ``node`` that have an effect; ignored parts may name unset variables."""

    def deeper(part: Node) -> Node:
        return (
            _change_effective_values(part, change)
            if isinstance(part, MappingNode)
            else change(part)
        )

    values: dict[str, Node] = {}
    for key, field in node.fields.items():
        if key == TESTS_KEY:
            values[key] = _change_items(field.value, deeper)
        elif key == EXECUTION_KEY:
            values[key] = deeper(field.value)
        elif _has_effect(key, field.value):
            values[key] = change(field.value)
    return replace_values(node, values)


def _has_effect(key: str, value: Node) -> bool:
    """Whether the value of ``key`` has an effect."""
    if key == TARGET_KEY:
        return isinstance(value, MappingNode)
    return key not in KEYS_WITHOUT_EFFECT and not key.startswith("x-")
