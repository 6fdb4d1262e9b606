"""Read the agent of an eval file (AgentV's cli provider) and its trials."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from msgspec import Struct, field
from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.models import LenientModel
from agentci.config.schema_errors import find_part_errors
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import NonNegative, leave_out_of_required
from agentci.evaluators.agentv.command_template import OUTPUT_FILE, PLACEHOLDERS, find_placeholders
from agentci.evaluators.fields import Seconds, StrictModel, Text, VariableName
from agentci.model.json import JsonObject
from agentci.model.problem import Problem
from agentci.model.program import Agent, CommandTemplate
from agentci.model.result import TrialSettings, TrialStrategy

DEFAULT_TIMEOUT_SECONDS: Final = 120
MAX_TRIALS: Final = 1000
# AgentV 4 reads both; the first one takes precedence.
TARGET_PATHS: Final[tuple[KeyPath, ...]] = (("execution", "target"), ("target",))
TRIALS_PATH: Final[KeyPath] = ("execution", "trials")

# AgentV's alternative names of keys.
TARGET_KEY_ALIASES: Final = {"command_template": "command", "timeout": "timeout_seconds"}
# Keys of targets in AgentV's own list, which agentci does not use.
IGNORED_TARGET_KEYS: Final = frozenset(
    {"name", "judge_target", "grader_target", "workers", "verbose", "keep_temp_files"}
)
_CAMEL_CASE_HUMP: Final = re.compile(r"(?<=[a-z])([A-Z])")


class TargetSpec(LenientModel):
    """The agent to run for each case without a recorded output."""

    model_config = ConfigDict(extra="allow", json_schema_extra=leave_out_of_required("command"))

    provider: Literal["cli"] = Field(default="cli", description="A command, as AgentV calls it.")
    command: Text | Annotated[list[Text], Field(min_length=1)] = Field(
        description="A line for the shell, or a list of words, with placeholders such as {PROMPT}. "
        "`command_template` says the same."
    )
    cwd: Text | None = Field(
        default=None, description="Folder that it runs in; by default that of this file."
    )
    timeout_seconds: Seconds = Field(
        default=DEFAULT_TIMEOUT_SECONDS,
        description="Seconds after which it is stopped. `timeout` says the same.",
    )
    files_format: Text = Field(
        default="{path}", description="Each file in {FILES}, made of {path} and {basename}."
    )
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables that it may see, beside the harmless ones.",
    )
    jail: bool = Field(
        default=False,
        description="Whether it runs in the jail of evaluators; its reply is then what it prints.",
    )
    network: bool = Field(default=True, description="Whether it may use the network in the jail.")
    provider_batching: bool = Field(default=False, description="One run for all cases: not here.")

    @model_validator(mode="before")
    @classmethod
    def _use_canonical_keys(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        renamed: dict[str, JsonValue] = {}
        for key, value in data.items():
            name = find_canonical_key(key)
            if name in renamed:
                raise ValueError(f"{name} is given twice: keep one of its spellings")
            renamed[name] = value
        if "command" not in renamed:
            raise ValueError("a target needs `command`, such as python3 agent.py {PROMPT}")
        return renamed


class TrialsSpec(StrictModel):
    """Several runs of each case."""

    count: Annotated[int, Field(ge=1, le=MAX_TRIALS)] = Field(
        description="How often the agent is run for a case, at most."
    )
    strategy: TrialStrategy = Field(
        default="pass_at_k",
        description="What counts: the best run, the mean, or the lower end of the 95 % confidence "
        "interval of the mean.",
    )
    cost_limit_usd: NonNegative | None = Field(
        default=None, description="No further run once those of a case have cost as much."
    )


def find_canonical_key(key: str) -> str:
    """The snake_case name of a target's key; AgentV also allows camelCase and aliases."""
    name = _CAMEL_CASE_HUMP.sub(lambda hump: f"_{hump[1].lower()}", key)
    return TARGET_KEY_ALIASES.get(name, name)


def make_command_template(spec: TargetSpec) -> CommandTemplate:
    """The command as text or as an immutable tuple."""
    return spec.command if isinstance(spec.command, str) else tuple(spec.command)


class TargetReader(Struct, kw_only=True):
    """Reads the target and the trials of one eval file.

    Attributes:
        problems: errors in the target and the trials, and warnings.
    """

    document: YamlDocument
    files: FileResolver
    problems: list[Problem] = field(default_factory=list)

    def read_agent(self) -> Agent | None:
        """Read the agent of the file; None if `target` is a name, which refers to AgentV's list."""
        at = next((path for path in TARGET_PATHS if self.document.value(path) is not None), None)
        value = None if at is None else self.document.value(at)
        if at is None or isinstance(value, str):
            return None
        if not isinstance(value, Mapping):
            hint = "like {command: 'python3 agent.py {PROMPT}'}"
            self._add_problem("target must be a name, or a mapping with `command`", at, hint=hint)
            return None
        try:
            spec = TargetSpec.model_validate(value)
        except ValidationError as error:
            self.problems += self._format_model_errors(error, at, TargetSpec)
            return None
        self.problems += self._find_target_problems(value, spec, at)
        try:
            folder = self.files.folder(spec.cwd, self.document.place_of((*at, "cwd")))
        except InputError as error:
            self.problems += error.problems
            return None
        return Agent(
            command=make_command_template(spec),
            folder=folder,
            home=self.files.home,
            timeout_seconds=spec.timeout_seconds,
            variables=tuple(spec.env),
            sandboxed=spec.jail,
            network=spec.network,
            files_format=spec.files_format,
            place=self.document.place_of(at),
        )

    def check_cases(self, key: str) -> None:
        """Warn about cases with settings that only a whole file may have, as in AgentV."""
        cases = self.document.value((key,))
        for index in range(len(cases) if isinstance(cases, list) else 0):
            for path in (*TARGET_PATHS, TRIALS_PATH):
                at = (key, index, *path)
                if isinstance(self.document.value(at), Mapping):
                    place = self.document.place_of(at, key=True)
                    verb = "has" if path[-1] == "target" else "have"
                    warning = Problem(
                        message=f"`{path[-1]}` of a single case {verb} no effect",
                        place=place,
                        hint="say it for the whole file",
                        severity="warning",
                    )
                    self.problems.append(warning)

    def read_trials(self) -> TrialSettings | None:
        """The trials of the file; None if each case is run once."""
        value = self.document.value(TRIALS_PATH)
        if value is None:
            return None
        try:
            spec = TrialsSpec.model_validate(value)
        except ValidationError as error:
            self.problems += self._format_model_errors(error, TRIALS_PATH, TrialsSpec)
            return None
        if spec.count == 1:
            return None
        return TrialSettings(
            count=spec.count,
            strategy=spec.strategy,
            cost_limit_usd=spec.cost_limit_usd,
            place=self.document.place_of(TRIALS_PATH, key=True),
        )

    def _find_target_problems(
        self, value: JsonObject, spec: TargetSpec, at: KeyPath
    ) -> Iterator[Problem]:
        if spec.provider_batching:
            yield Problem(
                message="`provider_batching` is not done by this version of agentci",
                place=self.document.place_of((*at, "provider_batching"), key=True),
                hint="run the batch before, and name what it wrote as `outputs`",
            )
        named = find_placeholders(make_command_template(spec))
        if spec.jail and OUTPUT_FILE in named:
            yield Problem(
                message="in the jail the agent can write no {OUTPUT_FILE}",
                place=self.document.place_of((*at, "jail"), key=True),
                hint="let it print its reply",
            )
        for name in named:
            if name not in PLACEHOLDERS:
                yield Problem(
                    message=f"there is no placeholder {{{name}}}, which stays as it is",
                    place=self.document.place_of(at),
                    hint=suggest_name(name, PLACEHOLDERS)
                    or f"there is {join_with_or(PLACEHOLDERS)}",
                    severity="warning",
                )
        known = [*TargetSpec.model_fields, *TARGET_KEY_ALIASES]
        for key in value:
            name = find_canonical_key(key)
            if name not in known and name not in IGNORED_TARGET_KEYS and not key.startswith("x-"):
                yield Problem(
                    message=f"unknown key {quote_name(key)}, which has no effect",
                    place=self.document.place_of((*at, key), key=True),
                    hint=suggest_name(key, known),
                    severity="warning",
                )

    def _format_model_errors(
        self, error: ValidationError, at: KeyPath, model: type[TargetSpec] | type[TrialsSpec]
    ) -> tuple[Problem, ...]:
        """Describe errors by the JSON Schema, which has only the canonical keys."""
        noun = "target" if model is TargetSpec else "mapping of trials"
        return find_part_errors(self.document, model.model_json_schema(), error, at=at, noun=noun)

    def _add_problem(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))
