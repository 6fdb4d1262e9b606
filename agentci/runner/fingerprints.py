"""What tells whether two runs judged by the same: digests of evaluators and golden cases."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agentci._util.text import json_text
from agentci._util.workspace import Workspace, is_file
from agentci.evaluators.evaluator import Evaluator
from agentci.model.json import Json
from agentci.model.judgement import EvaluatorIdentity
from agentci.model.problem import Place
from agentci.model.program import LocalProgram
from agentci.model.values import list_field_names

DIGITS: Final = 16
# What changes neither a score nor whether it passes.
IGNORED_FIELDS: Final = frozenset(
    {
        *("timeout_seconds", "memory_mb", "processes", "isolation", "cached", "cache"),
        *("home", "budget_id", "caps", "replay", "key_variable", "federation", "prices"),
        "embedding_model",  # of a judge; where embeddings are compared, it is the model
    }
)
# Likewise, of a whole evaluator; criteria and fields have a weight in its score.
GATE_FIELDS: Final = frozenset({"required", "weight", "needs_expected"})
MAX_PROGRAM_BYTES: Final = 16 * 1024**2


class Fingerprints:
    """The digests of one run, each made once.

    Of a program it is its own file that counts, and of a command the files that it names: what
    they import is not looked at.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[int, tuple[object, str]] = {}

    def of(self, evaluator: Evaluator, expected: object) -> str:
        """The digest of an evaluator with what it is to expect of a case."""
        if expected is None:
            return self._digest(evaluator)
        both = f"{self._digest(evaluator)} {self._digest(expected)}"
        return _sha256(both.encode())

    def _digest(self, value: object) -> str:
        """Kept with the value, so that its id is not given to another one."""
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
                return [self._text(value.path), self._digest_file(Path(value.path))]
            case _:
                return self._object_facts(value)

    def _container_facts(self, value: Mapping[object, object] | Sequence[object]) -> Json:
        if isinstance(value, Mapping):
            return {str(key): self._facts(value[key]) for key in sorted(value, key=str)}
        return [self._facts(each) for each in value]

    def _object_facts(self, value: object) -> Json:
        """The fields of a value; of anything else what it is, which may be all that it is."""
        return {"": type(value).__qualname__, **dict(self._field_facts(value))}

    def _field_facts(self, value: object) -> Iterator[tuple[str, Json]]:
        left_out = (
            IGNORED_FIELDS | GATE_FIELDS if isinstance(value, EvaluatorIdentity) else IGNORED_FIELDS
        )
        for name in list_field_names(value):
            member = getattr(value, name)
            if name not in left_out and not isinstance(member, Place):
                yield name, self._facts(member)
        command, folder = getattr(value, "command", None), getattr(value, "folder", None)
        if isinstance(command, tuple) and isinstance(folder, str):
            named = (Path(folder, word) for word in command)
            yield "files", [self._digest_file(path) for path in named if is_file(path)]

    def _text(self, text: str) -> str:
        """A text, or a path as it is seen from the workspace."""
        root = str(self._workspace.root)
        return text.replace(root, ".") if root in text else text

    def _digest_file(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                return _sha256(file.read(MAX_PROGRAM_BYTES))
        except OSError:
            return ""


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]
