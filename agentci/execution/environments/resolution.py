"""What requirements come to: every package with its version and the hashes of its files."""

import json
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentci.execution.environments.installer_runner import Workshop, failure
from agentci.execution.environments.installers import Pip, Uv, choose
from agentci.execution.environments.requirement_lines import canonical
from agentci.execution.environments.requirements import LOCKED, Requirements, refuse_direct, wanted


class Resolution(Struct, frozen=True, kw_only=True):
    """Packages and theirs.

    Attributes:
        lines: ``name==1.2 --hash=sha256:...`` each, sorted; no index is named in them.
        universal: for every platform and every Python that we run on; else for this one alone.
    """

    lines: tuple[str, ...]
    universal: bool


def resolve(requirements: Requirements, *, workshop: Workshop) -> Resolution:
    """Find the newest packages that go together, whatever ``requirements.locked`` says.

    Raises:
        EvaluatorError: there are none, or they cannot be locked; as the end of a sentence about
            the evaluator.
    """
    lines = Requirements(text=requirements.text).lines()
    refuse_direct(lines)
    installer = choose(workshop)
    try:
        with tempfile.TemporaryDirectory(prefix="agentci-") as temporary:
            file = Path(temporary) / "requirements.in"
            file.write_text("".join(f"{line}\n" for line in (*lines.options, *wanted(lines))))
            if isinstance(installer, Uv):
                found = _compiled(workshop.run(installer.resolving(file)).decode())
            else:
                found = _reported(installer, file, workshop)
    except OSError as error:
        raise failure(str(error)) from None
    return Resolution(lines=_checked(found), universal=isinstance(installer, Uv))


def _compiled(printed: str) -> list[str]:
    """One line a package, of the many that uv prints."""
    lines = re.sub(r"\s*\\\n\s*", " ", printed).splitlines()
    packages = [line.split(" --hash=") for line in lines if not line.startswith(("-", "#"))]
    return [_line(package.strip(), hashes) for package, *hashes in packages if package.strip()]


def _reported(pip: Pip, file: Path, workshop: Workshop) -> list[str]:
    folder = file.parent / "environment"
    workshop.run(pip.making(folder))
    report = json.loads(workshop.run(pip.reporting(folder, file)))
    return [_reported_line(each) for each in report["install"]]


def _reported_line(package: dict[str, Any]) -> str:
    metadata = package["metadata"]
    hashes = package["download_info"].get("archive_info", {}).get("hashes", {})
    named = f"{canonical(metadata['name'])}=={metadata['version']}"
    return _line(named, [f"{algorithm}:{digest}" for algorithm, digest in hashes.items()])


def _line(package: str, hashes: Iterable[str]) -> str:
    kept = sorted({each.strip() for each in hashes if each.startswith("sha256:")})
    return " ".join([package, *(f"--hash={each}" for each in kept)])


def _checked(lines: Iterable[str]) -> tuple[str, ...]:
    checked = tuple(sorted(set(lines)))
    for line in checked:
        if not LOCKED.fullmatch(line):
            raise failure(
                f"{line.partition(' --hash')[0]} cannot be locked: its index tells no sha256"
            )
    return checked
