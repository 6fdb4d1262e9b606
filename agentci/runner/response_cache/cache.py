"""Find and store cached responses of programs and judges."""

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from agentci._util.workspace import resolve_path
from agentci.model.json import Json, JsonObject
from agentci.model.judges import AskModel, ModelResponse
from agentci.model.requests import CompareEmbeddings, ProgramOutput, RunCommand, RunProgram
from agentci.runner.response_cache.content_digests import ContentDigests
from agentci.runner.response_cache.interpreter_key import Interpreters
from agentci.runner.response_cache.program_key import CacheableProgram, words_of
from agentci.runner.response_cache.store import ResponseStore
from agentci.version import __version__


class InFlightResponses:
    """Replies by key, for any number of threads.

    Without it, two cases with the same question would get two replies, of which a later run finds
    but one.
    """

    def __init__(self) -> None:
        self.responses: dict[bytes, ModelResponse] = {}
        self._lock = Lock()
        self._locks: dict[bytes, Lock] = {}

    def lock_key(self, key: bytes) -> Lock:
        """What whoever asks for a reply holds meanwhile."""
        with self._lock:
            return self._locks.setdefault(key, Lock())


# Of what a key is made from; a higher one makes all keys anew.
QUESTION_FORMAT: Final = 1


def make_question_digest(request: AskModel | CompareEmbeddings, files: Sequence[Json]) -> bytes:
    """Of all that a reply hangs on; not of the key, nor of what becomes of several replies.

    Args:
        files: what is known of the files that a judge's command names.
    """
    settings = request.judge.settings
    facts: Json = {
        "format": QUESTION_FORMAT,
        "agentci": __version__,
        "provider": settings.provider,
        "address": settings.base_url,
        "api_version": settings.api_version,
        "model": settings.model,
        "temperature": settings.temperature,
        "effort": settings.effort,
        "output_tokens": settings.output_tokens,
        "command": settings.command,
        "files": files,
        **_question_facts(request),
    }
    return sha256(json.dumps(facts, sort_keys=True).encode()).digest()


def _question_facts(request: AskModel | CompareEmbeddings) -> JsonObject:
    if isinstance(request, CompareEmbeddings):
        return {"embedded": request.texts}
    question, form = request.prompt, request.prompt.schema
    return {
        "system": question.system,
        "user": question.user,
        "form": None if form is None else [type(form).__name__, msgspec.to_builtins(form)],
    }


def make_sample_key(digest: bytes, number: int) -> bytes:
    """What the reply that gave the verdict ``number`` to a question is kept under."""
    return sha256(b"model %d " % number + digest).digest()


def encode_judge_response(response: ModelResponse) -> ProgramOutput:
    """A reply as if a program had printed it, which is how all are kept."""
    return ProgramOutput(stdout=msgspec.json.encode(response), stderr="", exit_code=0)


def decode_judge_response(printed: ProgramOutput) -> ModelResponse | None:
    """The other way round; None where no model's reply was kept so."""
    try:
        return msgspec.json.decode(printed.stdout, type=ModelResponse)
    except msgspec.MsgspecError:
        return None


# The format of programs' keys; a higher one makes all earlier responses unused.
KEY_FORMAT: Final = 2
# All fields of a request but what the program reads.
_SAME_PROGRAM_FIELDS: Final = {
    kind: attrgetter(*(name for name in kind.__struct_fields__ if name != "stdin"))
    for kind in (RunProgram, RunCommand)
}


class CacheSlot(Struct, frozen=True, kw_only=True):
    """The part of a key that requests share which differ only in their stdin.

    Attributes:
        prefix: a digest of it.
        paths: the files and folders whose content it depends on.
    """

    prefix: bytes
    paths: frozenset[Path]

    def make_key(self, stdin: str) -> bytes:
        """The key of the response to ``stdin``."""
        return sha256(self.prefix + stdin.encode("utf-8", "backslashreplace")).digest()


class ResponseCache:
    """The cached responses that a run can use; safe to share between threads.

    Args:
        root: the workspace; paths below it are taken relative to it.
        anew: nothing is looked up, and new responses replace cached ones.
    """

    def __init__(
        self,
        store: ResponseStore,
        digests: ContentDigests,
        interpreters: Interpreters,
        *,
        root: Path,
        anew: bool = False,
    ) -> None:
        self._store = store
        self._digests = digests
        self._interpreters = interpreters
        self._root = root
        self._ignores_cache = anew
        self._lock = Lock()
        self._slots: dict[Hashable, CacheSlot | None] = {}
        self._stored: list[tuple[bytes, CacheSlot]] = []
        self._skip_reason = ""
        self._in_flight = InFlightResponses()

    def find_slot(
        self, request: RunProgram | RunCommand, describe: Callable[[], CacheableProgram]
    ) -> CacheSlot | None:
        """Where responses to requests like this one are cached; None where they cannot be.

        Args:
            describe: called once for all requests that differ only in their stdin.
        """
        alike = (type(request), *_SAME_PROGRAM_FIELDS[type(request)](request))
        with self._lock:
            if alike not in self._slots:
                self._slots[alike] = self._make_slot(describe())
            return self._slots[alike]

    def _make_slot(self, program: CacheableProgram) -> CacheSlot | None:
        if not program.files and program.sealed is None:
            self._skip_reason = (
                f"the command of `{program.name}` names no file whose content could be compared"
            )
            return None
        paths = frozenset() if program.sealed or program.tree else _list_paths(program)
        try:
            facts: Json = {
                "format": KEY_FORMAT,
                "agentci": __version__,
                "executor": program.executor,
                "network": program.job.sandbox_policy.network,
                "environment": dict(program.variables),
                "line": program.line,
                "program": self._describe_program(program),
                "interpreters": self._describe_interpreters(program),
            }
        except (OSError, ValueError) as error:  # no file's name has a null in it
            self._skip_reason = f"the files of `{program.name}` cannot be compared: {error}"
            return None
        prefix = sha256(json.dumps(facts, sort_keys=True).encode()).digest()
        return CacheSlot(prefix=prefix, paths=paths)

    def _describe_program(self, program: CacheableProgram) -> Json:
        """The program's files, by name and content.

        Raises:
            OSError: one of them cannot be read.
        """
        if program.sealed is not None:
            return [program.sealed, *(path.name for path in program.files)]
        if program.tree is not None:
            [path] = program.files
            return [program.tree.name, path.relative_to(program.tree).as_posix()]
        folders: list[Json] = [self._digests.compute(each) for each in program.find_folders()]
        if not program.line:
            return [*(path.name for path in program.files), *folders]
        files = [self._describe_file(each) for each in program.files]
        return [self._shown(program.job.cwd), files, folders]

    def _describe_interpreters(self, program: CacheableProgram) -> Json:
        command = program.job.command
        if program.sealed is not None:
            names = [str(path) for path in program.files]
            return [part for part in command if part not in names]
        return self._interpreters.of((*command, *words_of(program.line)), program.files)

    def find(self, key: bytes) -> ProgramOutput | None:
        """The cached response under ``key``."""
        return None if self._ignores_cache else self._store.find(key)

    def lock_judge_response(self, key: bytes) -> AbstractContextManager[object]:
        """Have others who want the model's reply under ``key`` wait until it is there."""
        return self._in_flight.lock_key(key)

    def find_judge_response(self, key: bytes) -> ModelResponse | None:
        """The model's reply under ``key``, of an earlier run or this one."""
        if (response := self._in_flight.responses.get(key)) is not None:
            return response

        printed = self.find(key)
        return None if printed is None else decode_judge_response(printed)

    def share_judge_response(self, key: bytes, response: ModelResponse) -> None:
        """Have a model's reply at hand for whoever asks the same in this run."""
        self._in_flight.responses[key] = response

    def store_judge_response(self, key: bytes, response: ModelResponse) -> None:
        """Keep what a model replied."""
        self._store.put(key, encode_judge_response(response))

    def digest_question(
        self, request: AskModel | CompareEmbeddings, files: Iterable[Path]
    ) -> bytes | None:
        """What replies to a question are found by; None where that cannot be known.

        Args:
            files: that a judge's command names.
        """
        try:
            facts = [self._describe_file(each) for each in files]
        except OSError:
            return None
        return make_question_digest(request, facts)

    def drop(self, key: bytes) -> None:
        """Remove the response under ``key``."""
        self._store.drop(key)

    def store_response(self, key: bytes, response: ProgramOutput, slot: CacheSlot) -> None:
        """Cache what a program printed."""
        self._store.put(key, response)
        self._stored.append((key, slot))

    def close(self) -> str:
        """Write new responses; why some were not cached, empty where all were.

        A program whose files changed during the run may have read either content.
        """
        changed = self._digests.find_changed() if self._stored else set()
        for key, slot in self._stored:
            if found := slot.paths & changed:
                self._store.drop(key)
                self._skip_reason = f"{self._shown(min(found))} changed during the run"
        self._store.close()
        return self._store.problem or self._skip_reason

    def _describe_file(self, path: Path) -> list[Json]:
        real = resolve_path(path)
        return [self._shown(path), self._shown(real), self._digests.compute(real)]

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self._root) if path.is_relative_to(self._root) else path)


def _list_paths(program: CacheableProgram) -> frozenset[Path]:
    """All files and folders whose content is part of a program's key."""
    files = map(resolve_path, program.files) if program.line else ()
    return frozenset((*program.find_folders(), *files))
