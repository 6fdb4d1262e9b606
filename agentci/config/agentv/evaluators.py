"""Read the evaluator lists of an eval file; each list is built once and shared by all cases."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from msgspec import Struct, field

from agentci._util.text.suggest import find_nearest, join_with_or, quote_name, suggest_name
from agentci.config.agentv.files import FileResolver
from agentci.config.agentv.schema import MEMBER_LIST_KEYS, make_entry_schema
from agentci.config.agentv.targets import TargetJudges
from agentci.config.schema import describe_value
from agentci.config.validate import read_part
from agentci.config.yaml_document import YamlDocument
from agentci.config.yaml_nodes import KeyPath
from agentci.errors import InputError
from agentci.evaluators.agentv import registry
from agentci.evaluators.agentv.agentv_evaluator import AgentvContext, AgentvEvaluator, AgentvVersion
from agentci.evaluators.agentv.inline_assertions import TransformSpec, build_transformed
from agentci.evaluators.agentv.judge_templates import TemplateReader
from agentci.evaluators.agentv.payload import PayloadFormat
from agentci.evaluators.fields import REPEAT_HAS_NO_EFFECT, REPEAT_HINT, check_repeat_by
from agentci.evaluators.judge_config import JudgeSettings
from agentci.model.values import Json, JsonObject, Place, Problem

MAX_PATTERN: Final = 30


def make_evaluator_name(
    entry: JsonObject, *, version: AgentvVersion, taken: Collection[str]
) -> str | None:
    """The name of an entry, or a generated one; None if a required name is missing or invalid.

    Names are required before AgentV 4.

    Args:
        taken: names in the same list, which a generated name must not repeat.
    """
    given = entry.get("name")
    if isinstance(given, str) and given.strip():
        return given
    if version == "seed" or given is not None:
        return None
    return make_unique_name(_derive_name(entry, str(entry["type"]).replace("_", "-")), taken)


def make_unique_name(name: str, taken: Collection[str]) -> str:
    """Append a number to ``name`` if it is ``taken``."""
    numbered = (f"{name}-{number}" for number in count(2))
    return name if name not in taken else next(each for each in numbered if each not in taken)


TRANSFORM_KEY: Final = "transform"
# Types whose `value` is not part of a name.
UNNAMED_TYPES: Final = ("python", "javascript", "webhook", "similar")


def _derive_name(entry: JsonObject, kind: str) -> str:
    value: Json = None if kind in UNNAMED_TYPES else entry.get("value", entry.get("skill"))
    if isinstance(value, list):
        return f"{kind}-{len(value)}"
    if isinstance(value, str):
        return f"{kind}-{value[:MAX_PATTERN]}" if kind == "regex" else f"{kind}-{value}"
    return kind


class EvalFileTemplates(Struct, frozen=True, kw_only=True):
    """Implements ``TemplateFiles`` for one eval file.

    Attributes:
        problems: receives warnings.
    """

    files: FileResolver
    problems: list[Problem]

    def text(self, named: str, place: Place) -> str | None:
        """See ``TemplateFiles``."""
        return self.files.read(named, place).text if self.files.has(named) else None

    def path(self, named: str, place: Place) -> str:
        """See ``TemplateFiles``."""
        return self.files.path(named, place)

    def warn(self, problem: Problem) -> None:
        """See ``TemplateFiles``."""
        self.problems.append(problem)


# The type and the name of the default judge.
DEFAULT_TYPE: Final = "llm_judge"
RUBRICS_TYPE: Final = "rubrics"
# AgentV's names of the evaluator of a case's `rubrics`.
RUBRIC_NAMES: Final[dict[AgentvVersion, str]] = {"seed": "rubric", "v4": "rubrics"}
# Keys of programs and judges that AgentV does not have.
OWN_KEYS: Final = ("cache", "repeat_by")
EVALUATOR_EXAMPLE: Final = "- {name: mine, type: code_judge, script: [python3, mine.py]}"


class EvaluatorReader(Struct, kw_only=True):
    """Reads the evaluators of one eval file.

    Attributes:
        default_threshold: the score threshold if neither the entry nor the case sets one.
        problems: errors in the entries, and warnings.
        required_names: names of the evaluators whose entries set `required`.
        made_names: names of evaluators whose entries set none.
    """

    document: YamlDocument
    files: FileResolver
    version: AgentvVersion
    default_threshold: float
    wire: PayloadFormat
    judge_settings: JudgeSettings
    targets: TargetJudges
    problems: list[Problem] = field(default_factory=list)
    required_names: set[str] = field(default_factory=set)
    made_names: set[str] = field(default_factory=set)
    _evaluators_by_place: dict[tuple[KeyPath, float], tuple[AgentvEvaluator, ...]] = field(
        default_factory=dict
    )

    @property
    def templates(self) -> TemplateReader:
        """The reader of judge prompts."""
        files = EvalFileTemplates(files=self.files, problems=self.problems)
        return TemplateReader(files=files, only_by_scheme=self.version == "v4")

    def read_list(self, at: KeyPath, *, threshold: float) -> tuple[AgentvEvaluator, ...]:
        """Read the evaluators of the list at ``at``; invalid entries are left out.

        Args:
            threshold: the score threshold for entries that set none.
        """
        if (at, threshold) not in self._evaluators_by_place:
            self._evaluators_by_place[at, threshold] = tuple(self._read_entries(at, threshold))
        return self._evaluators_by_place[at, threshold]

    def read_default(self, *, threshold: float) -> tuple[AgentvEvaluator, ...]:
        """The default judge, for cases and turns without evaluators; empty if no model is set."""
        if not self.judge_settings.is_named:
            return ()
        if ((), threshold) not in self._evaluators_by_place:
            judge = self._build_evaluator({}, DEFAULT_TYPE, DEFAULT_TYPE, ("judge",), threshold)
            self._evaluators_by_place[(), threshold] = () if judge is None else (judge,)
        return self._evaluators_by_place[(), threshold]

    def read_rubrics(self, at: KeyPath, *, threshold: float) -> tuple[AgentvEvaluator, ...]:
        """The judge for the `rubrics` of a case at ``at``; empty if there are none."""
        listed = self.document.value(at)
        if listed is None:
            return ()
        spec = {RUBRICS_TYPE: listed}
        judge = self._build_evaluator(spec, RUBRIC_NAMES[self.version], RUBRICS_TYPE, at, threshold)
        return () if judge is None else (judge,)

    def _read_entries(self, at: KeyPath, threshold: float) -> list[AgentvEvaluator]:
        entries = self.document.value(at)
        if not isinstance(entries, list):
            self._add_problem(f"`{at[-1]}` must be a list, not {self._describe_value(at)}", at)
            return []
        evaluators: list[AgentvEvaluator] = []
        names: set[str] = set()
        for index, entry in self._group_criteria(entries):
            path = (*at, index)
            evaluator = self._read_entry(entry, path, names, threshold)
            if evaluator is not None:
                evaluators.append(evaluator)
        return evaluators

    def _group_criteria(self, entries: Sequence[Json]) -> Iterator[tuple[int, Json]]:
        """The entries with their indexes; since AgentV 4, all texts in a list form one entry."""
        texts = [each for each in entries if self._is_criterion(each)]
        for index, entry in enumerate(entries):
            if not self._is_criterion(entry):
                yield index, entry
            elif texts:
                yield index, {"type": RUBRICS_TYPE, "criteria": texts, "weight": len(texts)}
                texts = []

    def _is_criterion(self, entry: Json) -> bool:
        return self.version == "v4" and isinstance(entry, str) and bool(entry.strip())

    def _read_entry(
        self, entry: Json, at: KeyPath, names: set[str], threshold: float
    ) -> AgentvEvaluator | None:
        if not isinstance(entry, Mapping):
            message = (
                "each evaluator must be a mapping with `name` and `type`, not "
                f"{self._describe_value(at)}"
            )
            self._add_problem(message, at, hint=f"for example `{EVALUATOR_EXAMPLE}`")
            return None
        kind = self._find_type(entry, at)
        if kind is None:
            return None
        name = make_evaluator_name(entry, version=self.version, taken=names)
        if name is None:
            return self._handle_missing_name(entry, kind, at, threshold)
        if name in names:  # AgentV runs both under one name
            unique = make_unique_name(name, names)
            warning = Problem(
                message=f"a second evaluator {quote_name(name)} is named {quote_name(unique)}",
                place=self.document.place_of((*at, "name")),
                hint="rename one of them; `gate.evaluators` and `--only` take the new name",
                severity="warning",
            )
            self.problems.append(warning)
            name = unique
        names.add(name)
        if entry.get("name") is None:
            self.made_names.add(name)
        if entry.get("required") not in (None, False):
            self.required_names.add(name)
        if entry.get(TRANSFORM_KEY) is None:
            return self._build_evaluator(entry, name, kind, at, threshold)
        own = {key: value for key, value in entry.items() if key != TRANSFORM_KEY}
        evaluator = self._build_evaluator(own, name, kind, at, threshold)
        return evaluator and self._transform(evaluator, entry[TRANSFORM_KEY], at, threshold)

    def _transform(
        self, evaluator: AgentvEvaluator, given: Json, at: KeyPath, threshold: float
    ) -> AgentvEvaluator | None:
        """The evaluator of what the functions in ``given`` make of the output."""
        if not isinstance(given, Mapping) and not (isinstance(given, str) and given.strip()):
            hint = "for example `output.trim()` or file://PATH:FUNCTION"
            self._add_problem("`transform` must be JavaScript", (*at, TRANSFORM_KEY), hint=hint)
            return None
        spec, problems = read_part(
            self.document,
            TransformSpec,
            at=(*at, TRANSFORM_KEY),
            noun="transform",
            data=given if isinstance(given, Mapping) else {"steps": [given]},
        )
        self.problems += problems
        if spec is None:
            return None
        try:
            return build_transformed(evaluator, spec, self._make_context(at, (), threshold))
        except InputError as error:
            self.problems += error.problems
            return None

    def _handle_missing_name(
        self, entry: JsonObject, kind: str, at: KeyPath, threshold: float
    ) -> AgentvEvaluator | None:
        if entry.get("name") is not None:  # the model reports the invalid name
            return self._build_evaluator(entry, entry["name"], kind, at, threshold)
        message = f"an evaluator of type `{kind}` has no `name`"
        self._add_problem(message, at, hint="add `name: ...`")
        return None

    def _build_evaluator(
        self, entry: JsonObject, name: Json, kind: str, at: KeyPath, threshold: float
    ) -> AgentvEvaluator | None:
        members: tuple[AgentvEvaluator, ...] = ()
        if registry.AGENTV_TYPES[kind].has_members:
            lists = [key for key in MEMBER_LIST_KEYS if key in entry]
            members = tuple(
                each for key in lists for each in self.read_list((*at, key), threshold=threshold)
            )
            if not members and any(entry[key] for key in lists):
                return None  # all of them have errors, which are reported
            entry = {key: value for key, value in entry.items() if key not in lists}
        if (
            entry.get("repeat") is not None
            and "repeat" not in registry.AGENTV_TYPES[kind].entry.model_fields
        ):
            self._add_problem(REPEAT_HAS_NO_EFFECT, (*at, "repeat"), hint=REPEAT_HINT)
            return None
        entry = self._drop_ignored_keys(entry, kind, at)
        spec, problems = read_part(
            self.document,
            registry.AGENTV_TYPES[kind].entry,
            at=at,
            noun="evaluator",
            data=registry.make_entry_data(entry, name, kind),
            make_schema=lambda: make_entry_schema(kind),
        )
        self.problems += problems
        if spec is None:
            return None
        context = self._make_context(at, members, threshold)
        try:
            check_repeat_by(spec, of=context.place, at=self.document.place_of((*at, "repeat_by")))
            return registry.AGENTV_TYPES[kind].build(spec, context)
        except InputError as error:
            self.problems += error.problems
            return None

    def _drop_ignored_keys(self, entry: JsonObject, kind: str, at: KeyPath) -> JsonObject:
        """Leave out unknown keys, which AgentV ignores, with a warning each.

        A key that resembles a known one stays, and becomes an error: it may be a misspelled limit.
        So does a key of agentci's own, which is here by mistake.
        """
        model = registry.AGENTV_TYPES[kind].entry
        unknown = [key for key in entry if key not in model.model_fields]
        if not unknown or model.model_config.get("extra") == "allow":
            return entry
        known = [*make_entry_schema(kind)["properties"], *OWN_KEYS]
        ignored = {key for key in unknown if key not in known and not find_nearest(key, known)}
        for key in ignored:
            message = f"unknown key {quote_name(key)} is ignored"
            place = self.document.place_of((*at, key), key=True)
            self.problems.append(Problem(message=message, place=place, severity="warning"))
        return {key: value for key, value in entry.items() if key not in ignored}

    def _find_type(self, entry: JsonObject, at: KeyPath) -> str | None:
        """The registered type of an entry; None if there is none, which is reported."""
        given = entry.get("type")
        name = registry.normalize_type_name(given) if isinstance(given, str) else ""
        if name in registry.AGENTV_TYPES:
            return name
        if name in registry.UNSUPPORTED_TYPES:
            message = f"evaluator type {quote_name(str(given))} is not supported by agentci"
            self._add_problem(message, (*at, "type"), hint=registry.UNSUPPORTED_TYPES[name])
        elif given is None:
            owner = entry.get("name")
            subject = f"evaluator {quote_name(owner)}" if isinstance(owner, str) else "an evaluator"
            self._add_problem(f"{subject} has no `type`", at, hint="add `type: code_judge`")
        else:
            known = registry.list_known_types()
            message = (
                f"`type` must be {join_with_or(known)}, not {self._describe_value((*at, 'type'))}"
            )
            custom = "the program of a custom type belongs in .agentv/assertions, named as the type"
            hint = suggest_name(name, known) or (custom if isinstance(given, str) else None)
            self._add_problem(message, (*at, "type"), hint=hint)
        return None

    def _make_context(
        self, at: KeyPath, members: tuple[AgentvEvaluator, ...], threshold: float
    ) -> AgentvContext:
        place_of: Callable[[str], Place] = lambda key: self.document.place_of((*at, key))  # noqa: E731
        return AgentvContext(
            place=self.document.place_of(at),
            find_place=place_of,
            version=self.version,
            pass_score=threshold,
            wire=self.wire,
            folder=lambda named: self.files.folder(named, place_of("cwd")),
            home=self.files.home,
            judges=self.judge_settings,
            find_target=self.targets.find,
            templates=self.templates,
            members=members,
        )

    def _add_problem(self, message: str, at: KeyPath, *, hint: str | None = None) -> None:
        place = self.document.place_of(at)
        self.problems.append(Problem(message=message, place=place, hint=hint))

    def _describe_value(self, at: KeyPath) -> str:
        return describe_value(self.document.value(at), self.document.plain_text(at))
