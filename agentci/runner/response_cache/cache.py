"""Replies of earlier runs: found again where nothing has changed that they were made from.

Those of models hang on the question alone, and so lie under their keys without any inputs.
"""

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Final

from msgspec import Struct

from agentci.model.embedding import CompareEmbeddings
from agentci.model.json import Json
from agentci.model.judging import AskModel, ModelReply
from agentci.model.requests import ProgramReply, RunCommand, RunProgram
from agentci.runner.response_cache.circumstances import Circumstances, words_of
from agentci.runner.response_cache.in_flight import SaidNow
from agentci.runner.response_cache.inputs import Inputs
from agentci.runner.response_cache.interpreter_key import Interpreters
from agentci.runner.response_cache.observer import Observation
from agentci.runner.response_cache.store import ReplyStore
from agentci.version import __version__

# Of what a key is made from; a higher one makes all keys anew.
FORMAT: Final = 1
# The list of inputs of programs that have no others than what is in the key.
NOTHING: Final = b"{}"
# All of a request but what the program reads.
_ALIKE: Final = {
    kind: attrgetter(*(name for name in kind.__struct_fields__ if name != "stdin"))
    for kind in (RunProgram, RunCommand)
}


class Place(Struct, frozen=True, kw_only=True):
    """Where replies are kept that were made in the same circumstances.

    Attributes:
        prefix: of the keys, a digest; None where nothing is to be kept.
    """

    given: Circumstances
    prefix: bytes | None

    def key(self, stdin: str) -> bytes | None:
        """What the reply to ``stdin`` is kept under."""
        if self.prefix is None:
            return None
        return sha256(self.prefix + stdin.encode("utf-8", "backslashreplace")).digest()


class ReplyCache:
    """The replies of one run; of use by several threads at once.

    Args:
        anew: nothing is found, and all is kept anew.
    """

    def __init__(
        self, store: ReplyStore, inputs: Inputs, interpreters: Interpreters, *, anew: bool = False
    ) -> None:
        self._store = store
        self._inputs = inputs
        self._interpreters = interpreters
        self._anew = anew
        self._places: dict[Hashable, Place] = {}
        self._holding: dict[bytes, bool] = {}
        self._refused = ""
        self._said = SaidNow()

    def place_of(
        self, request: RunProgram | RunCommand, find: Callable[[], Circumstances]
    ) -> Place:
        """Where replies to requests are kept that differ from ``request`` in their stdin alone.

        Args:
            find: is called once for all of them.
        """
        alike = (type(request), *_ALIKE[type(request)](request))
        if alike not in self._places:
            given = find()
            self._places[alike] = Place(given=given, prefix=self._prefix(given))
        return self._places[alike]

    def _prefix(self, given: Circumstances) -> bytes | None:
        job, walls = given.job, given.job.confinement
        try:
            program, runs = self._program(given)
        except (OSError, ValueError):  # no file's name has a null in it
            return None
        if not program:
            return None
        facts: Json = {
            "format": FORMAT,
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

    def find(self, key: bytes) -> ProgramReply | None:
        """The reply under ``key``, where all is as it was when it was made."""
        row = None if self._anew else self._store.find(key)
        return row.reply if row is not None and self._holds(row.inputs) else None

    def alone(self, key: bytes) -> AbstractContextManager[object]:
        """Have others who want the model's reply under ``key`` wait until it is there."""
        return self._said.lock(key)

    def said(self, key: bytes) -> ModelReply | None:
        """The model's reply under ``key``, of an earlier run or this one."""
        if (reply := self._said.replies.get(key)) is not None:
            return reply
        from agentci.runner.response_cache.judge_entries import as_said  # noqa: PLC0415 (of no use to most runs)

        printed = self.find(key)
        return None if printed is None else as_said(printed)

    def share(self, key: bytes, reply: ModelReply) -> None:
        """Have a model's reply at hand for whoever asks the same in this run."""
        self._said.replies[key] = reply

    def keep_said(self, key: bytes, reply: ModelReply) -> None:
        """Keep what a model replied."""
        from agentci.runner.response_cache.judge_entries import as_printed  # noqa: PLC0415 (likewise)

        self._store.put(key, as_printed(reply), NOTHING)

    def digest_of(
        self, request: AskModel | CompareEmbeddings, files: Iterable[Path]
    ) -> bytes | None:
        """What replies to a question are found by; None where that cannot be known.

        Args:
            files: that a judge's command names.
        """
        from agentci.runner.response_cache.judge_entries import question_digest  # noqa: PLC0415 (likewise)

        try:
            facts = [self._file(each) for each in files]
        except OSError:
            return None
        return question_digest(request, facts)

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

    def keep(
        self,
        key: bytes,
        reply: ProgramReply,
        observation: Observation | None,
        given: Circumstances,
    ) -> None:
        """Keep what a program replied, unless it may have been made from something else by now."""
        listed: bytes | None = NOTHING if given.sealed is not None else None
        if observation is not None:
            listed = self._inputs.listed(observation, given)
        if listed is not None:
            self._store.put(key, reply, listed)

    def refuse(self, why: str) -> None:
        """Tell at the end that a reply was not kept, and why."""
        self._refused = why

    def close(self) -> str:
        """Write what is to be kept; why some was not, empty where all was."""
        self._store.close()
        self._inputs.close()
        return self._store.trouble or self._inputs.trouble or self._refused

    def _holds(self, inputs: bytes) -> bool:
        """Whether all is as it was when a list of inputs was made; looked at once for each list."""
        if inputs not in self._holding:
            listed = self._store.inputs(inputs)
            self._holding[inputs] = listed is not None and self._inputs.hold(listed)
        return self._holding[inputs]

    def _program(self, given: Circumstances) -> tuple[Json, Json]:
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
            return [fact for each in given.programs for fact in self._file(each)], runs
        [path] = given.programs
        runs = [*self._interpreters.of(command, given.programs), self._interpreters.ours()]
        if given.tree is not None:
            return [given.tree.name, path.relative_to(given.tree).as_posix()], runs
        return self._file(path), runs

    def _file(self, path: Path) -> list[Json]:
        real = os.path.realpath(path)
        shown = [self._inputs.shown(each) for each in (str(path), real)]
        return [*shown, self._inputs.content(real)]
