"""Resolve requirements to every package with its version and the hashes of its files."""

import json
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentci._util.files import FOLDER_MODE, set_mode
from agentci.execution.child.tmpdir import remove_tmpdir
from agentci.execution.environments.installers import (
    InstallerRunner,
    Pip,
    Uv,
    choose_installer,
    make_install_error,
)
from agentci.execution.environments.requirements import (
    Requirements,
    check_lockable,
    is_locked_line,
    list_wanted_lines,
    normalize_name,
)


class ResolvedRequirements(Struct, frozen=True, kw_only=True):
    """Resolved packages with their dependencies.

    Attributes:
        lines: one ``name==1.2 --hash=sha256:...`` per package, sorted, without indexes.
        universal: whether the lines are valid for every supported platform and Python; otherwise
            only for the current ones.
    """

    lines: tuple[str, ...]
    universal: bool


def resolve_requirements(
    requirements: Requirements, *, runner: InstallerRunner
) -> ResolvedRequirements:
    """Find the newest compatible packages, ignoring ``requirements.locked``.

    Raises:
        EvaluatorError: there are none, or they cannot be locked; the message completes a sentence
            about the evaluator.
    """
    allow_source = requirements.allow_source
    lines = Requirements(text=requirements.text, allow_source=allow_source).parse_lines()
    check_lockable(lines)
    installer = choose_installer(runner)
    try:
        text = "".join(f"{line}\n" for line in (*lines.options, *list_wanted_lines(lines)))
        if isinstance(installer, Uv):
            command = installer.compile_command(allow_source=allow_source)
            printed = runner.run(command, stdin=text, allow_source=allow_source)
            found = _parse_compiled(printed.decode())
        else:
            found = _resolve_with_pip(installer, text, runner, allow_source=allow_source)
    except OSError as error:
        raise make_install_error(str(error)) from None
    return ResolvedRequirements(lines=_check_locked(found), universal=isinstance(installer, Uv))


def _parse_compiled(printed: str) -> list[str]:
    """Parse the output of uv into one line per package."""
    lines = re.sub(r"\s*\\\n\s*", " ", printed).splitlines()
    packages = [line.split(" --hash=") for line in lines if not line.startswith(("-", "#"))]
    return [
        _format_locked_line(package.strip(), hashes)
        for package, *hashes in packages
        if package.strip()
    ]


def _resolve_with_pip(
    pip: Pip, text: str, runner: InstallerRunner, *, allow_source: bool
) -> list[str]:
    folder = Path(tempfile.mkdtemp(prefix="agentci-"))
    try:
        set_mode(folder, FOLDER_MODE)  # installers may run as another user
        printed = runner.run(
            pip.venv_command(folder),
            pip.report_command(folder, allow_source=allow_source),
            stdin=text,
            folder=folder,
            allow_source=allow_source,
        )
    finally:
        remove_tmpdir(os.fsencode(folder))
    return [_format_reported_package(each) for each in json.loads(printed)["install"]]


def _format_reported_package(report: dict[str, Any]) -> str:
    metadata = report["metadata"]
    hashes = report["download_info"].get("archive_info", {}).get("hashes", {})
    package = f"{normalize_name(metadata['name'])}=={metadata['version']}"
    return _format_locked_line(
        package, [f"{algorithm}:{digest}" for algorithm, digest in hashes.items()]
    )


def _format_locked_line(package: str, hashes: Iterable[str]) -> str:
    kept = sorted({each.strip() for each in hashes if each.startswith("sha256:")})
    return " ".join([package, *(f"--hash={each}" for each in kept)])


def _check_locked(lines: Iterable[str]) -> tuple[str, ...]:
    checked = tuple(sorted(set(lines)))
    for line in checked:
        if not is_locked_line(line):
            raise make_install_error(
                f"{line.partition(' --hash')[0]} cannot be locked: its index provides no sha256"
            )
    return checked
