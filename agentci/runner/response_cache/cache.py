"""Find and store cached responses of programs and judges, by digests of all that they depend on."""

import hashlib
import json
import os
import stat
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from agentci._util.workspace import Workspace, resolve_path
from agentci.evaluators.evaluator import FileContents, split_words
from agentci.evaluators.prompts import make_answer_schema
from agentci.model.judges import AskModel, ModelResponse
from agentci.model.requests import CompareEmbeddings, ProgramOutput, RunCommand, RunProgram
from agentci.model.values import Json, JsonObject
from agentci.runner.fingerprints import SourceDigests
from agentci.runner.response_cache.program_key import CacheableProgram, Interpreters
from agentci.runner.response_cache.store import ResponseStore
from agentci.version import __version__

# A folder that takes longer to read than most programs take to run is not cached.
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 256 * 1024**2
CHUNK_BYTES: Final = 256 * 1024
# Python rewrites the first by itself, and Git the second.
IGNORED_FOLDERS: Final = frozenset({"__pycache__", ".git"})


class ContentDigests:
    """Digests of files and folders, each computed once; safe to share between threads.

    Args:
        root: real path of the workspace; what is beyond a link out of it is never read.
        excluded: real paths of files and folders to leave out, such as a run's own reports.
    """

    def __init__(self, root: Path, excluded: Collection[str] = ()) -> None:
        self._root = root
        self._excluded = frozenset(excluded)
        self._lock = threading.Lock()
        self._known: dict[Path, str] = {}

    def compute(self, path: Path) -> str:
        """The digest of a file, or of the names and contents of all files below a folder.

        Raises:
            OSError: something in it cannot be read or is a link out of the workspace, or it is too
                large.
        """
        with self._lock:
            if path not in self._known:
                self._known[path] = self._compute(path)
            return self._known[path]

    def find_changed(self) -> set[Path]:
        """All paths whose content is not what it was when its digest was computed."""
        with self._lock:
            return {path for path, digest in self._known.items() if self._differs(path, digest)}

    def _differs(self, path: Path, digest: str) -> bool:
        try:
            return self._compute(path) != digest
        except OSError:
            return True

    def _compute(self, path: Path) -> str:
        real = os.path.realpath(path)
        if path.is_relative_to(self._root):
            self._check_inside(path, real, self._root)
        if not Path(real).is_dir():
            return _read_file(real, MAX_BYTES)[0]
        digest, size = hashlib.sha256(), 0
        for count, (name, file, link) in enumerate(self._list_files(real), 1):
            if count > MAX_FILES:
                raise OSError(f"{path} has more than {MAX_FILES:,} files")
            content, length = ("", 0) if file is None else _read_file(file, MAX_BYTES - size)
            size += length
            digest.update(os.fsencode(f"{name}\0{link}\0{content}\0"))
        return digest.hexdigest()

    def _list_files(self, folder: str) -> Iterator[tuple[str, str | None, str]]:
        """Name, real path and link target of each file below; of other links no real path.

        Links to folders are followed, each folder once.

        Raises:
            OSError: a folder cannot be listed, or a link leads out of it and of the workspace.
        """
        pending, seen = [("", folder)], set[str]()
        while pending:
            prefix, current = pending.pop()
            if current in self._excluded or current in seen:
                continue
            seen.add(current)
            with os.scandir(current) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            for entry in entries:
                name, real, link = f"{prefix}{entry.name}", entry.path, ""
                if entry.is_symlink():
                    real, link = os.path.realpath(entry.path), str(Path(entry.path).readlink())
                    self._check_inside(entry.path, real, folder)
                if entry.is_dir() and entry.name not in IGNORED_FOLDERS:
                    pending.append((f"{name}/", real))
                is_file = entry.is_file() and real not in self._excluded
                if is_file or link:
                    yield name, real if is_file else None, link

    def _check_inside(self, path: str | Path, real: str, folder: str | Path) -> None:
        if not any(map(Path(real).is_relative_to, (self._root, folder))):
            raise OSError(f"{path} is a link out of the workspace")


def _read_file(path: str, limit: int) -> tuple[str, int]:
    """The digest of a regular file with its permission to be executed, and its size in bytes.

    Raises:
        OSError: it cannot be read, is not a regular file, or has more than ``limit`` bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        digest, size = hashlib.sha256(), 0
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)  # not `st_size`: some files of the system have more than it says
            if size > limit:
                raise OSError(f"the folder of {path} has more than {MAX_BYTES // 1024**2} MiB")
    executable = "x" if status.st_mode & stat.S_IXUSR else "-"
    return f"{executable} {digest.hexdigest()}", size


class InFlightResponses:
    """Judge responses of this run by key; safe to share between threads.

    Cases with the same question share one response, in this run as in later ones.
    """

    def __init__(self) -> None:
        self.responses: dict[bytes, ModelResponse] = {}
        self._lock = Lock()
        self._locks: dict[bytes, Lock] = {}

    def lock_key(self, key: bytes) -> Lock:
        """The lock to hold while the response under ``key`` is requested."""
        with self._lock:
            return self._locks.setdefault(key, Lock())


# Version of the keys of judge responses; a higher one invalidates all cached ones.
QUESTION_FORMAT: Final = 3


def make_question_digest(
    request: AskModel | CompareEmbeddings, files: Sequence[Json], *, repository: str
) -> bytes:
    """A digest of the question and of the settings that affect the response.

    The API key, the number of samples and the aggregation of verdicts are not part of it.

    Args:
        files: what is known about the files and interpreters of a judge's command.
        repository: identifies the repository that the response is cached for.
    """
    settings = request.judge.settings
    facts: Json = {
        "format": QUESTION_FORMAT,
        "repository": repository,
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
        "schema": None if form is None else make_answer_schema(form),
    }


def make_sample_key(digest: bytes, number: int) -> bytes:
    """The key of the response for the sample ``number`` of a question."""
    return sha256(b"model %d " % number + digest).digest()


def encode_judge_response(response: ModelResponse) -> ProgramOutput:
    """Encode a judge response as a program output, which is what the store holds."""
    return ProgramOutput(stdout=msgspec.json.encode(response), stderr="", exit_code=0)


def decode_judge_response(printed: ProgramOutput) -> ModelResponse | None:
    """Decode a judge response; None if the output is not one."""
    try:
        return msgspec.json.decode(printed.stdout, type=ModelResponse)
    except msgspec.MsgspecError:
        return None


# Version of the keys of program responses; a higher one invalidates all cached ones.
KEY_FORMAT: Final = 4
# All fields of a request except its stdin.
_SAME_PROGRAM_FIELDS: Final = {
    kind: attrgetter(*(name for name in kind.__struct_fields__ if name != "stdin"))
    for kind in (RunProgram, RunCommand)
}


class CacheSlot(Struct, frozen=True, kw_only=True):
    """The part of the key that all requests to one program share; they differ in their stdin.

    Attributes:
        prefix: digest of this part.
        paths: files and folders whose content is part of it.
    """

    prefix: bytes
    paths: frozenset[Path]

    def make_key(self, stdin: str) -> bytes:
        """The key of the response to ``stdin``."""
        return sha256(self.prefix + stdin.encode("utf-8", "backslashreplace")).digest()


class ResponseCache:
    """The response cache of one run; safe to share between threads.

    Args:
        workspace: paths below its root are made relative.
        repository: identifies the repository; responses of others are not found.
        ignore_cached: do not use cached responses; new responses replace them.
    """

    def __init__(
        self,
        store: ResponseStore,
        digests: ContentDigests,
        interpreters: Interpreters,
        *,
        workspace: Workspace,
        repository: str,
        ignore_cached: bool = False,
    ) -> None:
        self._store = store
        self._digests = digests
        self._interpreters = interpreters
        self._root = workspace.root
        self._sources = SourceDigests(workspace)
        self._command_facts: dict[tuple[tuple[str, ...], str], Sequence[Json] | None] = {}
        self._repository = repository
        self._ignores_cache = ignore_cached
        self._lock = Lock()
        self._slots: dict[Hashable, CacheSlot | None] = {}
        self._stored: list[tuple[bytes, CacheSlot]] = []
        self._skip_reason = ""
        self._in_flight = InFlightResponses()

    def find_slot(
        self, request: RunProgram | RunCommand, describe: Callable[[], CacheableProgram]
    ) -> CacheSlot | None:
        """The shared part of the key of a program's responses; None if they cannot be cached.

        Args:
            describe: called once for all requests that differ only in their stdin.
        """
        group_key = (type(request), *_SAME_PROGRAM_FIELDS[type(request)](request))
        with self._lock:
            if group_key not in self._slots:
                self._slots[group_key] = self._make_slot(describe())
            return self._slots[group_key]

    def _make_slot(self, program: CacheableProgram) -> CacheSlot | None:
        if not program.files and program.input_digest is None:
            self._skip_reason = (
                f"the command of evaluator `{program.name}` contains no file to compare"
            )
            return None
        paths = frozenset() if program.input_digest or program.tree else _list_paths(program)
        try:
            facts: Json = {
                "format": KEY_FORMAT,
                "repository": self._repository,
                "agentci": __version__,
                "executor": program.executor,
                "network": program.job.sandbox_policy.network,
                "environment": {
                    name: value.replace(str(self._root), ".")
                    for name, value in program.variables.items()
                },
                "line": program.command_line,
                "program": self._describe_program(program),
                "interpreters": self._describe_interpreters(program),
            }
        except (OSError, ValueError) as error:  # ValueError: a word with a NUL character
            self._skip_reason = f"cannot compare the files of evaluator `{program.name}`: {error}"
            return None
        prefix = sha256(json.dumps(facts, sort_keys=True).encode()).digest()
        return CacheSlot(prefix=prefix, paths=paths)

    def _describe_program(self, program: CacheableProgram) -> Json:
        """The program's files, by name and content.

        Raises:
            OSError: one of them cannot be read.
        """
        if program.input_digest is not None:
            return [program.input_digest, *(path.name for path in program.files)]
        if program.tree is not None:
            [path] = program.files
            return [program.tree.name, path.relative_to(program.tree).as_posix()]
        folders: list[Json] = [self._digests.compute(each) for each in program.find_folders()]
        if not program.command_line:
            return [*(path.name for path in program.files), *folders]
        files = [self._describe_file(each) for each in program.files]
        return [self._display_path(program.job.cwd), files, folders]

    def _describe_interpreters(self, program: CacheableProgram) -> Json:
        command = program.job.command
        if program.input_digest is not None:
            names = [str(path) for path in program.files]
            return [part for part in command if part not in names]
        return self._interpreters.describe(
            (*command, *split_words(program.command_line)), program.files
        )

    def find(self, key: bytes) -> ProgramOutput | None:
        """The cached response under ``key``."""
        return None if self._ignores_cache else self._store.find(key)

    def lock_judge_response(self, key: bytes) -> AbstractContextManager[object]:
        """A lock so that other threads wait for the judge response under ``key``."""
        return self._in_flight.lock_key(key)

    def find_judge_response(self, key: bytes) -> ModelResponse | None:
        """The judge response under ``key``, of this run or an earlier one."""
        if (response := self._in_flight.responses.get(key)) is not None:
            return response
        stored = self.find(key)
        return None if stored is None else decode_judge_response(stored)

    def share_judge_response(self, key: bytes, response: ModelResponse) -> None:
        """Make a judge response available to the other checks of this run."""
        self._in_flight.responses[key] = response

    def store_judge_response(self, key: bytes, response: ModelResponse) -> None:
        """Cache a judge response."""
        self._store.put(key, encode_judge_response(response))

    def digest_question(
        self, request: AskModel | CompareEmbeddings, files: Iterable[Path]
    ) -> bytes | None:
        """The shared part of the keys of a question's responses; None if a file is unreadable.

        Args:
            files: the files that a judge's command names.
        """
        command = request.judge.settings.command
        key = (command, request.judge.folder)
        if key not in self._command_facts:
            self._command_facts[key] = self._describe_command(command, tuple(files))
        facts = self._command_facts[key]
        if facts is None:
            return None
        return make_question_digest(request, facts, repository=self._repository)

    def _describe_command(
        self, command: Sequence[str], files: Sequence[Path]
    ) -> Sequence[Json] | None:
        """The files of a judge's command with their modules, and its interpreters."""
        try:
            named = [self._describe_file(each) for each in files]
            modules = self._sources.compute(FileContents(*map(str, files)))
            interpreters = self._interpreters.describe(command, files) if command else []
        except (OSError, ValueError):  # ValueError: a word with a NUL character
            return None
        return [named, modules, interpreters]

    def drop(self, key: bytes) -> None:
        """Remove the response under ``key``."""
        self._store.drop(key)

    def store_response(self, key: bytes, response: ProgramOutput, slot: CacheSlot) -> None:
        """Cache what a program printed."""
        self._store.put(key, response)
        self._stored.append((key, slot))

    def close(self) -> str:
        """Write new responses; return why some were not cached, or an empty string.

        Responses of a program whose files changed during the run are dropped: it may have read
        the old or the new content.
        """
        changed = self._digests.find_changed() if self._stored else set()
        for key, slot in self._stored:
            if found := slot.paths & changed:
                self._store.drop(key)
                self._skip_reason = f"{self._display_path(min(found))} changed during the run"
        self._store.close()
        return self._store.problem or self._skip_reason

    def _describe_file(self, path: Path) -> list[Json]:
        real = resolve_path(path)
        return [self._display_path(path), self._display_path(real), self._digests.compute(real)]

    def _display_path(self, path: Path) -> str:
        return str(path.relative_to(self._root) if path.is_relative_to(self._root) else path)


def _list_paths(program: CacheableProgram) -> frozenset[Path]:
    """All files and folders whose content is part of a program's key."""
    files = map(resolve_path, program.files) if program.command_line else ()
    return frozenset((*program.find_folders(), *files))
