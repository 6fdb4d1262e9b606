"""Read the agent of an eval file (AgentV's cli provider) and its trials."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Struct, field
from pydantic import ConfigDict, Field, JsonValue, model_validator

from agentci._util.text.suggest import quote_name, suggest_name
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.models import LenientModel
from agentci.config.agentv.targets import OUTPUT_FILE, PLACEHOLDERS, TargetJudges, find_placeholders
from agentci.config.validate import read_part
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentv.agentv_evaluator import NonNegative, leave_out_of_required
from agentci.evaluators.fields import Seconds, StrictModel, Text, VariableName, optional
from agentci.model.program import Agent, CommandTemplate
from agentci.model.result import TrialSettings, TrialStrategy
from agentci.model.values import Json, JsonObject, Place, Problem, replace

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
# Keys of a target that refers to one in AgentV's own list.
NAMING_KEYS: Final = frozenset({"name", "label", "id", "use_target", "extends"})
# Keys that are not reported as unknown.
ALLOWED_TARGET_KEYS: Final = IGNORED_TARGET_KEYS | NAMING_KEYS | {"healthcheck", "batch_requests"}
_CAMEL_CASE_LETTER: Final = re.compile(r"(?<=[a-z])([A-Z])")


def _add_aliases(schema: dict[str, Any]) -> None:
    """Let a JSON Schema accept the alternative names of the keys."""
    properties = schema["properties"]
    for name in list(properties):
        first, *rest = name.split("_")
        properties[first + "".join(map(str.capitalize, rest))] = properties[name]
    for alias, name in TARGET_KEY_ALIASES.items():
        properties[alias] = properties[name]
    leave_out_of_required("command")(schema)


class TargetSpec(LenientModel):
    """The agent to run for each case without a recorded output."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_aliases)

    provider: Literal["cli"] = optional("A command (AgentV's name for it).", default="cli")
    command: Text | Annotated[list[Text], Field(min_length=1)] = Field(
        description="Command of the agent: a line for the shell, or a list of arguments, with "
        "placeholders such as {PROMPT}. Alias: `command_template`."
    )
    cwd: Text | None = optional(
        "Folder that the agent runs in; by default the folder of this file."
    )
    timeout_seconds: Seconds = optional(
        "Seconds after which the agent is stopped. Alias: `timeout`.",
        default=DEFAULT_TIMEOUT_SECONDS,
    )
    files_format: Text = optional(
        "Format of each file in {FILES}, with {path} and {basename}.", default="{path}"
    )
    env: list[VariableName] = Field(
        default=[],
        description="Names of environment variables that the agent may read.",
    )
    sandbox: bool = optional(
        "Whether the agent runs in the sandbox of evaluators and prints its answer.", default=False
    )
    network: bool = optional("Whether the agent may use the network in the sandbox.", default=True)
    provider_batching: bool = optional("Run all cases at once; not supported.", default=False)

    @model_validator(mode="before")
    @classmethod
    def _use_canonical_keys(cls, data: dict[str, JsonValue]) -> dict[str, JsonValue]:
        renamed: dict[str, JsonValue] = {}
        for key, value in data.items():
            name = find_canonical_key(key)
            if name in renamed:
                raise ValueError(f"`{name}` is set twice, under different names; keep one of them")
            renamed[name] = value
        if "command" not in renamed:
            raise ValueError("`target` needs `command`, such as `python3 agent.py {PROMPT}`")
        return renamed


class TrialsSpec(StrictModel):
    """Several runs of each case."""

    count: Annotated[int, Field(ge=1, le=MAX_TRIALS)] = Field(
        description="Maximum number of runs per case."
    )
    strategy: TrialStrategy = optional(
        "Aggregation of the runs: the best run, the mean, or the lower bound of the "
        "95% confidence interval of the mean.",
        default="pass_at_k",
    )
    cost_limit_usd: NonNegative | None = optional(
        "Cost of the runs of a case, in US dollars, after which no more are started."
    )


def _only_names_target(value: Json) -> bool:
    """Whether ``value`` refers to AgentV's list of targets instead of defining an agent."""
    keys = set(map(find_canonical_key, value)) if isinstance(value, Mapping) else set()
    return "command" not in keys and not keys.isdisjoint(NAMING_KEYS)


def find_canonical_key(key: str) -> str:
    """The snake_case name of a target's key; AgentV also allows camelCase and aliases."""
    name = _CAMEL_CASE_LETTER.sub(lambda letter: f"_{letter[1].lower()}", key)
    return TARGET_KEY_ALIASES.get(name, name)


def make_command_template(spec: TargetSpec) -> CommandTemplate:
    """The command as text or as an immutable tuple."""
    return spec.command if isinstance(spec.command, str) else tuple(spec.command)


class TargetReader(Struct, kw_only=True):
    """Reads the target and the trials of one eval file.

    Attributes:
        targets: finds the target that the file only names.
        problems: errors in the target and the trials, and warnings.
    """

    document: YamlDocument
    files: FileResolver
    targets: TargetJudges
    problems: list[Problem] = field(default_factory=list)

    def read_agent(self) -> Agent | None:
        """Read the agent of the file, or the command in AgentV's list that the file names.

        What is wrong in the list is a warning: recorded outputs need no agent.
        """
        at = next((path for path in TARGET_PATHS if self.document.value(path) is not None), None)
        value = None if at is None else self.document.value(at)
        if at is None or isinstance(value, str) or _only_names_target(value):
            at = self._find_provider(value)
            value = None if at is None else self.document.value(at)
        if at is None:
            return self._read_listed_agent()
        if not isinstance(value, Mapping):
            hint = "for example {command: 'python3 agent.py {PROMPT}'}"
            self._add_problem("`target` must be a name or a mapping with `command`", at, hint=hint)
            return None
        spec, problems = read_part(self.document, TargetSpec, at=at, noun="target")
        self.problems += problems
        if spec is None:
            return None
        self.problems += _find_target_problems(self.document, value, spec, at)
        try:
            folder = self.files.folder(spec.cwd, self.document.place_of((*at, "cwd")))
        except InputError as error:
            self.problems += error.problems
            return None
        return self._make_agent(spec, folder, self.document.place_of(at))

    def _read_listed_agent(self) -> Agent | None:
        try:
            return self._read_listed_command()
        except InputError as error:
            self.problems += [replace(each, severity="warning") for each in error.problems]
            return None

    def _read_listed_command(self) -> Agent | None:
        """Read the command in a file with targets that the eval file names.

        Raises:
            InputError: it cannot be run.
        """
        found = self.targets.find_listed_command()
        if found is None:
            return None
        target, settings = found
        spec, problems = read_part(
            target.document, TargetSpec, at=target.at, noun="target", data=settings
        )
        if spec is not None:
            problems = (*_find_target_problems(target.document, settings, spec, target.at),)
        if settings.get("batch_requests"):
            raise InputError([_make_batch_problem(target.place_of("batch_requests"))])
        if spec is None or any(each.severity == "error" for each in problems):
            raise InputError(problems)
        self.problems += problems
        folder = self.files.folder(spec.cwd, target.place_of("cwd"))
        return self._make_agent(spec, folder, target.document.place_of(target.at))

    def _make_agent(self, spec: TargetSpec, folder: str, place: Place) -> Agent:
        return Agent(
            command=make_command_template(spec),
            folder=folder,
            home=self.files.home,
            timeout_seconds=spec.timeout_seconds,
            variables=tuple(spec.env),
            sandboxed=spec.sandbox,
            network=spec.network,
            files_format=spec.files_format,
            place=place,
        )

    def _find_provider(self, target: Json) -> KeyPath | None:
        """The path of the provider of AgentV 5 that is the agent, if it is a command.

        Args:
            target: names the provider; None for the first one.
        """
        listed = self.document.value(("providers",))
        for index, given in enumerate(listed if isinstance(listed, list) else ()):
            if not isinstance(given, Mapping):
                continue
            names = [given[key] for key in NAMING_KEYS if given.get(key) is not None]
            if target is not None and target not in names:
                continue
            at: KeyPath = ("providers", index)
            for path in (at, (*at, "config")):
                settings = self.document.value(path)
                is_command = isinstance(settings, Mapping) and "command" in settings
                if is_command and "cli" in (given.get("provider"), given.get("id")):
                    return self._check_batching(path, given)
            return None
        return None

    def _check_batching(self, at: KeyPath, provider: JsonObject) -> KeyPath | None:
        """Return ``at``, or None with a warning if the command runs all cases at once."""
        if not provider.get("batch_requests"):
            return at
        self.problems.append(_make_batch_problem(self.document.place_of(at)))
        return None

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
                        hint="set it for the whole file",
                        severity="warning",
                    )
                    self.problems.append(warning)

    def read_trials(self) -> TrialSettings | None:
        """The trials of the file; None if each case is run once."""
        value = self.document.value(TRIALS_PATH)
        if value is None:
            return None
        spec, problems = read_part(self.document, TrialsSpec, at=TRIALS_PATH, noun="mapping")
        self.problems += problems
        if spec is None or spec.count == 1:
            return None
        return TrialSettings(
            count=spec.count,
            strategy=spec.strategy,
            cost_limit_usd=spec.cost_limit_usd,
            place=self.document.place_of(TRIALS_PATH, key=True),
        )

    def _add_problem(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))


def _find_target_problems(
    document: YamlDocument, value: JsonObject, spec: TargetSpec, at: KeyPath
) -> Iterator[Problem]:
    if spec.provider_batching:
        yield Problem(
            message="`provider_batching` is not supported by agentci",
            place=document.place_of((*at, "provider_batching"), key=True),
            hint="run the batch first, and list its results as `outputs`",
        )
    named = find_placeholders(make_command_template(spec))
    if spec.sandbox and OUTPUT_FILE in named:
        yield Problem(
            message="an agent in the sandbox cannot write {OUTPUT_FILE}",
            place=document.place_of((*at, "sandbox"), key=True),
            hint="print the answer instead",
        )
    for name in named:
        if name not in PLACEHOLDERS:
            yield Problem(
                message=f"unknown placeholder {{{name}}} is not replaced",
                place=document.place_of(at),
                hint=suggest_name(name, PLACEHOLDERS)
                or f"known placeholders: {', '.join(PLACEHOLDERS)}",
                severity="warning",
            )
    known = [*TargetSpec.model_fields, *TARGET_KEY_ALIASES]
    for key in value:
        name = find_canonical_key(key)
        if name not in known and name not in ALLOWED_TARGET_KEYS and not key.startswith("x-"):
            yield Problem(
                message=f"unknown key {quote_name(key)} is ignored",
                place=document.place_of((*at, key), key=True),
                hint=suggest_name(key, known),
                severity="warning",
            )


def _make_batch_problem(place: Place) -> Problem:
    message = "a command that runs all cases at once is not run"
    hint = "run the batch first, and list its results as `outputs`"
    return Problem(message=message, place=place, hint=hint, severity="warning")
