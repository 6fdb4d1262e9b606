"""Read and write ``agentci.lock``: strict when read, with stable output."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, TypeAlias

from pydantic import Field, ValidationError

from agentci.config.yaml_document import read_yaml
from agentci.errors import InputError
from agentci.evaluators.fields import ConfigVersion, Sha256, StrictModel, Text
from agentci.model.program import LOCK_NAME, Lock, LockedProgram, LockedRequirements
from agentci.model.values import Place, Problem, replace

HEADER: Final = (
    "# Written by `agentci lock`: pinned contents of remote evaluators.\n"
    "# Commit this file, and review its changes like code.\n"
)
SCHEMA_ID: Final = "lock.schema.json"
LOCK_FILE_HINT: Final = "correct it, or remove it and run `agentci lock`"

Hash: TypeAlias = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]


class EvaluatorSpec(StrictModel):
    """One remote evaluator."""

    source: Text = Field(description="Source that provides the evaluator, for example `github`.")
    repository: str = Field(
        description="Repository in the source, for example `owner/name`; empty if it has none."
    )
    revision: str = Field(description="Branch, tag or commit in the config; empty if it has none.")
    ref: Text = Field(description="Path or URL of the program.")
    commit: Text = Field(description="Commit of the revision when it was locked.")
    files: dict[str, Sha256] = Field(
        min_length=1, description="sha256 of every file, by path in the program's folder."
    )
    executables: list[Text] = Field(default=[], description="Paths of executable files.")


class RequirementsSpec(StrictModel):
    """The resolved packages of one requirements file."""

    file: Text = Field(description="Path of the file when it was locked.")
    sha256: Sha256 = Field(description="sha256 of the file.")
    packages: dict[Text, list[Hash]] = Field(
        description="Hashes of the distribution files, by package with its version."
    )


class LockSpec(StrictModel):
    """Lock file of remote evaluators: commits, file digests and packages."""

    version: ConfigVersion = Field(description="Version of this format.")
    evaluators: list[EvaluatorSpec] = Field(default=[], description="Remote evaluators.")
    requirements: list[RequirementsSpec] = Field(
        default=[], description="Resolved requirements files of evaluators."
    )


def read_lock(data: bytes, *, file: str) -> Lock:
    """Parse a lock file.

    Raises:
        InputError: it is invalid; lists every problem with its line.
    """
    try:
        document = read_yaml(data, file=file)
    except InputError as error:
        raise _make_lock_error(error.problems) from None
    broken = [problem for problem in document.problems if problem.severity == "error"]
    if broken:
        raise _make_lock_error(broken)
    try:
        spec = LockSpec.model_validate(document.data)
    except ValidationError as error:
        raise _make_lock_error(
            Problem(
                message=f"{'.'.join(map(str, each['loc'])) or LOCK_NAME}: {each['msg']}",
                place=document.place_of(each["loc"]),
            )
            for each in error.errors(include_url=False)
        ) from None
    lock = Lock(
        programs=tuple(_make_locked_program(each) for each in spec.evaluators),
        requirements=tuple(
            LockedRequirements(
                file=each.file,
                sha256=each.sha256,
                packages={name: tuple(hashes) for name, hashes in each.packages.items()},
            )
            for each in spec.requirements
        ),
    )
    twice = [
        Problem(message=f"{each} is locked twice", place=Place(file=file))
        for each in _find_duplicates(lock)
    ]
    if twice:
        raise _make_lock_error(twice)
    return lock


def _make_lock_error(problems: Iterable[Problem]) -> InputError:
    """Make an error with a hint for lock files instead of the hints for configs."""
    return InputError([replace(problem, hint=LOCK_FILE_HINT) for problem in problems])


def _find_duplicates(lock: Lock) -> Iterator[str]:
    """Yield the names of entries that occur more than once, which makes a lock ambiguous."""
    programs = Counter(each.key for each in lock.programs)
    requirements = Counter(each.sha256 for each in lock.requirements)
    yield from (named[-1] for named, count in programs.items() if count > 1)
    for each in lock.requirements:
        if requirements.pop(each.sha256, 1) > 1:
            yield each.file


def _make_locked_program(spec: EvaluatorSpec) -> LockedProgram:
    return LockedProgram(**{**spec.model_dump(), "executables": tuple(spec.executables)})


def render_lock(lock: Lock) -> str:
    """Render a lock; equal content gives equal text."""
    import yaml  # noqa: PLC0415 (only `agentci lock` writes one)

    programs = sorted(lock.programs, key=lambda each: each.key)
    requirements = sorted(lock.requirements, key=lambda each: (each.file, each.sha256))
    data = {
        "version": 1,
        "evaluators": [
            {
                "source": each.source,
                "repository": each.repository,
                "revision": each.revision,
                "ref": each.ref,
                "commit": each.commit,
                "files": dict(sorted(each.files.items())),
                **({"executables": sorted(each.executables)} if each.executables else {}),
            }
            for each in programs
        ],
        "requirements": [
            {
                "file": each.file,
                "sha256": each.sha256,
                "packages": {name: list(each.packages[name]) for name in sorted(each.packages)},
            }
            for each in requirements
        ],
    }
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=2**31)
    return f"{HEADER}{text}"


def lock_schema() -> dict[str, Any]:
    """Return the JSON Schema of lock files."""
    from agentci.config.schema import JSON_SCHEMA_DIALECT  # noqa: PLC0415 (a run does not need it)

    return {"$schema": JSON_SCHEMA_DIALECT, "$id": SCHEMA_ID, **LockSpec.model_json_schema()}
