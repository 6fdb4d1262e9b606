"""Fingerprints of checks: digests of all that an evaluator reads besides the recorded run.

Two runs are compared check by check where the fingerprints are equal. A fingerprint has the code
that the evaluator names with the modules it imports; of a Python program, those modules of the
workspace that it reaches.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from agentci._util.workspace import ResolvedPath, Workspace, is_file, read_start, resolve_inside
from agentci.evaluators.evaluator import ComparableEvaluator, Evaluator, FileContents, collect_needs
from agentci.execution.runtimes import NODE
from agentci.model.case import Expectation
from agentci.model.program import RemoteProgram, RequiredProgram
from agentci.model.values import IdentityKey
from agentci.remote.programs import ProgramTable, ReadyProgram

if TYPE_CHECKING:
    from agentci._util.text.python_code import ModuleImport, PythonModule

MAX_FILE_BYTES: Final = 16 * 1024**2
DIGITS: Final = 16


class CodeFiles:
    """The files of evaluators, each read once.

    Only files of the workspace, and of the repository of a config outside it, are read.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._contents: dict[ResolvedPath, bytes] = {}
        self._resolved: dict[tuple[Path, str | None], ResolvedPath | None] = {}

    def has(self, path: Path, home: str | None) -> bool:
        """Return whether ``path`` is a file that may be read.

        Args:
            home: absolute path of the repository of the config, if that is not the workspace.
        """
        return self._resolve(path, home) is not None

    def read(self, path: Path, home: str | None) -> bytes | None:
        """Read a file, up to ``MAX_FILE_BYTES``; None if it is missing or may not be read."""
        real = self._resolve(path, home)
        if real is None:
            return None
        if real not in self._contents:
            try:
                self._contents[real] = read_start(real, MAX_FILE_BYTES)
            except OSError:
                self._contents[real] = b""
        return self._contents[real]

    def _resolve(self, path: Path, home: str | None) -> ResolvedPath | None:
        key = (path, home)
        if key not in self._resolved:
            folders = (self._workspace.root, Path(home)) if home else (self._workspace.root,)
            self._resolved[key] = resolve_inside(path, folders) if is_file(path) else None
        return self._resolved[key]


def digest_bytes(data: bytes) -> str:
    """Compute the digest of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()[:DIGITS]


# A larger module counts as a whole, and without the modules that it imports.
MAX_MODULE_BYTES: Final = 256 * 1024
# Of one program; further modules do not count.
MAX_MODULES: Final = 200

# Names that code reaches in a module; None for all.
Names = frozenset[str] | None


class ReachedModules:
    """The modules that a program reaches, transitively, as far as they are in ``folders``."""

    def __init__(self, files: CodeFiles, folders: Iterable[Path], home: str | None) -> None:
        self._files = files
        self._folders = tuple(folders)
        self._home = home

    def collect(self, path: Path, names: Names) -> dict[Path, tuple[str, ...]]:
        """Collect the reached parts of each module, beginning with ``names`` in ``path``."""
        wanted: dict[Path, Names] = {path: names}
        parts: dict[Path, tuple[str, ...]] = {}
        pending = [path]
        while pending:
            file = pending.pop()
            module = self._find_module(file)
            if module is None or isinstance(module, str):
                parts[file] = () if module is None else (module,)
                continue
            code = module.reach(wanted[file])
            parts[file] = code.parts
            for found, more in (each for one in code.imports for each in self._find(one, file)):
                if found not in wanted:
                    if len(wanted) == MAX_MODULES:
                        continue
                    wanted[found] = more
                else:
                    before = wanted[found]
                    after = None if before is None or more is None else before | more
                    if after == before:
                        continue
                    wanted[found] = after
                pending.append(found)
        return parts

    def _find_module(self, path: Path) -> "PythonModule | str | None":
        """Read a module; its digest if it cannot be parsed, None if it is missing."""
        from agentci._util.text.python_code import parse_module  # noqa: PLC0415 (metrics need none)

        data = self._files.read(path, self._home)
        if data is None:
            return None
        try:
            module = parse_module(data.decode()) if len(data) <= MAX_MODULE_BYTES else None
        except UnicodeDecodeError:
            module = None
        return module or digest_bytes(data)

    def _find(self, imported: "ModuleImport", file: Path) -> Iterator[tuple[Path, Names]]:
        """Find the files of an import, each with the names that are used of it."""
        level = imported.level
        # A slice, as there may be more dots than folders.
        folders = file.parents[level - 1 : level] if level else self._folders
        for folder in folders:
            found = [*self._find_in(folder, imported)]
            if found:
                yield from found
                return

    def _find_in(self, folder: Path, imported: "ModuleImport") -> Iterator[tuple[Path, Names]]:
        *outer, last = imported.module.split(".") if imported.module else [""]
        inits: list[Path] = []
        for name in outer:
            folder /= name
            inits.append(folder / "__init__.py")
        package = folder / last
        module = package / "__init__.py"
        if not self._exists(module):
            module = package.with_name(f"{last}.py") if last else package
        submodules = self._find_submodules(package, imported)
        if not submodules and not self._exists(module):
            return
        yield from ((each, frozenset()) for each in inits if self._exists(each))
        if self._exists(module):
            names = imported.names
            own = None if names is None else names - submodules.keys()
            yield module, own if imported.is_used else frozenset()
        for path in submodules.values():
            yield path, imported.attributes if imported.is_used else frozenset()

    def _find_submodules(self, package: Path, imported: "ModuleImport") -> dict[str, Path]:
        """Find the names of an import that are modules of a package."""
        found = {
            name: next(filter(self._exists, _list_module_paths(package / name)), None)
            for name in imported.names or ()
        }
        return {name: path for name, path in found.items() if path is not None}

    def _exists(self, path: Path) -> bool:
        return self._files.has(path, self._home)


def _list_module_paths(path: Path) -> tuple[Path, Path]:
    return path / "__init__.py", path.with_name(f"{path.name}.py")


# Of one program; further scripts do not count.
MAX_SCRIPTS: Final = 200
PYTHON_SUFFIX: Final = ".py"
SCRIPT_SUFFIXES: Final = NODE.EXTENSIONS
_JAVASCRIPT_ENDING: Final = re.compile(r"\.([cm]?)js$")
_RELATIVE_IMPORT: Final = re.compile(
    rb"""\b(?:from|import|require)\s*\(?\s*["'](\.{1,2}/[^"'\n\0]+)["']"""
)


class SourceDigests:
    """Digests of files, each read once."""

    def __init__(self, workspace: Workspace) -> None:
        self._files = CodeFiles(workspace)

    def compute(self, files: FileContents) -> list[str]:
        """Compute the digests of ``files`` that exist, in their order."""
        paths = [Path(each) for each in files.paths]
        return [self._digest(path, files) for path in paths if is_file(path)]

    def list_files(self, files: FileContents) -> list[Path]:
        """List ``files`` that exist and those that they import."""
        paths = [path for path in map(Path, files.paths) if is_file(path)]
        return [file for path in paths for file in (self._collect(path, files) or (path,))]

    def read(self, files: FileContents) -> list[str]:
        """Read the code of ``files`` that exist and of what they import, without undecodable bytes.

        Of a function's file, only what the function reaches is read.
        """
        texts: list[str] = []
        for path in filter(is_file, map(Path, files.paths)):
            parts = self._collect(path, files)
            for file in (path,) if parts is None else parts:
                own = parts[file] if parts is not None and files.function else ()
                # A module that cannot be parsed is one part, its digest.
                is_whole = not own or own == (digest_bytes(self._read(file, files)),)
                texts += [self._read(file, files).decode("utf-8", "replace")] if is_whole else own
        return texts

    def _read(self, path: Path, files: FileContents) -> bytes:
        return self._files.read(path, files.home) or b""

    def _digest(self, path: Path, files: FileContents) -> str:
        """Compute the digest of a file; empty if it may not be read."""
        data = self._files.read(path, files.home)
        if data is None:
            return ""
        parts = self._collect(path, files)
        return digest_bytes(data) if parts is None else _digest_parts(path, parts)

    def _collect(self, path: Path, files: FileContents) -> dict[Path, tuple[str, ...]] | None:
        """Collect a file and those that it imports; None if it is in no language with imports."""
        if path.suffix in SCRIPT_SUFFIXES:
            return self._collect_scripts(path, files.home)
        if path.suffix != PYTHON_SUFFIX:
            return None
        folders = (path.parent, *map(Path, files.search_path))
        names = frozenset({files.function}) if files.function else None
        modules = ReachedModules(self._files, folders, files.home)
        return modules.collect(path, names)

    def _collect_scripts(self, path: Path, home: str | None) -> dict[Path, tuple[str, ...]]:
        """Collect a JavaScript file and those that it imports by a relative path."""
        parts: dict[Path, tuple[str, ...]] = {}
        pending = [path]
        while pending and len(parts) < MAX_SCRIPTS:
            file = pending.pop()
            data = self._files.read(file, home)
            if data is None or file in parts:
                continue
            parts[file] = (digest_bytes(data),)
            for each in _RELATIVE_IMPORT.findall(data):
                named = Path(os.path.normpath(file.parent / os.fsdecode(each)))
                candidates = (
                    named,
                    *(Path(f"{named}{suffix}") for suffix in SCRIPT_SUFFIXES),
                    # TypeScript imports `x.ts` by the name of its JavaScript.
                    Path(_JAVASCRIPT_ENDING.sub(r".\1ts", str(named))),
                )
                pending += [one for one in candidates if self._files.has(one, home)][:1]
        return parts


def _digest_parts(path: Path, parts: Mapping[Path, tuple[str, ...]]) -> str:
    """Compute the digest of files, each with its path relative to ``path``."""
    digest = hashlib.sha256()
    for file in sorted(parts):
        name = os.path.relpath(file, path.parent) if file != path else ""
        digest.update("\0".join((name, *parts[file], "")).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:DIGITS]


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
