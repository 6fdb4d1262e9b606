"""Fingerprints of checks: digests of all that an evaluator reads besides the recorded run.

Two runs are compared check by check where the fingerprints are equal.
"""

import json
from collections.abc import Iterator
from typing import Final

import msgspec

from agentci._util.workspace import Workspace
from agentci.evaluators.definition import FileContents
from agentci.evaluators.evaluator import ComparableEvaluator, Evaluator, collect_needs
from agentci.model.case import Expectation
from agentci.model.program import RemoteProgram, RequiredProgram
from agentci.model.values import IdentityKey
from agentci.remote.programs import ProgramTable, ReadyProgram
from agentci.runner.source_digests import SourceDigests, digest_bytes

# Between definition and expectation; JSON of one line does not contain it.
SEPARATOR: Final = b"\n"


class Fingerprints:
    """The fingerprints of one run; what checks share is computed once."""

    def __init__(self, workspace: Workspace) -> None:
        self._digests = SourceDigests(workspace)
        root = str(workspace.root)
        self._roots = {
            each.encode("utf-8", "surrogatepass")
            for each in (json.dumps(root)[1:-1], json.dumps(root, ensure_ascii=False)[1:-1])
        }
        self._encoder = msgspec.json.Encoder(enc_hook=self._resolve, order="deterministic")
        self._definitions: dict[IdentityKey[ComparableEvaluator], bytes] = {}
        self._fetched: dict[IdentityKey[Evaluator], bytes] = {}

    def compute(self, evaluator: ComparableEvaluator, expectation: Expectation) -> str:
        """The fingerprint of a check."""
        key = IdentityKey(evaluator)
        if key not in self._definitions:
            self._definitions[key] = self._encode(evaluator.definition)
        read = self._encode(evaluator.read_expectation(expectation))
        return digest_bytes(self._definitions[key] + SEPARATOR + read)

    def add_fetched_code(self, fingerprint: str, evaluator: Evaluator, table: ProgramTable) -> str:
        """The fingerprint with the code of remote programs, which the plan does not have yet."""
        key = IdentityKey(evaluator)
        if key not in self._fetched:
            self._fetched[key] = self._encode([*_find_fetched_code(evaluator, table)])
        code = self._fetched[key]
        return fingerprint if code == b"[]" else digest_bytes(fingerprint.encode() + code)

    def _encode(self, facts: object) -> bytes:
        """Encode facts as JSON, with paths relative to the workspace."""
        try:
            encoded = self._encoder.encode(facts)
        except (TypeError, ValueError, OverflowError, RecursionError):
            # Lone surrogates, and integers with more than 64 bits.
            encoded = json.dumps(facts, default=self._resolve, sort_keys=True).encode()
        for root in self._roots:
            encoded = encoded.replace(root, b".")
        return encoded

    def _resolve(self, value: object) -> object:
        return self._digests.compute(value) if isinstance(value, FileContents) else repr(value)


def _find_fetched_code(evaluator: Evaluator, table: ProgramTable) -> Iterator[FileContents]:
    for need in collect_needs([evaluator], RequiredProgram):
        found = table.programs.get(need.program)
        if isinstance(need.program, RemoteProgram) and isinstance(found, ReadyProgram):
            yield FileContents(str(found.path), home=str(found.tree or found.path.parent))
