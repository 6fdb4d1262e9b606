"""Entries of ``evaluators:`` as agentevals writes them, with its names, spellings and defaults."""

from typing import Any, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from agentci.evaluators.agentevals.threshold import DEFAULT_THRESHOLD
from agentci.evaluators.fields import (
    Cached,
    Count,
    Entry,
    Image,
    MatchType,
    RepeatableEntry,
    Seconds,
    Sha256,
    Share,
    Text,
    VariableName,
)
from agentci.evaluators.judge_config import JudgeSpec
from agentci.model.choices import IsolationMode, OnTurnMismatch, RequirementsMode
from agentci.model.requests import DEFAULT_MEMORY_MB, DEFAULT_PROCESSES

DEFAULT_TIMEOUT_SECONDS: Final = 30

# agentevals 0.11.0 accepts both spellings of these fields in built-in metrics.
CAMEL_CASE: Final = {
    "trajectoryMatchType": "trajectory_match_type",
    "judgeModel": "judge_model",
    "credentialRef": "credential_ref",
    "judgeBaseUrl": "judge_base_url",
}


class ProcessEntry(RepeatableEntry, Entry):
    """Fields of evaluators whose code runs in its own processes."""

    threshold: Share = Field(
        default=DEFAULT_THRESHOLD, description="Score that a case has to reach to pass."
    )
    timeout: Seconds = Field(
        default=DEFAULT_TIMEOUT_SECONDS, description="Seconds after which the program is stopped."
    )
    executor: Text = Field(
        default="local",
        description="Where the program runs: `local`, `docker`, or what a package brings.",
        examples=["local", "docker"],
    )
    image: Image | None = Field(
        default=None,
        description="Image that the program runs in, with the interpreter and the packages in it; "
        "for `executor: docker`, which needs it.",
        examples=["python:3.12-slim"],
    )
    requirements: RequirementsMode = Field(
        default="auto",
        description="Whether a `requirements.txt` in the folder of a Python program is installed "
        "for it, into an environment of its own.",
    )
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables that the program may see, beside the harmless "
        "ones; each in full, secrets too.",
        examples=[["JUDGE_API_KEY"]],
    )
    memory_mb: Count = Field(
        default=DEFAULT_MEMORY_MB, description="MiB of memory that each process of it may use."
    )
    processes: Count = Field(
        default=DEFAULT_PROCESSES,
        description="Processes that it may have at a time, threads included.",
    )
    isolation: IsolationMode = Field(
        default="fork",
        description="How a Python program begins: as a `fork` of a Python that has started and "
        "imported what it imports, or by itself (`spawn`), which takes longer.",
    )
    cache: Cached = False


class ProgramEntry(ProcessEntry):
    """Fields of evaluators that are programs."""

    config: dict[str, JsonValue] = Field(
        default={}, description="Settings of your own, handed to the program as they are."
    )


class CodeEntry(ProgramEntry):
    """A program of your own that reads a recorded run from stdin and writes a score to stdout."""

    type: Literal["code"] = Field(description="A program of your own.")
    path: Text = Field(
        description="File of the program: .py, .js, .ts, or anything executable; "
        "relative to this config."
    )
    network: bool = Field(default=True, description="Whether it may use the network.")


class RemoteEntry(ProgramEntry):
    """A program from elsewhere: it is fetched, verified and cached, then runs like your own."""

    type: Literal["remote"] = Field(description="A program that is kept elsewhere.")
    source: Text = Field(
        default="github",
        description="Where it is kept: `github`, `url`, `local`, or what a package brings.",
        examples=["github", "url", "local"],
    )
    ref: Text = Field(
        description="Path of the program in the repository; for `url` its address; for `local` "
        "also its name in the index."
    )
    repo: Text | None = Field(
        default=None,
        description="Repository, `owner/name`; for `local` the folder of an `index.yaml`. Without "
        "it `AGENTEVALS_EVALUATOR_REPO`, else the community's.",
    )
    branch: Text | None = Field(
        default=None,
        description="Branch to follow. Without it `AGENTEVALS_EVALUATOR_BRANCH`, else `main`.",
    )
    rev: Text | None = Field(
        default=None, description="Commit (or tag) to stay at, in place of a branch."
    )
    network: bool = Field(default=False, description="Whether it may use the network.")
    sha256: Sha256 | None = Field(
        default=None, description="Digest of the file that `ref` names; `url` needs it."
    )

    @model_validator(mode="after")
    def _with_one_revision(self) -> Self:
        if self.branch is not None and self.rev is not None:
            raise ValueError("branch and rev say the same: keep one of them")
        return self


def _with_camel_case(schema: dict[str, Any]) -> None:
    properties = schema["properties"]
    properties.update({camel: properties[snake] for camel, snake in CAMEL_CASE.items()})


class BuiltinEntry(RepeatableEntry, Entry, json_schema_extra=_with_camel_case):
    """A built-in metric of the recorded run; some metrics compare it with its eval case."""

    type: Literal["builtin"] = Field(description="A built-in metric.")
    threshold: Share | None = Field(
        default=None,
        description="Score that a case has to reach to pass; by default the config's, or 0.5.",
    )
    trajectory_match_type: MatchType | None = Field(
        default=None,
        description="How tool calls are compared: EXACT (same calls, same order), IN_ORDER "
        "(others may come between) or ANY_ORDER.",
    )
    on_turn_mismatch: OnTurnMismatch | None = Field(
        default=None,
        description="Whether missing or unexpected turns fail a case whatever its score; by "
        "default as in `gate`.",
    )
    judge: JudgeSpec | None = Field(
        default=None,
        description="Which model judges, for metrics that ask one, where that is not the config's.",
    )
    judge_model: Text | None = Field(
        default=None, description="The same in agentevals' words: the model that judges."
    )
    rubrics: list[Text | dict[str, JsonValue]] | None = Field(
        default=None, description="What a rubric-based metric looks for."
    )
    credential_ref: Text | None = Field(
        default=None, description="Credential of the judge, as agentevals names it."
    )
    judge_base_url: Text | None = Field(
        default=None, description="Address of the judge's API, in agentevals' words."
    )

    @model_validator(mode="before")
    @classmethod
    def _in_snake_case(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for camel, snake in CAMEL_CASE.items():
            if camel in data and snake in data:
                raise ValueError(f"{snake} and {camel} are one field: keep one of them")
        return {CAMEL_CASE.get(key, key): value for key, value in data.items()}
