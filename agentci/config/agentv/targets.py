"""Find judge models among AgentV's targets, which AgentV 5 calls providers."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from msgspec import Struct, field

from agentci._util.text.suggest import join_with_or, quote_name, suggest_name
from agentci.config.agentv.files import FileResolver, ReferencedFile
from agentci.config.variables import ConfigVariables
from agentci.config.yaml_document import YamlDocument, make_document, read_tree
from agentci.config.yaml_nodes import KeyPath, MappingNode, SequenceNode, make_mapping
from agentci.errors import InputError
from agentci.evaluators.judge_config import KEY_VARIABLES, VARIABLE_PLACEHOLDER, TargetJudgeSpec
from agentci.model.program import CommandTemplate
from agentci.model.values import Json, JsonObject, Place, Problem

FILES: Final = "FILES"
OUTPUT_FILE: Final = "OUTPUT_FILE"
PROMPT: Final = "PROMPT"
PROMPT_FILE: Final = "PROMPT_FILE"
PLACEHOLDERS: Final = (
    PROMPT, PROMPT_FILE, "GUIDELINES", "EVAL_ID", "ATTEMPT", FILES, OUTPUT_FILE,
)  # fmt: skip
SHELL: Final = ("sh", "-c")

# `${NAME}` is a shell variable.
PLACEHOLDER: Final = re.compile(r"(?<!\$)\{([A-Z][A-Z_]*)\}")


def find_placeholders(template: CommandTemplate) -> Collection[str]:
    """Return all placeholder names in braces, known or unknown."""
    words = (template,) if isinstance(template, str) else template
    return dict.fromkeys(name for word in words for name in PLACEHOLDER.findall(word))


def fill_command(
    template: CommandTemplate, values: Mapping[str, str], files: Sequence[str]
) -> tuple[str, ...]:
    """Fill in a command: a line runs in the shell with quoted values; a list keeps its words.

    Args:
        values: values of all placeholders except ``{FILES}``; unknown placeholders are kept.
        files: the words that replace ``{FILES}``.
    """
    if isinstance(template, str):
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        return (*SHELL, _fill_text(template, {**quoted, FILES: shlex.join(files)}))
    return tuple(_fill_words(template, values, files))


def format_file_path(path: str, files_format: str) -> str:
    """Format a file's path with ``{path}`` and ``{basename}`` in ``files_format``."""
    return re.sub(
        r"\{(path|basename)\}",
        lambda found: path if found[1] == "path" else PurePath(path).name,
        files_format,
    )


def _fill_words(
    template: Sequence[str], values: Mapping[str, str], files: Sequence[str]
) -> Iterator[str]:
    for word in template:
        if word == f"{{{FILES}}}":
            yield from files
        else:
            yield _fill_text(word, {**values, FILES: " ".join(files)})


def _fill_text(text: str, values: Mapping[str, str]) -> str:
    return PLACEHOLDER.sub(lambda place: values.get(place[1], place[0]), text)


# Keys of the list, and the files with it in the nearest `.agentv` folder that has one.
LIST_KEYS: Final = ("targets", "providers")
LIST_FILES: Final = (
    *("targets.yaml", "targets.yml", "providers.yaml", "providers.yml"),
    *("config.yaml", "config.yml"),
)
SETTINGS_FILES: Final = ("config.yaml", "config.yml")
DEFAULT_TARGET: Final = "default"
# Commands of a target in the eval file itself.
COMMAND_PATHS: Final[tuple[KeyPath, ...]] = (
    ("execution", "target", "command"),
    ("target", "command"),
)
GRADER_KEYS: Final = ("grader_target", "judge_target", "graderTarget", "judgeTarget")
MAX_ALIASES: Final = 10

OPENROUTER_URL: Final = "https://openrouter.ai/api/v1"
OPENROUTER_KEY: Final = "OPENROUTER_API_KEY"
MOCK_RESPONSE: Final = '{"answer":"Mock provider response placeholder."}'
# A command; it grades only where it is named as the grader.
CLI_PROVIDER: Final = "cli"
COMMAND_KEYS: Final = ("command", "command_template", "commandTemplate")
GRADER_VALUES: Final = {
    "PROMPT": '"$prompt"',
    "PROMPT_FILE": '"$folder/prompt"',
    "OUTPUT_FILE": '"$folder/output"',
}
GRADER_SCRIPT: Final = """folder=$(mktemp -d) || exit
trap 'rm -rf "$folder"' EXIT
cat > "$folder/prompt"
prompt=$(cat "$folder/prompt")
cd {folder} || exit
( {line}
) > "$folder/printed" || exit
if [ -e "$folder/output" ]; then cat "$folder/output"; else cat "$folder/printed"; fi
"""
# Providers that answer a prompt; all others are agents, which do not grade.
MODEL_PROVIDERS: Final = ("openai", "azure", "anthropic", "gemini", "openrouter", "mock")
GRADER_PROVIDERS: Final = (*MODEL_PROVIDERS, CLI_PROVIDER)
URL_KEYS: Final = ("base_url", "baseUrl", "endpoint", "resource")
# Fields of a target, with those of `judge`.
TEXT_FIELDS: Final = {
    "model": ("model", "deployment", "deployment_name"),
    "base_url": URL_KEYS,
    "api_version": ("version", "api_version"),
}


class NoModelError(InputError):
    """AgentV's list names no judge model that agentci can ask."""


class Target(Struct, frozen=True, kw_only=True):
    """One target.

    Attributes:
        document: the file that defines it.
        at: its path in that file.
        settings: its fields, with those of `config`.
    """

    name: str
    provider: str
    document: YamlDocument
    at: KeyPath
    settings: JsonObject

    def place_of(self, *keys: str) -> Place:
        """The place of the first of ``keys`` that the target has, else that of the target."""
        paths = [(*self.at, *part, key) for key in keys for part in ((), ("config",))]
        found = [path for path in paths if self.document.value(path) is not None]
        return self.document.place_of(found[0] if found else self.at)

    def find_value(self, *keys: str) -> Json:
        """The value of the first of ``keys`` that is set."""
        given = (self.settings.get(key) for key in keys)
        return next((each for each in given if each not in (None, "")), None)


class TargetJudges(Struct, kw_only=True):
    """The judge models of one eval file that AgentV would use.

    Attributes:
        document: the eval file, whose own list of targets takes precedence.
        variables: the environment variables that targets may name.
        problems: errors in the files with targets.
    """

    document: YamlDocument
    files: FileResolver
    variables: ConfigVariables
    problems: list[Problem] = field(default_factory=list)
    _targets: dict[str, Target] | None = None

    def find_default(self) -> tuple[TargetJudgeSpec | None, str]:
        """The judge of evaluators that name none.

        Returns:
            The judge, or None and what to do about it; empty if no targets are listed.
        """
        if not self._list_targets():
            return None, ""
        name = self._find_default_grader() or self._find_tested_target()
        try:
            return self._resolve(name, self.document.place_of(()), by_role=True), ""
        except NoModelError as error:
            return _make_unavailable(error), ""
        except InputError as error:
            return None, _describe(error)

    def find_tested(self) -> tuple[str, str]:
        """The name and the provider of the target whose output is evaluated.

        The provider is empty if no list has the target, or if it cannot be read: this is an error
        only where a judge is needed.
        """
        name = self._find_tested_target()
        for path in COMMAND_PATHS:
            if self.document.value(path) is not None:
                return name, CLI_PROVIDER
        try:
            target = self._find_target(name, self.document.place_of(()), [])
        except InputError:
            target = None
        return name, "" if target is None else target.provider

    def find_listed_command(self) -> tuple[Target, JsonObject] | None:
        """The command in a file with targets whose name the eval file gives, or AgentV's default.

        Returns:
            The target, and its settings with the values of variables; None if it is not a command
            or not listed there.

        Raises:
            InputError: its command or folder names a variable that is refused or not set.
        """
        name, unset = self._find_tested_target(), list[str]()
        try:
            target = self._find_target(name, self.document.place_of(()), unset)
        except InputError:  # an error only where a judge is needed
            return None
        if target is None or target.provider != CLI_PROVIDER or target.document is self.document:
            return None
        settings = {key: value for key, value in target.settings.items() if key != "config"}
        for key in (*COMMAND_KEYS, "cwd"):
            if isinstance(text := settings.get(key), str):
                settings[key] = self._expand(text, target.place_of(key), unset)
        if unset:
            message = f"{unset[0]} is not set, so that target {quote_name(target.name)} is not run"
            raise InputError.from_message(message, place=target.place_of(*COMMAND_KEYS))
        return target, settings

    def find(self, name: str, place: Place) -> TargetJudgeSpec:
        """The judge that an evaluator names at ``place``; without settings if it is not a model.

        Raises:
            InputError: there is no such target, or its settings are invalid.
        """
        try:
            return self._resolve(name, place, by_role=False)
        except NoModelError as error:
            if name not in self._list_targets():
                raise
            return _make_unavailable(error)

    def _find_default_grader(self) -> str:
        """`defaults.grader` of the eval file or of the settings; empty if it is not set."""
        for document in (self.document, self._read_file(SETTINGS_FILES)):
            found = None if document is None else document.value(("defaults", "grader"))
            if isinstance(found, str) and found:
                return found
        return ""

    def _find_tested_target(self) -> str:
        """The target whose output is evaluated; AgentV's default if none is named."""
        paths: tuple[KeyPath, ...] = (
            *(("execution", "target"), ("target",), ("execution", "targets", 0)),
            *(("targets", 0), ("providers", 0), ("defaults", "provider")),
        )
        for path in paths:
            found = self.document.value(path)
            named = _find_own_target(found) if isinstance(found, Mapping) else found
            if isinstance(named, str) and named:
                return named
        settings = self._read_file(SETTINGS_FILES)
        named = None if settings is None else settings.value(("defaults", "provider"))
        return named if isinstance(named, str) and named else DEFAULT_TARGET

    def _resolve(self, name: str, place: Place, *, by_role: bool) -> TargetJudgeSpec:
        """The judge of the target ``name``.

        Args:
            by_role: whether ``name`` is the target that is evaluated, which may name its grader.
        """
        unset: list[str] = []
        target = self._find_target(name, place, unset)
        graders = MODEL_PROVIDERS if by_role else GRADER_PROVIDERS
        if by_role and target is not None:
            grader = target.find_value(*GRADER_KEYS)
            if isinstance(grader, str):
                graders = GRADER_PROVIDERS
                place = target.place_of(*GRADER_KEYS)
                target = self._find_target(self._expand(grader, place, unset), place, unset)
        if target is None:
            return TargetJudgeSpec(provider="openai", unset_variables=tuple(unset))
        if target.provider not in graders:
            raise NoModelError.from_message(
                f"target {quote_name(target.name)} is not a judge model: its provider is "
                f"{quote_name(target.provider)}",
                place=place,
                hint=f"name a `grader_target` with one of {join_with_or(GRADER_PROVIDERS)}",
            )
        return TargetJudgeSpec(**self._make_fields(target, unset), unset_variables=tuple(unset))

    def _find_target(self, name: str, place: Place, unset: list[str]) -> Target | None:
        """The target ``name``, or the one that it stands for; None if a variable is not set."""
        targets = self._list_targets()
        name = self._expand(name, place, unset)
        for _ in range(MAX_ALIASES):
            if unset:
                return None
            if name not in targets:
                raise NoModelError.from_message(
                    f"unknown target {quote_name(name)}",
                    place=place,
                    hint=suggest_name(name, list(targets))
                    or (f"known targets: {', '.join(targets)}" if targets else None),
                )
            target = targets[name]
            other = target.find_value("use_target", "extends")
            if not isinstance(other, str) or (target.provider and other == name):
                return target
            place = target.place_of("use_target", "extends")
            name = self._expand(other, place, unset)
        raise InputError.from_message(f"target {quote_name(name)} stands for itself", place=place)

    def _make_fields(self, target: Target, unset: list[str]) -> dict[str, Any]:
        """The fields of `judge` for a target."""
        if target.provider == "mock":
            response = target.find_value("response")
            text = response if isinstance(response, str) else MOCK_RESPONSE
            return {"provider": "command", "command": ["printf", "%s", text]}
        if target.provider == CLI_PROVIDER:
            command = self._make_grader_command(target, unset)
            return {"provider": "command", "command": command, "prints_agentv_json": True}
        fields: dict[str, Any] = {"provider": target.provider}
        for name, keys in TEXT_FIELDS.items():
            given = target.find_value(*keys)
            text = given if isinstance(given, str) else ""
            if expanded := self._expand(text, target.place_of(*keys), unset):
                fields[name] = expanded
        if target.provider == "openrouter":
            fields = {"base_url": OPENROUTER_URL, **fields, "provider": "openai"}
        if target.provider == "azure":
            _complete_azure(fields)
        else:
            fields.pop("api_version", None)
        key = self._find_key_variable(target)
        return {**fields, "api_key_env": key} if key else fields

    def _make_grader_command(self, target: Target, unset: list[str]) -> list[str]:
        """The command of a target as a judge, which reads the prompt and prints the response."""
        given, cwd = target.find_value(*COMMAND_KEYS), target.find_value("cwd")
        if not isinstance(given, str):
            raise InputError.from_message(
                f"target {quote_name(target.name)} needs a `command`, a line for the shell",
                place=target.place_of(*COMMAND_KEYS),
                hint="for example `python3 grade.py {PROMPT_FILE} {OUTPUT_FILE}`",
            )
        line = self._expand(given, target.place_of(*COMMAND_KEYS), unset)
        folder = cwd if isinstance(cwd, str) else "."
        values = {**dict.fromkeys(PLACEHOLDERS, "''"), **GRADER_VALUES}
        line = PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), line)
        return ["sh", "-c", GRADER_SCRIPT.format(folder=shlex.quote(folder), line=line)]

    def _find_key_variable(self, target: Target) -> str:
        given = target.find_value("api_key", "apiKey")
        if given is None:
            return OPENROUTER_KEY if target.provider == "openrouter" else ""
        match = VARIABLE_PLACEHOLDER.fullmatch(given.strip()) if isinstance(given, str) else None
        if match is None:
            raise InputError.from_message(
                f"`api_key` of target {quote_name(target.name)} must name a variable",
                place=target.place_of("api_key", "apiKey"),
                hint=f"for example ${{{{ {KEY_VARIABLES.get(target.provider, 'API_KEY')} }}}}",
            )
        return match[1] or match[2]

    def _expand(self, text: str, place: Place, unset: list[str]) -> str:
        """Insert variables; ``unset`` receives the names of those that are not set."""
        for name in dict.fromkeys(
            each[1] or each[2] for each in VARIABLE_PLACEHOLDER.finditer(text)
        ):
            if refusal := self.variables.explain_refusal(name):
                raise InputError.from_message(refusal[0], place=place, hint=refusal[1])
            if name not in self.variables:
                unset.append(name)
        return VARIABLE_PLACEHOLDER.sub(
            lambda each: self.variables.get(each[1] or each[2]), text
        ).strip()

    def _list_targets(self) -> dict[str, Target]:
        if self._targets is None:
            sources = [self.document, *map(_read_targets_file, self._find(LIST_FILES))]
            listed = (target for source in sources for target in _iter_targets(source))
            self._targets = {}
            for target in listed:
                self._targets.setdefault(target.name, target)
        return self._targets

    def _read_file(self, names: Sequence[str]) -> YamlDocument | None:
        """The first of the files ``names`` in an `.agentv` folder; None if there is none."""
        found = next(self._find(names), None)
        return None if found is None else _read_targets_file(found)

    def _find(self, names: Sequence[str]) -> Iterator[ReferencedFile]:
        """The files with one of ``names``; of those in the same folder, first the earlier name."""
        found = (each for name in names for each in self.files.settings(name))
        return iter(sorted(found, key=lambda each: -each.path.count("/")))


def _describe(error: InputError) -> str:
    problem = error.problems[0]
    return "; ".join(filter(None, (problem.message, problem.hint)))


def _make_unavailable(error: InputError) -> TargetJudgeSpec:
    return TargetJudgeSpec(provider="openai", unavailable=_describe(error))


def _read_targets_file(source: ReferencedFile) -> YamlDocument:
    root, problems = read_tree(source.data, file=source.file)
    if isinstance(root, SequenceNode):
        root = make_mapping({LIST_KEYS[1]: root}, root.place)
    if not isinstance(root, MappingNode):
        root = make_mapping({}, root.place)
    if any(each.severity == "error" for each in problems):
        raise InputError(problems)
    return make_document(root, file=source.file, problems=problems)


def _iter_targets(document: YamlDocument) -> Iterator[Target]:
    for key in LIST_KEYS:
        listed = document.value((key,))
        for index, given in enumerate(listed if isinstance(listed, list) else ()):
            name = _find_target_name(given) if isinstance(given, Mapping) else None
            if not isinstance(given, Mapping) or not isinstance(name, str):
                continue
            inner = given.get("config")
            settings = {**(inner if isinstance(inner, Mapping) else {}), **given}
            provider = given.get("provider", given.get("id", ""))
            kind, _, model = provider.partition(":") if isinstance(provider, str) else ("", "", "")
            if model and kind in MODEL_PROVIDERS:
                settings.setdefault("model", model)
            yield Target(
                name=name,
                provider=kind if kind in MODEL_PROVIDERS else str(provider),
                document=document,
                at=(key, index),
                settings=settings,
            )


def _find_own_target(given: Mapping[str, Json]) -> Json:
    """The listed target that one in an eval file stands for, else its own name."""
    other = next((given[key] for key in ("use_target", "extends") if given.get(key)), "")
    return other or _find_target_name(given)


def _find_target_name(given: Mapping[str, Json]) -> Json:
    """The name of a target; one in an eval file may only name another one."""
    return next((given[key] for key in ("name", "label", "id", "use_target") if given.get(key)), "")


def _complete_azure(fields: dict[str, Any]) -> None:
    """Complete the name of a resource to its URL; `v1` is agentci's default version."""
    resource = fields.get("base_url", "")
    if resource and "://" not in resource:
        fields["base_url"] = f"https://{resource}.openai.azure.com"
    if fields.get("api_version") == "v1":
        del fields["api_version"]
