"""Find and store cached responses of programs and judges."""

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from agentci.model.json import Json, JsonObject
from agentci.model.judges import AskModel, ModelResponse
from agentci.model.requests import CompareEmbeddings, ProgramOutput, RunCommand, RunProgram
from agentci.runner.response_cache.circumstances import Circumstances, words_of
from agentci.runner.response_cache.inputs import Inputs
from agentci.runner.response_cache.interpreter_key import Interpreters
from agentci.runner.response_cache.observer import Observation
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


def encode_judge_response(reply: ModelResponse) -> ProgramOutput:
    """A reply as if a program had printed it, which is how all are kept."""
    return ProgramOutput(stdout=msgspec.json.encode(reply), stderr="", exit_code=0)


def decode_judge_response(printed: ProgramOutput) -> ModelResponse | None:
    """The other way round; None where no model's reply was kept so."""
    try:
        return msgspec.json.decode(printed.stdout, type=ModelResponse)
    except msgspec.MsgspecError:
        return None


# Of what a key is made from; a higher one makes all keys anew.
KEY_FORMAT: Final = 1
# The list of inputs of programs that have no others than what is in the key.
NO_INPUTS: Final = b"{}"
# All of a request but what the program reads.
_SAME_PROGRAM_FIELDS: Final = {
    kind: attrgetter(*(name for name in kind.__struct_fields__ if name != "stdin"))
    for kind in (RunProgram, RunCommand)
}


class CacheSlot(Struct, frozen=True, kw_only=True):
    """Where replies are kept that were made in the same circumstances.

    Attributes:
        prefix: of the keys, a digest; None where nothing is to be kept.
    """

    given: Circumstances
    prefix: bytes | None

    def make_key(self, stdin: str) -> bytes | None:
        """What the reply to ``stdin`` is kept under."""
        if self.prefix is None:
            return None
        return sha256(self.prefix + stdin.encode("utf-8", "backslashreplace")).digest()


class ResponseCache:
    """The replies of one run; of use by several threads at once.

    Args:
        anew: nothing is found, and all is kept anew.
    """

    def __init__(
        self,
        store: ResponseStore,
        inputs: Inputs,
        interpreters: Interpreters,
        *,
        anew: bool = False,
    ) -> None:
        self._store = store
        self._inputs = inputs
        self._interpreters = interpreters
        self._ignores_cache = anew
        self._slots: dict[Hashable, CacheSlot] = {}
        self._known_inputs: dict[bytes, bool] = {}
        self._skip_reason = ""
        self._in_flight = InFlightResponses()

    def find_slot(
        self, request: RunProgram | RunCommand, find: Callable[[], Circumstances]
    ) -> CacheSlot:
        """Where replies to requests are kept that differ from ``request`` in their stdin alone.

        Args:
            find: is called once for all of them.
        """
        alike = (type(request), *_SAME_PROGRAM_FIELDS[type(request)](request))
        if alike not in self._slots:
            given = find()
            self._slots[alike] = CacheSlot(given=given, prefix=self._make_prefix(given))
        return self._slots[alike]

    def _make_prefix(self, given: Circumstances) -> bytes | None:
        job, walls = given.job, given.job.confinement
        try:
            program, runs = self._describe_program(given)
        except (OSError, ValueError):  # no file's name has a null in it
            return None
        if not program:
            return None
        facts: Json = {
            "format": KEY_FORMAT,
            "agentci": __version__,
            "executor": given.executor,
            "program": program,
            "runs": runs,
            "line": given.line,
            "cwd": self._inputs.shown(str(job.cwd)) if given.sealed is None else "",
            "environment": dict(job.environment),
            "network": walls.network,
            "memory_mb": walls.memory_mb,
            "processes": walls.processes,
            "shares_memory": walls.shares_memory,
            "image": walls.image,
        }
        return sha256(json.dumps(facts, sort_keys=True).encode()).digest()

    def find(self, key: bytes) -> ProgramOutput | None:
        """The reply under ``key``, where all is as it was when it was made."""
        row = None if self._ignores_cache else self._store.find(key)
        return row.response if row is not None and self._has_same_inputs(row.inputs) else None

    def lock_judge_response(self, key: bytes) -> AbstractContextManager[object]:
        """Have others who want the model's reply under ``key`` wait until it is there."""
        return self._in_flight.lock_key(key)

    def find_judge_response(self, key: bytes) -> ModelResponse | None:
        """The model's reply under ``key``, of an earlier run or this one."""
        if (reply := self._in_flight.responses.get(key)) is not None:
            return reply

        printed = self.find(key)
        return None if printed is None else decode_judge_response(printed)

    def share_judge_response(self, key: bytes, reply: ModelResponse) -> None:
        """Have a model's reply at hand for whoever asks the same in this run."""
        self._in_flight.responses[key] = reply

    def store_judge_response(self, key: bytes, reply: ModelResponse) -> None:
        """Keep what a model replied."""
        self._store.put(key, encode_judge_response(reply), NO_INPUTS)

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
        """Keep the reply under ``key`` no longer."""
        self._store.drop(key)

    @contextmanager
    def watching(self, given: Circumstances) -> Iterator[Observation | None]:
        """See what a program reads while it runs; None where it cannot be seen, or need not be."""
        if given.sealed is not None:
            yield None
            return
        with self._inputs.watching(given) as observation:
            yield observation

    def store_response(
        self,
        key: bytes,
        reply: ProgramOutput,
        observation: Observation | None,
        given: Circumstances,
    ) -> None:
        """Keep what a program replied, unless it may have been made from something else by now."""
        listed: bytes | None = NO_INPUTS if given.sealed is not None else None
        if observation is not None:
            listed = self._inputs.listed(observation, given)
        if listed is not None:
            self._store.put(key, reply, listed)

    def set_skip_reason(self, why: str) -> None:
        """Tell at the end that a reply was not kept, and why."""
        self._skip_reason = why

    def close(self) -> str:
        """Write what is to be kept; why some was not, empty where all was."""
        self._store.close()
        self._inputs.close()
        return self._store.problem or self._inputs.trouble or self._skip_reason

    def _has_same_inputs(self, inputs: bytes) -> bool:
        """Whether all is as it was when a list of inputs was made; looked at once for each list."""
        if inputs not in self._known_inputs:
            listed = self._store.inputs(inputs)
            self._known_inputs[inputs] = listed is not None and self._inputs.hold(listed)
        return self._known_inputs[inputs]

    def _describe_program(self, given: Circumstances) -> tuple[Json, Json]:
        """The program, and what runs it.

        Raises:
            OSError: one of them is not there.
        """
        command = given.job.command
        if given.sealed is not None:
            files = [str(path) for path in given.programs]
            started = [part for part in command if part not in files]
            return [given.sealed, *(path.name for path in given.programs)], started
        if given.line:
            words = (*command, *words_of(given.line))
            runs = [*self._interpreters.of(words, given.programs), self._interpreters.ours()]
            return [fact for each in given.programs for fact in self._describe_file(each)], runs
        [path] = given.programs
        runs = [*self._interpreters.of(command, given.programs), self._interpreters.ours()]
        if given.tree is not None:
            return [given.tree.name, path.relative_to(given.tree).as_posix()], runs
        return self._describe_file(path), runs

    def _describe_file(self, path: Path) -> list[Json]:
        real = os.path.realpath(path)
        shown = [self._inputs.shown(each) for each in (str(path), real)]
        return [*shown, self._inputs.content(real)]
