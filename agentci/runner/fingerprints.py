"""Digests of evaluators and expected answers, by which two runs are compared check by check."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci._util.text import json_text
from agentci._util.workspace import Workspace, is_file, read_start, resolve_inside
from agentci.evaluators.evaluator import Evaluator
from agentci.model.json import Json
from agentci.model.judgement import EvaluatorIdentity
from agentci.model.problem import Place
from agentci.model.program import LocalProgram
from agentci.model.values import list_field_names

DIGITS: Final = 16
# Fields that change neither a score nor whether it passes.
IGNORED_FIELDS: Final = frozenset(
    {
        *("timeout_seconds", "memory_mb", "processes", "isolation", "cached", "cache"),
        "allow_source",
        *("home", "budget_id", "caps", "replay", "key_variable", "federation", "prices"),
        "own_variables",
        "embedding_model",  # a setting of judges; evaluators that compare embeddings use `model`
    }
)
# Likewise, of a whole evaluator; criteria and fields have a weight in its score.
GATE_FIELDS: Final = frozenset({"required", "weight", "needs_expected"})
MAX_PROGRAM_BYTES: Final = 16 * 1024**2


class Fingerprints:
    """The digests of one run, each computed once.

    A program counts with its own file, and a command with the files that it names; modules that
    they import are not part of the digest.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[int, tuple[object, str]] = {}

    def compute(self, evaluator: Evaluator, expected: object) -> str:
        """The digest of an evaluator and of what it expects of a case."""
        if expected is None:
            return self._digest(evaluator)
        both = f"{self._digest(evaluator)} {self._digest(expected)}"
        return _sha256(both.encode())

    def _digest(self, value: object) -> str:
        """The digest of a value, cached by its id; holds the value, so that its id stays unique."""
        found = self._known.get(id(value))
        if found is None:
            facts = json_text.dumps(self._facts(value))
            found = self._known[id(value)] = (value, _sha256(facts.encode()))
        return found[1]

    def _facts(self, value: object) -> Json:
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return self._text(value)
            case Mapping() | list() | tuple():
                return self._container_facts(value)
            case LocalProgram():
                path = Path(value.path)
                return [self._text(value.path), self._digest_file(path, value.home or path.parent)]
            case _:
                return {"": type(value).__qualname__, **dict(self._field_facts(value))}

    def _container_facts(self, value: Mapping[object, object] | Sequence[object]) -> Json:
        if isinstance(value, Mapping):
            return {str(key): self._facts(value[key]) for key in sorted(value, key=str)}
        return [self._facts(each) for each in value]

    def _field_facts(self, value: object) -> Iterator[tuple[str, Json]]:
        ignored = (
            IGNORED_FIELDS | GATE_FIELDS if isinstance(value, EvaluatorIdentity) else IGNORED_FIELDS
        )
        for name in list_field_names(value):
            member = getattr(value, name)
            if name not in ignored and not isinstance(member, Place):
                yield name, self._facts(member)
        command, folder = getattr(value, "command", None), getattr(value, "folder", None)
        if isinstance(command, tuple) and isinstance(folder, str):
            named = (Path(folder, word) for word in command)
            home = getattr(value, "home", None) or folder
            yield "files", [self._digest_file(path, home) for path in named if is_file(path)]

    def _text(self, text: str) -> str:
        """A text; absolute paths of the workspace are made relative to it."""
        root = str(self._workspace.root)
        return text.replace(root, ".") if root in text else text

    def _digest_file(self, path: Path, home: str | Path) -> str:
        """The digest of a file; empty if it cannot be read or is outside workspace and ``home``."""
        real = resolve_inside(path, (self._workspace.root, Path(home)))
        if real is None:
            return ""
        try:
            return _sha256(read_start(real, MAX_PROGRAM_BYTES))
        except OSError:
            return ""


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]
