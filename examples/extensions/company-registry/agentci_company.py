"""Evaluators from a company's registry, whose published versions never change.

The registry answers two questions, in JSON:

    GET /evaluators               {"evaluators": [{"name": ..., "version": ..., "language": ...}]}
    GET /evaluators/NAME/VERSION  {"entry": ..., "files": [{"path", "sha256", "content"}]}

The version of the first is the newest one; the content of a file is in base64.
"""

import hashlib
import os
from collections.abc import Sequence
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

from pydantic import Base64Bytes, BaseModel, ValidationError

from agentci.extend import (
    MAX_TOTAL_BYTES,
    CatalogEntry,
    PermanentFetchError,
    ProgramFile,
    ProgramSnapshot,
    RemoteProgram,
    SourceContext,
    UnreachableError,
    replace,
)

NAME = "company"
ADDRESS = "https://evaluators.example.com"
# In place of the address above, for a registry elsewhere.
VARIABLE = "COMPANY_EVALUATORS"

# A third larger than what is in it, and some room for names.
MAX_DOCUMENT_BYTES = 3 * MAX_TOTAL_BYTES // 2


class Published(BaseModel):
    """An evaluator of the registry, in its newest version."""

    name: str
    version: str
    language: str = ""
    description: str = ""


class Index(BaseModel):
    """All that the registry offers."""

    evaluators: list[Published]


class File(BaseModel):
    """One file of an evaluator."""

    path: str
    sha256: str
    content: Base64Bytes


class Version(BaseModel):
    """One version of an evaluator: its program, and all that lies in its folder."""

    entry: str
    files: list[File]


D = TypeVar("D", bound=BaseModel)


class CompanySource:
    """Fetches evaluators by their names (`ref:`) and versions (`rev:`, else the newest)."""

    def __init__(self, context: SourceContext) -> None:
        self._http = context.http
        self._address = os.environ.get(VARIABLE, ADDRESS).rstrip("/")

    def complete(self, program: RemoteProgram) -> RemoteProgram:
        """Name the registry; nothing is asked here, so that `agentci validate` needs no network."""
        if program.repository:
            raise PermanentFetchError("the company has one registry", hint="remove `repo`")
        return replace(program, repository=self._address)

    def resolve(self, program: RemoteProgram) -> str:
        """The version that is meant: the one that the config names, else the newest."""
        if program.revision:
            return program.revision
        newest = {each.name: each.version for each in self._index().evaluators}
        if program.ref not in newest:
            raise PermanentFetchError(
                f"the company's registry has no evaluator {program.ref!r}",
                hint="`agentci evaluator list --source company` shows what it has",
            )
        return newest[program.ref]

    def pin(self, program: RemoteProgram, commit: str) -> str | None:
        """What keeps an entry at this version."""
        return None if program.revision else f"rev: {commit}"

    def fetch(self, program: RemoteProgram, commit: str, *, paths: Sequence[str]) -> ProgramSnapshot:
        """Fetch a version, whose files have to be what the registry says that they are."""
        del paths  # a version comes whole
        version = self._load(f"/evaluators/{quote(program.ref, '')}/{quote(commit, '')}", Version)
        for file in version.files:
            if hashlib.sha256(file.content).hexdigest() != file.sha256:
                raise UnreachableError(f"{file.path} of {program.ref} arrived damaged")
        files = {file.path: ProgramFile(content=file.content) for file in version.files}
        return ProgramSnapshot(entry=version.entry, files=files)

    def catalogue(self) -> Sequence[CatalogEntry]:
        """All evaluators of the registry."""
        return [
            CatalogEntry(
                name=each.name,
                source=NAME,
                ref=each.name,
                description=each.description,
                language=each.language,
            )
            for each in self._index().evaluators
        ]

    def _index(self) -> Index:
        return self._load("/evaluators", Index)

    def _load(self, path: str, kind: type[D]) -> D:
        url = self._address + path
        response = self._http.get(url, limit_bytes=MAX_DOCUMENT_BYTES)
        if response.status == HTTPStatus.NOT_FOUND:
            raise PermanentFetchError(f"there is no {url}", hint="check the name and the version")
        if response.status != HTTPStatus.OK:
            raise UnreachableError(f"{url} was answered with {response.status}")
        try:
            return kind.model_validate_json(response.content)
        except ValidationError as error:
            raise UnreachableError(f"{url} gave no {kind.__name__}: {error}") from None
