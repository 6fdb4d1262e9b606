"""Source of evaluators at a URL: a single program, or an archive unpacked in memory."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import SplitResult, unquote, urldefrag, urlsplit

from agentci._util.archives import (
    ArchiveError,
    ArchiveMember,
    ArchiveTooLargeError,
    iterate_tar_members,
    iterate_zip_members,
)
from agentci.errors import PermanentFetchError, UnreachableError
from agentci.model.program import CatalogEntry, ProgramFile, ProgramSnapshot, RemoteProgram
from agentci.model.values import replace
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_TOTAL_BYTES, SourceContext
from agentci.remote.sources.validation import (
    MIB,
    SizeBudget,
    check_ref,
    find_file_name_problem,
    find_ref_problem,
    has_shebang,
    make_not_found_error,
    make_snapshot,
    normalize_sha256,
    quote_path,
    select_program_files,
    split_ref,
)

# Limit of a whole archive; a program's folder may be a small part of it.
MAX_UNPACKED_BYTES: Final = 64 * MIB

_ZIP: Final = ".zip"
_TAR: Final = (".tar.gz", ".tgz")

_SIZE_HINT: Final = "pack only the folder of the evaluator"
_DAMAGE_HINT: Final = "pack it again, and update its sha256"


def is_archive(name: str) -> bool:
    """Whether a file of this name is an archive to unpack."""
    return name.lower().endswith((_ZIP, *_TAR))


def unpack_program(content: bytes, *, name: str, entry: str) -> ProgramSnapshot:
    """Unpack the folder of the program ``entry``.

    Args:
        name: the archive's file name; its extension determines the format.

    Raises:
        PermanentFetchError: the program is not in the archive; the archive is damaged,
            encrypted or too large; or any member, even outside the program's folder, is unsafe:
            a link, a device, a duplicate or a path out of the archive.
    """
    if name.lower().endswith(_ZIP):
        members = iterate_zip_members(content)
    else:
        members = iterate_tar_members(content, limit_bytes=MAX_UNPACKED_BYTES)
    try:
        files, names = _unpack(members, name, entry)
    except ArchiveError as error:
        is_large = isinstance(error, ArchiveTooLargeError)
        raise PermanentFetchError(
            f"{quote_path(name)}: {error}", hint=_SIZE_HINT if is_large else _DAMAGE_HINT
        ) from None
    program = split_ref(entry)[1]
    if program not in files:
        raise make_not_found_error(entry, quote_path(name), names)
    return make_snapshot(program, files)


def _unpack(
    members: Iterator[ArchiveMember], archive: str, entry: str
) -> tuple[dict[str, ProgramFile], list[str]]:
    """Return the files of the folder of ``entry``, and the names of all files."""
    budget = SizeBudget()
    files: dict[str, ProgramFile] = {}
    names: dict[str, None] = {}
    for member in members:
        name = member.name.removeprefix("./").removesuffix("/")
        if problem := member.problem or _find_member_problem(name, names):
            message = f"{quote_path(member.name)} in {quote_path(archive)} {problem}"
            raise PermanentFetchError(message, hint="pack only plain files, each once")
        if member.is_folder:
            continue
        names[name] = None
        for path in select_program_files(entry, [name]):
            content = member.read(MAX_FILE_BYTES + 1)
            budget.add(path, len(content))
            files[path] = ProgramFile(content=content, executable=member.is_executable)
    return files, list(names)


def _find_member_problem(name: str, before: dict[str, None]) -> str | None:
    if name in {"", "."}:  # the packed folder itself
        return None
    return "occurs twice" if name in before else find_file_name_problem(name)


MAX_URL: Final = 2048

_NOT_IN_URLS: Final = frozenset(' \\"<>^`{|}')

_FILE_NAME_HINT: Final = "the URL must end with the program's file name"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_PREFIX: Final = "sha256:"


class UrlSource:
    """Fetches a URL and checks the content against the config's sha256."""

    def __init__(self, context: SourceContext) -> None:
        self._http = context.http

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Check the address and its digest; see :class:`Source`."""
        if program.repository or program.revision:
            raise PermanentFetchError(
                "a URL has no repository or revision",
                hint="remove `repo`, `branch` and `rev`, or use `source: github`",
            )
        _check_url(program.ref)
        _check_entry(program.ref)
        if not program.sha256:
            raise PermanentFetchError(
                "a program at a URL needs a `sha256`",
                hint="add `sha256: ...`; `curl -L URL | sha256sum` prints it",
            )
        return replace(program, sha256=normalize_sha256(program.sha256))

    def resolve(self, program: RemoteProgram) -> str:
        """Return the digest from the config; see :class:`Source`."""
        return _PREFIX + program.sha256

    def pin(self, program: RemoteProgram, commit: str) -> None:
        """Return None: the sha256 already pins the content; see :class:`Source`."""

    def fetch(
        self,
        program: RemoteProgram,
        commit: str,  # noqa: ARG002 (the sha256 identifies the content)
        *,
        paths: Sequence[str],  # noqa: ARG002 (an archive is fetched as a whole)
    ) -> ProgramSnapshot:
        """Fetch and verify the file or archive, then unpack an archive; see :class:`Source`."""
        url, entry = urldefrag(program.ref)
        name = _file_name(url)
        content = self._load(url, MAX_TOTAL_BYTES if entry else MAX_FILE_BYTES)
        found = hashlib.sha256(content).hexdigest()
        if found != program.sha256:
            raise PermanentFetchError(
                f"{quote_path(url)} has sha256 {found}, expected {program.sha256}",
                hint="if the change is intended, review it and update `sha256`",
            )
        if entry:
            return unpack_program(content, name=name, entry=entry)
        file = ProgramFile(content=content, executable=has_shebang(content))
        return make_snapshot(name, {name: file})

    def catalogue(self) -> Sequence[CatalogEntry]:
        """Return nothing: URLs have no index."""
        return ()

    def _load(self, url: str, limit_bytes: int) -> bytes:
        response = self._http.get(url, limit_bytes=limit_bytes)
        if response.status == 200:  # noqa: PLR2004 (the only status with content)
            return response.content
        message = f"{quote_path(url)} returned status {response.status}"
        if 400 <= response.status < 500:  # noqa: PLR2004 (a wrong address)
            raise PermanentFetchError(message, hint="the URL must be accessible without a login")
        raise UnreachableError(message)


def _check_url(ref: str) -> None:
    hint = "write `ref: https://HOST/PATH/NAME.py`, or the URL of an archive with `#PATH` in it"
    parts = _split_url(ref)
    # Invalid characters are checked first: urllib silently drops some of them.
    if parts is None or not (ref.isascii() and ref.isprintable()) or set(ref) & _NOT_IN_URLS:
        raise PermanentFetchError("the ref is not a URL", hint=hint)
    if parts.username is not None or parts.password is not None:
        raise PermanentFetchError(
            f"the URL at {parts.hostname} contains a user name or password",
            hint="do not put secrets into a config; the URL must be accessible without a login",
        )
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.hostname:
        raise PermanentFetchError(f"{quote_path(ref)} does not start with https://", hint=hint)
    if len(ref) > MAX_URL:
        raise PermanentFetchError(f"the URL has more than {MAX_URL:,} characters")


def _check_entry(ref: str) -> None:
    url, entry = urldefrag(ref)
    name = _file_name(url)
    if "/" in name:
        raise PermanentFetchError(
            f"the file name {quote_path(name)} contains a `/`", hint=_FILE_NAME_HINT
        )
    if is_archive(name):
        if not entry:
            raise PermanentFetchError(
                f"{quote_path(url)} is an archive, but the ref names no program in it",
                hint="append `#PATH/IN/ARCHIVE.py`",
            )
        check_ref(entry)
    elif "#" in ref:
        message = f"{quote_path(url)} is not an archive, so it cannot contain {quote_path(entry)}"
        raise PermanentFetchError(message, hint="archives end in .zip, .tar.gz or .tgz")
    elif not name:
        raise PermanentFetchError("the URL has no file name", hint=_FILE_NAME_HINT)
    elif reason := find_ref_problem(name):
        message = f"the file name {quote_path(name)} {reason}"
        raise PermanentFetchError(message, hint=_FILE_NAME_HINT)


def _split_url(url: str) -> SplitResult | None:
    """Split a URL; None if it is malformed or its port is not a number."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])
