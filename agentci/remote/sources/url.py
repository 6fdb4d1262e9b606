"""Evaluators at an address: a single program, or an archive with its folder."""

import hashlib
from collections.abc import Sequence
from typing import Final
from urllib.parse import SplitResult, unquote, urldefrag, urlsplit

from agentci.errors import RefusedError, UnreachableError
from agentci.model.program import Listing, ProgramFile, RemoteProgram, Snapshot
from agentci.model.values import replace
from agentci.remote.sources.archive import is_archive, unpack
from agentci.remote.sources.contents import is_script, snapshot_of
from agentci.remote.sources.refs import check_ref, normal_sha256, shown, why_refused
from agentci.remote.sources.source import MAX_FILE_BYTES, MAX_TOTAL_BYTES, Surroundings

MAX_URL: Final = 2048

_NOT_IN_URLS: Final = frozenset(' \\"<>^`{|}')

_END: Final = "the address must end in the program's file name"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_PREFIX: Final = "sha256:"


class UrlSource:
    """Fetches what an address serves, if it is what the config's sha256 says."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._http = surroundings.http

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Check the address and its digest; see :class:`Source`."""
        if program.repository or program.revision:
            raise RefusedError(
                "an address has no repository and no revision",
                hint="remove `repo`, `branch` and `rev`, or use `source: github`",
            )
        _check_url(program.ref)
        _check_entry(program.ref)
        if not program.sha256:
            raise RefusedError(
                "a program at an address needs its sha256",
                hint="add `sha256: ...`; `curl -L URL | sha256sum` prints it",
            )
        return replace(program, sha256=normal_sha256(program.sha256))

    def resolve(self, program: RemoteProgram) -> str:
        """Name the content by its digest, which the config says; see :class:`Source`."""
        return _PREFIX + program.sha256

    def pin(self, program: RemoteProgram, commit: str) -> None:
        """Nothing is left to pin beside the sha256; see :class:`Source`."""

    def fetch(
        self,
        program: RemoteProgram,
        commit: str,  # noqa: ARG002 (the sha256 says it)
        *,
        paths: Sequence[str],  # noqa: ARG002 (an archive comes whole)
    ) -> Snapshot:
        """Fetch the file or the archive, and unpack it once it is verified; see :class:`Source`."""
        url, entry = urldefrag(program.ref)
        name = _file_name(url)
        content = self._load(url, MAX_TOTAL_BYTES if entry else MAX_FILE_BYTES)
        found = hashlib.sha256(content).hexdigest()
        if found != program.sha256:
            raise RefusedError(
                f"{shown(url)} has the sha256 {found}, not {program.sha256}",
                hint="if the change is wanted, review it and write the new sha256",
            )
        if entry:
            return unpack(content, name=name, entry=entry)
        file = ProgramFile(content=content, executable=is_script(content))
        return snapshot_of(name, {name: file})

    def catalogue(self) -> Sequence[Listing]:
        """Nothing: the internet has no index."""
        return ()

    def _load(self, url: str, limit_bytes: int) -> bytes:
        response = self._http.get(url, limit_bytes=limit_bytes)
        if response.status == 200:  # noqa: PLR2004 (all that comes with content)
            return response.content
        message = f"{shown(url)} was answered with {response.status}"
        if 400 <= response.status < 500:  # noqa: PLR2004 (the address is to blame)
            raise RefusedError(message, hint="the address must be open to all, without a login")
        raise UnreachableError(message)


def _check_url(ref: str) -> None:
    hint = "write `ref: https://HOST/PATH/NAME.py`, or the address of an archive with `#PATH` in it"
    parts = _split(ref)
    # What is no part of an address is looked for first: urllib drops some of it in silence.
    if parts is None or not (ref.isascii() and ref.isprintable()) or set(ref) & _NOT_IN_URLS:
        raise RefusedError("the ref is no address", hint=hint)
    if parts.username is not None or parts.password is not None:
        raise RefusedError(
            f"the address at {parts.hostname} has a user or a password in it",
            hint="a config is no place for secrets, and an address must be open to all",
        )
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_safe or not parts.hostname:
        raise RefusedError(f"{shown(ref)} does not begin with https://", hint=hint)
    if len(ref) > MAX_URL:
        raise RefusedError(f"the address has more than {MAX_URL:,} characters")


def _check_entry(ref: str) -> None:
    url, entry = urldefrag(ref)
    name = _file_name(url)
    if "/" in name:
        raise RefusedError(f"the file name {shown(name)} has a `/` in it", hint=_END)
    if is_archive(name):
        if not entry:
            raise RefusedError(
                f"{shown(url)} is an archive, and does not say which program in it is meant",
                hint="add it: `#PATH/IN/ARCHIVE.py`",
            )
        check_ref(entry)
    elif "#" in ref:
        message = f"{shown(url)} is no archive to look for {shown(entry)} in"
        raise RefusedError(message, hint="archives end in .zip, .tar.gz or .tgz")
    elif not name:
        raise RefusedError("the address names no file", hint=_END)
    elif reason := why_refused(name):
        raise RefusedError(f"the file name {shown(name)} {reason}", hint=_END)


def _split(url: str) -> SplitResult | None:
    """The parts of an address; None where it has none, or a port that is no number."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path.rpartition("/")[2])
