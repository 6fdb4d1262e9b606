"""The user's files: lookup, display names, reading, decoding, and the workspace boundary.

The processor time and the memory that this process spends on reading one input are limited. The
limits grow with the size of the input. They hold only in the main thread, which reads all files
that users name, and only after ``enable_input_limits``.
"""

import errno
import math
import os
import re
import resource
import signal
import stat
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from io import FileIO
from pathlib import Path
from types import FrameType
from typing import Final

from msgspec import Struct

from agentci.errors import InputError
from agentci.model.values import COMMAND_LINE, Place

# Far above what any realistic input needs.
BASE_SECONDS: Final = 60.0
SECONDS_PER_BYTE: Final = 5.0 / 1024**2
BASE_MEMORY_BYTES: Final = 2 * 1024**3
MEMORY_PER_BYTE: Final = 32

# Environment variable with a number by which both limits are multiplied.
FACTOR_VARIABLE: Final = "AGENTCI_INPUT_LIMITS"
# Index of the data and stack pages in /proc/self/statm; see proc(5).
DATA_PAGES: Final = 5


class _TimeLimitReached(BaseException):
    """The processor time is used up; a BaseException, so that error handlers do not catch it."""


class _Limits:
    """The limits on the input that is read now, and on those that it is a part of.

    Attributes:
        factor: by which the limits are multiplied; 0 for no limits.
    """

    def __init__(self) -> None:
        self.factor = 0.0
        self._is_armed = False
        # Seconds left for the inputs that the current one is a part of, outermost first.
        self._outer: list[float] = []
        self._depth = 0
        self._soft_limit = resource.RLIM_INFINITY

    def start(self) -> None:
        """Start to read an input, which may be a part of another."""
        if self._depth:
            self._outer.append(self._disarm())
        else:
            self._soft_limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
        self._depth += 1
        self._set_memory(_measure_data_bytes() + int(self.factor * BASE_MEMORY_BYTES))
        self._arm(self.factor * BASE_SECONDS)

    def end(self) -> None:
        """End what ``start`` has started."""
        self._is_armed = False
        self._depth -= 1
        if not self._depth:
            # At once: there may be no memory left for anything else.
            with suppress(OSError, ValueError):
                _, hard = resource.getrlimit(resource.RLIMIT_DATA)
                resource.setrlimit(resource.RLIMIT_DATA, (self._soft_limit, hard))
        self._disarm()
        if self._depth:
            self._arm(self._outer.pop())

    def add(self, size: int) -> None:
        """Raise the limits for ``size`` more bytes of the current input."""
        if self._depth:
            seconds = self.factor * SECONDS_PER_BYTE * size
            left = self._disarm()
            self._outer = [each + seconds for each in self._outer]
            soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
            if soft != resource.RLIM_INFINITY:
                self._set_memory(soft + int(self.factor * MEMORY_PER_BYTE * size))
            self._arm(left + seconds)

    def handle_signal(self, _: int, frame: FrameType | None) -> None:
        """Handle the signal of the timer."""
        if not self._is_armed:
            return
        if frame is not None and frame.f_code.co_filename == _THIS_MODULE:
            # Limits may be starting or ending, where nothing would catch it: signal again later.
            signal.setitimer(signal.ITIMER_PROF, 1e-3)
            return
        raise _TimeLimitReached

    def _arm(self, seconds: float) -> None:
        self._is_armed = True
        # A timer of 0 seconds would never end.
        signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-3))

    def _disarm(self) -> float:
        """Stop the timer; return the seconds left."""
        self._is_armed = False
        return signal.setitimer(signal.ITIMER_PROF, 0)[0]

    def _set_memory(self, limit: int) -> None:
        """Limit the memory to ``limit`` bytes, unless it was limited to less."""
        with suppress(OSError, ValueError):  # such as a system without this limit
            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            known = [each for each in (self._soft_limit, hard) if each != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_DATA, (min([limit, *known]), hard))


def _measure_data_bytes() -> int:
    """Return the bytes that RLIMIT_DATA counts; 0 if unknown.

    The peak of the resident memory would not do: a process starts with that of its parent.
    """
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 (pathlib is slower)
            return int(file.read().split()[DATA_PAGES]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


_LIMITS: Final = _Limits()
_THIS_MODULE: Final = _Limits.handle_signal.__code__.co_filename


def enable_input_limits(environ: Mapping[str, str]) -> None:
    """Enable the limits in this process; call it in the main thread.

    Raises:
        InputError: the variable ``FACTOR_VARIABLE`` is not a positive number.
    """
    text = environ.get(FACTOR_VARIABLE, "") or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not (0 < factor < math.inf):
        raise InputError.from_message(
            f"{FACTOR_VARIABLE} must be a positive number", place=COMMAND_LINE
        )
    signal.signal(signal.SIGPROF, _LIMITS.handle_signal)
    _LIMITS.factor = factor


class _InputLimits:
    """Limits on the processor time and the memory for reading one input, as a context manager.

    A class, as a signal between the frames of a generator and its caller would reach neither.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._is_limited = False

    def __enter__(self) -> None:
        if _LIMITS.factor and threading.current_thread() is threading.main_thread():
            self._is_limited = True
            _LIMITS.start()
            _LIMITS.add(self._size)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if self._is_limited:
            _LIMITS.end()
        hint: str | None = f"make it smaller, or raise the limits with {FACTOR_VARIABLE}=4"
        if isinstance(error, _TimeLimitReached):
            message = "reading this file and what it names takes too much processor time"
        elif isinstance(error, MemoryError):
            message = "reading this file and what it names takes too much memory"
        elif isinstance(error, RecursionError):
            message, hint = "the file is nested too deeply to be read", None
        else:
            return
        raise InputError.from_message(message, place=Place(file=self._name), hint=hint) from None


def limit_input(name: str, *, size: int = 0) -> AbstractContextManager[None]:
    """Limit the processor time and the memory for reading one input.

    The files that are read inside raise the limits, see ``add_input_size``.

    Args:
        name: the input's file, for messages.
        size: bytes that were read before.

    Raises:
        InputError: a limit is reached, or Python cannot handle the nesting of the input.
    """
    return _InputLimits(name, size)


def add_input_size(size: int) -> None:
    """Raise the limits of the input that is read now for ``size`` more bytes."""
    if threading.current_thread() is threading.main_thread():
        _LIMITS.add(size)


# UTF-16 and UTF-32 files start with one of these marks, or with ASCII between NULs.
_WIDE_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_WIDE_ASCII: Final = re.compile(
    rb"\A(?:[\t\n\r -~]\0{1,3}|\0{1,3}[\t\n\r -~])(?:.?\0|\0)", re.DOTALL
)
_SAVE_AS_UTF8: Final = "save it as UTF-8"


def decode_utf8(data: bytes, *, file: str) -> str:
    """Decode UTF-8, with or without a byte order mark.

    Raises:
        InputError: the file has another encoding, or is not text.
    """
    if data.startswith(_WIDE_MARKS) or _WIDE_ASCII.match(data):
        message = "the file is UTF-16 or UTF-32, not UTF-8"
        raise InputError.from_message(message, place=Place(file=file), hint=_SAVE_AS_UTF8)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = find_place_after(data[: error.start].decode("utf-8", "replace"), file=file)
        if b"\0" in data:
            raise InputError.from_message("the file is binary, not text", place=place) from None
        message = f"the byte 0x{data[error.start]:02X} is not UTF-8"
        raise InputError.from_message(
            message, place=place, hint=_suggest_encoding(data) or _SAVE_AS_UTF8
        ) from None
    if "\0" in text:
        place = find_place_after(text[: text.index("\0")], file=file)
        raise InputError.from_message(
            "the file is binary, not text: it contains a NUL byte", place=place
        )
    return text


def find_place_after(before: str, *, file: str) -> Place:
    """Return the place of the character after ``before``."""
    lines = before.split("\n")
    return Place(file=file, line=len(lines), column=len(lines[-1]) + 1)


def _suggest_encoding(data: bytes) -> str | None:
    """Suggest the encoding of text that looks Western European."""
    # Latin-1 has no characters from 0x80 to 0x9F; damaged UTF-8 has many bytes in that range.
    if re.search(rb"[\x80-\x9f]", data):
        return None
    return f"it looks like Latin-1; {_SAVE_AS_UTF8}"


CHUNK_BYTES: Final = 64 * 1024


class ResolvedPath(Struct, frozen=True):
    """A path without links that may be read, written, or opened to a program.

    A pull request can commit links. So only a ``Workspace`` makes such paths, and the two functions
    below for paths that no pull request names.
    """

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


def trust_path(path: Path) -> ResolvedPath:
    """Resolve a path of agentci, of the system, or of code that is trusted like agentci."""
    return ResolvedPath(resolve_path(path))


def restore_path(text: str) -> ResolvedPath:
    """Restore a resolved path from its text; a link that has replaced a part is not followed."""
    return ResolvedPath(Path(text))


class Workspace(Struct, frozen=True, kw_only=True):
    """The folder in which configs may name files.

    Attributes:
        root: real path of the repository, or of the working directory outside a repository.
        cwd: real path of the working directory.
        home: real path of another repository, whose config the user has named; None for none.
        checkout: real path of the workflow's checkout, if the working directory is outside it.
    """

    root: Path
    cwd: Path
    home: Path | None = None
    checkout: Path | None = None

    def display_path(self, path: Path) -> str:
        """Format ``path`` for messages: relative to the root if inside it, with ``/``."""
        absolute = Path(os.path.normpath(self.cwd / path))
        if absolute.is_relative_to(self.root):
            return absolute.relative_to(self.root).as_posix()
        return absolute.as_posix()

    def contains(self, path: Path) -> bool:
        """Whether ``path`` is inside after resolving all symbolic links."""
        return self.find(path) is not None

    def extend(self, folder: Path) -> "Workspace":
        """Return the workspace for a config in ``folder``: with its repository if it is outside."""
        if self.contains(folder):
            return self
        return Workspace(
            root=self.root,
            cwd=self.cwd,
            home=find_workspace(folder).root,
            checkout=self.checkout,
        )

    def find(self, path: Path) -> ResolvedPath | None:
        """Resolve a path that a config names; None if it is outside."""
        homes = (self.root,) if self.home is None else (self.root, self.home)
        return resolve_inside(self.cwd / path, homes)

    def find_given(self, path: Path) -> ResolvedPath | None:
        """Resolve a path that the user names; None if a link in the workspace leads outside."""
        absolute = self.cwd / path
        real = resolve_path(absolute)
        return None if find_link_out(absolute, real, self.root) else ResolvedPath(real)

    def is_outside(self, folder: str) -> bool:
        """Whether a folder, as named and as resolved, is absolute and outside.

        A pull request can then change neither where it is nor what is in it.
        """
        found = self.find_given(Path(folder))
        named = Path(os.path.normpath(folder))
        return (
            found is not None
            and named.is_absolute()
            and not (named.is_relative_to(self.root) or self.contains(found.path))
        )

    def resolve(
        self, path: Path, *, named: str | None = None, place: Place | None = None
    ) -> ResolvedPath:
        """Resolve a path that a config names.

        Args:
            named: the path as written; by default as ``display_path`` shows it.
            place: where it was named; by default problems are placed in the file itself.

        Raises:
            InputError: it is outside.
        """
        found = self.find(path)
        if found is None:
            raise self._make_outside_error(path, named, place, _INSIDE_HINT)
        return found

    def resolve_given(
        self, path: Path, *, named: str | None = None, place: Place | None = None
    ) -> ResolvedPath:
        """Resolve a path that the user names, which may be outside; else like ``resolve``.

        Raises:
            InputError: a link in the workspace leads outside: a pull request can commit one.
        """
        found = self.find_given(path)
        if found is None:
            hint = f"remove the link, or name {resolve_path(self.cwd / path)} instead"
            raise self._make_outside_error(path, named, place, hint)
        return found

    def _make_outside_error(
        self, path: Path, named: str | None, place: Place | None, hint: str
    ) -> InputError:
        shown = self.display_path(path)
        message = f"{named or shown} is outside the workspace"
        absolute = self.cwd / path
        link = find_link_out(absolute, resolve_path(absolute), self.root)
        if link is not None:
            message += f": {self.display_path(link)} is a link to {link.readlink()}"
            hint = _LINK_HINT if hint == _INSIDE_HINT else hint
        return InputError.from_message(message, place=place or Place(file=shown), hint=hint)


_INSIDE_HINT: Final = "a config can only name files in the workspace"
_LINK_HINT: Final = "replace the link by what it leads to"


def find_workspace(cwd: Path, *, root: Path | None = None) -> Workspace:
    """Find the workspace of ``cwd``: ``root`` if given, else the git repository."""
    here = resolve_path(cwd)
    checkout = None if root is None else resolve_path(root)
    if checkout is not None and here.is_relative_to(checkout):
        return Workspace(root=checkout, cwd=here)
    for folder in (here, *here.parents):
        if _read_mode(folder / ".git"):
            return Workspace(root=folder, cwd=here, checkout=checkout)
    return Workspace(root=here, cwd=here, checkout=checkout)


def resolve_path(path: Path) -> Path:
    """Resolve all symbolic links in ``path``; stops at a loop, and at a NUL character."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return Path(os.path.abspath(path))  # noqa: PTH100 (pathlib keeps `..`)


def resolve_inside(path: Path, folders: Iterable[Path]) -> ResolvedPath | None:
    """Resolve an absolute path; None if it is in none of the ``folders``, which are real paths."""
    real = resolve_path(path)
    return ResolvedPath(real) if any(map(real.is_relative_to, folders)) else None


# As many as Linux follows in one path.
_MAX_LINKS: Final = 40


def find_link_out(path: Path, real: Path, root: Path) -> Path | None:
    """Return the link in the folder ``root`` through which ``path`` leads out of it, or None.

    Args:
        path: absolute path.
        real: the same path, resolved.
        root: real path.
    """
    if real.is_relative_to(root):
        return None
    found: Path | None = None
    here, links = Path("/"), 0
    waiting = str(path).split("/")[::-1]
    while waiting and links < _MAX_LINKS:
        name = waiting.pop()
        if name == "..":
            here = here.parent
        elif name not in {"", "."}:
            here /= name
            try:
                target = str(here.readlink())
            except (OSError, ValueError):  # it is not a link
                continue
            found = here if here.is_relative_to(root) else found
            links += 1
            waiting += target.split("/")[::-1]
            here = Path("/") if target.startswith("/") else here.parent
    return found


def is_folder(path: Path) -> bool:
    """Whether ``path`` is a folder; unlike pathlib, never raises for odd names or permissions."""
    return stat.S_ISDIR(_read_mode(path))


def is_file(path: Path) -> bool:
    """Whether ``path`` is a regular file; never raises, like ``is_folder``."""
    return stat.S_ISREG(_read_mode(path))


def read_file(
    path: ResolvedPath, *, name: str, limit_bytes: int, place: Place | None = None
) -> bytes:
    """Read a file that the user names.

    Args:
        path: the file; a link that has replaced a part of it is an error.
        name: for messages.
        limit_bytes: maximum size.
        place: where the file was named; by default problems are placed in the file itself.

    Raises:
        InputError: it is missing, a folder, too large, or not readable.
    """
    return b"".join(
        read_chunks(path, name=name, limit_bytes=limit_bytes, place=place, chunk_bytes=-1)
    )


def read_chunks(
    path: ResolvedPath,
    *,
    name: str,
    limit_bytes: int,
    place: Place | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[bytes]:
    """Read a file like ``read_file``, one chunk at a time."""
    place = place or Place(file=name)
    too_large = InputError.from_message(
        f"{name} is larger than {limit_bytes // 1024**2} MiB",
        place=place,
        hint="split it into several files",
    )
    try:
        with _open_regular_file(path.path, name, place) as file:
            size, taken = os.fstat(file.fileno()).st_size, 0
            if size > limit_bytes:
                raise too_large
            add_input_size(size)
            step = min(chunk_bytes, size + 1)  # a larger buffer takes time to allocate
            while chunk := file.read(step):
                taken += len(chunk)
                if taken > limit_bytes:  # its size was that of an earlier moment
                    raise too_large
                yield chunk
    except FileNotFoundError:
        raise InputError.from_message(f"{name} does not exist", place=place) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError.from_message(f"{name} cannot be read: {reason}", place=place) from None


def _open_regular_file(path: Path, name: str, place: Place) -> FileIO:
    """Open a file, then check its kind, so that it cannot be replaced in between."""
    descriptor = _open_without_links(path)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return FileIO(descriptor)
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise InputError.from_message(f"{name} is a folder", place=place, hint="name the file")
    raise InputError.from_message(f"{name} is not a regular file", place=place)


def read_start(path: ResolvedPath, limit_bytes: int) -> bytes:
    """Read the first bytes of a regular file, no more than ``limit_bytes``.

    Raises:
        OSError: it cannot be read, is not a regular file, or a link has replaced a part of it.
    """
    descriptor = _open_without_links(path.path)
    with open(descriptor, "rb") as file:  # noqa: PTH123 (pathlib opens no descriptors)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(limit_bytes)


def _open_without_links(path: Path) -> int:
    """Open a file to read it; a link anywhere in its absolute path is an error."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if sys.platform != "linux":  # without O_PATH, opening a folder needs permission to list it
        return os.open(path, flags)
    folder = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        for name in path.parts[1:-1]:
            below = os.open(
                name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
            )
            os.close(folder)
            folder = below
        return os.open(path.name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _read_mode(path: Path) -> int:
    """Return the ``st_mode`` of the file that ``path`` leads to; 0 if it cannot be read."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
