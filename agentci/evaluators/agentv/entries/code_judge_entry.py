"""Entries of ``code_judge``, ``code-grader`` in AgentV 4."""

import re
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, model_validator

from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import Surroundings, identity_of, standard_of
from agentci.evaluators.agentv.code_judge import CodeJudge
from agentci.evaluators.agentv.entry_fields import JudgeEntry, without_default
from agentci.evaluators.agentv.payload import Wire
from agentci.evaluators.fields import MAX_COUNT, Count, Image, Seconds, Strict, Text, VariableName
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.repeat import Repeated
from agentci.model.choices import Isolation
from agentci.model.json import JsonObject
from agentci.model.judging import ModelAccess, WantedPanel
from agentci.model.requests import DOCKER, MEMORY_MB, PROCESSES, RunCommand

DEFAULT_TIMEOUT_SECONDS: Final = 120
# Questions to a model, as many as AgentV allows where nothing is said.
MAX_CALLS: Final = 50
# What runs a command that is written as one line. AgentV starts a login shell, which would forget
# our PATH and read settings of the machine.
SHELL: Final = ("sh", "-c")

PLAIN_LINE: Final = re.compile(
    r"\s*(?:(?:uv|bun|node|python3?)\s+[\w./-]+|[\w.-]*/[\w./-]+)(?:\s+[\w./-]+)*\s*"
)

Calls: TypeAlias = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Command: TypeAlias = Text | Annotated[list[Text], Field(min_length=1)]


class AccessSpec(Strict):
    """Access to a language model."""

    max_calls: Calls = Field(
        default=MAX_CALLS, description="Questions that it may ask about each case."
    )


class CodeJudgeEntry(Repeated, JudgeEntry):
    """A command that reads a case with its run from stdin, and writes a score to stdout."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=without_default("name", "script"),
    )

    type: Literal["code_judge"] = Field(description="A command of your own.")
    script: Command = Field(
        description="The command: a list of words, or a line for the shell. `command` says the "
        "same."
    )
    cwd: Text | None = Field(
        default=None, description="Folder that it runs in; by default that of this file."
    )
    wire: Wire | None = Field(
        default=None,
        description="The words that it is given the case in: those of one generation of AgentV "
        "(`camel`, `snake`, `v4`), or of all at once (`union`, the default).",
    )
    timeout: Seconds = Field(
        default=DEFAULT_TIMEOUT_SECONDS, description="Seconds after which it is stopped."
    )
    executor: Literal["local", "docker"] = Field(
        default="local", description="Where it runs: on this machine, or in a container."
    )
    image: Image | None = Field(
        default=None,
        description="Image that it runs in, with the interpreter and the packages in it and a copy "
        "of its folder; for `executor: docker`, which needs it.",
    )
    network: bool = Field(default=True, description="Whether it may use the network.")
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables that it may see, beside the harmless ones.",
    )
    memory_mb: Count = Field(
        default=MEMORY_MB, description="MiB of memory that each process of it may use."
    )
    processes: Count = Field(
        default=PROCESSES, description="Processes that it may have at a time, threads included."
    )
    isolation: Isolation = Field(
        default="fork",
        description="How a script begins that the Python of agentci runs: as a `fork` of one that "
        "has started already, or by itself (`spawn`), which takes longer.",
    )
    cache: bool = Field(
        default=True,
        description="Whether an earlier reply is taken where nothing has changed that it was made "
        "from; `false` for a command that asks a network, a clock or chance.",
    )
    target: AccessSpec | bool | None = Field(
        default=None,
        description="Whether it may ask the language model of `judge`, through the address and the "
        "token in `AGENTV_TARGET_PROXY_URL` and `AGENTV_TARGET_PROXY_TOKEN`.",
    )
    judge: JudgeSpec | None = Field(
        default=None,
        description="Which model answers what it asks, where that is not the one of the file.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_script(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if "command" in data and "script" in data:
            raise ValueError("script and command are one field: keep one of them")
        if "command" not in data and "script" not in data:
            raise ValueError("code_judge needs `script`, such as [python3, judge.py]")
        return {"script" if key == "command" else key: value for key, value in data.items()}


def build_code_judge(entry: CodeJudgeEntry, surroundings: Surroundings) -> CodeJudge:
    """Make the evaluator; raises InputError where its folder is missing, or nobody answers it."""
    _look_at_image(entry, surroundings)
    wanted = _wanted(entry, surroundings)
    return CodeJudge(
        identity=identity_of(entry, surroundings),
        run=RunCommand(
            command=_command(entry.script),
            folder=surroundings.folder(entry.cwd),
            home=surroundings.home,
            target=_access(entry, wanted),
            timeout_seconds=entry.timeout,
            executor=entry.executor,
            network=entry.network,
            variables=tuple(entry.env),
            memory_mb=entry.memory_mb,
            processes=entry.processes,
            isolation=entry.isolation,
            image=entry.image or "",
            # What a model says may be something else each time.
            cached=entry.cache and wanted is None,
        ),
        standard=standard_of(entry, surroundings),
        config=_own_keys(entry, surroundings),
        wire=entry.wire or surroundings.wire,
        prefers_assertions=surroundings.era == "v4",
        wanted=wanted,
    )


def _access(entry: CodeJudgeEntry, wanted: WantedPanel | None) -> ModelAccess | None:
    if wanted is None:
        return None
    spec = entry.target if isinstance(entry.target, AccessSpec) else AccessSpec()
    return ModelAccess(panel=wanted.panel, max_calls=spec.max_calls)


def _wanted(entry: CodeJudgeEntry, surroundings: Surroundings) -> WantedPanel | None:
    """Who answers what it asks."""
    if not entry.target:
        if entry.judge is not None:
            raise InputError.of(
                "`judge` says who answers a `target`, and there is none",
                place=surroundings.place_of("judge"),
                hint="add `target: {}`, or give a setting of your own another name",
            )
        return None
    if entry.executor == DOCKER:
        raise InputError.of(
            f"`target` cannot be reached with `executor: {DOCKER}`",
            place=surroundings.place_of("target"),
            hint="leave out `executor` and `image`: with `network: false` it reaches no more than "
            "its model",
        )
    place = surroundings.place_of("target" if entry.judge is None else "judge")
    panel = surroundings.judges.panel(entry.judge, place)
    return WantedPanel(panel=panel, name=entry.name, place=place)


def _look_at_image(entry: CodeJudgeEntry, surroundings: Surroundings) -> None:
    in_image = entry.executor == DOCKER
    if in_image and entry.image is None:
        raise InputError.of(
            f"`executor: {DOCKER}` needs an image that the command runs in",
            place=surroundings.place_of("executor"),
            hint="add `image:`, such as `image: python:3.12-slim`",
        )
    if not in_image and entry.image is not None:
        raise InputError.of(
            f"`image` is for `executor: {DOCKER}`",
            place=surroundings.place_of("image"),
            hint=f"add `executor: {DOCKER}`, or leave the image out",
        )


def _command(script: Command) -> tuple[str, ...]:
    """The words of a command; a line is the shell's to read, unless it runs a script and no more.

    What such a line names may have to be stood in for, or be a fork: a shell could not see to that.
    """
    if not isinstance(script, str):
        return tuple(script)
    return tuple(script.split()) if PLAIN_LINE.fullmatch(script) else (*SHELL, script)


def _own_keys(entry: CodeJudgeEntry, surroundings: Surroundings) -> JsonObject | None:
    """The author's own keys; since AgentV 4 those under ``config`` are among them."""
    own = dict(entry.model_extra or {})
    if surroundings.era == "v4" and isinstance(own.get("config"), dict):
        own = {**own.pop("config"), **own}
    return own or None
