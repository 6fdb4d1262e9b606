"""Digests of the files that evaluators name, for fingerprints: code with the modules it imports."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from agentci._util.text.python_code import ModuleImport, PythonModule, parse_module
from agentci._util.workspace import ResolvedPath, Workspace, is_file, read_start, resolve_inside
from agentci.evaluators.definition import FileContents

MAX_FILE_BYTES: Final = 16 * 1024**2
# A larger module counts as a whole, and without the modules that it imports.
MAX_MODULE_BYTES: Final = 1024**2
# Of one program; further modules do not count.
MAX_MODULES: Final = 200
PYTHON_SUFFIX: Final = ".py"

# Names that code reaches in a module; None for all.
Names = frozenset[str] | None


class SourceDigests:
    """Digests of files, each read once.

    Only files of the workspace, and of the repository of a config outside of it, are read.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._contents: dict[ResolvedPath, bytes] = {}
        self._resolved: dict[tuple[Path, str | None], ResolvedPath | None] = {}

    def compute(self, files: FileContents) -> list[str]:
        """Compute the digests of ``files`` that exist, in their order."""
        paths = [Path(each) for each in files.paths]
        return [self._digest(path, files) for path in paths if is_file(path)]

    def _digest(self, path: Path, files: FileContents) -> str:
        """Compute the digest of a file; empty if it may not be read."""
        real = self._resolve(path, files.home)
        if real is None:
            return ""
        if path.suffix != PYTHON_SUFFIX:
            return digest_bytes(self._read(real))
        folders = (path.parent, *map(Path, files.search_path))
        names = frozenset({files.function}) if files.function else None
        parts = _ReachedModules(self, folders, files.home).collect(path, names)
        digest = hashlib.sha256()
        for file in sorted(parts):
            name = os.path.relpath(file, path.parent) if file != path else ""
            digest.update("\0".join((name, *parts[file], "")).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:DIGITS]

    def find_module(self, path: Path, home: str | None) -> PythonModule | str | None:
        """Read a module; its digest if it cannot be parsed, None if it is missing."""
        real = self._resolve(path, home)
        if real is None:
            return None
        data = self._read(real)
        try:
            module = parse_module(data.decode()) if len(data) <= MAX_MODULE_BYTES else None
        except UnicodeDecodeError:
            module = None
        return module or digest_bytes(data)

    def is_module(self, path: Path, home: str | None) -> bool:
        """Return whether ``path`` is a file that may be read."""
        return self._resolve(path, home) is not None

    def _resolve(self, path: Path, home: str | None) -> ResolvedPath | None:
        key = (path, home)
        if key not in self._resolved:
            folders = (self._workspace.root, Path(home)) if home else (self._workspace.root,)
            self._resolved[key] = resolve_inside(path, folders) if is_file(path) else None
        return self._resolved[key]

    def _read(self, path: ResolvedPath) -> bytes:
        if path not in self._contents:
            try:
                self._contents[path] = read_start(path, MAX_FILE_BYTES)
            except OSError:
                self._contents[path] = b""
        return self._contents[path]


class _ReachedModules:
    """The modules that a program reaches, transitively, as far as they are in ``folders``."""

    def __init__(self, digests: SourceDigests, folders: Iterable[Path], home: str | None) -> None:
        self._digests = digests
        self._folders = tuple(folders)
        self._home = home

    def collect(self, path: Path, names: Names) -> dict[Path, tuple[str, ...]]:
        """Collect the reached parts of each module, beginning with ``names`` in ``path``."""
        wanted: dict[Path, Names] = {path: names}
        parts: dict[Path, tuple[str, ...]] = {}
        pending = [path]
        while pending:
            file = pending.pop()
            module = self._digests.find_module(file, self._home)
            if not isinstance(module, PythonModule):
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

    def _find(self, imported: ModuleImport, file: Path) -> Iterator[tuple[Path, Names]]:
        """Find the files of an import, each with the names that are used of it."""
        folders = (file.parents[imported.level - 1],) if imported.level else self._folders
        for folder in folders:
            found = [*self._find_in(folder, imported)]
            if found:
                yield from found
                return

    def _find_in(self, folder: Path, imported: ModuleImport) -> Iterator[tuple[Path, Names]]:
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

    def _find_submodules(self, package: Path, imported: ModuleImport) -> dict[str, Path]:
        """Find the names of an import that are modules of a package."""
        found = {
            name: next(filter(self._exists, _list_module_paths(package / name)), None)
            for name in imported.names or ()
        }
        return {name: path for name, path in found.items() if path is not None}

    def _exists(self, path: Path) -> bool:
        return self._digests.is_module(path, self._home)


def _list_module_paths(path: Path) -> tuple[Path, Path]:
    return path / "__init__.py", path.with_name(f"{path.name}.py")


DIGITS: Final = 16


def digest_bytes(data: bytes) -> str:
    """Compute the digest of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()[:DIGITS]
