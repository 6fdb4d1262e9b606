"""Entries of ``evaluators:`` as agentevals writes them, with its names, spellings and defaults."""

from typing import Any, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from agentci.evaluators.fields import (
    CACHE_DIRS,
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
    check_cache_dirs,
    optional,
)
from agentci.evaluators.judge_config import JudgeSpec
from agentci.evaluators.metrics.metric import DEFAULT_THRESHOLD
from agentci.model.requests import DEFAULT_MEMORY_MB, DEFAULT_PROCESSES
from agentci.model.values import IsolationMode, OnTurnMismatch, RequirementsMode

DEFAULT_TIMEOUT_SECONDS: Final = 30

# agentevals 0.11.0 accepts both spellings of these fields in built-in metrics.
CAMEL_CASE: Final = {
    "trajectoryMatchType": "trajectory_match_type",
    "judgeModel": "judge_model",
    "credentialRef": "credential_ref",
    "judgeBaseUrl": "judge_base_url",
}


class SandboxedEntry(RepeatableEntry, Entry):
    """Fields of evaluators whose code runs in a sandbox or a container: programs and graders."""

    threshold: Share = optional("Minimum score of a case to pass.", default=DEFAULT_THRESHOLD)
    timeout: Seconds = optional(
        "Time limit of the program in seconds.", default=DEFAULT_TIMEOUT_SECONDS
    )
    executor: Text = Field(
        default="local",
        description="`local`, `docker`, or an executor of a plugin.",
        examples=["local", "docker"],
    )
    image: Image | None = Field(
        default=None,
        description="Container image with interpreter and packages, for `executor: docker`.",
        examples=["python:3.12-slim"],
    )
    requirements: RequirementsMode = optional(
        "Whether packages of `requirements.txt` in the program's folder are installed.",
        default="auto",
    )
    allow_source: bool = Field(
        default=False,
        description="Whether packages without a wheel are built, in the sandbox.",
    )
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables for the program, without wildcards.",
        examples=[["JUDGE_API_KEY"]],
    )
    cache_dirs: list[VariableName] = Field(
        default=[],
        description=CACHE_DIRS,
        examples=[["HF_HUB_CACHE"]],
    )
    memory_mb: Count = optional("Memory limit per process, in MiB.", default=DEFAULT_MEMORY_MB)
    processes: Count = optional(
        "Limit on concurrent processes and threads.", default=DEFAULT_PROCESSES
    )
    isolation: IsolationMode = optional(
        "How a Python program starts: as a `fork` with preloaded modules, or as a new process, "
        "which is slower.",
        default="fork",
    )
    cache: Cached = False

    @model_validator(mode="after")
    def _with_readable_cache_dirs(self) -> Self:
        check_cache_dirs(self.cache_dirs, executor=self.executor, cached=self.cache)
        return self


class ProgramEntry(SandboxedEntry):
    """Fields of evaluators that are programs."""

    config: dict[str, JsonValue] = optional(
        "Settings for the program, part of its input.", default={}
    )


class CodeEntry(ProgramEntry):
    """A program that reads a recorded run from stdin and writes a score to stdout."""

    type: Literal["code"] = Field(description="A program of your own.")
    path: Text = Field(description="Path of the program, relative to this config.")
    network: bool = optional("Whether it can use the network.", default=True)


class RemoteEntry(ProgramEntry):
    """A program that is fetched, verified and cached; see docs/remote-evaluators.md."""

    type: Literal["remote"] = Field(description="A remote program.")
    source: Text = Field(
        default="github",
        description="`github`, `url`, `local`, or a source of a plugin.",
        examples=["github", "url", "local"],
    )
    ref: Text = Field(
        description=(
            "Path in the repository; for `url` the URL; for `local` a path, or a name in the index."
        )
    )
    repo: Text | None = optional(
        "`owner/name`, or for `local` the folder of an `index.yaml`; default: "
        "`AGENTEVALS_EVALUATOR_REPO`, else the community's."
    )
    branch: Text | None = optional(
        "Branch to follow; default: `AGENTEVALS_EVALUATOR_BRANCH`, else `main`."
    )
    rev: Text | None = optional("Commit or tag to use instead of a branch.")
    network: bool = optional("Whether it can use the network.", default=False)
    sha256: Sha256 | None = optional("SHA-256 of the file at `ref`; required for `url`.")

    @model_validator(mode="after")
    def _with_one_revision(self) -> Self:
        if self.branch is not None and self.rev is not None:
            raise ValueError("`branch` and `rev` exclude each other; keep one of them")
        return self


def _with_camel_case(schema: dict[str, Any]) -> None:
    properties = schema["properties"]
    properties.update({camel: properties[snake] for camel, snake in CAMEL_CASE.items()})


class BuiltinEntry(RepeatableEntry, Entry, json_schema_extra=_with_camel_case):
    """A built-in metric."""

    type: Literal["builtin"] = Field(description="A built-in metric.")
    threshold: Share | None = optional(
        "Minimum score of a case to pass; default: the config's, or 0.5."
    )
    trajectory_match_type: MatchType | None = optional(
        "EXACT: the same calls in order; IN_ORDER: others may come between; ANY_ORDER: in any "
        "order."
    )
    subagents: bool = optional(
        "Whether `tool_trajectory_avg_score` counts calls of sub-agents.",
        default=False,
    )
    ignore_args: bool = optional(
        "Whether `tool_trajectory_avg_score` compares only names, as in ADK 2.13.",
        default=False,
    )
    on_turn_mismatch: OnTurnMismatch | None = optional(
        "Whether missing or unexpected turns fail a case; default: that of `gate`."
    )
    judge: JudgeSpec | None = optional(
        "The judge model, for metrics that need one; default: the config's."
    )
    judge_model: Text | None = optional("agentevals' name for `model` in `judge`.")
    rubrics: list[Text | dict[str, JsonValue]] | None = optional(
        "Criteria of a rubric-based metric."
    )
    credential_ref: Text | None = optional("Not supported: use `api_key_env` of `judge`.")
    judge_base_url: Text | None = optional("agentevals' name for `base_url` in `judge`.")

    @model_validator(mode="before")
    @classmethod
    def _in_snake_case(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for camel, snake in CAMEL_CASE.items():
            if camel in data and snake in data:
                raise ValueError(f"`{snake}` and `{camel}` are the same field; keep one of them")
        return {CAMEL_CASE.get(key, key): value for key, value in data.items()}
