"""What is kept or was fetched, compared with what a config and the lock say it has to be."""

import hashlib
from collections.abc import Mapping

from agentci.errors import RefusedError
from agentci.model.lock import LOCK_NAME, LockedProgram
from agentci.model.program import RemoteProgram, Snapshot


def check_pins(
    digests: Mapping[str, str], entry: str, program: RemoteProgram, locked: LockedProgram | None
) -> None:
    """Refuse what is not what was pinned, wherever it came from.

    Args:
        digests: sha256 of every file, by path in the program's folder.
        entry: the file that is to be run.

    Raises:
        RefusedError: says which file differs.
    """
    if not _is_program(entry, digests, program):
        raise RefusedError(
            f"the cache has another program in the place of {program.ref}: {entry}",
            hint="empty it with `agentci cache clean`, and find out who else can write to it",
        )
    if program.sha256 and not _is_archive(program) and digests[entry] != program.sha256:
        raise RefusedError(
            f"{program.ref} has the sha256 {digests[entry]}, not {program.sha256}",
            hint="find out why; if the change is wanted, write the new digest into the config",
        )
    if locked is None:
        return
    for path in sorted({*digests, *locked.files}):
        if digests.get(path) != locked.files.get(path):
            raise RefusedError(
                f"{path} of {program.ref} is not what {LOCK_NAME} says",
                hint="find out why; if the change is wanted, run `agentci lock --upgrade`",
            )


def digests_of(snapshot: Snapshot) -> dict[str, str]:
    """The sha256 of every file, by its path."""
    return {path: hashlib.sha256(file.content).hexdigest() for path, file in snapshot.files.items()}


def _is_program(entry: str, digests: Mapping[str, str], program: RemoteProgram) -> bool:
    """Whether the ref names ``entry``, as far as the refs of a source tell."""
    if program.source == "url" and not _is_archive(program):
        return set(digests) == {entry}  # its name may be escaped, but nothing lies beside it
    if program.source in {"github", "url"}:
        return entry == program.ref.rpartition("#")[2].rpartition("/")[2]
    return True


def _is_archive(program: RemoteProgram) -> bool:
    """Whether the config's sha256 is that of something else than the program's file."""
    return program.source == "url" and "#" in program.ref
